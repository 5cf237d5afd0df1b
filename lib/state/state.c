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
#include "state/state.h"

int
state_open(struct state *s, const char *dir, struct err *e)
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

/* What a killed process was writing; only who has the lock makes such files. */
static void
state_tidy(const struct state *s)
{
	static const char *const stem[] = { "residual.", "scratch." };
	const struct dirent *d;
	DIR *dir = opendir(s->dir);
	size_t i, n;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		for (i = 0; i < 2; i++) {
			n = strlen(stem[i]);
			if (strncmp(d->d_name, stem[i], n) == 0 &&
			    strlen(d->d_name) == n + 6)
				(void)unlinkat(dirfd(dir), d->d_name, 0);
		}
	if (dir != NULL)
		(void)closedir(dir);
}

int
state_lock(struct state *s, struct err *e)
{
	char *path = state_path(s, "lock", e);
	int r = 0;

	if (path == NULL)
		return -ERR_SYS;
	s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0)
		r = err_sys(e, "'%s'", path);
	else if (flock(s->lock, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? err_set(e, ERR_REFUSED,
		    "state '%s' is in use by another process", s->dir) :
		    err_sys(e, "'%s'", path);
	if (r == 0)
		state_tidy(s);
	alloc_free(path);
	return r;
}

void
state_close(struct state *s)
{
	if (s->lock >= 0)
		(void)close(s->lock);
	alloc_free(s->dir);
	*s = (struct state)STATE_INIT;
}

char *
state_path(const struct state *s, const char *name, struct err *e)
{
	size_t n = strlen(s->dir) + strlen(name) + 2;
	char *p = alloc_get(n, 1, e);

	if (p != NULL)
		(void)snprintf(p, n, "%s/%s", s->dir, name);
	return p;
}

int
state_scratch(const struct state *s, int *fd, struct err *e)
{
	char *path = state_path(s, "scratch.XXXXXX", e);
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
