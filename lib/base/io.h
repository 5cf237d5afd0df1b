/*
 * One end of a byte stream: a descriptor, a file that appears whole or not at
 * all, or memory (for tests).  Every read and write of the programs' data goes
 * through here.
 */
#ifndef ACE_IO_H
#define ACE_IO_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct io;

/* ---- reading ---- */

/* io_open(out, path, e): opens a file for reading; NULL or "-" is standard
 * input.  A directory or a missing file is -ERR_SYS; a terminal, from which no
 * binary stream can come, is -ERR_USAGE.  The other two read from a descriptor
 * and from n bytes of memory. */
int io_open(struct io **out, const char *path, struct err *e);
int io_open_fd(struct io **out, int fd, const char *name, struct err *e);
int io_open_mem(struct io **out, const void *p, size_t n, struct err *e);

/* io_open_file(out, path, e): opens a file that we found, in a folder or an index: what
 * is not a regular file is -ERR_DATA, without waiting for it.
 * io_open_kept(out, path, e): the same for a file that the programs keep themselves, in a
 * state directory or a spool, and that is not a link.  Returns 1, or 0 when there is no
 * such file. */
int io_open_file(struct io **out, const char *path, struct err *e);
int io_open_kept(struct io **out, const char *path, struct err *e);

/* io_open_at(out, fd, at, name, e): reads a regular file from byte `at' on,
 * without moving the place where fd stands, so that many may read from one
 * descriptor.  It cannot seek. */
int io_open_at(struct io **out, int fd, uint64_t at, const char *name,
    struct err *e);

/*
 * io_open_from(out, f, name, e): what f->read gives, from now on io's: io_free
 * calls f->free.  A read of nothing is the end.
 * io_below(io, below, f, e): puts f between io and what it reads: *below becomes
 * what io was, with everything that was not handed out yet, and is f's to free;
 * io itself reads from f.  To be called before anything was read.
 * io_before(io, fn): fn is called once, before the first byte is read; it
 * may io_peek and io_below.
 * io_peek(io, p, n, got, e): the next n <= 4096 bytes, less at the end of the
 * input, which are read again.
 */
struct io_from {
	int (*read)(void *arg, void *p, size_t n, size_t *got, struct err *e);
	void (*free)(void *arg);
	void *arg;
};
int io_open_from(struct io **out, const struct io_from *f, const char *name,
    struct err *e);
int io_below(struct io *io, struct io **below, const struct io_from *f,
    struct err *e);
void io_before(struct io *io, int (*fn)(struct io *io, struct err *e));
int io_peek(struct io *io, void *p, size_t n, size_t *got, struct err *e);
/* io_size(io): how long a file is that can seek. */
uint64_t io_size(const struct io *io);

/* io_own(io): from now on io owns its descriptor: io_free closes it. */
void io_own(struct io *io);
/* io_alone(io): the same of a descriptor that was just opened for reading and
 * that nobody else has: to pass over bytes of a file is no call then. */
void io_alone(struct io *io);

/* io_read(io, p, n, got, e): reads n bytes; *got is less than n only at the end
 * of the input. */
int io_read(struct io *io, void *p, size_t n, size_t *got, struct err *e);

/* io_take(io, p, n, ms, got, e): reads what there is, at most n bytes, without
 * waiting for more, and returns an enum io_took.  IO_NOT_YET means that nothing
 * came for ms milliseconds; with ms < 0 it waits as long as it takes. */
enum io_took { IO_END, IO_GOT, IO_NOT_YET };
int io_take(struct io *io, void *p, size_t n, int ms, size_t *got,
    struct err *e);

/* io_ready(io, ms, e): 1 when there is something to read, 0 when nothing came for
 * ms milliseconds; as fd_ready. */
int io_ready(struct io *io, int ms, struct err *e);

int io_can_seek(const struct io *io);
int io_is_pipe(const struct io *io);	/* or a socket */
/* io_seek(io, at, e): goes to byte `at', counted from where io was opened.
 * An input that cannot seek is -ERR_USAGE. */
int io_seek(struct io *io, uint64_t at, struct err *e);
/* io_sparse(io): from now on little is read ahead, since most is passed over by
 * io_skip. */
void io_sparse(struct io *io);
/* io_skip(io, n, e): passes over n bytes of an input that can seek, without
 * reading them where they are not here yet; more than there are is no error
 * here, the next read finds the end. */
int io_skip(struct io *io, uint64_t n, struct err *e);

/* ---- writing ---- */

/* io_create(out, path, force, e): a temporary beside path, which becomes path at
 * io_commit and is removed by io_free otherwise.  Links are followed: what they
 * lead to is replaced, they stay.  What is neither a regular file nor nothing (a
 * FIFO, a device) is written into as it is, a terminal only with force; a
 * directory is -ERR_SYS.  NULL or "-": standard output; without force a
 * terminal is -ERR_USAGE there. */
int io_create(struct io **out, const char *path, int force, struct err *e);
int io_create_fd(struct io **out, int fd, const char *name, struct err *e);
/*
 * io_create_over(out, path, spare, durable, e): the same of a file of ours that is
 * made anew again and again, over what it was before (struct temp).  A spare that has
 * another name too (path itself where a commit was killed, a backup made of links) is
 * left alone, and so is a small file.
 * io_over(io): 1 where there was a spare.
 */
int io_create_over(struct io **out, const char *path, const char *spare,
    int durable, struct err *e);
int io_over(const struct io *io);
int io_create_mem(struct io **out, struct err *e);

/* io_behind(io): what is written goes on to the disk while more comes, so that
 * little of it is left for an fsync. */
void io_behind(struct io *io);
/* io_ahead(io, slack, fd, from, e): *fd, the caller's to close, is the file that io
 * creates: what is put there from byte *from on, about `slack' behind what was
 * written so far, stays until io comes to it.  Pages that are there already are
 * written anew for less.  What is left of it at io_commit is cut off. */
int io_ahead(struct io *io, uint64_t slack, int *fd, uint64_t *from,
    struct err *e);
int io_write(struct io *io, const void *p, size_t n, struct err *e);
/* io_flush(io, e): writes out what waits, so that a reader has it; of a file that
 * nobody can read before io_commit, nothing. */
int io_flush(struct io *io, struct err *e);

enum io_sync { IO_SYNC_NONE, IO_SYNC_RENAME, IO_SYNC_FULL };

/* io_commit(io, sync, e): writes out everything and checks that it was written.
 * A created file is renamed over its path (at IO_SYNC_FULL after an fsync, and
 * with an fsync of the directory after it); a descriptor is closed and the
 * close checked. */
int io_commit(struct io *io, enum io_sync sync, struct err *e);

/* io_sync_path(path, e): fsync of the directory that holds path, so that a
 * link or a rename is durable. */
int io_sync_path(const char *path, struct err *e);
/* io_sync_file(path, e): fsync of that file itself. */
int io_sync_file(const char *path, struct err *e);

/* io_watch(io, fd): while io waits for input, it also fails when nobody reads the
 * pipe fd any more (wait_orphan), so that a program ends at once when the one
 * behind it has ended, and not when there is next something to write.  -1: it
 * only waits. */
void io_watch(struct io *io, int fd);

/* io_patience(io, silence, whole): from now on reading fails, -ERR_DATA
 * "truncated: ...", when nothing came for `silence' seconds, or when `whole'
 * seconds are over; 0: it may take any time. */
void io_patience(struct io *io, double silence, double whole);

/* The bytes written to a memory end so far. */
const unsigned char *io_mem(const struct io *io, size_t *n);

/* ---- from one to another without a copy, where both are pipes ---- */

/* io_splice(io, to): what is read from io may be written to `to' as it is.  If
 * both are pipes, 1; io_splice_keep(io, n) before the next n bytes are read then
 * keeps them in the system, and io_splice_pass moves them on without a copy. */
int io_splice(struct io *io, const struct io *to);
void io_splice_keep(struct io *io, size_t n);
/* io_splice_pass(io, from, p, n, e): writes the n bytes at p, which are what was
 * read after the last io_splice_keep(from, n). */
int io_splice_pass(struct io *io, struct io *from, const void *p, size_t n,
    struct err *e);
/* io_splice_move(io, from, n, got, e): moves what there is, at most n bytes,
 * unseen: 1, and *got is 0 at the end of the input.  0: they have to be read
 * and written. */
int io_splice_move(struct io *io, struct io *from, size_t n, size_t *got,
    struct err *e);

/* ---- both ---- */
uint64_t io_bytes(const struct io *io);		/* read or written so far */
const char *io_name(const struct io *io);	/* for messages: "<stdin>" */
void io_free(struct io *io);

/* Both ends of a pipe that io opens ask for 1 MiB, four times as fast as the
 * default.  io_pipe_small(io): what io writes to holds 64 KiB, for who wants to
 * know when it is read. */
void io_pipe_small(const struct io *io);

/* io_to_temp(fd, size, in, e): all that in has, in a file without a name (temp_open);
 * fd stands at its start. */
int io_to_temp(int *fd, uint64_t *size, struct io *in, struct err *e);

/* ---- small files of ours ---- */

/* io_text(path, s, n, e): reads a file as a string, n - 1 bytes of it at most: 1, or 0
 * when there is none.
 * io_set_text(path, s, sync, e): writes one; a reader finds the new text or the old
 * one. */
int io_text(const char *path, char *s, size_t n, struct err *e);
int io_set_text(const char *path, const char *s, enum io_sync sync,
    struct err *e);

#endif
