#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/io_impl.h"
#include "base/temp.h"

int
io_create_fd(struct io **out, int fd, const char *name, struct err *e)
{
	struct stat st;
	int r;

	*out = NULL;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "'%s'", name);
	r = io_new(out, fd, 1, name, e);
	if (r == 0)
		(*out)->pipe = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	if (r == 0 && S_ISFIFO(st.st_mode))
		fd_pipe_size(fd, 1 << 20);
	return r;
}

static int
io_create_stdout(struct io **out, int force, struct err *e)
{
	*out = NULL;
	if (!force && isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE,
		    "standard output is a terminal: a shard stream is binary");
	return io_create_fd(out, STDOUT_FILENO, "<stdout>", e);
}

/* Opens a device or a FIFO to write into it as it is. */
static int
io_create_into(struct io **out, const char *path, int force, struct err *e)
{
	int fd, r;

	if ((fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)) < 0)
		return err_sys(e, "'%s'", path);
	if (!force && fd_is_terminal(fd))
		r = err_set(e, ERR_USAGE, "'%s' is a terminal: a shard stream "
		    "is binary (--force)", path);
	else
		r = io_create_fd(out, fd, path, e);
	if (r < 0)
		(void)close(fd);
	else
		(*out)->own = 1;
	return r;
}

/* Makes a temporary file that will become target, new or replaced. */
static int
io_create_beside(struct io **out, const char *path, char *target, struct err *e)
{
	char *tmp;
	int fd, r;

	if ((r = temp_beside(target, &tmp, &fd, e)) < 0)
		return r;
	if ((r = io_new(out, fd, 1, path, e)) < 0) {
		(void)close(fd);
		(void)unlink(tmp);
		alloc_free(tmp);
		return r;
	}
	(*out)->own = 1;
	(*out)->tmp = tmp;
	(*out)->path = target;
	return 0;
}

int
io_create(struct io **out, const char *path, int force, struct err *e)
{
	struct stat st;
	char *target;
	int r;

	if (path == NULL || (path[0] == '-' && path[1] == '\0'))
		return io_create_stdout(out, force, e);
	*out = NULL;
	r = stat(path, &st);
	if (r == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(e, "'%s'", path);
	}
	if (r == 0 && !S_ISREG(st.st_mode))
		return io_create_into(out, path, force, e);
	if (r < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	if ((target = temp_target(path, e)) == NULL)
		return -ERR_SYS;
	if ((r = io_create_beside(out, path, target, e)) < 0)
		alloc_free(target);
	return r;
}

int
io_create_mem(struct io **out, struct err *e)
{
	return io_new(out, -1, 1, "<memory>", e);
}
