/*
 * Writing a stream. The head is written before the first frame; if that is a shard's, the
 * stream's id depends on the shard. A shard with another schema ends the stream and begins
 * another one. A stream is complete only after writer_finish.
 *
 * Functions return 0; -ERR_SYS if writing failed; -ERR_DATA above a limit, or if a frame to pass
 * on is damaged; -ERR_USAGE for groups out of order, an unknown codec and output to a terminal;
 * -ERR_REFUSED for a codec that is not permitted for the tensor's type.
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
	WRITER_BATCH = 256 * 1024	/* approximate bytes of bodies per DATA frame */
};

struct writer_opts {
	const char *tool;	/* such as "ace-score"; the stream id depends on it */
	const char *line;	/* provenance line; NULL: write no provenance at all */
	int omit_schema;	/* 1: the reader has the schema already */
	int same;		/* 1: no LZ4 in the tensor table: its versions write other bytes */
};

/* Open a stream for writing. The writer owns io from now on, even on failure;
 * writer_free frees it. */
int writer_open(struct writer **out, struct io *io, const struct writer_opts *o,
    struct err *e);
/* Open a stream to path, which io_create makes, or to a temporary file's descriptor fd, which
 * writer_end closes and writer_free does not. The stream has no provenance line. */
int writer_file(struct writer **out, const char *path, const char *tool, struct err *e);
int writer_fd(struct writer **out, int fd, const char *tool, struct err *e);
void writer_free(struct writer *w);

/* Set the provenance of the inputs, which is written before this program's own line. */
int writer_history(struct writer *w, const char *lines, struct err *e);

/* Begin a shard. Its records, in rising order of groups, and its annotations follow;
 * writer_send ends it. The schema must stay until then. */
int writer_shard(struct writer *w, const struct shard *s,
    const struct schema *schema, struct err *e);
/* Write one coded group.  x f32[n] has the decoded values, for the sums in SEND.  If x is
 * NULL, the caller must pass the shard's sums to writer_send.  writer_record_seen: `seen' are
 * the statistics of x, or NULL. */
int writer_record(struct writer *w, uint32_t group, uint32_t codec,
    uint8_t param, const unsigned char *body, size_t len, const float *x,
    size_t n, struct err *e);
struct kern_stat;
int writer_record_seen(struct writer *w, uint32_t group, uint32_t codec,
    uint8_t param, const unsigned char *body, size_t len,
    const struct kern_stat *seen, size_t n, struct err *e);
/* Write a group as f32[n], uncoded, and add x to the sums in SEND.  writer_seen: `seen' are the
 * statistics of x; NULL: add nothing. */
int writer_values(struct writer *w, uint32_t group, const float *x, size_t n,
    struct err *e);
int writer_seen(struct writer *w, uint32_t group, const float *x, size_t n,
    const struct kern_stat *seen, struct err *e);
/* Write an annotation, in a shard or, after writer_begin, between shards. */
int writer_note(struct writer *w, uint32_t type, const void *p, size_t n,
    struct err *e);
/* Pack p[n], as writer_note does, as an LZ4 block into b. Set *packed to its length, or to 0
 * if p[n] is written as it is: it has up to 64 bytes, or packing makes it no shorter. */
int writer_pack(struct buf *b, const void *p, size_t n, size_t *packed,
    struct err *e);
/* Copy r's current frame (DATA or an annotation) unchanged. */
int writer_pass(struct writer *w, const struct reader *r, struct err *e);
/* Announce that most frames of r will be passed to w. If both are pipes, these frames move
 * without a copy. skip 1: this program does not use the values, so it does not read them; a
 * later reader verifies them. */
void writer_splice(struct writer *w, struct reader *r, int skip);
/* Begin a stream with this schema if none is open, for frames before its first shard. */
int writer_begin(struct writer *w, const struct schema *sc, struct err *e);
/* Copy r's current frame, a receipt, and flush the output; begin a stream if none is open. */
int writer_pass_receipt(struct writer *w, const struct reader *r, struct err *e);
/* End the shard and flush the output.  sums: the sums over all values of the shard; NULL: use
 * the sums of the values that writer_record, writer_values and both *_seen were given, and the
 * count of writer_dropped. */
int writer_send(struct writer *w, const struct shard_sums *sums, struct err *e);
/* Add n to the count, in SEND, of values that were not finite and were set to zero. */
void writer_dropped(struct writer *w, uint64_t n);
/* Return the bytes of the current shard written so far, without the records that are still
 * buffered for the next DATA frame. */
uint64_t writer_shard_bytes(const struct writer *w);
struct io *writer_io(const struct writer *w);
/* Return the end of the shard that the last writer_send wrote; valid until writer_shard. */
const struct shard_end *writer_sent(const struct writer *w);

/* Write a receipt between shards, and flush the output. */
int writer_receipt(struct writer *w, const struct receipt *r, struct err *e);

/* Write the buffered records as a frame with FRAME_CUT and flush the output. Filters that
 * read such a frame write their results immediately, too. */
int writer_flush(struct writer *w, struct err *e);

/* Write and flush the tail, after a head if nothing was written; the descriptor stays open. */
int writer_finish(struct writer *w, struct err *e);

/* Call writer_finish and then io_commit. */
int writer_end(struct writer *w, enum io_sync sync, struct err *e);

/* From now on, an aborted stream still creates the file, with its complete shards and an
 * end that says "aborted", because these shards are recorded as sent. */
void writer_keeps(struct writer *w);
/* End the stream as aborted, which readers can tell from a truncation. If nothing was
 * written to a pipe yet, begin a stream first. A created file appears only with
 * writer_keeps. */
void writer_abort(struct writer *w);

#endif
