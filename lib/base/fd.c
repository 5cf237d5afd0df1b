#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/clock.h"
#include "base/wait.h"

static int
fd_wait(int fd, short events, const char *name, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "'%s'", name);
	return 0;
}

int
fd_ready(int fd, int watch, int ms, const char *name, struct err *e)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = watch } };
	int r;

	if (poll(p, 2, ms) < 0)
		return errno == EINTR ? 0 : err_sys(e, "'%s'", name);
	if (p[0].revents == 0 && p[1].revents != 0 &&
	    (r = wait_orphan(watch, 0, e)) < 0)
		return r;
	/* if poll refuses `watch', count that as ready; otherwise callers would loop */
	return p[0].revents != 0 || p[1].revents != 0;
}

/* Like fd_read, but read at byte `at', or at the current position of fd if at < 0. */
static int
fd_take(int fd, int watch, off_t at, void *p, size_t n, size_t *got,
    const char *name, struct err *e)
{
	ssize_t k;
	int r;

	*got = 0;
	n = n > SSIZE_MAX ? SSIZE_MAX : n;
	for (;;) {
		if (watch >= 0 && (r = fd_ready(fd, watch, -1, name, e)) <= 0) {
			if (r < 0)
				return r;
			continue;
		}
		k = at < 0 ? read(fd, p, n) : pread(fd, p, n, at);
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
fd_read(int fd, int watch, void *p, size_t n, size_t *got, const char *name,
    struct err *e)
{
	return fd_take(fd, watch, -1, p, n, got, name, e);
}

int
fd_read_at(int fd, off_t at, void *p, size_t n, size_t *got, const char *name,
    struct err *e)
{
	return fd_take(fd, -1, at, p, n, got, name, e);
}

int
fd_read_all(int fd, off_t at, void *to, size_t n, const char *name, struct err *e)
{
	unsigned char *p = to;
	size_t got;
	int r;

	for (; n != 0; p += got, at += (off_t)got, n -= got) {
		if ((r = fd_take(fd, -1, at, p, n, &got, name, e)) < 0)
			return r;
		if (got == 0)
			return err_set(e, ERR_REFUSED, "'%s' became shorter while it "
			    "was read: try again when nothing writes it", name);
	}
	return 0;
}

/* Write all n bytes at byte `at', or at the current position of fd if at < 0. */
static int
fd_put(int fd, off_t at, const void *from, size_t n, const char *name, struct err *e)
{
	const unsigned char *p = from;
	ssize_t k;
	int r;

	while (n != 0) {
		k = n > SSIZE_MAX ? SSIZE_MAX : (ssize_t)n;
		k = at < 0 ? write(fd, p, (size_t)k) : pwrite(fd, p, (size_t)k, at);
		if (k > 0) {
			at += at < 0 ? 0 : k;
			p += k;
			n -= (size_t)k;
		} else if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if ((r = fd_wait(fd, POLLOUT, name, e)) < 0)
				return r;
		} else if (k < 0 && errno != EINTR) {
			if (e != NULL && errno == EPIPE)
				e->quiet = 1;	/* reached only if SIGPIPE is ignored */
			return err_sys(e, "'%s'", name);
		}
	}
	return 0;
}

int
fd_write(int fd, const void *p, size_t n, const char *name, struct err *e)
{
	return fd_put(fd, -1, p, n, name, e);
}

int
fd_write_at(int fd, off_t at, const void *p, size_t n, const char *name,
    struct err *e)
{
	return fd_put(fd, at, p, n, name, e);
}

void
fd_pipe_size(int fd, int n)
{
	(void)fcntl(fd, F_SETPIPE_SZ, n);
}

/* Return 1 if fd has the device number of a terminal. Consoles, /dev/tty and
 * pseudo-terminals have fixed numbers on Linux. */
static int
fd_is_called_terminal(int fd)
{
	struct stat st;
	unsigned n;

	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	n = major(st.st_rdev);
	return n == 4 || n == 5 || (n >= 136 && n <= 143);
}

int
fd_input(int fd, const char *name, struct stat *st, struct err *e)
{
	struct stat out;

	if (fstat(fd, st) < 0)
		return err_sys(e, "'%s'", name);
	if (S_ISREG(st->st_mode) && fstat(STDOUT_FILENO, &out) == 0 &&
	    st->st_dev == out.st_dev && st->st_ino == out.st_ino)
		return err_set(e, ERR_USAGE, "'%s' is both input and standard "
		    "output: redirect the output to another file", name);
	return 0;
}

int
fd_open(const char *path, enum fd_what what, int *fd, struct stat *st, struct err *e)
{
	int r;

	/* O_NONBLOCK: otherwise opening a FIFO in place of a file would block */
	*fd = openat(AT(path), O_RDONLY | O_CLOEXEC |
	    (what == FD_NAMED ? 0 : O_NONBLOCK) |
	    (what == FD_OURS ? O_NOFOLLOW : 0));
	if (*fd < 0)
		return what != FD_OURS || errno != ELOOP ? err_sys(e, "'%s'", path) :
		    err_set(e, ERR_SYS, "'%s' is a symbolic link: replace it with the file", path);
	r = what != FD_OURS ? fd_input(*fd, path, st, e) :
	    fstat(*fd, st) < 0 ? err_sys(e, "'%s'", path) : 0;
	if (r == 0 && what != FD_NAMED && !S_ISREG(st->st_mode))
		r = err_set(e, ERR_DATA, "corrupt: '%s' is not a regular file",
		    path);
	if (r < 0) {
		(void)close(*fd);
		*fd = -1;
	}
	return r;
}

/* Return 1 if errno says only that fd, a directory, cannot be synced, as on CIFS, FUSE
 * and folders shared with a virtual machine. EIO is not included: it reports lost
 * data. */
static int
fd_unsynced(int fd)
{
	const int why = errno;
	struct stat st;
	const int dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

	errno = why;
	return dir && (why == EINVAL || why == ENOTSUP || why == ENOSYS ||
	    why == EBADF || why == ENOENT);
}

int
fd_sync(int fd, const char *name, struct err *e)
{
	return fsync(fd) == 0 || fd_unsynced(fd) ? 0 : err_sys(e, "'%s'", name);
}

int
fd_sync_path(const char *path, const char *within, struct err *e)
{
	int fd = openat(AT(path), O_RDONLY | O_NONBLOCK | O_CLOEXEC), r = 0;

	if (fd >= 0)
		r = fd_sync(fd, path, e);
	else if (errno != EACCES || within == NULL ||
	    (fd = openat(AT(within), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
	    syncfs(fd) < 0)
		r = err_sys(e, "'%s'", path);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

int
fd_folder(const char *path, char dir[PATH_MAX])
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	return snprintf(dir, PATH_MAX, "%.*s", n > 1 ? (int)n - 1 : 1,
	    n > 0 ? path : ".") < PATH_MAX;
}

int
fd_sync_name(const char *path, struct err *e)
{
	const size_t n = strlen(path);
	char dir[PATH_MAX];

	if (n > 0 && path[n - 1] == '/')	/* path is a directory */
		return fd_sync_path(path, path, e);
	errno = ENAMETOOLONG;
	return fd_folder(path, dir) ? fd_sync_path(dir, path, e) :
	    err_sys(e, "'%s'", path);
}

int
fd_lock(const char *path, int how, int *fd, struct err *e)
{
	struct stat st;
	int r = 0;

	/* O_NONBLOCK: otherwise opening a FIFO in place of the lock file would block */
	*fd = openat(AT(path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW |
	    O_NONBLOCK, 0600);
	if (*fd < 0)
		return errno != ELOOP ? err_sys(e, "'%s'", path) :
		    err_set(e, ERR_SYS, "'%s' is a symbolic link: remove it", path);
	if (fstat(*fd, &st) < 0)
		r = err_sys(e, "'%s'", path);
	else if (!S_ISREG(st.st_mode))
		r = err_set(e, ERR_REFUSED, "'%s' is not a regular file and cannot "
		    "serve as a lock: remove it", path);
	while (r == 0 && how != 0 && flock(*fd, how) < 0)
		if (errno == EWOULDBLOCK)
			r = 1;
		else if (errno != EINTR)
			r = err_sys(e, "'%s'", path);
	if (r != 0) {
		(void)close(*fd);
		*fd = -1;
	}
	return r;
}

void
fd_linger(int fd)
{
	const double until = clock_now() + (double)FD_LINGER_MS / 1e3;
	struct stat st;
	char drop[1 << 14];
	size_t got, n = 0;
	double left;
	int k;

	if (fstat(fd, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode)))
		return;
	while (n < FD_LINGER && (left = until - clock_now()) > 0) {
		k = fd_ready(fd, -1, (int)(left * 1e3) + 1, "", NULL);
		if (k == 0)
			continue;
		if (k < 0 || fd_read(fd, -1, drop, sizeof(drop), &got, "",
		    NULL) < 0 || got == 0)
			return;
		n += got;
	}
}

int
fd_is_pipe(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int
fd_is_terminal(int fd)
{
	return isatty(fd) || (errno == EACCES && fd_is_called_terminal(fd));
}

size_t
fd_most(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return 256;
	if (l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	return (size_t)l.rlim_cur;
}
