#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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
enum { IO_BEHIND = 4 << 20 };	/* start writing to the disk after this many bytes */

struct io;

/* How an io reads its input. */
struct io_kind {
	/* read once, at most n bytes; *got is 0 at the end of the input */
	int (*read)(struct io *io, unsigned char *p, size_t n, size_t *got,
	    struct err *e);
	int seeks;		/* 1: reads at byte `place' of the file, so io can seek */
	int ahead;		/* 1: may read more than requested */
};

/* When reading, buf[at] to buf[have - 1] are bytes that were read but not yet returned to
 * the caller, and count is the position of buf[at] in the input. When writing, buf[0] to
 * buf[have - 1] wait to be written. */
struct io {
	const struct io_kind *kind;	/* NULL: for writing */
	int fd;			/* -1: reads `from', or was committed */
	struct io_from from;
	off_t place;		/* byte of the file from which file_read reads next */
	int (*before)(struct io *, struct err *);
	int own;		/* 1: io_free closes fd */
	int pipe, sparse;	/* pipe: 1 for a pipe or socket; sparse: 1 after io_sparse */
	int skipped;		/* 1: the caller skipped; it may soon skip again */
	int watch;		/* pipe that must have a reader, or -1 */
	char *name;		/* for messages */
	struct temp temp;	/* for io_create; its name is NULL for others */
	double silence, whole;	/* io_patience: seconds; 0: no limit */
	double until;		/* clock_now at the end of `whole'; 0: no limit */
	struct splice *share;	/* keeps bytes that are passed on unchanged; or NULL */

	uint64_t count;		/* the caller's position, from where io was opened */
	unsigned char *buf;
	size_t at, have, cap;
	int behind;		/* 1: set by io_behind */
	uint64_t sent;		/* io_send has begun to write this many bytes to the disk */
	int over;		/* 1: io writes over a spare */
	/* 1: truncate the file, which may be longer than the written data */
	int ahead;
};

static int
io_new(struct io **out, const struct io_kind *kind, int fd, const char *name,
    struct err *e)
{
	struct io *io = alloc_get(1, sizeof(*io), e);

	*out = NULL;
	if (io == NULL)
		return -ERR_SYS;
	io->kind = kind;
	io->fd = fd;
	io->watch = -1;
	if ((io->name = alloc_dup(name, e)) == NULL) {
		alloc_free(io);
		return -ERR_SYS;
	}
	*out = io;
	return 0;
}

/* ---- kinds of input ---- */

static int
stream_read(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	return io->share != NULL ?
	    splice_read(io->share, io->watch, p, n, got, io->name, e) :
	    fd_read(io->fd, io->watch, p, n, got, io->name, e);
}

/* Read with pread(2), so that skipping needs no system call.  Move the position of standard
 * input, for the next program that reads it. */
static int
file_read(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	const int r = fd_read_at(io->fd, io->place, p, n, got, io->name, e);

	io->place += (off_t)*got;
	if (io->fd == STDIN_FILENO)
		(void)lseek(io->fd, io->place, SEEK_SET);
	return r;
}

static int
from_read(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	return io->from.read(io->from.arg, p, n, got, e);
}

static const struct io_kind
	io_stream = { stream_read, 0, 1 },
	io_file = { file_read, 1, 1 },
	io_from = { from_read, 0, 0 };

/* ---- opening ---- */

/* Make an io that reads fd, whose stat is st. */
static int
io_open_with(struct io **out, int fd, const struct stat *st, const char *name, struct err *e)
{
	int r;

	*out = NULL;
	if (S_ISDIR(st->st_mode)) {
		errno = EISDIR;
		return err_sys(e, "'%s'", name);
	}
	if (S_ISCHR(st->st_mode) && fd_is_terminal(fd))
		return err_set(e, ERR_USAGE, "'%s' is a terminal: give a file (<FILE), or "
		    "the output of a program (PROGRAM |)", name);
	r = io_new(out, S_ISREG(st->st_mode) ? &io_file : &io_stream, fd, name, e);
	if (r < 0)
		return r;
	if (S_ISREG(st->st_mode) && ((*out)->place = lseek(fd, 0, SEEK_CUR)) < 0)
		(*out)->place = 0;
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
	if ((r = io_open_with(out, fd, &st, path, e)) < 0) {
		(void)close(fd);
		return r;
	}
	io_own(*out);
	/* temp_over does not write over a locked file; best effort */
	if (S_ISREG(st.st_mode))
		(void)flock(fd, LOCK_SH | LOCK_NB);
	return 0;
}

int
io_open(struct io **out, const char *path, struct err *e)
{
	if (path == NULL || (path[0] == '-' && path[1] == '\0'))
		return io_open_fd(out, STDIN_FILENO, "<stdin>", e);
	/* files in a state directory or spool were not named by the user */
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
		return own.code == ERR_SYS && errno == ENOENT ? 0 : err_move(e, &own);
	return 1;
}

int
io_open_whole(struct io **out, int fd, const char *name, struct err *e)
{
	return io_new(out, &io_file, fd, name, e);
}

int
io_open_from(struct io **out, const struct io_from *f, const char *name,
    struct err *e)
{
	const int r = io_new(out, &io_from, -1, name, e);

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
	r = io_new(out, NULL, fd, name, e);
	if (r == 0)
		(*out)->pipe = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	if (r == 0 && S_ISFIFO(st.st_mode))
		fd_pipe_size(fd, 1 << 20);
	return r;
}

/* Open a device or FIFO for writing, as io_create does. */
static int
io_create_into(struct io **out, const char *path, int force, struct err *e)
{
	int fd, r;

	if (!temp_trusts(path))
		return err_set(e, ERR_REFUSED, "'%s' belongs to another user, in a directory "
		    "open to all: write to another place", path);
	if ((fd = openat(AT(path), O_WRONLY | O_CLOEXEC | O_NOCTTY)) < 0)
		return err_sys(e, "'%s'", path);
	if (!force && fd_is_terminal(fd))
		r = err_set(e, ERR_USAGE, "'%s' is a terminal, but the output is "
		    "binary: write to a file or a pipe", path);
	else
		r = io_create_fd(out, fd, path, e);
	if (r < 0)
		(void)close(fd);
	else
		(*out)->own = 1;
	return r;
}

static int
io_create_temp(struct io **out, const char *path, int access, const char *spare,
    int durable, struct err *e)
{
	char target[TEMP_PATH];
	int r = temp_target(path, target, e);

	*out = NULL;
	if (r < 0 || (r = io_new(out, NULL, -1, path, e)) < 0)
		return r;
	(*out)->own = 1;
	r = temp_begin(&(*out)->temp, target, access, spare, durable, &(*out)->fd, e);
	(*out)->over = (*out)->ahead = r > 0;
	if (r >= 0)
		return 0;
	io_free(*out);
	*out = NULL;
	return r;
}

int
io_create_over(struct io **out, const char *path, const char *spare,
    int durable, struct err *e)
{
	return io_create_temp(out, path, O_RDWR, spare, durable, e);
}

int
io_create(struct io **out, const char *path, int force, struct err *e)
{
	struct stat st;
	int r;

	*out = NULL;
	if (path == NULL || (path[0] == '-' && path[1] == '\0')) {
		if (!force && isatty(STDOUT_FILENO))
			return err_set(e, ERR_USAGE, "standard output is a terminal, "
			    "but the output is binary: write to a file or a pipe");
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
	return io_create_temp(out, path, O_WRONLY, NULL, 0, e);
}

int
io_over(const struct io *io)
{
	return io->over;
}

/* ---- reading ---- */

void
io_own(struct io *io)
{
	io->own = 1;
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
	io->whole = whole;
	io->until = whole > 0 ? clock_now() + whole : 0;
}

/* Wait for input, at most as long as io_patience allows. */
static int
io_await(struct io *io, struct err *e)
{
	const double silent = io->silence > 0 ? clock_now() + io->silence : INFINITY;
	const double until = io->until > 0 && io->until < silent ? io->until : silent;
	double left;
	int r = io->fd < 0 || until == INFINITY;

	while (r == 0 && (left = until - clock_now()) > 0)
		r = fd_ready(io->fd, io->watch, (int)(fmin(left, 60) * 1e3) + 1, io->name, e);
	if (r != 0)
		return r;
	return until == silent ? err_set(e, ERR_DATA, "truncated: timed out: no byte came for "
	    "%.7g s (the spool's file 'limits' sets this: 'timeout' in a shard, 'idle' "
	    "before it)", io->silence) : err_set(e, ERR_DATA, "truncated: timed out: no "
	    "shard ended within %.7g s (set by 'time' in the spool's file 'limits')",
	    io->whole);
}

/* Read at most n bytes without the buffer; *got is 0 at the end of the input. */
static int
io_fetch(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	const int r = io_await(io, e);

	return r < 0 ? r : io->kind->read(io, p, n, got, e);
}

/* ---- input from a struct io_from ---- */

void
io_before(struct io *io, int (*fn)(struct io *io, struct err *e))
{
	io->before = fn;
}

int
io_below(struct io *io, struct io **below, const struct io_from *f, struct err *e)
{
	struct io *x, was = *io;
	const int r = io_new(&x, &io_from, -1, io->name, e);

	*below = NULL;
	if (r < 0)
		return r;
	*io = *x;
	*x = was;
	x->before = NULL;
	io->from = *f;
	io->pipe = x->pipe;	/* so that errors point to the program at the pipe's other end */
	*below = x;
	return 0;
}

uint64_t
io_size(const struct io *io)
{
	struct stat st;

	return fstat(io->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* ---- through the buffer ---- */

/* Return how many bytes to request when the caller wants n: more than a small n, so that one
 * system call serves several reads, unless a function reads the input or splice passes it on. */
static size_t
io_asks(const struct io *io, size_t n)
{
	if (!io->kind->ahead || io->share != NULL || n >= IO_BUF ||
	    (io->sparse && n > IO_LITTLE))
		return n;
	return n <= IO_LITTLE && (io->skipped || io->sparse) ? IO_LITTLE : IO_BUF;
}

/* Read at most n more bytes into the buffer. */
static int
io_fill(struct io *io, size_t n, size_t *got, struct err *e)
{
	int r = alloc_grow(&io->buf, &io->cap, io->have + n, 1, e);

	io->skipped = 0;
	if (r == 0 && (r = io_fetch(io, io->buf + io->have, n, got, e)) == 0)
		io->have += *got;
	return r;
}

int
io_peek(struct io *io, void *p, size_t n, size_t *got, struct err *e)
{
	size_t k = 1, left;
	int r = 0;

	if (io->at == io->have)
		io->at = io->have = 0;
	while ((left = io->have - io->at) < n && k != 0 && r == 0)
		r = io_fill(io, io_asks(io, n - left), &k, e);
	*got = left < n ? left : n;
	if (*got != 0)
		memcpy(p, io->buf + io->at, *got);
	return r;
}

/* Copy at most n bytes to p, from the buffer or directly from the input. */
static int
io_some(struct io *io, unsigned char *p, size_t n, size_t *got, struct err *e)
{
	int (*before)(struct io *, struct err *) = io->before;
	size_t asks, left;
	int r;

	io->before = NULL;
	if (before != NULL && (r = before(io, e)) < 0)
		return r;
	if (io->at == io->have) {
		asks = io_asks(io, n);
		io->at = io->have = 0;
		if (asks == n) {
			r = io_fetch(io, p, n, got, e);
			io->count += r == 0 ? *got : 0;
			return r;
		}
		if ((r = io_fill(io, asks, got, e)) < 0)
			return r;
	}
	left = io->have - io->at;
	*got = left < n ? left : n;
	memcpy(p, io->buf + io->at, *got);
	io->at += *got;
	io->count += *got;
	return 0;
}

int
io_read(struct io *io, void *p, size_t n, size_t *got, struct err *e)
{
	size_t k = 1;
	int r = 0;

	for (*got = 0; r == 0 && *got < n && k != 0; *got += k)
		if ((r = io_some(io, (unsigned char *)p + *got, n - *got, &k,
		    e)) < 0)
			k = 0;
	return r;
}

int
io_ready(struct io *io, int ms, struct err *e)
{
	return io->fd < 0 || io->at != io->have ? 1 :
	    fd_ready(io->fd, io->watch, ms, io->name, e);
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
	return *got != 0 ? IO_GOT : IO_END;
}

int
io_can_seek(const struct io *io)
{
	return io->kind != NULL && io->kind->seeks;
}

int
io_is_pipe(const struct io *io)
{
	return io->pipe;
}

int
io_seek(struct io *io, uint64_t to, struct err *e)
{
	const uint64_t first = io->count - io->at, end = first + io->have;

	if (!io_can_seek(io))
		return err_set(e, ERR_USAGE, "'%s' is a pipe or device: give a regular file",
		    io->name);
	if (to >= first && to <= end) {
		io->at = (size_t)(to - first);
	} else {
		io->place += (off_t)(to - end);
		io->at = io->have = 0;
		io->skipped = to > end;
	}
	io->count = to;
	return 0;
}

void
io_sparse(struct io *io)
{
	io->sparse = 1;
}

/* ---- writing ---- */

static int
io_out(struct io *io, struct err *e)
{
	int r;

	if (io->have == 0)
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

/* After io_behind: once IO_BEHIND bytes before `to' are unsent, start writing them to disk. */
static void
io_send(struct io *io, uint64_t to)
{
	if (!io->behind || to - io->sent < IO_BEHIND)
		return;
	/* ignore errors: fsync will report them */
	(void)sync_file_range(io->fd, (off_t)io->sent, (off_t)(to - io->sent),
	    SYNC_FILE_RANGE_WRITE);
	io->sent = to;
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
	if ((n > IO_BUF - io->have && (r = io_out(io, e)) < 0) ||
	    (r = alloc_grow(&io->buf, &io->cap, IO_BUF, 1, e)) < 0)
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
io_commit(struct io *io, enum io_sync sync, struct err *e)
{
	int fd, r = io_out(io, e);

	if (r < 0)
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

/* ---- from one end to another without a copy ---- */

int
io_splice(struct io *io, const struct io *to)
{
	if (io->share == NULL && io->kind == &io_stream && io->pipe && to->kind == NULL)
		io->share = splice_new(io->fd, to->fd);
	return io->share != NULL;
}

void
io_splice_keep(struct io *io, size_t n)
{
	if (io->share != NULL)
		splice_begin(io->share, io->at == io->have ? n : 0);
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
	if (from->share == NULL || from->at != from->have)
		return 0;
	if ((r = io_out(io, e)) < 0 || (r = io_await(from, e)) < 0)
		return r;
	r = splice_move(from->share, from->watch, n, got, from->name, e);
	from->count += *got;
	io->count += *got;
	return r;
}

/* ---- both ---- */

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
	alloc_free(io->buf);
	alloc_free(io);
}

int
io_to_temp(struct io **out, struct io *in, struct err *e)
{
	unsigned char *p = alloc_get(IO_BUF, 1, e);
	size_t got = 1;
	int fd = -1, r = p != NULL ? temp_open(NULL, &fd, e) : -ERR_SYS;

	while (r == 0 && got != 0)
		if ((r = io_read(in, p, IO_BUF, &got, e)) == 0)
			r = fd_write(fd, p, got, TEMP_UNNAMED, e);
	alloc_free(p);
	if (r == 0 && (r = io_open_whole(out, fd, in->name, e)) == 0)
		io_own(*out);
	else if (fd >= 0)
		(void)close(fd);
	return r;
}

/* ---- small files ---- */

int
io_named_text(struct buf *b, const char *path, size_t most, struct err *e)
{
	struct io *io = NULL;
	size_t got = IO_BUF;
	int r = io_open(&io, path, e);

	while (r == 0 && got == IO_BUF && b->n <= most)
		if ((r = buf_room(b, IO_BUF + 1, e)) == 0 &&
		    (r = io_read(io, b->p + b->n, IO_BUF, &got, e)) == 0)
			b->n += got;
	if (r == 0 && b->n > most)
		r = err_set(e, ERR_DATA, "limit: '%s' is larger than %zu bytes",
		    io_name(io), most);
	if (r == 0) {
		b->p[b->n] = '\0';
		if (strlen((char *)b->p) != b->n)
			r = err_set(e, ERR_DATA, "corrupt: '%s' has a zero byte: "
			    "expected text", io_name(io));
	}
	io_free(io);
	return r;
}

int
io_text(const char *path, char *s, size_t n, struct err *e)
{
	struct io *io;
	int k;

	s[0] = '\0';
	if ((k = io_open_kept(&io, path, e)) <= 0)
		return k;
	if ((k = io_read(io, s, n - 1, &n, e)) < 0)
		n = 0;
	s[n] = '\0';
	io_free(io);
	if (k >= 0 && strlen(s) < n)
		k = err_set(e, ERR_DATA, "corrupt: '%s' has a zero byte: expected text", path);
	return k < 0 ? k : 1;
}

int
io_set_text(const char *path, const char *s, enum io_sync sync, struct err *e)
{
	struct io *io;
	int k;

	if ((k = io_create(&io, path, 0, e)) < 0)
		return k;
	if ((k = io_write(io, s, strlen(s), e)) == 0)
		k = io_commit(io, sync, e);
	io_free(io);
	return k;
}
