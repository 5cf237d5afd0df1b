#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

static int
fd_wait(int fd, short events, const char *name, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "'%s'", name);
	return 0;
}

/* Until there is input, or nobody to write to. */
static int
fd_either(int fd, int watch, const char *name, struct err *e)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
	    { .fd = watch } };

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "'%s'", name);
	return p[0].revents != 0 ? 0 : fd_orphan(watch, 0, e);
}

int
fd_read(int fd, int watch, void *p, size_t n, size_t *got, const char *name,
    struct err *e)
{
	ssize_t k;
	int r;

	*got = 0;
	for (;;) {
		if (watch >= 0 && (r = fd_either(fd, watch, name, e)) < 0)
			return r;
		k = read(fd, p, n > SSIZE_MAX ? SSIZE_MAX : n);
		if (k >= 0) {
			*got = (size_t)k;
			return 0;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if ((r = fd_wait(fd, POLLIN, name, e)) < 0)
				return r;
		} else if (errno != EINTR) {
			return err_sys(e, "'%s'", name);
		}
	}
}

int
fd_write(int fd, const void *from, size_t n, const char *name, struct err *e)
{
	const unsigned char *p = from;
	ssize_t k;
	int r;

	while (n != 0) {
		k = write(fd, p, n > SSIZE_MAX ? SSIZE_MAX : n);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		} else if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if ((r = fd_wait(fd, POLLOUT, name, e)) < 0)
				return r;
		} else if (k < 0 && errno != EINTR) {
			if (e != NULL && errno == EPIPE)
				e->quiet = 1;	/* SIGPIPE was ignored */
			return err_sys(e, "'%s'", name);
		}
	}
	return 0;
}

int
fd_orphan(int fd, int ms, struct err *e)
{
	struct pollfd p = { .fd = fd };

	if (poll(&p, 1, ms) <= 0 || (p.revents & (POLLERR | POLLHUP)) == 0)
		return 0;
	errno = EPIPE;
	if (e != NULL)
		e->quiet = 1;	/* as when SIGPIPE is ignored */
	return err_sys(e, "<stdout>");
}

void
fd_pipe_size(int fd, int n)
{
#ifdef F_SETPIPE_SZ
	(void)fcntl(fd, F_SETPIPE_SZ, n);
#else
	(void)fd;
	(void)n;
#endif
}
