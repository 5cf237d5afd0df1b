#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/temp.h"

int
temp_open(int *fd, struct err *e)
{
	const char *dir = getenv("TMPDIR");
	size_t n;
	char *path;
	int r = 0;

	if (dir == NULL || dir[0] == '\0')
		dir = "/tmp";
	n = strlen(dir) + sizeof("/ace.XXXXXX");
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s/ace.XXXXXX", dir);
	if ((*fd = mkostemp(path, O_CLOEXEC)) < 0)
		r = err_sys(e, "'%s'", path);
	else
		(void)unlinkat(AT(path), 0);
	alloc_free(path);
	return r;
}

/* A random end for path, in the i-th try. */
static void
temp_random(char *path, int i)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	enum { DIGITS = sizeof(digits) - 1 };
	char *at = path + strlen(path) - 6;
	uint64_t r;
	int k;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) < 0)
		r = ((uint64_t)getpid() << 20 ^ (uint64_t)time(NULL)) *
		    (2 * (uint64_t)i + 1);
	for (k = 0; k < 6; k++, r /= DIGITS)
		at[k] = digits[r % DIGITS];
}

/* As mkostemp(3) does, but with the mode: who changes that afterwards needs a
 * system call by which anything can be opened to others. */
static int
temp_new(char *path, mode_t mode)
{
	enum { TRIES = 1000 };
	int fd = -1, i;

	for (i = 0; i < TRIES && fd < 0; i++) {
		temp_random(path, i);
		fd = openat(AT(path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

int
temp_create(char *path, mode_t mode, int *fd, struct err *e)
{
	struct stat st;
	int locked;

	for (;;) {
		if ((*fd = temp_new(path, mode)) < 0)
			return err_sys(e, "'%s'", path);
		locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
		/* a file system without locks has nobody who sweeps */
		if (!locked && errno != EWOULDBLOCK)
			return 0;
		if (fstat(*fd, &st) < 0)
			break;
		if (locked && st.st_nlink == 1)
			return 0;
		/* another process removed it before it was locked, or will */
		(void)close(*fd);
	}
	(void)err_sys(e, "'%s'", path);
	(void)close(*fd);
	(void)unlinkat(AT(path), 0);
	return -ERR_SYS;
}

/* ---- in the place of another file ---- */

int
temp_trusts(const char *name)
{
	const char *slash = strrchr(name, '/');
	char dir[PATH_MAX];
	struct stat l, d;
	int n;

	n = slash == NULL ? snprintf(dir, sizeof(dir), ".") :
	    snprintf(dir, sizeof(dir), "%.*s", (int)(slash - name) + 1, name);
	return n < (int)sizeof(dir) &&
	    fstatat(AT(name), &l, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstatat(AT(dir), &d, 0) == 0 && ((d.st_mode & S_IWOTH) == 0 ||
	    l.st_uid == geteuid() || l.st_uid == d.st_uid);
}

/* Where the link `at' leads to, from where we are: allocated, or NULL. */
static char *
temp_next(const char *at, const char *to, size_t len, struct err *e)
{
	const char *slash = to[0] != '/' ? strrchr(at, '/') : NULL;
	const size_t dir = slash != NULL ? (size_t)(slash - at) + 1 : 0;
	char *next = alloc_get(dir + len + 1, 1, e);

	if (next != NULL) {
		memcpy(next, at, dir);
		memcpy(next + dir, to, len);
		next[dir + len] = '\0';
	}
	return next;
}

int
temp_target(const char *path, char **target, struct err *e)
{
	enum { HOPS = 40 };	/* as many as the kernel follows */
	char to[PATH_MAX], *at = alloc_dup(path, e), *next;
	ssize_t len;
	int i, r = 0;

	for (i = 0; r == 0 && at != NULL &&
	    (len = readlinkat(AT(at), to, sizeof(to))) >= 0; i++) {
		errno = ELOOP;
		if (i == HOPS || (size_t)len == sizeof(to)) {
			r = err_sys(e, "'%s'", path);
		} else if (!temp_trusts(at)) {
			r = err_set(e, ERR_REFUSED, "'%s' is a link that somebody "
			    "else made where all may make names: remove it, or "
			    "name what it leads to", at);
		} else {
			next = temp_next(at, to, (size_t)len, e);
			alloc_free(at);
			at = next;
		}
	}
	/* no link, or nothing there; for anything else, to go on would put a
	 * file where the link is */
	if (r == 0 && at != NULL && errno != EINVAL && errno != ENOENT)
		r = err_sys(e, "'%s'", path);
	if (r < 0) {
		alloc_free(at);
		at = NULL;
	}
	*target = at;
	return r < 0 || at != NULL ? r : -ERR_SYS;
}

int
temp_folder(const char *path, char **target, struct err *e)
{
	char *at = alloc_dup(path, e);
	size_t n = at != NULL ? strlen(at) : 0;
	int r;

	*target = NULL;
	for (; n > 1 && at[n - 1] == '/'; n--)
		at[n - 1] = '\0';
	r = at != NULL ? temp_target(at, target, e) : -ERR_SYS;
	alloc_free(at);
	return r;
}

/* path with TEMP_NAME, allocated. */
static char *
temp_named(const char *path, struct err *e)
{
	size_t n = strlen(path) + sizeof(TEMP_NAME);
	char *temp = alloc_get(n, 1, e);

	if (temp != NULL)
		(void)snprintf(temp, n, "%s" TEMP_NAME, path);
	return temp;
}

int
temp_beside(const char *path, char **temp, int *fd, struct err *e)
{
	int r;

	if ((*temp = temp_named(path, e)) == NULL)
		return -ERR_SYS;
	if ((r = temp_create(*temp, 0666, fd, e)) < 0) {
		alloc_free(*temp);
		*temp = NULL;
	}
	return r;
}

int
temp_place(int fd, const char *temp, const char *path, const char *name,
    struct err *e)
{
	/* keeps the file locked until it has its name, for temp_sweep */
	int lock = fcntl(fd, F_DUPFD_CLOEXEC, 0), r = 0;

	if (lock < 0) {
		r = err_sys(e, "'%s'", name);
		(void)close(fd);
	} else if (close(fd) < 0 && errno != EINTR) {
		r = err_sys(e, "'%s'", name);
	} else if (renameat(AT(temp), AT(path)) < 0) {
		r = err_sys(e, "'%s'", path);
	}
	if (lock >= 0)
		(void)close(lock);
	return r;
}

int
temp_spare(const char *path)
{
	struct stat st;
	const int fd = openat(AT(path), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && st.st_uid == geteuid() &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

int
temp_over(const char *path, const char *spare, char **temp, struct err *e)
{
	if ((*temp = temp_named(path, e)) == NULL)
		return -ERR_SYS;
	temp_random(*temp, 0);
	if (renameat(AT(spare), AT(*temp)) == 0)
		return 1;
	alloc_free(*temp);
	*temp = NULL;
	return 0;
}

/* ---- what others left ---- */

void
temp_sweep(const char *dir)
{
	const size_t fixed = sizeof(TEMP_NAME) - 7;	/* without the Xs */
	const struct dirent *de;
	DIR *d = scan_open(dir);
	size_t n;
	int fd;

	while (d != NULL && (de = readdir(d)) != NULL) {
		n = strlen(de->d_name);
		if (n < fixed + 6 || strncmp(de->d_name + n - fixed - 6,
		    TEMP_NAME, fixed) != 0)
			continue;
		fd = openat(dirfd(d), de->d_name, O_RDONLY | O_CLOEXEC |
		    O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)unlinkat(dirfd(d), de->d_name, 0);
		if (fd >= 0)
			(void)close(fd);
	}
	if (d != NULL)
		(void)closedir(d);
}

enum { TEMP_CHUNK = 256 * 1024 };

int
temp_copy(int *fd, uint64_t *size, struct io *in, struct err *e)
{
	unsigned char *p = alloc_get(TEMP_CHUNK, 1, e);
	struct io *out = NULL;
	size_t got = TEMP_CHUNK;
	int r = p != NULL ? 0 : -ERR_SYS;

	*size = 0;
	if (r == 0 && (r = temp_open(fd, e)) == 0)
		r = io_create_fd(&out, *fd, "<temporary>", e);
	while (r == 0 && got == TEMP_CHUNK) {
		if ((r = io_read(in, p, TEMP_CHUNK, &got, e)) == 0)
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
