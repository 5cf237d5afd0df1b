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
static const char *const names[REPLACE_NAMES] = { "lock", "new", "ready", "redo", "marker" };
enum { LOCK, NEW, READY, REDO, MARKER };

int
replace_open(struct replace *s, const char *path, const struct cli *cli,
    struct err *e)
{
	const char *name;
	struct stat st;
	size_t n, i;
	int r = temp_folder(path, s->path, e);

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
	/* as for a device's state, refuse a link or a directory that others may change */
	return statedir_open_here(&s->dir, s->home, s->home, e);
}

/* Set s->m and s->redo to m; allocate fd, with -1 for each file, and cloned. */
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
	journal_drop(&s->redo);
}

void
replace_close(struct replace *s)
{
	size_t i;

	replace_drop(s);
	statedir_close(&s->dir);
	for (i = 0; i < REPLACE_NAMES; i++)
		alloc_free(s->at[i]);
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
	/* write it also if nothing changed, since catch-up.sh compares its time with other files */
	if (model_same(m, NULL) < 0)
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
	uint64_t to;	/* with ctimes: a single file, or the targets of links */
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
	if (S_ISLNK(st.st_mode) && model_stat(AT(path), 0, &st) == 0)
		l->to += model_looks(&st, name, 1);
	return 0;
}

/* Set *l to the state of a file, or of a directory and all files in it. */
static int
replace_looks(const char *path, struct looks *l, struct err *e)
{
	struct stat st, rights;

	if (model_stat(AT(path), 0, &st) < 0)
		return err_sys(e, "'%s'", path);
	rights = (struct stat){ .st_mode = st.st_mode, .st_uid = st.st_uid, .st_gid = st.st_gid };
	l->all = l->was = model_looks(S_ISDIR(st.st_mode) ? &rights : &st, "", 0);
	l->to = S_ISDIR(st.st_mode) ? 0 : model_looks(&st, "", 1);
	return S_ISDIR(st.st_mode) ? scan(path, 1, looks_add, l, e) : 0;
}

/* ---- names ---- */

/* Return the inode number of path, or 0 if it does not exist. */
static uint64_t
replace_inode(const char *path)
{
	struct stat st;

	return fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* Remove a file, or a directory of files.  Keep subdirectories and the targets of links,
 * which are not ours. */
static void
replace_remove(const struct replace *s, const char *path)
{
	const struct dirent *de;
	int why;			/* the first error, except EISDIR for a directory */
	DIR *d;

	if (unlinkat(AT(path), 0) == 0 || errno == ENOENT)
		return;
	why = errno;
	d = scan_open(path);
	if (d != NULL)
		(void)fchmod(dirfd(d), 0700);	/* it may have the mode of a read-only model */
	while (d != NULL && (de = readdir(d)) != NULL)
		if (unlinkat(dirfd(d), de->d_name, 0) < 0 && why == EISDIR)
			why = errno;
	if (d != NULL)
		(void)closedir(d);
	if (unlinkat(AT(path), AT_REMOVEDIR) < 0)
		cli_say(s->cli, 0, "'%s' cannot be removed: %s: remove it, or no other "
		    "patch can be applied", path, strerror(why != EISDIR ? why : errno));
}

/* Exchange two names atomically; return what renameat2(2) does. */
static int
replace_exchange(const char *a, const char *b)
{
#ifdef __GLIBC__
	return renameat2(AT(a), AT(b), RENAME_EXCHANGE);
#else					/* musl may lack renameat2 */
	return (int)syscall(SYS_renameat2, AT(a), AT(b), RENAME_EXCHANGE);
#endif
}

void
replace_discard(struct replace *s)
{
	replace_drop(s);
	if (s->placed)		/* the next process's replace_lock checks the old model */
		return;
	(void)unlinkat(AT(s->at[READY]), 0);
	/* a power cut must not bring `ready' back beside a part of `new' */
	if (replace_inode(s->at[NEW]) != 0 && fd_sync_path(s->home, NULL, NULL) == 0)
		replace_remove(s, s->at[NEW]);
	temp_leave(s->at[NEW]);
	s->staged = 0;
}

/* ---- the next model, beside the old one ---- */

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

static int
replace_unable(const struct replace *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' cannot be exchanged with another "
	    "file or directory (%s): use --in-place, without --stage", s->path, strerror(errno));
}

/* Link a file that does not change into the next directory; the files that change are there. */
static int
replace_link(void *arg, const char *path, const char *name, struct err *e)
{
	const struct replace *s = arg;
	char *to = alloc_path(s->at[NEW], name, e);
	struct stat st;
	int r = to != NULL ? 0 : -ERR_SYS;

	if (r == 0 && linkat(AT(path), AT(to), 0) < 0 && errno != EEXIST)
		r = fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) ?
		    err_set(e, ERR_REFUSED, "'%s' is a directory inside the model: "
		    "use --in-place, without --stage", path) : errno == EXDEV ?
		    err_set(e, ERR_REFUSED, "'%s' and '%s' are on different file "
		    "systems: use --in-place, without --stage", path, s->home) :
		    err_sys(e, "cannot link '%s' to '%s' (use --in-place, without "
		    "--stage)", path, to);
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

/* Make a new file like file i of the model.  If the file system can, it shares the bytes of that
 * file; otherwise copy the bytes before the tensors. */
static int
replace_copy(struct replace *s, size_t i, struct err *e)
{
	const struct model_file *f = &s->m->file[i];
	char *to = s->m->dir ? alloc_path(s->at[NEW], f->name, e) : alloc_dup(s->at[NEW], e);
	unsigned char *head = NULL;
	struct stat st;
	int r;

	if (to == NULL)
		return -ERR_SYS;
	if (fstat(f->fd, &st) < 0 || (s->fd[i] = openat(AT(to), O_RDWR | O_CREAT | O_EXCL |
	    O_CLOEXEC, 0600)) < 0)
		r = err_sys(e, "'%s'", to);
	else
		r = replace_owned(s->fd[i], &st, f->path, to, e);
	if (r == 0 && !(s->cloned[i] = ioctl(s->fd[i], FICLONE, f->fd) == 0))
		r = (head = alloc_raw(f->head, 1, e)) == NULL ? -ERR_SYS :
		    fd_read_all(f->fd, 0, head, f->head, f->path, e);
	if (r == 0 && head != NULL)
		r = fd_write_at(s->fd[i], 0, head, f->head, to, e);
	alloc_free(head);
	alloc_free(to);
	return r;
}

/* ---- the end ---- */

static int
replace_changed(const struct replace *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' or the staged model changed after ace-patch "
	    "began to make the next model: apply or stage the patch again", s->path);
}

/* Write the marker of the next model, now in place, with this stamp; then remove redo. */
static int
replace_finish(struct replace *s, uint64_t stamp, struct err *e)
{
	int r;

	s->mark = (struct journal_mark){ .step = s->ready.step, .stamp = stamp };
	memcpy(s->mark.hash, s->ready.hash, MODEL_HASH);
	if ((r = journal_mark_write(s->at[MARKER], &s->mark, e)) < 0)
		return r;
	s->marked = 1;
	s->placed = 0;
	(void)unlinkat(AT(s->at[REDO]), 0);
	return 0;
}

/* Set the values in redo; some may be set already.  read 0: first check that the result is
 * the model that redo names; 1: we have just written redo.  Do nothing if redo is absent. */
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
		r = replace_finish(s, model_stamp(s->m), e);
	replace_drop(s);
	model_close(&m);
	io_free(f);
	return r;
}

/* The next model is now at path and the old one at `new'.  Write the marker and remove the old
 * one or, if it has changed since replace_ready, exchange them back. */
static int
replace_placed(struct replace *s, struct err *e)
{
	const char *new = s->at[NEW];
	struct looks now = { 0 }, was = { .all = s->ready.was };
	struct model m = MODEL_INIT;
	uint64_t stamp;
	int r;

	s->placed = 1;
	if ((r = model_open(&m, s->path, e)) < 0)
		return r;
	/* a write after this gives the model another stamp, so that the marker is not used */
	stamp = model_stamp(&m);
	/* without an exchange, `new' is absent */
	if ((replace_inode(new) == 0 || (r = replace_looks(new, &was, e)) == 0) &&
	    (r = replace_looks(s->path, &now, e)) == 0) {
		if (now.was != s->ready.next)	/* the model at path was changed meanwhile */
			s->placed = 0;
		else if (was.all != s->ready.was && replace_exchange(new, s->path) < 0)
			r = err_sys(e, "'%s'", new);
		else if ((r = fd_sync_name(s->path, e)) == 0 && was.all == s->ready.was)
			r = replace_finish(s, stamp, e);
		else if (r == 0) {
			s->placed = 0;
			r = replace_changed(s, e);
		}
	}
	if (!s->placed)
		replace_discard(s);
	/* removing hard links has changed the ctime of their files, and so the stamp */
	if (r == 0 && now.was == s->ready.next)
		replace_known(s, &m, s->mark.hash, s->mark.step);
	model_close(&m);
	return r;
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
	if (r == 0 && (r = fd_lock(path, LOCK_EX | LOCK_NB, &s->dir.lock, e)) > 0) {
		cli_say(s->cli, 0, "another process uses '%s': waiting for it", s->path);
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
	if (!r && (r = fd_sync_path(s->home, NULL, e)) < 0)
		return r;
	if ((r = replace_redo(s, 0, e)) < 0 ||
	    (r = journal_mark_read(s->at[READY], &s->ready, e)) < 0)
		return r;
	/* The staged model is at `new'; or it is at path, put there by a process that was
	 * killed; or it is invalid, and is removed. */
	s->staged = r > 0 && replace_inode(s->at[NEW]) == s->ready.inode;
	/* a marker of the same model: only the removal of `ready' was not reached, or was lost */
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
	struct looks now;
	size_t i;
	int r;

	if ((r = replace_fds(s, m, e)) < 0)
		return r;
	s->in_place = in_place;
	if (in_place)
		return (r = journal_begin(&s->redo, s->at[REDO], touched, e)) < 0 ? r :
		    model_again(m, e);
	if ((r = replace_looks(s->path, &now, e)) < 0)
		return r;
	s->was = now.was;
	temp_enter(s->at[NEW]);
	if (m->dir && mkdirat(AT(s->at[NEW]), 0700) < 0)
		return err_sys(e, "'%s'", s->at[NEW]);
	for (i = 0; i < m->nfiles && r == 0; i++)
		if (touched[i])
			r = replace_copy(s, i, e);
	return r;
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
	return fd_write_at(fd, (off_t)span->at, new, span->bytes, s->at[NEW], e);
}

int
replace_ready(struct replace *s, const unsigned char hash[MODEL_HASH], uint64_t step,
    struct err *e)
{
	struct looks now, next;
	size_t i;
	int r;

	s->ready = (struct journal_mark){ .step = step };
	memcpy(s->ready.hash, hash, MODEL_HASH);
	if (s->in_place)
		return 0;
	if (s->m->dir && (r = replace_folder(s, e)) < 0)
		return r;
	for (i = 0; i < s->m->nfiles; i++)
		if (s->fd[i] >= 0 && fsync(s->fd[i]) < 0)
			return err_sys(e, "'%s'", s->at[NEW]);
	replace_drop(s);
	if ((r = replace_looks(s->at[NEW], &next, e)) < 0 ||
	    (r = replace_looks(s->path, &now, e)) < 0 || (r = model_same(s->m, e)) < 0)
		return r;
	if (now.was != s->was)
		return replace_changed(s, e);
	s->ready.inode = replace_inode(s->at[NEW]);
	s->ready.next = next.was;
	s->ready.was = now.all;
	/* a marker of the next model is from an earlier patch; replace_lock would take it for one
	 * that replace_finish wrote */
	if (s->marked && memcmp(s->mark.hash, hash, MODEL_HASH) == 0) {
		if (unlinkat(AT(s->at[MARKER]), 0) < 0)
			return err_sys(e, "'%s'", s->at[MARKER]);
		s->marked = 0;
	}
	s->ready.stamp = now.to;
	/* journal_mark_write (below) syncs home, which has the name `new', but not these two */
	if ((s->m->dir && (r = fd_sync_path(s->at[NEW], NULL, e)) < 0) ||
	    (r = fd_sync_name(s->home, e)) < 0)
		return r;
	temp_leave(s->at[NEW]);		/* from now on a signal must not remove it */
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
	    now.all == s->ready.was && now.to == s->ready.stamp && next.was == s->ready.next ?
	    0 : replace_changed(s, e);
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
		return (r = fd_sync_name(s->home, e)) < 0 ||
		    (r = journal_end(&s->redo, &s->ready, e)) < 0 ? r :
		    replace_redo(s, 1, e);
	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "'%s'", s->path);
	if (replace_exchange(new, s->path) < 0 &&
	    (S_ISDIR(st.st_mode) || renameat(AT(new), AT(s->path)) < 0))
		/* a mount point, a lower layer of overlayfs, a file system without exchange */
		return errno != EBUSY && errno != EXDEV && errno != EINVAL &&
		    !(errno == EACCES && S_ISDIR(st.st_mode)) ?
		    err_sys(e, "'%s'", s->path) : replace_unable(s, e);
	return replace_placed(s, e);
}
