/*
 * Reading a stream: the frames are verified one by one, their order is checked
 * against the grammar below, and they are handed out as events.  An end of
 * file where the stream does not end is an error ("truncated").
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
#include "format/frame.h"
#include "format/schema.h"
#include "format/shard.h"

struct err;
struct io;
struct reader;

/* A group, as it stands, in the payload of a DATA frame. */
struct record {
	uint32_t group;
	uint8_t codec, param;	/* codec: one of this version's */
	const unsigned char *body;
	size_t len;
};

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
	const struct schema *schema;	/* the model of all streams, those without
					 * a table too; or NULL */
	int any_model;			/* the caller looks whether it is that one */
	size_t max_table;	/* bytes of the table, unpacked; 0: no other limit
				 * than SCHEMA_MAX_BYTES */
};

/* reader_open(out, io, o, e): the reader owns io from now on, even when this
 * fails; reader_free frees it.  o may be NULL. */
int reader_open(struct reader **out, struct io *io,
    const struct reader_opts *o, struct err *e);
/* reader_file(out, path, o, e): what io_open opens. */
int reader_file(struct reader **out, const char *path,
    const struct reader_opts *o, struct err *e);
void reader_free(struct reader *r);

/* reader_next(r, e): the next event; < 0 an error, the same one from then on.
 * What the accessors below return is valid until the next call. */
int reader_next(struct reader *r, struct err *e);

/* reader_to_shard(r, e): to the next READER_SHARD: 1, or 0 at the end. */
int reader_to_shard(struct reader *r, struct err *e);

/* Ancillary frames between shards are not events.  A program that passes them
 * on registers fn, which is called for each, while reader_frame returns it. */
typedef int reader_loose_fn(void *arg, const struct reader *r, struct err *e);
void reader_loose(struct reader *r, reader_loose_fn *fn, void *arg);

const struct shard *reader_shard(const struct reader *r); /* NULL outside */
const struct schema *reader_schema(const struct reader *r);
const struct record *reader_records(const struct reader *r, size_t *n);
/* reader_so_far(r): how many records of the shard came. */
uint32_t reader_so_far(const struct reader *r);
/* reader_decoded(r, nonzero): tells the reader that one of the records was
 * decoded and how many of its values are finite and not 0.  When all records
 * of a shard were, the total is checked against the one in SEND. */
void reader_decoded(const struct reader *r, uint64_t nonzero);
const struct chain_frame *reader_frame(const struct reader *r);
const struct shard_end *reader_end_of_shard(const struct reader *r);

/* The stream's provenance as text, one line for each program; "" for none. */
const char *reader_provenance(const struct reader *r);

/* Two ways not to look at values, where the input can seek.
 * reader_skip_bodies(r, on): from now on, or no longer, the bodies of large DATA
 * frames are passed over: they are not read and not checked, and what the
 * records' bodies point to is not to be looked at.  All else is as ever.  Returns
 * what was before.
 * reader_skip_checks(r): from now on bodies are neither read nor checked, but
 * the frames can be copied, unread (writer_pass). */
int reader_skip_bodies(struct reader *r, int on);
void reader_skip_checks(struct reader *r);
/* reader_fetch(r, e), at READER_DATA: reads the bodies of this frame after all,
 * if they were passed over. */
int reader_fetch(struct reader *r, struct err *e);

/* reader_where(r, buf): "shard 3 'edge1/42', at byte 18112", for messages;
 * reader_name: the file's. */
const char *reader_where(const struct reader *r, char buf[160]);
const char *reader_name(const struct reader *r);
/* Both add to the message of an error that was set, and return k.
 * reader_place adds the shard and the byte; reader_blame adds the file's name
 * when k says bad data, for programs that read several files. */
int reader_place(const struct reader *r, int k, struct err *e);
int reader_blame(const struct reader *r, int k, struct err *e);

/* reader_mark(r), just after READER_SHARD; reader_rewind goes back, so that the shard's
 * frames come once more, in an input that can seek. */
void reader_mark(struct reader *r);
int reader_rewind(struct reader *r, struct err *e);
/* reader_io(r): where it reads, for what can be asked of that. */
struct io *reader_io(const struct reader *r);
/* reader_splice: see writer_splice. */
void reader_splice(struct reader *r, const struct io *to, int skip_checks);

/*
 * reader_recover(r, from, e): after an error, or instead of starting at the
 * beginning, looks from byte `from' on for the next stream or shard and stands
 * before it.  1 when reader_next can go on from there, 0 when there is none.
 * A schema that is met on the way is used.  The file must be seekable.  Each
 * shard read after that is verified as usual, but shards missing between them
 * are not noticed.
 */
int reader_recover(struct reader *r, uint64_t from, struct err *e);
/* reader_unknown(r): 1 when what reader_next refused is not damaged, but has a
 * version, a feature or a critical flag that this reader does not know. */
int reader_unknown(const struct reader *r);
/* Where the current frame begins, or the one that was refused. */
uint64_t reader_offset(const struct reader *r);

/* The bytes of the digest that one SHRD or DATA frame adds. */
struct pack_sum;
void reader_digest_add(struct pack_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash);

#endif
