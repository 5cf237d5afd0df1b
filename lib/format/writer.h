/*
 * Writing a stream.  The head is written with the first shard, so that the
 * stream's id can be computed from that shard; a shard with another schema ends
 * the stream and begins another.  A stream is whole after writer_end only.
 *
 * Functions return 0; -ERR_SYS when writing failed; -ERR_DATA for what is over
 * a limit; -ERR_USAGE for groups out of order and for a terminal; -ERR_REFUSED
 * for a codec that may not carry the tensor's type.
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
	WRITER_BATCH = 256 * 1024	/* bodies of one DATA frame, about */
};

struct writer_opts {
	const char *tool;	/* "ace-score": also makes the stream id */
	const char *line;	/* provenance line, NULL: none, and none passed */
	int omit_schema;	/* the reader has it already */
};

/* writer_open(out, io, o, e): the writer owns io from now on, even when this
 * fails; writer_free frees it. */
int writer_open(struct writer **out, struct io *io, const struct writer_opts *o,
    struct err *e);
/* writer_file, writer_fd: to what io_create makes of path, or to a temporary's
 * descriptor, which stays the caller's; with no provenance line of tool's. */
int writer_file(struct writer **out, const char *path, const char *tool,
    struct err *e);
int writer_fd(struct writer **out, int fd, const char *tool, struct err *e);
void writer_free(struct writer *w);

/* writer_history(w, lines, e): the provenance of the inputs, which the head
 * will have before this program's own line. */
int writer_history(struct writer *w, const char *lines, struct err *e);

/* writer_shard(w, s, schema, e): begins a shard.  Then come its records, in
 * rising order of groups, and its annotations; writer_send ends it. */
int writer_shard(struct writer *w, const struct shard *s,
    const struct schema *schema, struct err *e);
/* writer_record: one coded group.  x f32[n] is what the body decodes to, for
 * the sums in SEND; with NULL the group is missing in them, and the caller
 * gives the shard's sums to writer_send. */
int writer_record(struct writer *w, uint32_t group, uint32_t codec,
    uint8_t param, const unsigned char *body, size_t len, const float *x,
    size_t n, struct err *e);
/* writer_values: a group as f32[n], uncoded; writer_seen: the same, and these are
 * its statistics; writer_dense: the same, but not counted in the sums. */
int writer_values(struct writer *w, uint32_t group, const float *x, size_t n,
    struct err *e);
int writer_seen(struct writer *w, uint32_t group, const float *x, size_t n,
    const struct kern_stat *seen, struct err *e);
int writer_dense(struct writer *w, uint32_t group, const float *x, size_t n,
    struct err *e);
/* writer_note: an annotation, in a shard or, after writer_begin, between
 * shards. */
int writer_note(struct writer *w, uint32_t type, const void *p, size_t n,
    struct err *e);
/* writer_pass: copies r's current frame (DATA or an annotation) unchanged. */
int writer_pass(struct writer *w, const struct reader *r, struct err *e);
/* writer_splice(w, r, skip): from now on most of r's frames will be passed to w,
 * which costs no copy where both are pipes.  skip: nobody looks at the values,
 * so that they need not even be read; then who does verifies them. */
void writer_splice(struct writer *w, struct reader *r, int skip);
/* writer_begin(w, sc, e): a stream with this schema, if none is open; for what
 * stands before its first shard. */
int writer_begin(struct writer *w, const struct schema *sc, struct err *e);
/* writer_loose(w, r, e): copies r's current frame, an ancillary one that stands
 * between shards. */
int writer_loose(struct writer *w, const struct reader *r, struct err *e);
/* writer_send: the end of the shard, written out at once.  sums: of all its
 * values, or NULL for what the records added up to. */
int writer_send(struct writer *w, const struct shard_sums *sums, struct err *e);
/* writer_dropped: adds to the count, in SEND, of values that were not finite
 * and were set to zero. */
void writer_dropped(struct writer *w, uint64_t n);
/* writer_shard_bytes(w): how many bytes of the current shard are written;
 * records that still wait for their frame are not counted. */
uint64_t writer_shard_bytes(const struct writer *w);
/* writer_io(w): where it writes, for what can be asked of that. */
struct io *writer_io(const struct writer *w);
/* writer_sent: what the last writer_send wrote. */
const struct shard_end *writer_sent(const struct writer *w);

/* writer_receipt: a receipt, between shards, written out at once. */
int writer_receipt(struct writer *w, const struct receipt *r, struct err *e);

/* writer_flush(w, e): writes the records that wait for their frame now, in a
 * frame that is marked, so that filters pass on at once what they make of
 * it. */
int writer_flush(struct writer *w, struct err *e);

/* writer_finish(w, e): writes and flushes the tail; the descriptor stays
 * open. */
int writer_finish(struct writer *w, struct err *e);

/* writer_end(w, sync, e): writer_finish and io_commit. */
int writer_end(struct writer *w, enum io_sync sync, struct err *e);

/* writer_keeps(w): from now on, should the stream be aborted, a created file appears
 * all the same, with the whole shards that are in it and an end that says so: somebody
 * has them on his books as sent. */
void writer_keeps(struct writer *w);
/* writer_abort(w): an end that says "aborted", so that the reader can tell it
 * from a cut, in a pipe also of a stream that was not begun.  For a created file nothing is written: it will not appear. */
void writer_abort(struct writer *w);

#endif
