#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/scan.h"
#include "base/statedir.h"
#include "base/temp.h"

/* Refuse a state of another user, or one that other users can write to. */
static int
statedir_ours(int fd, const char *dir, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "directory '%s'", dir);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_REFUSED, "directory '%s' belongs to user %lu, but "
		    "the program runs as user %lu: run it as that user, or use "
		    "another directory", dir, (unsigned long)st.st_uid,
		    (unsigned long)geteuid());
	if ((st.st_mode & 022) != 0)
		return err_set(e, ERR_REFUSED, "directory '%s' can be changed by other "
		    "users (mode %03o): if all files are yours, run chmod go-w on it",
		    dir, (unsigned)st.st_mode & 0777);
	return 0;
}

/* Set the error of a directory that cannot be opened.  If it is a symbolic link, say so, which
 * errno does not. */
static int
statedir_none(const char *dir, struct err *e)
{
	const int why = errno;
	struct stat st;

	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode))
		return err_set(e, ERR_REFUSED, "'%s' is a symbolic link made "
		    "by user %lu, expected a directory: remove it", dir,
		    (unsigned long)st.st_uid);
	errno = why;
	return err_sys(e, "directory '%s'", dir);
}

int
statedir_open_here(struct statedir *s, const char *dir, const char *name,
    struct err *e)
{
	size_t n;
	int fd, r;

	/* EEXIST: open the directory that exists */
	if (mkdirat(AT(dir), 0700) < 0 && errno != EEXIST)
		return err_sys(e, "directory '%s'", name);
	fd = openat(AT(dir), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return statedir_none(dir, e);
	if ((r = statedir_ours(fd, name, e)) == 0 &&
	    ((s->dir = alloc_dup(name, e)) == NULL ||
	    (s->at = alloc_get(1, sizeof(*s->at), e)) == NULL))
		r = -ERR_SYS;
	if (r < 0) {
		alloc_free(s->dir);
		s->dir = NULL;
		(void)close(fd);
		return r;
	}
	s->lock = -1;
	/* at_find compares paths with the directory and a slash */
	for (n = strlen(s->dir); n > 1 && s->dir[n - 1] == '/';)
		s->dir[--n] = '\0';
	*s->at = (struct at){ .dir = s->dir, .fd = fd };
	at_add(s->at);
	return 0;
}

int
statedir_open(struct statedir *s, const char *dir, struct err *e)
{
	char target[TEMP_PATH];
	const int r = temp_folder(dir, target, e);

	return r < 0 ? r : statedir_open_here(s, target, dir, e);
}

int
statedir_durable(const struct statedir *s, struct err *e)
{
	char parent[STATE_PATH];

	return fd_sync_path(statedir_path(s, "..", parent), s->dir, e);
}

int
statedir_there(const struct statedir *s, struct err *e)
{
	struct stat now, was;

	if (fstat(s->at->fd, &was) == 0 && stat(s->dir, &now) == 0 &&
	    now.st_dev == was.st_dev && now.st_ino == was.st_ino)
		return 0;
	return err_set(e, ERR_SYS, "'%s' was moved or removed while it was in use: move "
	    "it back, if it exists, and, if this program has ended, start it again",
	    s->dir);
}

struct statedir_old {
	uint64_t last;
	const char *keep[2];
};

static int
statedir_prune_one(void *arg, const char *path, const char *name, struct err *e)
{
	const struct statedir_old *o = arg;
	const size_t n = sizeof("history.") - 1, digits = strncmp(name, "history.", n) == 0 ?
	    strspn(name + n, "0123456789") : 0;

	if (digits > 0 && name[n + digits] == '\0' && strtoull(name + n, NULL, 10) <= o->last &&
	    (o->keep[0] == NULL || strcmp(name, o->keep[0]) != 0) &&
	    (o->keep[1] == NULL || strcmp(name, o->keep[1]) != 0))
		(void)unlinkat(AT(path), 0);
	return 0;
}

void
statedir_prune(const struct statedir *s, uint64_t last, const char *keep, const char *too)
{
	struct statedir_old o = { last, { keep, too } };

	(void)scan(s->dir, 0, statedir_prune_one, &o, NULL);
}

int
statedir_lock(struct statedir *s, const char *name, struct err *e)
{
	char path[STATE_PATH];
	int r = fd_lock(statedir_path(s, name, path), LOCK_EX | LOCK_NB, &s->lock, e);

	if (r > 0)
		r = err_set(e, ERR_REFUSED, "'%s' is in use by another process: wait for "
		    "it, or end it", s->dir);
	if (r == 0)
		temp_sweep(s->dir);
	return r;
}

void
statedir_close(struct statedir *s)
{
	if (s->lock >= 0)
		(void)close(s->lock);
	if (s->at != NULL) {
		at_drop(s->at);
		(void)close(s->at->fd);
		alloc_free(s->at);
	}
	alloc_free(s->dir);
	*s = (struct statedir)STATE_INIT;
}

char *
statedir_path(const struct statedir *s, const char *name, char out[STATE_PATH])
{
	const size_t n = strlen(s->dir);

	(void)snprintf(out, STATE_PATH, "%s%s%s", s->dir, n != 0 &&
	    s->dir[n - 1] == '/' ? "" : "/", name);
	return out;
}
