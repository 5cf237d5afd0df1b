/*
 * Reading a stream. Each frame is verified, its place in the grammar below is checked,
 * and it is returned as an event. An end of file within a stream is an error
 * ("truncated").
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

/* A group as it is in the payload of a DATA frame. */
struct record {
	uint32_t group;
	uint8_t codec, param;	/* codec: one that this version knows */
	const unsigned char *body;
	size_t len;
};

enum reader_event {
	READER_END = 0,		/* clean end of the file, all verified */
	READER_HEAD,		/* a stream began */
	READER_SHARD,		/* a shard begins: reader_shard, reader_schema */
	READER_DATA,		/* some records: reader_records */
	READER_NOTE,		/* an ancillary frame of the shard: reader_frame */
	READER_SEND,		/* the shard is complete: reader_end_of_shard */
	READER_RCPT		/* a delivery receipt: reader_receipt, reader_frame */
};

struct reader_opts {
	uint64_t max_elements;	/* 0: SCHEMA_MAX_ELEMENTS */
	/* schema of streams without a table, which the others' tables must equal; or NULL */
	const struct schema *schema;
	/* 1: do not compare tables with `schema', because the caller does */
	int any_model;
	/* limit on the unpacked table in bytes; 0: only SCHEMA_MAX_BYTES */
	size_t max_table;
	/* a remedy that, with the file, ends messages about damage; or NULL */
	const char *remedy;
};

/* Open a stream. The reader owns io from now on, even on failure; reader_free frees it.
 * o may be NULL. */
int reader_open(struct reader **out, struct io *io,
    const struct reader_opts *o, struct err *e);
/* Open path as io_open does, and read a stream from it. */
int reader_file(struct reader **out, const char *path,
    const struct reader_opts *o, struct err *e);
/* Open path as io_open_kept does, and read a stream from it. Return 1, or 0 if there is no
 * such file. */
int reader_kept(struct reader **out, const char *path,
    const struct reader_opts *o, struct err *e);
void reader_free(struct reader *r);

/* Return the next event, or < 0 on an error; later calls then return the same number. Pointers
 * returned by the functions below are valid until the next call; that of reader_shard until the
 * next shard, that of reader_schema until the next stream. */
int reader_next(struct reader *r, struct err *e);

/* Go to the next READER_SHARD.  Return 1, or 0 at the end. */
int reader_to_shard(struct reader *r, struct err *e);

/* reader_shard: return the current or last shard; NULL before a stream's first one.
 * reader_schema: return the stream's schema, else that of the options, which may be NULL.
 * reader_records: return the *n records of the current DATA frame. */
const struct shard *reader_shard(const struct reader *r);
const struct schema *reader_schema(const struct reader *r);
const struct record *reader_records(const struct reader *r, size_t *n);
/* Return the number of the shard's records read so far. */
uint32_t reader_so_far(const struct reader *r);
/* Report that a record was decoded, and how many of its values are finite and not 0. If all
 * records of the shard were reported, reader_next checks the sum of these counts at SEND. */
void reader_decoded(const struct reader *r, uint64_t nonzero);
const struct chain_frame *reader_frame(const struct reader *r);
const struct receipt *reader_receipt(const struct reader *r);
const struct shard_end *reader_end_of_shard(const struct reader *r);

/* Return the stream's provenance as text, one line per program; "" if none. */
const char *reader_provenance(const struct reader *r);

/* reader_skip_bodies: if the input can seek, bodies of large DATA frames without LZ4 are
 * neither read nor checked while `on' is 1, and must not be used; writer_pass still copies
 * them.  Return the old setting.  reader_skip_checks: set `on' to 1, and read less ahead. */
int reader_skip_bodies(struct reader *r, int on);
void reader_skip_checks(struct reader *r);
/* At READER_DATA: read and verify the bodies of this frame if they were skipped. */
int reader_fetch(struct reader *r, struct err *e);

/* reader_where: "shard 3 'edge1/42', at byte 18112", for messages. reader_name: the
 * file's name. */
const char *reader_where(const struct reader *r, char buf[160]);
const char *reader_name(const struct reader *r);
/* Add to the error in e, and return k. reader_place: the shard and the byte. reader_blame: the
 * file's name, only if k is -ERR_DATA; for programs that read several files. */
int reader_place(const struct reader *r, int k, struct err *e);
int reader_blame(const struct reader *r, int k, struct err *e);

struct io *reader_io(const struct reader *r);
/* Like writer_splice, with the output `to' in place of a writer. */
void reader_splice(struct reader *r, const struct io *to, int skip_checks);

/* Return the position at which the current or the refused frame begins. */
uint64_t reader_offset(const struct reader *r);

/* Add a SHRD or DATA frame, by its type, length and payload checksum, to a shard's digest. */
struct hash_sum;
void reader_digest_add(struct hash_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash);

#endif
