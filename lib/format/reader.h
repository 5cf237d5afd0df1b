/*
 * Reading a stream: frames checked one by one, the grammar enforced, handed
 * out as events.  Nothing is believed before it was verified; an end of file
 * where the stream does not end is an error ("truncated").
 *
 *   file   := stream+
 *   stream := HEAD SCHM* pROv? (shard | RCPT | ancillary)* TAIL
 *   shard  := SHRD (DATA | annotation)* SEND
 */
#ifndef ACE_READER_H
#define ACE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "format/chain.h"
#include "format/data.h"
#include "format/frame.h"
#include "format/schema.h"
#include "format/shard.h"

struct err;
struct io;
struct reader;

enum reader_event {
	READER_END = 0,		/* the file ended where it may, all verified */
	READER_HEAD,		/* a stream began */
	READER_SHARD,		/* a shard began: reader_shard, reader_schema */
	READER_DATA,		/* some records: reader_records */
	READER_NOTE,		/* an ancillary frame of the shard: reader_frame */
	READER_SEND,		/* the shard is whole: reader_end_of_shard */
	READER_RCPT		/* a delivery receipt: reader_frame */
};

struct reader_opts {
	uint64_t max_elements;	/* 0: SCHEMA_MAX_ELEMENTS */
	const struct schema *schema;	/* for streams without one, or NULL */
};

/* reader_open(out, io, o, e): takes io (freed by reader_free), also when it
 * fails.  o may be NULL. */
int reader_open(struct reader **out, struct io *io,
    const struct reader_opts *o, struct err *e);
void reader_free(struct reader *r);

/* reader_next(r, e): the next event; < 0 an error, the same one from then on.
 * What the accessors below return is valid until the next call. */
int reader_next(struct reader *r, struct err *e);

/* Ancillary frames between shards are no events: who passes them on asks to be
 * called for each, with reader_frame at it. */
typedef int reader_loose_fn(void *arg, const struct reader *r, struct err *e);
void reader_loose(struct reader *r, reader_loose_fn *fn, void *arg);

const struct shard *reader_shard(const struct reader *r); /* NULL outside */
const struct schema *reader_schema(const struct reader *r);
const struct record *reader_records(const struct reader *r, size_t *n);
/* reader_decoded(r, k): one of the records was decoded, k of its values are
 * finite and not 0.  Where all were, READER_SEND comes only if SEND says so. */
void reader_decoded(const struct reader *r, uint64_t nonzero);
const struct chain_frame *reader_frame(const struct reader *r);
const struct shard_end *reader_end_of_shard(const struct reader *r);

/* Provenance of the stream, one line per program, NULL-terminated; "" none. */
const char *reader_provenance(const struct reader *r);

/* reader_where(r, buf): "shard 3 'edge1/42', at byte 18112", for messages;
 * reader_name: the file's. */
const char *reader_where(const struct reader *r, char buf[160]);
const char *reader_name(const struct reader *r);
/* To an error that was set; both return k.  reader_place: the shard, and the
 * byte; reader_blame: where k says bad data, the file, for programs that read
 * several. */
int reader_place(const struct reader *r, int k, struct err *e);
int reader_blame(const struct reader *r, int k, struct err *e);

/* reader_mark(r, limit, e), just after READER_SHARD; reader_rewind goes back,
 * so that the shard's frames come once more.  See io_mark. */
int reader_mark(struct reader *r, size_t limit, struct err *e);
int reader_rewind(struct reader *r, struct err *e);
/* reader_patience: see io_patience. */
void reader_patience(struct reader *r, double silence, double whole);
int reader_can_seek(const struct reader *r);
int reader_is_pipe(const struct reader *r);
/* reader_empty(r): not one byte came. */
int reader_empty(const struct reader *r);

/*
 * reader_recover(r, from, e): after an error, or to begin with: looks from
 * byte `from' on for the next stream or shard and stands before it: 1, and
 * reader_next goes on from there; 0 there is none.  A schema on the way is
 * taken.  For files that can seek.  What is read after that is as verified as
 * ever, shard by shard; that nothing is missing between them is not.
 */
int reader_recover(struct reader *r, uint64_t from, struct err *e);
/* 1: what reader_next refused is of a version, or has a feature or a critical
 * flag, that this reader does not know; it is not damaged. */
int reader_unknown(const struct reader *r);
/* Where the current frame begins, or the one that was refused. */
uint64_t reader_offset(const struct reader *r);

/* The bytes of the digest that one SHRD or DATA frame adds. */
struct pack_sum;
void reader_digest_add(struct pack_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash);

#endif
