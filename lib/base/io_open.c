#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/io_impl.h"

int
io_open_fd(struct io **out, int fd, const char *name, struct err *e)
{
	struct stat st;
	int r;

	*out = NULL;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", name);
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(e, "'%s'", name);
	}
	if (fd_is_terminal(fd))
		return err_set(e, ERR_USAGE,
		    "'%s' is a terminal: a shard stream is binary", name);
	r = io_new(out, fd, 0, name, e);
	if (r < 0)
		return r;
	(*out)->seekable = S_ISREG(st.st_mode);
	(*out)->pipe = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode))
		fd_pipe_size(fd, 1 << 20);
	return 0;
}

int
io_open(struct io **out, const char *path, struct err *e)
{
	int fd, r;

	if (path == NULL || (path[0] == '-' && path[1] == '\0'))
		return io_open_fd(out, STDIN_FILENO, "<stdin>", e);
	*out = NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "'%s'", path);
	r = io_open_fd(out, fd, path, e);
	if (r < 0)
		(void)close(fd);
	else
		io_alone(*out);
	return r;
}

int
io_open_kept(struct io **out, const char *path, struct err *e)
{
	struct stat st;
	int fd, r;

	*out = NULL;
	/* a FIFO in the place of a file would keep us waiting */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "'%s'", path);
	if (fstat(fd, &st) < 0)
		r = err_sys(e, "'%s'", path);
	else if (!S_ISREG(st.st_mode))
		r = err_set(e, ERR_DATA, "corrupt: '%s' is no file", path);
	else
		r = io_open_fd(out, fd, path, e);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	io_alone(*out);
	return 1;
}

int
io_open_mem(struct io **out, const void *p, size_t n, struct err *e)
{
	int r = io_new(out, -1, 0, "<memory>", e);

	if (r < 0)
		return r;
	(*out)->mem = p;
	(*out)->mem_n = n;
	(*out)->seekable = 1;
	return 0;
}

int
io_open_at(struct io **out, int fd, uint64_t at, const char *name,
    struct err *e)
{
	int r = io_new(out, fd, 0, name, e);

	if (r < 0)
		return r;
	(*out)->placed = 1;
	(*out)->place = (off_t)at;
	return 0;
}

int
io_open_from(struct io **out, const struct io_from *f, const char *name,
    struct err *e)
{
	int r = io_new(out, -1, 0, name, e);

	if (r < 0)
		f->free(f->arg);
	else
		(*out)->from = *f;
	return r;
}
