/* Streams in memory: files without a name that are never on a disk. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"

/* Open an io that reads a copy of p[n]. Return 0 or the error of io_open_fd. */
static inline int
memory_open(struct io **io, const void *p, size_t n, struct err *e)
{
	const int fd = memfd_create("memory", MFD_CLOEXEC);
	int r;

	if (fd < 0 || write(fd, p, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	if ((r = io_open_fd(io, fd, "<memory>", e)) == 0)
		io_own(*io);
	else
		(void)close(fd);
	return r;
}

/* Open an io that writes to memory.  Its name ends with a second descriptor of this memory, from
 * which learned_of reads. */
static inline int
memory_create(struct io **io, struct err *e)
{
	const int fd = memfd_create("memory", MFD_CLOEXEC);
	char name[32];
	int r;

	(void)snprintf(name, sizeof(name), "memory %d", dup(fd));
	if ((r = io_create_fd(io, fd, name, e)) == 0)
		io_own(*io);
	return r;
}

/* Return the *n bytes written so far to an io of memory_create, valid until exit; NULL: none. */
static inline const unsigned char *
learned_of(struct io *io, size_t *n)
{
	const int fd = atoi(io_name(io) + sizeof("memory"));
	struct stat st;
	void *p;

	if (io_flush(io, NULL) < 0 || fstat(fd, &st) < 0)
		abort();
	*n = (size_t)st.st_size;
	if (*n == 0)
		return NULL;
	p = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
	return p != MAP_FAILED ? p : NULL;
}

#endif
