#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "files/seekable.h"

int
seekable_open(int *fd, uint64_t *size, const char *path, struct err *e)
{
	int std = path == NULL || strcmp(path, "-") == 0;
	struct io *in = NULL;
	struct stat st;
	int from, r;

	*fd = -1;
	path = std ? "<stdin>" : path;
	if (!std)
		r = fd_open(path, FD_NAMED, &from, &st, e);
	else if ((from = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) < 0)
		r = err_sys(e, "'%s'", path);
	else
		r = fd_input(from, path, &st, e);
	if (r < 0) {
		;
	} else if (S_ISREG(st.st_mode) && lseek(from, 0, SEEK_CUR) == 0) {
		*fd = from;
		*size = (uint64_t)st.st_size;
		return 0;
	} else if ((r = io_open_fd(&in, from, path, e)) == 0) {
		r = io_to_temp(fd, size, in, e);
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
			return err_data(e, at, "truncated: '%s' became shorter while it "
			    "was read: try again when nothing writes it", name);
		to += k;
		at += (uint64_t)k;
		n -= (uint64_t)k;
	}
	return 0;
}
