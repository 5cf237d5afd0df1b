#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "base/bytes.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/pack.h"
#include "base/scan.h"
#include "base/statedir.h"
#include "base/temp.h"
#include "model/swap.h"

const char *const swap_ways[] = { "reflink", "in-place", "copy", NULL };

enum {
	SWAP_PIECE = 1 << 20,
	SWAP_TEXT = 512,
	SWAP_WORD = 8,		/* bytes that are set together */
	SWAP_WORDS = 64,	/* that are compared at once */
	SWAP_SET = 12,		/* of one of them in redo: where, what */
	SWAP_SETS = 256,	/* that are read at once */
	SWAP_HEAD = 40,		/* of redo */
	SWAP_RUN = 24 + MODEL_HASH	/* of a group in redo */
};
#define SWAP_MAGIC UINT64_C(0x0132304f44455250)	/* "PREDO02", 1 */
#define SWAP_LAST UINT32_MAX			/* no file: the end of redo */

static char *
swap_name(const struct swap *s, const char *name, struct err *e)
{
	return model_name(s->home, name, e);
}

static int
swap_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int
swap_open(struct swap *s, const char *path, const struct cli *cli,
    struct err *e)
{
	const char *name;
	struct stat st;
	size_t n;
	int r = temp_folder(path, &s->path, e);

	s->cli = cli;
	if (r < 0)
		return r;
	n = strlen(s->path);
	name = strrchr(s->path, '/');
	if (swap_dots(name != NULL ? name + 1 : s->path))
		return err_set(e, ERR_USAGE, "'%s': a model is called by its name, "
		    "beside which its state is", path);
	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "'%s'", path);
	if ((s->home = alloc_get(n + 16, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(s->home, n + 16, "%s.ace-patch", s->path);
	/* as a device's state: nobody else may write there.  A link in its place is
	 * nobody's who named it */
	return statedir_open_here(&s->dir, s->home, s->home, e);
}

/* Of each file that changes a descriptor, none yet. */
static int
swap_fds(struct swap *s, const struct model *m, struct err *e)
{
	size_t i;

	s->m = m;
	s->fd = alloc_get(m->nfiles, sizeof(*s->fd), e);
	for (i = 0; s->fd != NULL && i < m->nfiles; i++)
		s->fd[i] = -1;
	return s->fd != NULL ? 0 : -ERR_SYS;
}

static void
swap_drop(struct swap *s)
{
	size_t i;

	for (i = 0; s->fd != NULL && i < s->m->nfiles; i++)
		if (s->fd[i] >= 0)
			(void)close(s->fd[i]);
	alloc_free(s->fd);
	s->fd = NULL;
}

void
swap_close(struct swap *s)
{
	swap_drop(s);
	io_free(s->redo);
	pack_sum_free(s->sum);
	buf_release(&s->set);
	statedir_close(&s->dir);
	alloc_free(s->path);
	alloc_free(s->home);
	*s = (struct swap)SWAP_INIT;
}

int
swap_scratch(const struct swap *s, int *fd, struct err *e)
{
	return statedir_scratch(&s->dir, fd, e);
}

/* ---- what is known ---- */

/* 1, or 0 when there is no such file. */
static int
mark_read(const struct swap *s, const char *name, struct swap_mark *mark,
    struct err *e)
{
	char text[SWAP_TEXT + 1], hex[MODEL_HEX], *path = swap_name(s, name, e);
	struct io *io = NULL;
	size_t n = 0;
	int r = path != NULL ? io_open_kept(&io, path, e) : -ERR_SYS, good;

	if (r > 0 && (r = io_read(io, text, SWAP_TEXT, &n, e)) == 0) {
		text[n] = '\0';
		good = sscanf(text, "hash %32[0-9a-f]\nstep %" SCNu64
		    "\nstamp %" SCNx64 "\ninode %" SCNu64 "\nnext %" SCNx64
		    "\n", hex, &mark->step, &mark->stamp, &mark->inode,
		    &mark->next) == 5 &&
		    model_unhex(hex, mark->hash);
		r = good ? 1 : err_set(e, ERR_DATA, "corrupt: '%s'", path);
	}
	io_free(io);
	alloc_free(path);
	return r;
}

static int
mark_write(const struct swap *s, const char *name, const struct swap_mark *mark,
    struct err *e)
{
	char text[SWAP_TEXT], hex[MODEL_HEX], *path = swap_name(s, name, e);
	struct io *io = NULL;
	int n, r = path != NULL ? io_create(&io, path, 1, e) : -ERR_SYS;

	model_hex(mark->hash, hex);
	n = snprintf(text, sizeof(text), "hash %s\nstep %" PRIu64 "\nstamp %"
	    PRIx64 "\ninode %" PRIu64 "\nnext %" PRIx64 "\n", hex, mark->step,
	    mark->stamp, mark->inode, mark->next);
	if (r == 0 && (r = io_write(io, text, (size_t)n, e)) == 0)
		r = io_commit(io, IO_SYNC_FULL, e);
	io_free(io);
	alloc_free(path);
	return r;
}

void
swap_known(struct swap *s, const struct model *m,
    const unsigned char hash[MODEL_HASH], uint64_t step)
{
	struct swap_mark mark = { .step = step, .stamp = model_stamp(m) };
	const int same = s->marked && memcmp(s->mark.hash, hash, MODEL_HASH) == 0;

	memcpy(mark.hash, hash, MODEL_HASH);
	if (same && s->mark.step > step)
		mark.step = s->mark.step;
	if ((same && s->mark.step == mark.step && s->mark.stamp == mark.stamp) ||
	    model_same(m, NULL) < 0)
		return;
	if (mark_write(s, "marker", &mark, NULL) == 0) {
		s->mark = mark;
		s->marked = 1;
	}
}

/* Add what says later that the file, and what it leads to as a link, was not changed;
 * its time cannot be that of a change which comes after. */
static int
looks_add(const char *path, const char *name, int all, uint64_t *sum,
    struct err *e)
{
	struct stat st;

	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "'%s'", path);
	clock_settle(st.st_ctim);
	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "'%s'", path);
	*sum += model_looks(&st, name, all);
	if (S_ISLNK(st.st_mode) && fstatat(AT(path), &st, 0) == 0)
		*sum += model_looks(&st, name, all);
	return 0;
}

static int
swap_looks(const char *path, int all, uint64_t *sum, struct err *e)
{
	const struct dirent *de;
	DIR *d = scan_open(path);
	char *p;
	int r = 0;

	*sum = 0;
	if (d == NULL)
		return errno == ENOTDIR ? looks_add(path, "", all, sum, e) :
		    err_sys(e, "'%s'", path);
	while (r == 0 && (de = readdir(d)) != NULL) {
		if (swap_dots(de->d_name))
			continue;
		p = model_name(path, de->d_name, e);
		r = p != NULL ? looks_add(p, de->d_name, all, sum, e) : -ERR_SYS;
		alloc_free(p);
	}
	(void)closedir(d);
	return r;
}

/* ---- names ---- */

static void
swap_unlink(const struct swap *s, const char *name)
{
	char *path = swap_name(s, name, NULL);

	if (path != NULL)
		(void)unlinkat(AT(path), 0);
	alloc_free(path);
}

/* A file, or a directory of files.  What is in a directory that came into one is
 * nobody's here to remove, and nor is what a link leads to. */
static void
swap_remove(const struct swap *s, const char *name)
{
	char *path = swap_name(s, name, NULL);
	const struct dirent *de;
	DIR *d;

	if (path == NULL || unlinkat(AT(path), 0) == 0 || errno == ENOENT) {
		alloc_free(path);
		return;
	}
	d = scan_open(path);
	while (d != NULL && (de = readdir(d)) != NULL)
		(void)unlinkat(dirfd(d), de->d_name, 0);
	if (d != NULL)
		(void)closedir(d);
	if (unlinkat(AT(path), AT_REMOVEDIR) < 0)
		cli_say(s->cli, 0, "'%s' cannot be removed: %s", path,
		    strerror(errno));
	alloc_free(path);
}

/* One takes the name of the other, at once. */
static int
swap_exchange(const char *a, const char *b)
{
#ifdef __GLIBC__
	return renameat2(AT(a), AT(b), RENAME_EXCHANGE);
#else					/* musl may have no function for it */
	return (int)syscall(SYS_renameat2, AT(a), AT(b),
	    RENAME_EXCHANGE);
#endif
}

/* What swap_try left; the directory only if it is empty. */
static void
swap_untry(const struct swap *s)
{
	char *try = swap_name(s, "try", NULL), *full = swap_name(s, "try/full", NULL);

	if (try != NULL && full != NULL && (unlinkat(AT(full), 0) == 0 ||
	    errno == ENOENT))
		(void)unlinkat(AT(try), AT_REMOVEDIR);
	alloc_free(try);
	alloc_free(full);
}

/* Whether a signal leaves what is in "new". */
static void
swap_keep(const struct swap *s, int keep)
{
	char *new = swap_name(s, "new", NULL);

	if (new != NULL && keep)
		temp_leave(new);
	else if (new != NULL)
		temp_enter(new);
	alloc_free(new);
}

void
swap_discard(struct swap *s)
{
	swap_drop(s);
	io_free(s->redo);
	s->redo = NULL;
	swap_unlink(s, "ready");
	swap_remove(s, "new");
	swap_keep(s, 1);
	s->staged = 0;
}

/* ---- the next model, beside ---- */

/* Bytes from one file to another; a reflink shares them. */
static int
swap_fill(const struct swap *s, const char *path, int from, int to,
    struct err *e)
{
	unsigned char *p;
	size_t n = 1;
	off_t at;
	int r = 0;

	if (s->way == SWAP_REFLINK)
		return ioctl(to, FICLONE, from) == 0 ? 0 : err_sys(e, "no "
		    "reflink of '%s'", path);
	if ((p = alloc_raw(SWAP_PIECE, 1, e)) == NULL)
		return -ERR_SYS;
	for (at = 0; r == 0 && n > 0; at += (off_t)n)
		if ((r = fd_read_at(from, at, p, SWAP_PIECE, &n, path, e)) == 0)
			r = fd_write_at(to, at, p, n, path, e);
	alloc_free(p);
	return r;
}

/* Give the next model the owner, the group, the mode and the ACL of path; where that is
 * not allowed there is no next model. */
static int
swap_owned(int fd, const struct stat *was, const char *path, const char *to,
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

/* A new file like another, by the same rights; *fd stays open. */
static int
swap_like(const struct swap *s, const char *path, const char *to, int *fd,
    struct err *e)
{
	int from = openat(AT(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	struct stat st;

	*fd = -1;
	if (from < 0 || fstat(from, &st) < 0) {
		r = err_sys(e, "'%s'", path);
	} else {
		*fd = openat(AT(to), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		r = *fd >= 0 ? swap_owned(*fd, &st, path, to, e) :
		    err_sys(e, "'%s'", to);
		if (r == 0)
			r = swap_fill(s, path, from, *fd, e);
	}
	if (from >= 0)
		(void)close(from);
	return r;
}

/* What does not change is in both directories. */
static int
swap_link(const struct swap *s, const char *path, const char *to,
    struct err *e)
{
	struct stat st;
	int fd, r;

	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "'%s'", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_REFUSED, "'%s' is a directory in a model: "
		    "such a model is patched in place only", path);
	if (linkat(AT(path), AT(to), 0) == 0)
		return 0;
	if (!S_ISREG(st.st_mode))
		return err_sys(e, "'%s'", to);
	if ((r = swap_like(s, path, to, &fd, e)) == 0 && fsync(fd) < 0)
		r = err_sys(e, "'%s'", to);
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static size_t
swap_which(const struct model *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->nfiles && strcmp(m->file[i].name, name) != 0; i++)
		;
	return i;
}

/* What comes into the directory, goes or changes from here on is seen: it was linked or
 * copied before it was looked at. */
static int
swap_entry(struct swap *s, const char *new, const char *name,
    const unsigned char *touched, struct err *e)
{
	size_t i = swap_which(s->m, name);
	char *from = model_name(s->path, name, e);
	char *to = from != NULL ? model_name(new, name, e) : NULL;
	int r = -ERR_SYS;

	if (to != NULL && (r = i < s->m->nfiles && touched[i] ?
	    swap_like(s, from, to, &s->fd[i], e) :
	    swap_link(s, from, to, e)) == 0)
		r = looks_add(from, name, 1, &s->ready.stamp, e);
	alloc_free(from);
	alloc_free(to);
	return r;
}

static int
swap_dir(struct swap *s, const char *new, const unsigned char *touched,
    struct err *e)
{
	const struct dirent *de;
	struct stat st;
	DIR *d;
	int r, fd;

	if (fstatat(AT(s->path), &st, 0) < 0)
		return err_sys(e, "'%s'", s->path);
	if (mkdirat(AT(new), 0700) < 0 || (d = scan_open(s->path)) == NULL)
		return err_sys(e, "'%s'", new);
	for (r = 0; r == 0 && (de = readdir(d)) != NULL;)
		if (!swap_dots(de->d_name))
			r = swap_entry(s, new, de->d_name, touched, e);
	(void)closedir(d);
	if (r < 0)
		return r;
	/* last: nothing may be written into it then, if nothing was before */
	if ((fd = openat(AT(new), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(e, "'%s'", new);
	r = swap_owned(fd, &st, s->path, new, e);
	(void)close(fd);
	return r;
}

/* What is mounted there takes no other's name. */
static int
swap_mounted(const char *path)
{
#ifdef STATX_ATTR_MOUNT_ROOT
	struct statx st;

	return statx(AT_FDCWD, path, 0, 0, &st) == 0 &&
	    (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else					/* then the rename says it */
	(void)path;
	return 0;
#endif
}

static int
swap_unable(const struct swap *s, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s': its file system cannot put one "
	    "directory in the place of another (%s): such a model is patched in "
	    "place only", s->path, strerror(errno));
}

/* Try whether the directory may be renamed and two can be exchanged, before anything is
 * copied.  A directory that is not empty is never replaced, so that the first rename
 * fails; why it fails is the answer. */
static int
swap_try(const struct swap *s, const char *new, struct err *e)
{
	char *try = swap_name(s, "try", e), *full = swap_name(s, "try/full", e);
	int r = -ERR_SYS, fd = -1;

	if (try == NULL || full == NULL)
		goto out;
	if (mkdirat(AT(try), 0700) < 0 || mkdirat(AT(new), 0700) < 0 ||
	    (fd = openat(AT(full), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
	    0600)) < 0)
		r = err_sys(e, "'%s'", try);
	else if (renameat(AT(s->path), AT(try)) == 0)
		r = renameat(AT(try), AT(s->path)) < 0 ? err_sys(e, "'%s' is now "
		    "called '%s'", s->path, try) : swap_unable(s, e);
	else if (errno != ENOTEMPTY && errno != EEXIST)
		r = swap_unable(s, e);
	else
		r = swap_exchange(new, try) < 0 ? swap_unable(s, e) : 0;
	if (fd >= 0)
		(void)close(fd);
	swap_remove(s, "new");
	swap_untry(s);
out:
	alloc_free(try);
	alloc_free(full);
	return r;
}

/* All of the next model beside the old one, as the old one is. */
static int
swap_beside(struct swap *s, const unsigned char *touched, struct err *e)
{
	char *new;
	int r;

	if (swap_mounted(s->path))
		return err_set(e, ERR_REFUSED, "'%s' is a mount point: such a model "
		    "is patched in place only", s->path);
	if ((new = swap_name(s, "new", e)) == NULL)
		return -ERR_SYS;
	s->ready.stamp = 0;
	r = s->m->dir ? swap_try(s, new, e) : 0;
	if (r == 0)
		swap_keep(s, 0);
	if (r == 0)
		r = s->m->dir ? swap_dir(s, new, touched, e) :
		    swap_like(s, s->path, new, &s->fd[0], e);
	if (r == 0 && !s->m->dir)
		r = swap_looks(s->path, 1, &s->ready.stamp, e);
	alloc_free(new);
	return r;
}

/* ---- the next model, in place ---- */

static int
redo_file(struct swap *s, size_t i, struct err *e)
{
	const char *path = s->m->file[i].path;

	if (s->fd[i] < 0)
		s->fd[i] = openat(AT(path), O_RDWR | O_CLOEXEC);
	return s->fd[i] >= 0 ? 0 : err_sys(e, "'%s'", path);
}

/* redo: for each group of the model its file, how many words change, where it is, how
 * long, and the hash of its bytes afterwards, then each word's number and what it
 * becomes; at last which model it makes, and a checksum of it all.  The words are set
 * again whatever part of them was set before; that the model is still the one that they
 * are for is known by the hashes, which groups that do not change have, too. */
static int
redo_put(struct swap *s, const void *p, size_t n, struct err *e)
{
	pack_sum_add(s->sum, p, n);
	return io_write(s->redo, p, n, e);
}

/* Who may not write a file is told so now: with the journal there he could not undo
 * it. */
static int
redo_begin(struct swap *s, const unsigned char *touched, struct err *e)
{
	char *path = swap_name(s, "redo", e);
	size_t i;
	int r = path != NULL ? io_create(&s->redo, path, 1, e) : -ERR_SYS;

	alloc_free(path);
	for (i = 0; i < s->m->nfiles && r == 0; i++)
		if (touched[i])
			r = redo_file(s, i, e);
	if (r == 0 && s->sum == NULL && (s->sum = pack_sum_new(e)) == NULL)
		return -ERR_SYS;
	if (r == 0)
		pack_sum_reset(s->sum);
	return r;
}

/* Which of the first SWAP_WORDS words are others, a bit for each; fewer where there are
 * no more, of which the last one may be short. */
static uint64_t
redo_differs(const unsigned char *old, const unsigned char *new, size_t bytes)
{
	uint64_t m = 0;
	size_t i, n = bytes / SWAP_WORD;

	for (i = 0; i < n && i < SWAP_WORDS; i++)
		m |= (uint64_t)(bytes_le64(old + SWAP_WORD * i) !=
		    bytes_le64(new + SWAP_WORD * i)) << i;
	if (i < SWAP_WORDS)
		m |= (uint64_t)(memcmp(old + SWAP_WORD * i, new + SWAP_WORD * i,
		    bytes % SWAP_WORD) != 0) << i;
	return m;
}

static int
redo_group(struct swap *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e)
{
	unsigned char head[SWAP_RUN], word[SWAP_WORD] = { 0 }, *p;
	size_t i, at, left;
	uint64_t m;
	int r;

	s->set.n = 0;
	for (i = old == new ? span->bytes : 0; i < span->bytes;
	    i += SWAP_WORDS * SWAP_WORD) {
		m = redo_differs(old + i, new + i, span->bytes - i);
		if ((r = buf_room(&s->set, SWAP_WORDS * SWAP_SET, e)) < 0)
			return r;
		for (p = s->set.p + s->set.n; m != 0; m &= m - 1, p += SWAP_SET) {
			at = i + SWAP_WORD * (size_t)__builtin_ctzll(m);
			left = span->bytes - at;
			bytes_set32(p, (uint32_t)(at / SWAP_WORD));
			if (left < SWAP_WORD)
				memcpy(word, new + at, left);
			bytes_set64(p + 4, bytes_le64(left < SWAP_WORD ? word :
			    new + at));
		}
		s->set.n = (size_t)(p - s->set.p);
	}
	bytes_set32(head, span->file);
	bytes_set32(head + 4, (uint32_t)(s->set.n / SWAP_SET));
	bytes_set64(head + 8, span->at);
	bytes_set64(head + 16, span->bytes);
	memcpy(head + 24, after, MODEL_HASH);
	if ((r = redo_put(s, head, sizeof(head), e)) < 0 || s->set.n == 0)
		return r;
	return redo_put(s, s->set.p, s->set.n, e);
}

/* Whole, with the model that it makes; durable once it has its name. */
static int
redo_end(struct swap *s, struct err *e)
{
	unsigned char last[SWAP_HEAD + MODEL_HASH] = { 0 };
	int r;

	bytes_set32(last, SWAP_LAST);
	bytes_set64(last + 8, s->ready.step);
	memcpy(last + 16, s->ready.hash, MODEL_HASH);
	bytes_set64(last + 32, SWAP_MAGIC);
	pack_sum_add(s->sum, last, SWAP_HEAD);
	pack_sum_get(s->sum, last + SWAP_HEAD);
	/* the directory that it is in is there after a power cut, too */
	if ((r = io_write(s->redo, last, sizeof(last), e)) == 0 &&
	    (r = io_sync_path(s->home, e)) == 0)
		r = io_commit(s->redo, IO_SYNC_FULL, e);
	io_free(s->redo);
	s->redo = NULL;
	return r;
}

static int
redo_strange(struct io *f, const struct model *m, struct err *e)
{
	return err_set(e, ERR_REFUSED, "'%s' was left by a process that changed another "
	    "model than '%s' is", io_name(f), m->path);
}

/* A group as it is once its words, which stand in f behind its head, are set; nothing
 * is written that makes another than the journal was made for. */
static int
redo_set(struct io *f, const struct model *m, int fd, const unsigned char *head,
    unsigned char *p, int write, struct err *e)
{
	uint64_t at = bytes_le64(head + 8), n = bytes_le64(head + 16), word;
	uint32_t k = bytes_le32(head + 4);
	const char *path = m->file[bytes_le32(head)].path;
	unsigned char all[SWAP_SET * SWAP_SETS], is[MODEL_HASH], *set, *end;
	size_t got, len;
	int r;

	if ((r = fd_read_all(fd, (off_t)at, p, n, path, e)) < 0)
		return r;
	for (; k > 0; k -= (uint32_t)(got / SWAP_SET)) {
		len = SWAP_SET * (k < SWAP_SETS ? k : SWAP_SETS);
		if ((r = io_read(f, all, len, &got, e)) < 0)
			return r;
		if (got < len)
			return err_set(e, ERR_DATA, "corrupt: '%s'", io_name(f));
		for (set = all, end = all + got; set < end; set += SWAP_SET) {
			word = (uint64_t)bytes_le32(set) * SWAP_WORD;
			if (word >= n)
				return err_set(e, ERR_DATA, "corrupt: '%s'",
				    io_name(f));
			len = n - word < SWAP_WORD ? (size_t)(n - word) :
			    SWAP_WORD;
			memcpy(p + word, set + 4, len);
		}
	}
	pack_hash128(p, (size_t)n, is);
	if (memcmp(is, head + 24, MODEL_HASH) != 0)
		return redo_strange(f, m, e);
	return write ? fd_write_at(fd, (off_t)at, p, n, path, e) : 0;
}

/* Everything in redo, to the end that was verified: whether the model becomes what it
 * says, or to make it that. */
static int
redo_apply(struct swap *s, struct io *f, int write, struct err *e)
{
	const struct model *m = s->m;
	const size_t most = (size_t)MODEL_GROUP * 8;
	unsigned char head[SWAP_RUN], *p = alloc_raw(most, 1, e);
	uint32_t i;
	size_t got;
	int r = p != NULL ? 0 : -ERR_SYS;

	while (r == 0 && (r = io_read(f, head, 16, &got, e)) == 0) {
		i = bytes_le32(head);
		if (got == 16 && i == SWAP_LAST)
			break;
		if (got == 16)
			r = io_read(f, head + 16, SWAP_RUN - 16, &got, e);
		if (r == 0 && (got != SWAP_RUN - 16 || i >= m->nfiles ||
		    bytes_le64(head + 16) > most ||
		    bytes_le64(head + 8) > m->file[i].size ||
		    bytes_le64(head + 16) > m->file[i].size -
		    bytes_le64(head + 8)))
			r = redo_strange(f, m, e);
		if (r < 0 || (write && bytes_le32(head + 4) == 0))
			continue;
		if (!write || (r = redo_file(s, i, e)) == 0)
			r = redo_set(f, m, write ? s->fd[i] : m->file[i].fd, head,
			    p, write, e);
	}
	alloc_free(p);
	for (i = 0; i < m->nfiles; i++)
		if (s->fd[i] >= 0 && fsync(s->fd[i]) < 0 && r == 0)
			r = err_sys(e, "'%s'", m->file[i].path);
	return r;
}

/* Is it whole?  Says which model it makes. */
static int
redo_verify(struct io *f, struct swap_mark *mark, struct err *e)
{
	unsigned char p[4096], last[SWAP_HEAD + MODEL_HASH], is[MODEL_HASH];
	uint64_t left = io_size(f);
	struct pack_sum *sum;
	size_t got = 0;
	int r = 0;

	if (left < sizeof(last) || (sum = pack_sum_new(e)) == NULL)
		return left < sizeof(last) ? err_set(e, ERR_DATA, "corrupt: '%s'",
		    io_name(f)) : -ERR_SYS;
	for (left -= sizeof(last); left > 0 && r == 0; left -= got) {
		r = io_read(f, p, left < sizeof(p) ? (size_t)left : sizeof(p),
		    &got, e);
		if (r == 0 && got == 0)
			r = err_set(e, ERR_DATA, "corrupt: '%s'", io_name(f));
		pack_sum_add(sum, p, got);
	}
	if (r == 0 && (r = io_read(f, last, sizeof(last), &got, e)) == 0) {
		pack_sum_add(sum, last, SWAP_HEAD);
		pack_sum_get(sum, is);
		memcpy(mark->hash, last + 16, MODEL_HASH);
		mark->step = bytes_le64(last + 8);
		if (got < sizeof(last) || bytes_le64(last + 32) != SWAP_MAGIC ||
		    memcmp(is, last + SWAP_HEAD, MODEL_HASH) != 0)
			r = err_set(e, ERR_DATA, "corrupt: '%s'", io_name(f));
	}
	pack_sum_free(sum);
	return r < 0 ? r : io_seek(f, 0, e);
}

/* ---- the end ---- */

/* The model is the next one; what is left of the old one goes. */
static int
swap_finish(struct swap *s, struct err *e)
{
	struct model m = MODEL_INIT;
	int r;

	/* first: its files are in the new model, too, and look otherwise then */
	swap_remove(s, "new");
	if ((r = model_open(&m, s->path, e)) == 0)
		s->ready.stamp = model_stamp(&m);
	model_close(&m);
	s->ready.inode = s->ready.next = 0;
	if (r < 0 || (r = mark_write(s, "marker", &s->ready, e)) < 0)
		return r;
	s->mark = s->ready;
	s->marked = 1;
	swap_unlink(s, "ready");
	swap_unlink(s, "redo");
	s->staged = 0;
	return 0;
}

/* What redo says is done, again if it was before, when the model is seen to become what
 * it says, or was read just now.  0 when there is none. */
static int
swap_redo(struct swap *s, int read, struct err *e)
{
	char *path = swap_name(s, "redo", e);
	struct model m = MODEL_INIT;
	struct io *f = NULL;
	int r;

	r = path != NULL ? io_open_kept(&f, path, e) : -ERR_SYS;
	if (r > 0 && (r = redo_verify(f, &s->ready, e)) == 0 && !read &&
	    (r = model_open(&m, s->path, e)) == 0 &&
	    (r = swap_fds(s, &m, e)) == 0 && (r = redo_apply(s, f, 0, e)) == 0)
		r = io_seek(f, 0, e);
	if (r == 0 && f != NULL && (r = redo_apply(s, f, 1, e)) == 0)
		r = 1;
	swap_drop(s);
	model_close(&m);
	io_free(f);
	alloc_free(path);
	return r > 0 ? swap_finish(s, e) : r;
}

/* 0 where there is none. */
static uint64_t
swap_inode(const char *path)
{
	struct stat st;

	return fstatat(AT(path), &st, 0) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* What was staged before is still there, or was put in place by one who was killed and
 * may not have come to the end of it; unless somebody has changed it since, or put yet
 * another model there, and it is forgotten. */
static int
swap_was_ready(struct swap *s, struct err *e)
{
	char *new = swap_name(s, "new", e);
	uint64_t looks;
	int r;

	if (new == NULL)
		return -ERR_SYS;
	s->staged = swap_inode(new) == s->ready.inode;
	alloc_free(new);
	if (s->staged)
		return 0;
	if (swap_inode(s->path) != s->ready.inode) {
		swap_discard(s);
		return 0;
	}
	if ((r = io_sync_path(s->path, e)) < 0 ||
	    (r = swap_looks(s->path, 0, &looks, e)) < 0)
		return r;
	if (looks == s->ready.next)
		return swap_finish(s, e);
	swap_discard(s);
	return 0;
}

/* Until there is a lock of ours, nothing in the directory is: it was made by somebody
 * else, for something else. */
static int
swap_strange(void *arg, const char *name, struct err *e)
{
	const struct swap *s = arg;

	return strstr(name, ".new-") != NULL ? 0 : err_set(e, ERR_REFUSED,
	    "'%s/%s' was not made by ace-patch, which keeps its files in '%s': "
	    "move that directory away", s->home, name, s->home);
}

/* Waits for the process that has it. */
static int
swap_alone(struct swap *s, struct err *e)
{
	char *path = swap_name(s, "lock", e);
	int r = path != NULL ? 0 : -ERR_SYS;

	if (r == 0 && swap_inode(path) == 0 &&
	    (r = scan(s->home, swap_strange, s, e)) < 0 && swap_inode(path) != 0) {
		/* another ace-patch made the lock meanwhile, and maybe more */
		err_clear(e);
		r = 0;
	}
	if (r == 0 && (r = fd_lock(path, LOCK_EX | LOCK_NB, &s->dir.lock,
	    e)) > 0) {
		cli_say(s->cli, 1, "another process changes '%s'", s->path);
		r = fd_lock(path, LOCK_EX, &s->dir.lock, e);
	}
	alloc_free(path);
	return r;
}

int
swap_lock(struct swap *s, struct err *e)
{
	int r = swap_alone(s, e);

	if (r < 0)
		return r;
	temp_sweep(s->home);
	if ((r = mark_read(s, "marker", &s->mark, e)) < 0)
		return r;
	s->marked = r;
	/* the marker came with the lock: until there is one, a power cut could leave
	 * what is ours without the lock that says so */
	if (!r && (r = io_sync_file(s->home, e)) < 0)
		return r;
	if ((r = swap_redo(s, 0, e)) < 0 ||
	    (r = mark_read(s, "ready", &s->ready, e)) < 0)
		return r;
	if (r > 0)
		return swap_was_ready(s, e);
	swap_remove(s, "new");
	swap_untry(s);
	return 0;
}

/* ---- one after another ---- */

/* Does a file that changes have another name, by which somebody keeps the old bytes? */
static int
swap_shared(const struct model *m, const unsigned char *touched)
{
	struct stat st;
	size_t i;

	for (i = 0; i < m->nfiles; i++)
		if (touched[i] && fstatat(AT(m->file[i].path), &st,
		    AT_SYMLINK_NOFOLLOW) == 0 &&
		    (S_ISLNK(st.st_mode) || st.st_nlink > 1))
			return 1;
	return 0;
}

int
swap_begin(struct swap *s, const struct model *m, const unsigned char *touched,
    enum swap_way way, int staging, struct err *e)
{
	struct err no = ERR_INIT;
	int r;

	if ((r = swap_fds(s, m, e)) < 0)
		return r;
	if (way == SWAP_ANY || way == SWAP_REFLINK) {
		s->way = SWAP_REFLINK;
		r = swap_beside(s, touched, way == SWAP_ANY ? &no : e);
		if (r == 0 || way == SWAP_REFLINK)
			goto out;
		swap_discard(s);
		if ((r = swap_fds(s, m, e)) < 0)
			return r;
		cli_say(s->cli, 2, "%s", ERR_MSG(&no));
		way = staging || swap_shared(m, touched) ? SWAP_COPY : SWAP_PLACE;
	}
	s->way = way;
	r = way == SWAP_PLACE ? redo_begin(s, touched, e) : swap_beside(s, touched, e);
out:
	if (r == 0)
		cli_say(s->cli, 1, "%s: %s", s->path, s->way == SWAP_REFLINK ?
		    "a reflink beside, and a rename" : s->way == SWAP_COPY ?
		    "a copy beside, and a rename" : "in place, by a journal");
	return r;
}

int
swap_group(struct swap *s, const struct model_span *span,
    const unsigned char *old, const unsigned char *new,
    const unsigned char after[MODEL_HASH], struct err *e)
{
	if (s->way == SWAP_PLACE)
		return redo_group(s, span, old, new, after, e);
	return old == new ? 0 : fd_write_at(s->fd[span->file], (off_t)span->at, new, span->bytes,
	    s->m->file[span->file].path, e);
}

int
swap_ready(struct swap *s, const unsigned char hash[MODEL_HASH],
    uint64_t step, struct err *e)
{
	char *new;
	size_t i;
	int r = 0;

	memcpy(s->ready.hash, hash, MODEL_HASH);
	s->ready.step = step;
	if (s->way == SWAP_PLACE)
		return 0;
	for (i = 0; i < s->m->nfiles && r == 0; i++) {
		if (s->fd[i] < 0)
			continue;
		if (fsync(s->fd[i]) < 0)
			r = err_sys(e, "'%s'", s->m->file[i].path);
		if (close(s->fd[i]) < 0 && r == 0)
			r = err_sys(e, "'%s'", s->m->file[i].path);
		s->fd[i] = -1;
	}
	if (r < 0)
		return r;
	if ((new = swap_name(s, "new", e)) == NULL)
		return -ERR_SYS;
	s->ready.inode = swap_inode(new);
	if ((r = swap_looks(new, 0, &s->ready.next, e)) == 0 &&
	    (r = io_sync_file(new, e)) == 0 && (r = io_sync_path(new, e)) == 0 &&
	    (r = io_sync_path(s->home, e)) == 0)
		swap_keep(s, 1);	/* what is ready is for the next call */
	if (r == 0 && (r = mark_write(s, "ready", &s->ready, e)) == 0)
		s->staged = 1;
	alloc_free(new);
	return r;
}

int
swap_still(const struct swap *s, struct err *e)
{
	uint64_t looks;
	int r;

	if (s->way == SWAP_PLACE && !s->staged)
		return model_same(s->m, e);
	r = swap_looks(s->path, 1, &looks, e);
	return r < 0 || looks == s->ready.stamp ? r : err_set(e, ERR_REFUSED,
	    "'%s' changed since the next model was made of it", s->path);
}

int
swap_commit(struct swap *s, struct err *e)
{
	struct stat st;
	char *new;
	int r;

	if ((r = swap_still(s, e)) < 0)
		return r;
	if (s->way == SWAP_PLACE && !s->staged)
		return (r = redo_end(s, e)) < 0 ? r : swap_redo(s, 1, e);
	if ((new = swap_name(s, "new", e)) == NULL)
		return -ERR_SYS;
	if (fstatat(AT(s->path), &st, 0) < 0)
		r = err_sys(e, "'%s'", s->path);
	else if (S_ISDIR(st.st_mode) ? swap_exchange(new, s->path) < 0 :
	    renameat(AT(new), AT(s->path)) < 0)
		r = errno == EXDEV || errno == EINVAL ? swap_unable(s, e) :
		    err_sys(e, "'%s'", s->path);
	alloc_free(new);
	if (r == 0 && (r = io_sync_path(s->path, e)) == 0 &&
	    (r = io_sync_file(s->home, e)) == 0)
		r = swap_finish(s, e);
	return r;
}
