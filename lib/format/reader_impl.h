/*
 * What a reader is made of, and what each frame does to it; for reader.c and
 * reader_on.c.
 */
#ifndef ACE_READER_IMPL_H
#define ACE_READER_IMPL_H

#include "format/data.h"
#include "format/reader.h"

struct pack_sum;

enum reader_at { AT_START, AT_HEAD, AT_BODY, AT_SHARD, AT_DONE, AT_FAILED };

/* The state that a rewind restores; the digest is copied separately. */
struct reader_pos {
	enum reader_at at;
	uint64_t key;
	struct data_pos data;
	uint64_t noted[3];		/* ranges of annotations must rise */
};

/* What was decoded of the shard, as callers report it (reader_decoded). */
struct reader_tally {
	uint64_t records, nonzero;
};

struct reader {
	struct chain c;
	struct reader_opts o;
	int have_schema;
	struct schema own_schema;
	struct buf table;		/* of the schema, frame after frame */
	size_t table_size, table_wire;	/* what it will have; what it took */
	reader_loose_fn *loose;
	void *loose_arg;
	struct reader_pos pos, mark;
	struct pack_sum *digest, *mark_digest;
	struct reader_tally *tally, mark_tally;
	struct shard shard;
	struct shard_end end;
	struct buf prov;
	struct data_frame data;
	int failed;
};

/* reader_on_frame(r, e): the frame that r's chain stands at: an event, or
 * < 0.  reader_on_tail: the tail; what follows is another stream or the end. */
int reader_on_frame(struct reader *r, struct err *e);
int reader_on_tail(struct reader *r, struct err *e);
/* reader_on_table: one more frame of the schema; the first one says how long it
 * is.  reader_on_no_table: there is none so far. */
int reader_on_table(struct reader *r, struct err *e);
void reader_on_no_table(struct reader *r);

#endif
