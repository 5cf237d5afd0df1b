/*
 * What an end of a byte stream is made of; for the files whose names begin with
 * io.
 */
#ifndef ACE_IO_IMPL_H
#define ACE_IO_IMPL_H

#include <sys/types.h>

#include "base/alloc.h"
#include "base/io.h"

struct share;

enum { IO_BUF = 64 * 1024, IO_LITTLE = 512 };

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
	char *path, *tmp;	/* io_create: the final name, the temporary's */
	int placed;		/* reads from `place' on, not where fd stands,
				 * so that to pass over bytes is no call */
	off_t place;
	double silence, until;	/* io_patience: seconds, mono_now; or 0 */
	struct share *share;	/* what goes on as it is, or NULL */
	uint64_t count;		/* bytes handed out or taken */

	unsigned char *buf;	/* IO_BUF bytes */
	size_t at, have;	/* reading: unread part of buf; writing: have */

	const unsigned char *mem;	/* memory source */
	size_t mem_n, mem_at;
	struct buf sink;		/* memory destination */

	int marked;		/* bytes since the mark are kept, or seekable */
	uint64_t mark_count;
	size_t rec_limit, rec_at;
	int rec_lost;
	struct buf rec;		/* pipes: what was read since the mark */
	int behind;		/* io_behind, and so many bytes are on their way */
	uint64_t sent;
};

/* io_new(out, fd, writing, name, e): an end without anything set that io_open or
 * io_create sets. */
int io_new(struct io **out, int fd, int writing, const char *name,
    struct err *e);

/* io_await(io, e): waits for input, no longer than io_patience allows. */
int io_await(struct io *io, struct err *e);

#endif
