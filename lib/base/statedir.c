#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/statedir.h"
#include "base/temp.h"

int
statedir_open(struct statedir *s, const char *dir, struct err *e)
{
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "state '%s'", dir);
	if (stat(dir, &st) < 0)
		return err_sys(e, "state '%s'", dir);
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return err_sys(e, "state '%s'", dir);
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return err_set(e, ERR_REFUSED,
		    "state '%s' can be changed by other users", dir);
	s->lock = -1;
	s->dir = alloc_dup(dir, e);
	return s->dir != NULL ? 0 : -ERR_SYS;
}

int
statedir_durable(const struct statedir *s, struct err *e)
{
	char *parent = statedir_path(s, "..", e);
	int fd, r = 0;

	if (parent == NULL)
		return -ERR_SYS;
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fsync(fd) < 0 && errno != EINVAL)
		r = err_sys(e, "'%s'", parent);
	else if (fd < 0 && errno != EACCES)
		r = err_sys(e, "'%s'", parent);
	else if (fd < 0 && (fd = open(s->dir, O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC)) >= 0 && syncfs(fd) < 0)
		/* the parent may not be opened: sync its whole file system */
		r = err_sys(e, "'%s'", s->dir);
	if (fd >= 0)
		(void)close(fd);
	alloc_free(parent);
	return r;
}

/* name is stem.STEP */
static int
statedir_kept(const char *name, const char *stem)
{
	size_t n = strlen(stem);

	if (strncmp(name, stem, n) != 0 || name[n] != '.')
		return 0;
	name += n + 1;
	return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

void
statedir_prune(const struct statedir *s, const char *keep, const char *too)
{
	const struct dirent *d;
	DIR *dir = opendir(s->dir);

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if ((statedir_kept(d->d_name, "momentum") ||
		    statedir_kept(d->d_name, "history")) &&
		    (keep == NULL || strcmp(d->d_name, keep) != 0) &&
		    (too == NULL || strcmp(d->d_name, too) != 0))
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	if (dir != NULL)
		(void)closedir(dir);
}

static int
statedir_locked(struct statedir *s, const char *name, int wait, struct err *e)
{
	char *path = statedir_path(s, name, e);
	int r = 0;

	if (path == NULL)
		return -ERR_SYS;
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (s->lock >= 0 && (r = flock(s->lock, wait ? LOCK_EX :
	    LOCK_EX | LOCK_NB)) < 0 && errno == EINTR)
		;
	if (s->lock < 0 || (r < 0 && errno != EWOULDBLOCK))
		r = err_sys(e, "'%s'", path);
	else if (r < 0)
		r = err_set(e, ERR_REFUSED, "state '%s' is in use by another "
		    "process", s->dir);
	alloc_free(path);
	if (r == 0)
		temp_sweep(s->dir);
	return r;
}

int
statedir_lock_as(struct statedir *s, const char *name, struct err *e)
{
	return statedir_locked(s, name, 0, e);
}

int
statedir_wait(struct statedir *s, const char *name, struct err *e)
{
	return statedir_locked(s, name, 1, e);
}

int
statedir_lock(struct statedir *s, struct err *e)
{
	return statedir_lock_as(s, "lock", e);
}

void
statedir_close(struct statedir *s)
{
	if (s->lock >= 0)
		(void)close(s->lock);
	alloc_free(s->dir);
	*s = (struct statedir)STATE_INIT;
}

char *
statedir_path(const struct statedir *s, const char *name, struct err *e)
{
	size_t n = strlen(s->dir) + strlen(name) + 2;
	char *p = alloc_get(n, 1, e);

	if (p != NULL)
		(void)snprintf(p, n, "%s/%s", s->dir, name);
	return p;
}

int
statedir_scratch(const struct statedir *s, int *fd, struct err *e)
{
	char *path = statedir_path(s, "scratch" TEMP_NAME, e);
	int r = 0;

	if (path == NULL)
		return -ERR_SYS;
	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0)
		r = err_sys(e, "'%s'", path);
	else
		(void)unlink(path);
	alloc_free(path);
	return r;
}
