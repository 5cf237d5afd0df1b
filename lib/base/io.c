#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/splice.h"
#include "base/temp.h"

enum { IO_BUF = 64 * 1024, IO_LITTLE = 512 };
enum { IO_BEHIND = 4 << 20 };	/* bytes that the disk is given at a time */
enum { IO_SPARE = 256 << 10 };	/* of less it is not worth its names */

struct io {
	int fd;			/* -1: memory, or `from' */
	struct io_from from;	/* read NULL: none */
	int (*before)(struct io *, struct err *);
	int writing;
	int own;		/* close fd */
	int seekable, pipe, sparse;
	int skipped;		/* little may be wanted of what comes next */
	int watch;		/* what must be read by somebody, or -1 */
	char *name;		/* for messages */
	struct temp temp;	/* io_create: its name is NULL for anything else */
	int placed;		/* reads from `place' on, not where fd stands,
				 * so that to pass over bytes is no call */
	off_t place;
	double silence, until;	/* io_patience: seconds, clock_now; or 0 */
	struct splice *share;	/* what goes on as it is, or NULL */
	uint64_t count;		/* bytes handed out or taken */

	unsigned char *buf;	/* IO_BUF bytes, or the caller's memory, all of it */
	size_t at, have;	/* reading: unread part of buf; writing: have */
	int lent;		/* buf is the caller's */
	struct buf sink;	/* memory destination */

	int marked;		/* bytes since the mark are kept, or seekable */
	uint64_t mark_count;
	size_t rec_limit, rec_at;
	int rec_lost;
	struct buf rec;		/* pipes: what was read since the mark */
	int behind;		/* io_behind, and so many bytes are on their way */
	uint64_t sent;
	int over;		/* io_over */
	int ahead;		/* there may be more than was written: cut it off */
};

void
io_pipe_small(const struct io *io)
{
	fd_pipe_size(io->fd, IO_BUF);
}

/* An end without anything set that io_open or io_create sets. */
static int
io_new(struct io **out, int fd, int writing, const char *name, struct err *e)
{
	struct io *io = alloc_get(1, sizeof(*io), e);
	size_t cap = 0;

	*out = NULL;
	if (io == NULL)
		return -ERR_SYS;
	io->fd = fd;
	io->writing = writing;
	io->watch = -1;
	io->name = alloc_dup(name, e);
	if (fd >= 0)
		(void)alloc_grow(&io->buf, &cap, IO_BUF, 1, e);
	if (io->name == NULL || (fd >= 0 && io->buf == NULL)) {
		io_free(io);
		return -ERR_SYS;
	}
	*out = io;
	return 0;
}

/* ---- opening ---- */

/* An end for reading fd, whose stat is st. */
static int
io_open_with(struct io **out, int fd, const struct stat *st, const char *name,
    struct err *e)
{
	int r;

	*out = NULL;
	if (S_ISDIR(st->st_mode)) {
		errno = EISDIR;
		return err_sys(e, "'%s'", name);
	}
	if (S_ISCHR(st->st_mode) && fd_is_terminal(fd))
		return err_set(e, ERR_USAGE,
		    "'%s' is a terminal: a shard stream is binary", name);
	r = io_new(out, fd, 0, name, e);
	if (r < 0)
		return r;
	(*out)->seekable = S_ISREG(st->st_mode);
	(*out)->pipe = S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode);
	if (S_ISFIFO(st->st_mode))
		fd_pipe_size(fd, 1 << 20);
	return 0;
}

int
io_open_fd(struct io **out, int fd, const char *name, struct err *e)
{
	struct stat st;
	const int r = fd_input(fd, name, &st, e);

	*out = NULL;
	return r < 0 ? r : io_open_with(out, fd, &st, name, e);
}

static int
io_open_as(struct io **out, const char *path, enum fd_what what, struct err *e)
{
	struct stat st;
	int fd, r;

	*out = NULL;
	if ((r = fd_open(path, what, &fd, &st, e)) < 0)
		return r;
	if ((r = io_open_with(out, fd, &st, path, e)) < 0)
		(void)close(fd);
	else
		io_alone(*out);
	return r;
}

int
io_open(struct io **out, const char *path, struct err *e)
{
	if (path == NULL || (path[0] == '-' && path[1] == '\0'))
		return io_open_fd(out, STDIN_FILENO, "<stdin>", e);
	/* what is in a state or a spool was not named by a person */
	return io_open_as(out, path, at_dir(path) == AT_FDCWD ? FD_NAMED :
	    FD_FILE, e);
}

int
io_open_file(struct io **out, const char *path, struct err *e)
{
	return io_open_as(out, path, FD_FILE, e);
}

int
io_open_kept(struct io **out, const char *path, struct err *e)
{
	struct err own = ERR_INIT;
	const int r = io_open_as(out, path, FD_OURS, &own);

	if (r < 0)
		return own.code == ERR_SYS && errno == ENOENT ? 0 :
		    err_move(e, &own);
	return 1;
}

int
io_open_mem(struct io **out, const void *p, size_t n, struct err *e)
{
	int r = io_new(out, -1, 0, "<memory>", e);

	if (r < 0)
		return r;
	(*out)->buf = (unsigned char *)(uintptr_t)p;	/* is only read */
	(*out)->have = n;
	(*out)->lent = (*out)->seekable = 1;
	return 0;
}

int
io_open_at(struct io **out, int fd, uint64_t at, const char *name,
    struct err *e)
{
	int r = io_new(out, fd, 0, name, e);

	if (r < 0)
		return r;
	(*out)->placed = 1;
	(*out)->place = (off_t)at;
	return 0;
}

int
io_open_from(struct io **out, const struct io_from *f, const char *name,
    struct err *e)
{
	int r = io_new(out, -1, 0, name, e);

	if (r < 0)
		f->free(f->arg);
	else
		(*out)->from = *f;
	return r;
}

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

/* Opens a device or a FIFO to write into it as it is. */
static int
io_create_into(struct io **out, const char *path, int force, struct err *e)
{
	int fd = -1, r;

	if (!temp_trusts(path))
		errno = EACCES;
	else
		fd = openat(AT(path), O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, "'%s'", path);
	if (!force && fd_is_terminal(fd))
		r = err_set(e, ERR_USAGE, "'%s' is a terminal: a shard stream "
		    "is binary", path);
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
io_create_beside(struct io **out, const char *path, const char *target,
    const char *spare, int durable, struct err *e)
{
	struct temp t = { .durable = durable };
	int fd, r;

	if (spare != NULL && (t.spare = alloc_dup(spare, e)) == NULL)
		return -ERR_SYS;
	if ((r = temp_begin(&t, target, &fd, e)) < 0) {
		temp_drop(&t);
		return r;
	}
	if (io_new(out, fd, 1, path, e) < 0) {
		(void)close(fd);
		temp_drop(&t);
		return -ERR_SYS;
	}
	(*out)->own = 1;
	(*out)->temp = t;
	(*out)->over = (*out)->ahead = r;
	return 0;
}

static int
io_create_with(struct io **out, const char *path, int force, const char *spare,
    int durable, struct err *e)
{
	struct stat st;
	char *target;
	int r;

	*out = NULL;
	if (path == NULL || (path[0] == '-' && path[1] == '\0')) {
		if (!force && isatty(STDOUT_FILENO))
			return err_set(e, ERR_USAGE, "standard output is a "
			    "terminal: a shard stream is binary");
		return io_create_fd(out, STDOUT_FILENO, "<stdout>", e);
	}
	r = fstatat(AT(path), &st, 0);
	if (r == 0 && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return err_sys(e, "'%s'", path);
	}
	if (r == 0 && !S_ISREG(st.st_mode))
		return io_create_into(out, path, force, e);
	if (r < 0 && errno != ENOENT)
		return err_sys(e, "'%s'", path);
	if ((r = temp_target(path, &target, e)) < 0)
		return r;
	r = io_create_beside(out, path, target, spare, durable, e);
	alloc_free(target);
	return r;
}

int
io_create(struct io **out, const char *path, int force, struct err *e)
{
	return io_create_with(out, path, force, NULL, 0, e);
}

int
io_create_over(struct io **out, const char *path, const char *spare,
    int durable, struct err *e)
{
	struct stat st;
	const int large = fstatat(AT(path), &st, 0) == 0 && st.st_size >= IO_SPARE;

	return io_create_with(out, path, 0, large ? spare : NULL, durable, e);
}

int
io_over(const struct io *io)
{
	return io->over;
}

int
io_create_mem(struct io **out, struct err *e)
{
	return io_new(out, -1, 1, "<memory>", e);
}

/* ---- reading ---- */

void
io_own(struct io *io)
{
	io->own = 1;
}

void
io_alone(struct io *io)
{
	io->own = 1;
	io->placed = io->seekable;
}

void
io_watch(struct io *io, int fd)
{
	io->watch = fd;
}

void
io_patience(struct io *io, double silence, double whole)
{
	io->silence = silence;
	io->until = whole > 0 ? clock_now() + whole : 0;
}

/* Waits for input, no longer than io_patience allows. */
static int
io_await(struct io *io, struct err *e)
{
	const double began = clock_now();
	double left, past = 0;
	int r = 0;

	for (; r == 0; past = clock_now() - began) {
		left = 60;
		if (io->silence > 0 && io->silence - past < left)
			left = io->silence - past;
		if (io->until > 0 && io->until - began - past < left)
			left = io->until - began - past;
		if (left <= 0)
			return err_set(e, ERR_DATA, "truncated: the time is "
			    "over, after %.3g s without a byte", past);
		r = fd_ready(io->fd, io->watch, (int)(left * 1e3) + 1,
		    io->name, e);
	}
	return r;
}

/* Goes on so many bytes after what was read from the file. */
static int
io_move(struct io *io, off_t by, struct err *e)
{
	if (io->placed)
		io->place += by;
	else if (lseek(io->fd, by, SEEK_CUR) < 0)
		return err_sys(e, "'%s'", io->name);
	io->at = io->have = 0;
	return 0;
}

/* One read of at most n bytes from below the buffer: 0 is the end. */
static int
io_fill(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	int r;

	if (io->fd >= 0 && (io->silence > 0 || io->until > 0) &&
	    (r = io_await(io, e)) < 0)
		return r;
	/* where others read in the file, too, or where much of it is passed over */
	if (io->placed) {
		r = fd_read_at(io->fd, io->place, p, n, got, io->name, e);
		io->place += (off_t)*got;
		return r;
	}
	if (io->share != NULL)
		return splice_read(io->share, io->watch, p, n, got, io->name, e);
	/* a file does not let us wait, so that nothing is watched meanwhile */
	if (io->fd >= 0)
		return fd_read(io->fd, io->seekable ? -1 : io->watch, p, n,
		    got, io->name, e);
	if (io->from.read != NULL)
		return io->from.read(io->from.arg, p, n, got, e);
	*got = 0;		/* memory: all of it was in the buffer */
	return 0;
}

/* ---- what another reader gives ---- */

void
io_before(struct io *io, int (*fn)(struct io *io, struct err *e))
{
	io->before = fn;
}

int
io_below(struct io *io, struct io **below, const struct io_from *f,
    struct err *e)
{
	struct io *x, was = *io;
	int r = io_new(&x, -1, 0, io->name, e);

	*below = NULL;
	if (r < 0)
		return r;
	*io = *x;
	*x = was;
	x->before = NULL;
	io->from = *f;
	io->pipe = x->pipe;	/* who writes it says what went wrong */
	*below = x;
	return 0;
}

int
io_peek(struct io *io, void *p, size_t n, size_t *got, struct err *e)
{
	size_t k;
	int r;

	while (io->fd >= 0 && io->have - io->at < n) {
		memmove(io->buf, io->buf + io->at, io->have - io->at);
		io->have -= io->at;
		io->at = 0;
		if ((r = io_fill(io, io->buf + io->have, IO_BUF - io->have, &k,
		    e)) < 0)
			return r;
		if (k == 0)
			break;
		io->have += k;
	}
	*got = io->have - io->at < n ? io->have - io->at : n;
	if (*got != 0)
		memcpy(p, io->buf + io->at, *got);
	return 0;
}

uint64_t
io_size(const struct io *io)
{
	struct stat st;

	if (io->fd < 0)
		return io->have;
	return fstat(io->fd, &st) == 0 && st.st_size > 0 ?
	    (uint64_t)st.st_size : 0;
}

/* ---- through the buffer ---- */

static int
io_record(struct io *io, const unsigned char *p, size_t n, struct err *e)
{
	int r;

	if (io->rec_lost || n > io->rec_limit - io->rec.n) {
		io->rec_lost = 1;
		return 0;
	}
	r = buf_put(&io->rec, p, n, e);
	io->rec_at = io->rec.n;
	return r;
}

/* As io_fill, through the buffer; small reads share one system call. */
static int
io_some(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	int (*before)(struct io *, struct err *) = io->before;
	size_t k;
	int r;

	io->before = NULL;
	if (before != NULL && (r = before(io, e)) < 0)
		return r;
	if (io->rec_at < io->rec.n) {		/* replay after a rewind */
		k = io->rec.n - io->rec_at < n ? io->rec.n - io->rec_at : n;
		memcpy(p, io->rec.p + io->rec_at, k);
		io->rec_at += k;
		*got = k;
		return 0;
	}
	if (io->at == io->have) {
		/* what is shared must not be read ahead */
		if (io->fd < 0 || n >= IO_BUF || io->share != NULL ||
		    (io->sparse && n > IO_LITTLE))
			r = io_fill(io, p, n, got, e);
		else {
			io->at = io->have = 0;
			r = io_fill(io, io->buf, n <= IO_LITTLE &&
			    (io->skipped || io->sparse) ? IO_LITTLE : IO_BUF,
			    &io->have, e);
			io->skipped = 0;
			*got = io->have < n ? io->have : n;
			memcpy(p, io->buf, *got);
			io->at = *got;
		}
		if (r < 0)
			return r;
	} else {
		k = io->have - io->at < n ? io->have - io->at : n;
		memcpy(p, io->buf + io->at, k);
		io->at += k;
		*got = k;
	}
	if (io->marked && !io->seekable)
		return io_record(io, p, *got, e);
	return 0;
}

int
io_read(struct io *io, void *p, size_t n, size_t *got, struct err *e)
{
	size_t done = 0, k;
	int r;

	while (done < n) {
		r = io_some(io, (unsigned char *)p + done, n - done, &k, e);
		if (r < 0)
			return r;
		if (k == 0)
			break;
		done += k;
	}
	io->count += done;
	*got = done;
	return 0;
}

int
io_ready(struct io *io, int ms, struct err *e)
{
	return io->fd < 0 || io->at != io->have || io->rec_at != io->rec.n ?
	    1 : fd_ready(io->fd, io->watch, ms, io->name, e);
}

int
io_take(struct io *io, void *p, size_t n, int ms, size_t *got, struct err *e)
{
	int r;

	*got = 0;
	if (ms >= 0 && (r = io_ready(io, ms, e)) <= 0)
		return r < 0 ? r : IO_NOT_YET;
	if ((r = io_some(io, p, n, got, e)) < 0)
		return r;
	io->count += *got;
	return *got != 0 ? IO_GOT : IO_END;
}

int
io_can_seek(const struct io *io)
{
	return io->seekable;
}

int
io_is_pipe(const struct io *io)
{
	return io->pipe;
}

int
io_seek(struct io *io, uint64_t at, struct err *e)
{
	if (!io->seekable)
		return err_set(e, ERR_USAGE, "'%s' is not a file that can seek",
		    io->name);
	io->marked = 0;
	if (io->fd < 0) {
		io->at = at < io->have ? (size_t)at : io->have;
	} else {
		/* what is in the buffer was read and not yet handed out */
		off_t back = (off_t)(io->count + (io->have - io->at));
		int r = io_move(io, (off_t)at - back, e);

		if (r < 0)
			return r;
	}
	io->count = at;
	return 0;
}

void
io_sparse(struct io *io)
{
	io->sparse = 1;
}

int
io_skip(struct io *io, uint64_t n, struct err *e)
{
	uint64_t here = io->have - io->at;
	int r;

	if (io->fd >= 0 && n > here && io->seekable) {
		if ((r = io_move(io, (off_t)(n - here), e)) < 0)
			return r;
		io->skipped = 1;
	} else if (n <= here) {
		io->at += (size_t)n;
	} else {
		return io_seek(io, io->count + n, e);
	}
	io->count += n;
	return 0;
}

int
io_mark(struct io *io, size_t limit, struct err *e)
{
	size_t left = io->rec.n - io->rec_at;

	/* bytes still to be replayed stay ahead of the new mark */
	if (left != 0)
		memmove(io->rec.p, io->rec.p + io->rec_at, left);
	io->rec.n = left;
	io->rec_at = 0;
	io->rec_limit = limit > left ? limit : left;
	io->rec_lost = 0;
	io->marked = 1;
	io->mark_count = io->count;
	return 0;
}

int
io_rewind(struct io *io, struct err *e)
{
	uint64_t back = io->count - io->mark_count;
	int r;

	if (!io->marked || io->rec_lost)
		return err_set(e, ERR_REFUSED,
		    "'%s': more than %zu bytes to go back", io->name,
		    io->rec_limit);
	if (!io->seekable) {
		io->rec_at = 0;
	} else if (io->fd < 0) {
		io->at -= (size_t)back;
	} else {
		back += io->have - io->at;
		if ((r = io_move(io, -(off_t)back, e)) < 0)
			return r;
	}
	io->count = io->mark_count;
	return 0;
}

/* ---- writing ---- */

static int
io_out(struct io *io, struct err *e)
{
	int r;

	if (io->fd < 0 || io->have == 0)
		return 0;
	r = fd_write(io->fd, io->buf, io->have, io->name, e);
	io->have = 0;
	return r;
}

int
io_flush(struct io *io, struct err *e)
{
	return io->temp.name != NULL ? 0 : io_out(io, e);
}

void
io_behind(struct io *io)
{
	io->behind = 1;
}

/* Now that so many bytes were written. */
static void
io_send(struct io *io, uint64_t to)
{
#ifdef SYNC_FILE_RANGE_WRITE
	if (!io->behind || to - io->sent < IO_BEHIND)
		return;
	/* a wish: what fails is found at the fsync */
	(void)sync_file_range(io->fd, (off_t)io->sent, (off_t)(to - io->sent),
	    SYNC_FILE_RANGE_WRITE);
	io->sent = to;
#else
#endif
}

int
io_ahead(struct io *io, uint64_t slack, int *fd, uint64_t *from, struct err *e)
{
	const uint64_t page = 4096;

	if ((*fd = fcntl(io->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return err_sys(e, "'%s'", io->name);
	*from = (io->count + slack + page - 1) / page * page;
	io->ahead = 1;
	return 0;
}

int
io_write(struct io *io, const void *p, size_t n, struct err *e)
{
	int r;

	io->count += n;
	if (io->fd < 0)
		return buf_put(&io->sink, p, n, e);
	if (n > IO_BUF - io->have && (r = io_out(io, e)) < 0)
		return r;
	if (n >= IO_BUF) {
		r = fd_write(io->fd, p, n, io->name, e);
		io_send(io, io->count);
		return r;
	}
	memcpy(io->buf + io->have, p, n);
	io->have += n;
	return 0;
}

int
io_sync_path(const char *path, struct err *e)
{
	return fd_sync_name(path, e);
}

int
io_sync_file(const char *path, struct err *e)
{
	int fd = openat(AT(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r = fd < 0 ? err_sys(e, "'%s'", path) : fd_sync(fd, path, e);

	if (fd >= 0)
		(void)close(fd);
	return r;
}

int
io_commit(struct io *io, enum io_sync sync, struct err *e)
{
	int fd, r = io_out(io, e);

	if (r < 0 || io->fd < 0)
		return r;
	if (io->ahead && ftruncate(io->fd, (off_t)io->count) < 0)
		return err_sys(e, "'%s'", io->name);
	fd = io->fd;
	io->fd = -1;
	if (io->temp.name == NULL)
		return close(fd) < 0 && errno != EINTR ?
		    err_sys(e, "'%s'", io->name) : 0;
	return temp_commit(&io->temp, fd, sync == IO_SYNC_FULL, io->name, e);
}

/* ---- from one to another ---- */

int
io_splice(struct io *io, const struct io *to)
{
	if (io->share == NULL && io->pipe && io->fd >= 0 && to->writing)
		io->share = splice_new(io->fd, to->fd);
	return io->share != NULL;
}

void
io_splice_keep(struct io *io, size_t n)
{
	if (io->share != NULL)
		splice_begin(io->share, io->at == io->have &&
		    io->rec_at == io->rec.n ? n : 0);
}

int
io_splice_pass(struct io *io, struct io *from, const void *p, size_t n, struct err *e)
{
	size_t done = 0;
	int r;

	if (from->share != NULL && splice_has(from->share, io->fd, n)) {
		if ((r = io_out(io, e)) < 0)
			return r;
		done = splice_pass(from->share, n);
		io->count += done;
	}
	return io_write(io, (const unsigned char *)p + done, n - done, e);
}

int
io_splice_move(struct io *io, struct io *from, size_t n, size_t *got, struct err *e)
{
	int r;

	*got = 0;
	if (from->share == NULL || from->at != from->have || from->marked)
		return 0;
	if ((r = io_out(io, e)) < 0 || ((from->silence > 0 ||
	    from->until > 0) && (r = io_await(from, e)) < 0))
		return r;
	r = splice_move(from->share, from->watch, n, got, from->name, e);
	from->count += *got;
	io->count += *got;
	return r;
}

/* ---- both ---- */

const unsigned char *
io_mem(const struct io *io, size_t *n)
{
	*n = io->sink.n;
	return io->sink.p;
}

uint64_t
io_bytes(const struct io *io)
{
	return io->count;
}

const char *
io_name(const struct io *io)
{
	return io->name;
}

void
io_free(struct io *io)
{
	if (io == NULL)
		return;
	if (io->own && io->fd >= 0)
		(void)close(io->fd);
	temp_drop(&io->temp);
	if (io->from.free != NULL)
		io->from.free(io->from.arg);
	splice_free(io->share);
	alloc_free(io->name);
	if (!io->lent)
		alloc_free(io->buf);
	buf_release(&io->sink);
	buf_release(&io->rec);
	alloc_free(io);
}

enum { IO_CHUNK = 256 * 1024 };

int
io_to_temp(int *fd, uint64_t *size, struct io *in, struct err *e)
{
	unsigned char *p = alloc_get(IO_CHUNK, 1, e);
	struct io *out = NULL;
	size_t got = IO_CHUNK;
	int r = p != NULL ? 0 : -ERR_SYS;

	*size = 0;
	if (r == 0 && (r = temp_open(fd, e)) == 0)
		r = io_create_fd(&out, *fd, "<temporary>", e);
	while (r == 0 && got == IO_CHUNK) {
		if ((r = io_read(in, p, IO_CHUNK, &got, e)) == 0)
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
