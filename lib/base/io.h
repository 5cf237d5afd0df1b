/*
 * An io is one end of a byte stream.  For reading it is a descriptor or a function that
 * returns bytes; for writing it is a descriptor or a new file, which gets its name when it
 * is complete.  To be faster, an io asks the system for a buffer of 1 MiB in each pipe that it
 * reads or writes.
 */
#ifndef ACE_IO_H
#define ACE_IO_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct io;

/* ---- reading ---- */

/* io_open: open a file for reading; NULL or "-" is standard input.  -ERR_SYS for a
 * directory or a missing file; -ERR_USAGE for a terminal, which cannot send a binary
 * stream, or for the file that is standard output.  A path in a directory that we opened
 * (base/at.h) is opened as by io_open_file.
 * io_open_fd: read from a descriptor, which the caller closes (see io_own).  A regular file
 * is read from fd's position on.  Reads do not move that position, so that several ios may
 * read one descriptor; only standard input's position moves. */
int io_open(struct io **out, const char *path, struct err *e);
int io_open_fd(struct io **out, int fd, const char *name, struct err *e);

/* io_open_file: open a file that we found in a folder or an index.  -ERR_DATA, without
 * waiting, if it is not a regular file.
 * io_open_kept: like io_open_file, for our own files in a state directory or a spool.
 * Return 1, or 0 if the file is absent; -ERR_SYS if it is a symbolic link.
 */
int io_open_file(struct io **out, const char *path, struct err *e);
int io_open_kept(struct io **out, const char *path, struct err *e);

/* Like io_open_fd, for a regular file, but read it from its first byte. */
int io_open_whole(struct io **out, int fd, const char *name, struct err *e);

/*
 * io_open_from: read what f->read returns; a read of 0 bytes is the end.  io owns f: io_free
 * calls f->free, and so does io_open_from if it fails.
 * io_below: put f between io and its input.  *below becomes an io with the old input,
 * including the bytes that io_peek saw; io then reads from f, whose f->free must io_free
 * *below.  Call io_below before anything was read.  If it fails, io is unchanged and does
 * not own f.
 * io_before: call fn once, before the first byte is read; that read returns fn's error.  fn
 * may call io_peek and io_below.
 * io_peek: copy the next n bytes, or fewer at the end of the input.  Later reads return
 * these bytes again.
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
/* Return the size of the whole file in bytes, or 0 if the input is not a regular file. */
uint64_t io_size(const struct io *io);

/* Give io its descriptor: io_free closes it. */
void io_own(struct io *io);

/* Read n bytes; *got is less than n only at the end of the input. */
int io_read(struct io *io, void *p, size_t n, size_t *got, struct err *e);

/* Read what is available, at most n bytes.  Return an enum io_took, or an error.
 * IO_NOT_YET: nothing came within ms milliseconds; ms < 0 waits without limit. */
enum io_took { IO_END, IO_GOT, IO_NOT_YET };
int io_take(struct io *io, void *p, size_t n, int ms, size_t *got, struct err *e);

/* Return 1 if a read will not wait, because bytes or the end of the input are there, or if
 * a function reads the input; 0 if nothing came within ms milliseconds (fd_ready). */
int io_ready(struct io *io, int ms, struct err *e);

int io_can_seek(const struct io *io);
int io_is_pipe(const struct io *io);	/* a pipe or a socket */
/* Seek to byte `at', counted from where io was opened, without reading the bytes between.
 * After a seek past the end, the next read finds the end.  -ERR_USAGE if the input cannot seek. */
int io_seek(struct io *io, uint64_t at, struct err *e);
/* Read less ahead, because most input is skipped. */
void io_sparse(struct io *io);

/* ---- writing ---- */

/* io_create: create a temporary file beside path, for writing only.  io_commit renames it to
 * path; io_free removes it if it was not committed.  Links stay, and the file that they lead to
 * is replaced.  If path is a FIFO or a device, write into it.  NULL or "-" is standard output.
 * -ERR_USAGE for a terminal, unless force is 1; -ERR_SYS for a directory; -ERR_REFUSED for
 * a link, FIFO or device that is not safe (temp_trusts).
 * io_create_fd: write to a descriptor.  io_commit closes it; io_free does not (see io_own).
 */
int io_create(struct io **out, const char *path, int force, struct err *e);
int io_create_fd(struct io **out, int fd, const char *name, struct err *e);
/* io_create_over: like io_create, for our own file that is rewritten repeatedly: write over
 * its spare, an earlier version (temp_begin, which explains durable), if spare is not NULL.
 * io_over: return 1 if io writes over a spare. */
int io_create_over(struct io **out, const char *path, const char *spare,
    int durable, struct err *e);
int io_over(const struct io *io);

/* From now on write data to the disk while more data comes, so that an fsync has little left
 * to do. */
void io_behind(struct io *io);
/* Set *fd, which the caller closes, to the file that io (of io_create_over) creates, and *from
 * to a position at least `slack' bytes after the data written so far.  The caller may fill the
 * file from *from on, since io overwrites existing pages faster.  io_commit truncates the
 * rest. */
int io_ahead(struct io *io, uint64_t slack, int *fd, uint64_t *from, struct err *e);
int io_write(struct io *io, const void *p, size_t n, struct err *e);
/* Write the buffered data, so that a reader gets it.  Do nothing for a file that is
 * invisible until io_commit. */
int io_flush(struct io *io, struct err *e);

/* The argument of --sync.  Only IO_SYNC_FULL calls fsync.  With IO_SYNC_RENAME no file is
 * written over a spare (device/residual.h). */
enum io_sync { IO_SYNC_NONE, IO_SYNC_RENAME, IO_SYNC_FULL };

/* Write the buffered data and close the descriptor.  A created file is then renamed to its
 * path; with IO_SYNC_FULL the file is synced before, and its directory after.  Call io_free
 * after success and after an error. */
int io_commit(struct io *io, enum io_sync sync, struct err *e);

/* While io waits for input, fail as soon as the pipe fd has no reader any more
 * (wait_orphan).  So a program ends as soon as the next program in the pipe ends, not at
 * its next write.  -1: do not watch. */
void io_watch(struct io *io, int fd);

/* Limit the time of reads from a descriptor: -ERR_DATA if no input comes for `silence'
 * seconds, and for each read later than `whole' seconds after this call; 0: no limit. */
void io_patience(struct io *io, double silence, double whole);

/* ---- from one pipe to another without a copy ---- */

/* Announce that input of io may be written to `to' unchanged. Return 1 if both are
 * pipes: then io_splice_keep(io, n), called before n bytes are read, keeps these in the
 * kernel, and io_splice_pass moves them without a copy. */
int io_splice(struct io *io, const struct io *to);
void io_splice_keep(struct io *io, size_t n);
/* Write the n bytes at p, which were read after the last io_splice_keep(from, n). */
int io_splice_pass(struct io *io, struct io *from, const void *p, size_t n,
    struct err *e);
/* Wait for input of `from', and move *got <= n bytes of it to io unread.  Return 1, with *got 0
 * at the end of the input; 0 if the bytes must be read and written; or an error. */
int io_splice_move(struct io *io, struct io *from, size_t n, size_t *got,
    struct err *e);

/* ---- both ---- */
uint64_t io_bytes(const struct io *io);		/* position, from where io was opened */
const char *io_name(const struct io *io);	/* for messages: "<stdin>" */
void io_free(struct io *io);

/* Copy the rest of `in' to a file without a name (temp_open), and open that file for reading
 * under the name of `in'. The caller frees both. */
int io_to_temp(struct io **out, struct io *in, struct err *e);

/* ---- small files ---- */

/* Set b, which is empty, to the text of a file that the user named, and a NUL that b->n does
 * not count.  -ERR_DATA if the file has more than `most' bytes or a zero byte. */
int io_named_text(struct buf *b, const char *path, size_t most, struct err *e);

/* io_text: read the first n - 1 bytes of one of our own files as a string into s[n].  Return
 * 1, or 0, with an empty string, if the file is absent.
 * io_set_text: replace the file's text atomically. */
int io_text(const char *path, char *s, size_t n, struct err *e);
int io_set_text(const char *path, const char *s, enum io_sync sync, struct err *e);

#endif
