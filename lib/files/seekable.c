#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/temp.h"
#include "files/seekable.h"

enum { SEEKABLE_CHUNK = 256 * 1024 };

static int
seekable_copy(int *fd, uint64_t *size, struct io *in, struct err *e)
{
	unsigned char *p = alloc_get(SEEKABLE_CHUNK, 1, e);
	struct io *out = NULL;
	size_t got = SEEKABLE_CHUNK;
	int r = p != NULL ? 0 : -ERR_SYS;

	*size = 0;
	if (r == 0 && (r = temp_open(fd, e)) == 0)
		r = io_create_fd(&out, *fd, "<temporary>", e);
	while (r == 0 && got == SEEKABLE_CHUNK) {
		if ((r = io_read(in, p, SEEKABLE_CHUNK, &got, e)) == 0)
			r = io_write(out, p, got, e);
		*size += got;
	}
	if (r == 0)
		r = io_flush(out, e);
	if (r == 0 && lseek(*fd, 0, SEEK_SET) < 0)
		r = err_sys(e, "'<temporary>'");
	io_free(out);
	alloc_free(p);
	if (r < 0 && *fd >= 0) {
		(void)close(*fd);
		*fd = -1;
	}
	return r;
}

int
seekable_open(int *fd, uint64_t *size, const char *path, struct err *e)
{
	int std = path == NULL || strcmp(path, "-") == 0;
	struct io *in = NULL;
	struct stat st;
	int from, r;

	*fd = -1;
	from = std ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
	    open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0) {
		r = err_sys(e, "'%s'", std ? "<stdin>" : path);
	} else if (S_ISREG(st.st_mode) && lseek(from, 0, SEEK_CUR) == 0) {
		*fd = from;
		*size = (uint64_t)st.st_size;
		return 0;
	} else if ((r = io_open_fd(&in, from, std ? "<stdin>" : path, e)) == 0) {
		r = seekable_copy(fd, size, in, e);
	}
	io_free(in);
	if (from >= 0)
		(void)close(from);
	return r;
}

int
seekable_pread(int fd, void *p, uint64_t n, uint64_t at, const char *name,
    struct err *e)
{
	unsigned char *to = p;
	ssize_t k;

	while (n != 0) {
		k = pread(fd, to, (size_t)n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_sys(e, "'%s'", name);
		if (k == 0)
			return err_data(e, at, "truncated: '%s'", name);
		to += k;
		at += (uint64_t)k;
		n -= (uint64_t)k;
	}
	return 0;
}
