/*
 * Writing a stream.  The head goes out with the first shard, so that a
 * stream's id can be a function of what is in it; a new schema ends the stream
 * and begins another.  Only writer_end makes it whole.
 */
#ifndef ACE_WRITER_H
#define ACE_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "format/schema.h"
#include "format/shard.h"

struct err;
struct reader;
struct receipt;
struct writer;

enum {
	WRITER_BATCH = 256 * 1024,	/* bodies of one DATA frame, about */
	WRITER_ENTRY = 32		/* no directory entry is longer */
};

struct writer_opts {
	const char *tool;	/* "ace-score": also makes the stream id */
	const char *line;	/* provenance line, NULL: none, and none passed */
	int omit_schema;	/* the reader has it already */
};

/* writer_open(out, io, o, e): takes io (freed by writer_free), also when it
 * fails. */
int writer_open(struct writer **out, struct io *io, const struct writer_opts *o,
    struct err *e);
void writer_free(struct writer *w);

/* Provenance of the inputs, to stand before our own line in the head. */
int writer_history(struct writer *w, const char *lines, struct err *e);

/* A shard: begin, records in rising group order, notes, end. */
int writer_shard(struct writer *w, const struct shard *s,
    const struct schema *schema, struct err *e);
/* x f32[n] is what the body decodes to, for the sums; NULL leaves it out of
 * them (then hand the sums to writer_send). */
int writer_record(struct writer *w, uint32_t group, uint32_t codec,
    uint8_t param, const unsigned char *body, size_t len, const float *x,
    size_t n, struct err *e);
/* The same with codec F32; writer_dense leaves them out of the sums. */
int writer_values(struct writer *w, uint32_t group, const float *x, size_t n,
    struct err *e);
int writer_dense(struct writer *w, uint32_t group, const float *x, size_t n,
    struct err *e);
/* An annotation; after writer_begin also between shards. */
int writer_note(struct writer *w, uint32_t type, const void *p, size_t n,
    struct err *e);
/* r's current frame (DATA or an annotation) as it came. */
int writer_pass(struct writer *w, const struct reader *r, struct err *e);
/* writer_begin(w, sc, e): a stream with this schema, if none is open; for what
 * stands before its first shard. */
int writer_begin(struct writer *w, const struct schema *sc, struct err *e);
/* writer_loose(w, r, e): r's current frame, an ancillary one between shards. */
int writer_loose(struct writer *w, const struct reader *r, struct err *e);
/* sums: of the whole shard, or NULL for what the records gave.  Flushes. */
int writer_send(struct writer *w, const struct shard_sums *sums, struct err *e);
/* Adds to the count of non-finite values set to zero, in SEND. */
void writer_dropped(struct writer *w, uint64_t n);
/* Bytes of the shard at hand that are written, without records that wait for
 * their frame. */
uint64_t writer_shard_bytes(const struct writer *w);
/* The end of shard that writer_send wrote last. */
const struct shard_end *writer_sent(const struct writer *w);

/* A receipt, between shards.  Flushes. */
int writer_receipt(struct writer *w, const struct receipt *r, struct err *e);

/* What there is goes out, and what filters make of it should go on at once. */
int writer_flush(struct writer *w, struct err *e);

/* writer_finish(w, e): the tail, flushed; the descriptor stays open. */
int writer_finish(struct writer *w, struct err *e);

/* writer_end(w, sync, e): writer_finish and io_commit. */
int writer_end(struct writer *w, enum io_sync sync, struct err *e);

/* writer_abort(w): an end that says "aborted", so that the reader can tell it
 * from a cut.  For a created file nothing is written: it will not appear. */
void writer_abort(struct writer *w);

#endif
