#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/scan.h"
#include "base/statedir.h"
#include "base/temp.h"
#include "model/replace.h"

/* Files in the directory beside the model (replace.h). */
static const char *const names[REPLACE_NAMES] = { "lock", "new", "old",
	"ready", "redo", "marker" };
enum { LOCK, NEW, OLD, READY, REDO, MARKER };

enum { REPLACE_PIECE = 1 << 20 };

int
replace_open(struct replace *s, const char *path, const struct cli *cli,
    struct err *e)
{
	const char *name;
	struct stat st;
	size_t n, i;
	int r = temp_folder(path, &s->path, e);

	s->cli = cli;
	if (r < 0)
		return r;
	n = strlen(s->path);
	name = strrchr(s->path, '/');
	name = name != NULL ? name + 1 : s->path;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_USAGE, "'%s': expected the model's own name, "
		    "not . or .., since its state is kept beside it", path);
	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "cannot open model '%s' (if it is absent, copy a whole "
		    "model there first)", path);
	if ((s->home = alloc_get(n + 16, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(s->home, n + 16, "%s.ace-patch", s->path);
	for (i = 0; i < REPLACE_NAMES; i++)
		if ((s->at[i] = alloc_path(s->home, names[i], e)) == NULL)
			return -ERR_SYS;
	/* as for a device's state, refuse a link, or a directory in which others may
	 * write */
	return statedir_open_here(&s->dir, s->home, s->home, e);
}

/* Allocate the descriptors of the files that will change, and set them to -1. */
static int
replace_fds(struct replace *s, const struct model *m, struct err *e)
{
	size_t i;

	s->m = m;
	if ((s->fd = alloc_get(m->nfiles, sizeof(*s->fd) + 1, e)) == NULL)
		return -ERR_SYS;
	s->cloned = (char *)(s->fd + m->nfiles);
	for (i = 0; i < m->nfiles; i++)
		s->fd[i] = -1;
	s->redo.m = m;
	s->redo.fd = s->fd;
	return 0;
}

static void
replace_drop(struct replace *s)
{
	size_t i;

	for (i = 0; s->fd != NULL && i < s->m->nfiles; i++)
		if (s->fd[i] >= 0)
			(void)close(s->fd[i]);
	alloc_free(s->fd);
	s->fd = NULL;
}

void
replace_close(struct replace *s)
{
	size_t i;

	replace_drop(s);
	journal_drop(&s->redo);
	statedir_close(&s->dir);
	for (i = 0; i < REPLACE_NAMES; i++)
		alloc_free(s->at[i]);
	alloc_free(s->path);
	alloc_free(s->home);
	*s = (struct replace)REPLACE_INIT;
}

void
replace_known(struct replace *s, const struct model *m,
    const unsigned char hash[MODEL_HASH], uint64_t step)
{
	struct journal_mark mark = { .step = step, .stamp = model_stamp(m) };
	const int same = s->marked && memcmp(s->mark.hash, hash, MODEL_HASH) == 0;

	memcpy(mark.hash, hash, MODEL_HASH);
	if (same && s->mark.step > step)
		mark.step = s->mark.step;
	if ((same && s->mark.step == mark.step && s->mark.stamp == mark.stamp) ||
	    model_same(m, NULL) < 0)
		return;
	if (journal_mark_write(s->at[MARKER], &mark, NULL) == 0) {
		s->mark = mark;
		s->marked = 1;
	}
}

/* ---- the state of files ---- */

/* Sums of checksums of files' states: they do not depend on the order in a directory. */
struct looks {
	uint64_t all;	/* with the ctimes of files in a directory */
	uint64_t was;	/* without ctimes, which links and renames change */
};

/* Add the state of a file in a directory to l. */
static int
looks_add(void *arg, const char *path, const char *name, struct err *e)
{
	struct looks *l = arg;
	struct stat st;

	if (model_stat(AT(path), AT_SYMLINK_NOFOLLOW, &st) < 0)
		return err_sys(e, "'%s'", path);
	l->all += model_looks(&st, name, 1);
	l->was += model_looks(&st, name, 0);
	return 0;
}

/* Set *l to the state of a file, or of a directory and all files in it. */
static int
replace_looks(const char *path, struct looks *l, struct err *e)
{
	struct stat st, rights;

	if (model_stat(AT(path), 0, &st) < 0)
		return err_sys(e, "'%s'", path);
	rights = (struct stat){ .st_mode = st.st_mode, .st_uid = st.st_uid,
	    .st_gid = st.st_gid };
	l->all = l->was = model_looks(S_ISDIR(st.st_mode) ? &rights : &st, "", 0);
	return S_ISDIR(st.st_mode) ? scan(path, 1, looks_add, l, e) : 0;
}

/* ---- names ---- */

/* Remove a file, or a directory of files.  Keep subdirectories and the targets of links,
 * which are not ours. */
static void
replace_remove(const struct replace *s, const char *path)
{
	const struct dirent *de;
	DIR *d;

	if (unlinkat(AT(path), 0) == 0 || errno == ENOENT)
		return;
	d = scan_open(path);
	while (d != NULL && (de = readdir(d)) != NULL)
		(void)unlinkat(dirfd(d), de->d_name, 0);
	if (d != NULL)
		(void)closedir(d);
	if (unlinkat(AT(path), AT_REMOVEDIR) < 0)
		cli_say(s->cli, 0, "'%s' cannot be removed: %s", path,
		    strerror(errno));
}

/* Exchange two names atomically. */
static int
replace_exchange(const char *a, const char *b)
{
#ifdef __GLIBC__
	return renameat2(AT(a), AT(b), RENAME_EXCHANGE);
#else					/* musl may lack renameat2 */
	return (int)syscall(SYS_renameat2, AT(a), AT(b),
	    RENAME_EXCHANGE);
#endif
}

void
replace_discard(struct replace *s)
{
	replace_drop(s);
	journal_drop(&s->redo);
	if (s->placed)		/* the next process's replace_lock checks the old model */
		return;
	(void)unlinkat(AT(s->at[READY]), 0);
	replace_remove(s, s->at[NEW]);
	replace_remove(s, s->at[OLD]);
	temp_leave(s->at[NEW]);
	s->staged = 0;
}

/* ---- the next model, beside the old one ---- */

/* Copy the first n bytes of a file or, if it is shorter, all. */
static int
replace_fill(const char *path, int from, int to, uint64_t n, struct err *e)
{
	unsigned char *p = alloc_raw(REPLACE_PIECE, 1, e);
	uint64_t at = 0;
	size_t got = 1;
	int r = p != NULL ? 0 : -ERR_SYS;

	for (; r == 0 && got > 0 && at < n; at += got)
		if ((r = fd_read_at(from, (off_t)at, p, n - at < REPLACE_PIECE ?
		    (size_t)(n - at) : REPLACE_PIECE, &got, path, e)) == 0)
			r = fd_write_at(to, (off_t)at, p, got, path, e);
	alloc_free(p);
	return r;
}

/* Give fd the owner, group and mode in *was and the ACL of path. */
static int
replace_owned(int fd, const struct stat *was, const char *path, const char *to,
    struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || ((st.st_uid != was->st_uid ||
	    st.st_gid != was->st_gid) && fchown(fd, st.st_uid != was->st_uid ?
	    was->st_uid : (uid_t)-1, was->st_gid) < 0) ||
	    fchmod(fd, was->st_mode & 07777) < 0 || temp_acl(fd, path) < 0)
		return err_sys(e, "'%s'", to);
	return 0;
}

/* Make a new file like the one at path, which is open as `from'; *fd stays open.  If the
 * file system can, the new file shares its bytes, and *cloned is 1; otherwise copy the first
 * n bytes. */
static int
replace_like(int from, const char *path, const char *to, uint64_t n, int *fd,
    char *cloned, struct err *e)
{
	struct stat st;
	int r;

	if (fstat(from, &st) < 0)
		return err_sys(e, "'%s'", path);
	*fd = openat(AT(to), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (*fd < 0)
		return err_sys(e, "'%s'", to);
	if ((r = replace_owned(*fd, &st, path, to, e)) < 0)
		return r;
	*cloned = ioctl(*fd, FICLONE, from) == 0;
	return *cloned ? 0 : replace_fill(path, from, *fd, n, e);
}

/* Link a file that does not change into the next directory; the files that change are there. */
static int
replace_link(void *arg, const char *path, const char *name, struct err *e)
{
	char *to = alloc_path(((const struct replace *)arg)->at[NEW], name, e);
	struct stat st;
	int r = to != NULL ? 0 : -ERR_SYS;

	if (r == 0 && linkat(AT(path), AT(to), 0) < 0 && errno != EEXIST)
		r = fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) ?
		    err_set(e, ERR_REFUSED, "'%s' is a directory inside the model: "
		    "use --in-place", path) : err_sys(e, "cannot link '%s' to '%s' "
		    "(use --in-place)", path, to);
	alloc_free(to);
	return r;
}

/* Link the missing files into the next directory, and give it the owner and mode of the
 * model's directory. */
static int
replace_folder(struct replace *s, struct err *e)
{
	const char *new = s->at[NEW];
	struct stat st;
	int fd, r;

	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "'%s'", s->path);
	if ((r = scan(s->path, 1, replace_link, s, e)) < 0)
		return r;
	if ((fd = openat(AT(new), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(e, "'%s'", new);
	r = replace_owned(fd, &st, s->path, new, e);
	(void)close(fd);
	return r;
}

static int
replace_unable(const struct replace *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' cannot be exchanged with another "
	    "file or directory (%s): use --in-place, without --stage", s->path, strerror(errno));
}

/* Before copying, check that we may rename the directory and can exchange two directories.
 * Renaming the model to home always fails, since home has its lock and so is not empty;
 * errno says whether the rename was allowed. */
static int
replace_try(const struct replace *s, struct err *e)
{
	const char *new = s->at[NEW], *old = s->at[OLD];
	int r;

	if (mkdirat(AT(new), 0700) < 0 || mkdirat(AT(old), 0700) < 0)
		return err_sys(e, "cannot make '%s' and '%s'", new, old);
	if (rename(s->path, s->home) == 0)
		r = rename(s->home, s->path) < 0 ? err_sys(e, "cannot rename '%s' "
		    "back to '%s', rename it by hand", s->home, s->path) : replace_unable(s, e);
	else if (errno != ENOTEMPTY && errno != EEXIST)
		r = replace_unable(s, e);
	else
		r = replace_exchange(new, old) < 0 ? replace_unable(s, e) : 0;
	replace_remove(s, old);
	return r;
}

static int
replace_copies(struct replace *s, const unsigned char *touched, struct err *e)
{
	const struct model_file *f;
	char *to;
	size_t i;
	int r = 0;

	for (i = 0; i < s->m->nfiles && r == 0; i++) {
		if (!touched[i])
			continue;
		f = &s->m->file[i];
		to = s->m->dir ? alloc_path(s->at[NEW], f->name, e) : s->at[NEW];
		r = to != NULL ? replace_like(f->fd, f->path, to, f->head, &s->fd[i],
		    &s->cloned[i], e) : -ERR_SYS;
		if (s->m->dir)
			alloc_free(to);
	}
	return r;
}

/* Begin the next model beside the old one: make a new file for each file that changes. */
static int
replace_beside(struct replace *s, const unsigned char *touched, struct err *e)
{
	struct looks now;
	int r;

	if ((r = replace_looks(s->path, &now, e)) < 0)
		return r;
	s->was = now.was;
	temp_enter(s->at[NEW]);
	if (s->m->dir && (r = replace_try(s, e)) < 0)
		return r;
	return replace_copies(s, touched, e);
}

/* ---- the end ---- */

static int
replace_changed(const struct replace *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' or the staged model changed after ace-patch "
	    "began to make the next model: apply or stage the patch again", s->path);
}

/* The next model is in place: remove the old one and, unless the model has changed since,
 * write the marker. */
static int
replace_finish(struct replace *s, struct err *e)
{
	struct model m = MODEL_INIT;
	struct looks now;
	size_t i;
	int r;

	/* before model_open: removing hard links changes their ctime */
	replace_remove(s, s->at[OLD]);
	if ((r = model_open(&m, s->path, e)) < 0)
		return r;
	s->mark = (struct journal_mark){ .step = s->ready.step,
	    .stamp = model_stamp(&m) };
	memcpy(s->mark.hash, s->ready.hash, MODEL_HASH);
	s->marked = s->fd == NULL || s->m->nfiles == m.nfiles;
	/* after a change in place: check that these are the files that we wrote */
	for (i = 0; s->fd != NULL && s->marked && i < m.nfiles; i++)
		s->marked = m.file[i].inode == s->m->file[i].inode;
	model_close(&m);
	if (s->fd == NULL) {
		if ((r = replace_looks(s->path, &now, e)) < 0)
			return r;
		s->marked = now.was == s->ready.next;
	}
	if (!s->marked)
		(void)unlinkat(AT(s->at[MARKER]), 0);
	else if ((r = journal_mark_write(s->at[MARKER], &s->mark, e)) < 0)
		return r;
	(void)unlinkat(AT(s->at[READY]), 0);
	(void)unlinkat(AT(s->at[REDO]), 0);
	s->staged = s->placed = 0;
	return 0;
}

/* Set the values in redo; some may be set already.  read 0: first check that the result is
 * the model that redo names; 1: we have just written redo.  Return 0 if redo is absent. */
static int
replace_redo(struct replace *s, int read, struct err *e)
{
	struct model m = MODEL_INIT;
	struct io *f = NULL;
	int r = io_open_kept(&f, s->at[REDO], e);

	if (r <= 0)
		return r;
	r = read ? 0 : model_open(&m, s->path, e);
	if (r == 0 && !read && (r = replace_fds(s, &m, e)) == 0)
		r = journal_apply(&s->redo, f, 0, &s->ready, e);
	if (r == 0 && (r = journal_apply(&s->redo, f, 1, &s->ready, e)) == 0)
		r = replace_finish(s, e);
	replace_drop(s);
	model_close(&m);
	io_free(f);
	return r;
}

/* Return the inode number of path, or 0 if it does not exist. */
static uint64_t
replace_inode(const char *path)
{
	struct stat st;

	return fstatat(AT(path), &st, 0) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* The next model is now at path and the old one at `new'.  If the old one has changed since
 * replace_ready, exchange them back. */
static int
replace_placed(struct replace *s, struct err *e)
{
	const char *new = s->at[NEW];
	const int there = replace_inode(new) != 0;
	struct looks now, was = { .all = s->ready.was };
	int r;

	s->placed = 1;
	/* look at the old model first: removing a file changes the ctime of its other
	 * links */
	if ((there && (r = replace_looks(new, &was, e)) < 0) ||
	    (r = replace_looks(s->path, &now, e)) < 0)
		return r;
	if (now.was != s->ready.next) {	/* somebody replaced the next model meanwhile */
		s->placed = 0;
		replace_discard(s);
		return 0;
	}
	if (was.all != s->ready.was) {
		if (replace_exchange(new, s->path) < 0)
			return err_sys(e, "'%s'", new);
		s->placed = 0;
		if ((r = io_sync_path(s->path, e)) < 0)
			return r;
		replace_discard(s);
		return replace_changed(s, e);
	}
	if (there)
		replace_remove(s, s->at[OLD]);
	if (there && renameat(AT(new), AT(s->at[OLD])) < 0)
		return err_sys(e, "'%s'", s->at[OLD]);
	return (r = io_sync_path(s->path, e)) < 0 ||
	    (r = io_sync_file(s->home, e)) < 0 ? r : replace_finish(s, e);
}

/* The directory beside the model has no lock, so it is not ours: refuse a file in it, except
 * a temporary file of a killed ace-patch. */
static int
replace_strange(void *arg, const char *path, const char *name, struct err *e)
{
	const struct replace *s = arg;

	return strstr(name, ".new-") != NULL ? 0 : err_set(e, ERR_REFUSED,
	    "'%s' was not made by ace-patch, which keeps its files in '%s': "
	    "move that directory away", path, s->home);
}

/* Take the lock, waiting for the process that holds it. */
static int
replace_alone(struct replace *s, struct err *e)
{
	const char *path = s->at[LOCK];
	int r = 0;

	if (replace_inode(path) == 0 &&
	    (r = scan(s->home, 0, replace_strange, s, e)) < 0 && replace_inode(path) != 0) {
		/* another ace-patch made the lock meanwhile */
		err_clear(e);
		r = 0;
	}
	if (r == 0 && (r = fd_lock(path, LOCK_EX | LOCK_NB, &s->dir.lock,
	    e)) > 0) {
		cli_say(s->cli, 0, "another process is changing '%s': waiting for it",
		    s->path);
		r = fd_lock(path, LOCK_EX, &s->dir.lock, e);
	}
	return r;
}

int
replace_lock(struct replace *s, struct err *e)
{
	int r = replace_alone(s, e);

	if (r < 0)
		return r;
	temp_sweep(s->home);
	if ((r = journal_mark_read(s->at[MARKER], &s->mark, e)) < 0)
		return r;
	s->marked = r;
	/* without this sync a power cut could leave our files without the lock that
	 * identifies them */
	if (!r && (r = io_sync_file(s->home, e)) < 0)
		return r;
	if ((r = replace_redo(s, 0, e)) < 0 ||
	    (r = journal_mark_read(s->at[READY], &s->ready, e)) < 0)
		return r;
	/* The staged model is at `new'; or it is at path, put there by a process that was
	 * killed; or it is invalid, and is removed. */
	s->staged = r > 0 && replace_inode(s->at[NEW]) == s->ready.inode;
	/* with the marker of the same model, a power cut has brought `ready' back */
	if (r > 0 && !s->staged && replace_inode(s->path) == s->ready.inode &&
	    !(s->marked && memcmp(s->mark.hash, s->ready.hash, MODEL_HASH) == 0))
		return replace_placed(s, e);
	if (!s->staged)
		replace_discard(s);
	return 0;
}

/* ---- the steps of a change ---- */

int
replace_begin(struct replace *s, struct model *m, const unsigned char *touched,
    int in_place, struct err *e)
{
	int r;

	if ((r = replace_fds(s, m, e)) < 0)
		return r;
	s->in_place = in_place;
	if (!in_place)
		return replace_beside(s, touched, e);
	r = journal_begin(&s->redo, s->at[REDO], touched, e);
	return r < 0 ? r : model_again(m, e);
}

int
replace_group(struct replace *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e)
{
	const int fd = s->fd[span->file];

	if (s->in_place)
		return journal_group(&s->redo, span, old, new, after, e);
	if (fd < 0 || (s->cloned[span->file] && old == new))
		return 0;
	return fd_write_at(fd, (off_t)span->at, new, span->bytes,
	    s->m->file[span->file].path, e);
}

/* Complete the next model, sync its files, and check that the old model is unchanged. */
static int
replace_whole(struct replace *s, struct err *e)
{
	struct looks now, next;
	size_t i;
	int r;

	if (s->m->dir && (r = replace_folder(s, e)) < 0)
		return r;
	for (i = 0; i < s->m->nfiles; i++) {
		if (s->fd[i] >= 0 && fsync(s->fd[i]) < 0)
			return err_sys(e, "'%s'", s->m->file[i].path);
	}
	replace_drop(s);
	if ((r = replace_looks(s->at[NEW], &next, e)) < 0 ||
	    (r = replace_looks(s->path, &now, e)) < 0 ||
	    (r = model_same(s->m, e)) < 0)
		return r;
	s->ready.inode = replace_inode(s->at[NEW]);
	s->ready.next = next.was;
	s->ready.was = now.all;
	return now.was == s->was ? 0 : replace_changed(s, e);
}

int
replace_ready(struct replace *s, const unsigned char hash[MODEL_HASH], uint64_t step,
    struct err *e)
{
	int r;

	s->ready = (struct journal_mark){ .step = step };
	memcpy(s->ready.hash, hash, MODEL_HASH);
	if (s->in_place)
		return 0;
	/* `ready' is in the same directory as `new', so one sync covers both */
	if ((r = replace_whole(s, e)) < 0 || (s->m->dir &&
	    (r = io_sync_file(s->at[NEW], e)) < 0) ||
	    (r = io_sync_path(s->home, e)) < 0)
		return r;
	temp_leave(s->at[NEW]);		/* keep what is staged for the next call */
	r = journal_mark_write(s->at[READY], &s->ready, e);
	s->staged = r == 0;
	return r;
}

int
replace_still(const struct replace *s, struct err *e)
{
	struct looks now, next;
	int r;

	if (!s->staged)
		return model_same(s->m, e);
	return (r = replace_looks(s->path, &now, e)) < 0 ||
	    (r = replace_looks(s->at[NEW], &next, e)) < 0 ? r :
	    now.all == s->ready.was && next.was == s->ready.next ? 0 :
	    replace_changed(s, e);
}

int
replace_commit(struct replace *s, struct err *e)
{
	const char *new = s->at[NEW];
	struct stat st;
	int r;

	if ((r = replace_still(s, e)) < 0)
		return r;
	if (!s->staged)
		/* sync the parent, so that home survives a power cut */
		return (r = io_sync_path(s->home, e)) < 0 ||
		    (r = journal_end(&s->redo, &s->ready, e)) < 0 ? r :
		    replace_redo(s, 1, e);
	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "'%s'", s->path);
	if (replace_exchange(new, s->path) < 0 &&
	    (S_ISDIR(st.st_mode) || renameat(AT(new), AT(s->path)) < 0))
		/* a mount point, a lower layer, or a file system that cannot exchange */
		return errno != EBUSY && errno != EXDEV && errno != EINVAL ?
		    err_sys(e, "'%s'", s->path) : replace_unable(s, e);
	return replace_placed(s, e);
}
