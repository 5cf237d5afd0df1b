/*
 * The residual of error feedback, and the coded shards that may not have been delivered
 * yet.  Both are in one file, `residual', which is itself a stream:
 *
 *   first shard    kind residual, step = step of the last coded shard, dense f32
 *   then           the pending shards, payload for payload as they were sent,
 *                  oldest first
 *
 * It is replaced by one rename, so that a reader finds either the whole old file or the
 * whole new one.  With a large model the replaced file stays, as `spare', and the next
 * one is written over it, because writing to new pages takes four times as long
 * (io_create_over).  IO_SYNC_RENAME does not keep a spare: without a sync the names may
 * reach the disk before the bytes.
 */
#ifndef ACE_RESIDUAL_H
#define ACE_RESIDUAL_H

#include <stdint.h>

#include "device/dense.h"

struct err;

#define RESIDUAL_FILE "residual"	/* its name in the state directory */
/* the remedy in messages about a damaged file of the state */
#define RESIDUAL_ANEW " (ace-ack --restart begins without the residual)"

/* ---- looking ---- */

struct residual {
	struct dense d;		/* d.r NULL: no residual yet */
	uint64_t step;		/* step of the last coded shard */
};

/* Open the residual as it is now.  A missing file is not an error. */
int residual_open(struct residual *q, const struct statedir *s, struct err *e);
/* Set *o from the head of the residual.  Return 1, or 0 if there is none yet. */
struct residual_owner {
	unsigned char run[SHARD_ID], device[SHARD_ID];
	uint64_t step;
	uint32_t incarnation;
};
int residual_owner(struct residual_owner *o, const struct statedir *s, struct err *e);
int residual_owns(const struct residual_owner *o, const unsigned char *run,
    const unsigned char *device);
/* Go to the next pending shard.  Return 1, with q->d.r at its READER_SHARD, or 0 if there
 * is none. */
int residual_pending(struct residual *q, struct err *e);
/* Open the residual, and go to the pending shard of this step without reading what precedes
 * it.  Return as residual_pending. */
int residual_find(struct residual *q, const struct statedir *s, uint64_t step, struct err *e);
void residual_close(struct residual *q);

/* ---- changing ---- */

struct residual_new;

/* Begin the next residual file, for the state after shard sh of schema sc.  kv: keys of
 * the residual, or NULL.  scratch: descriptor of an unnamed file, which is overwritten; the
 * caller closes it after residual_free.  The caller holds statedir_lock. */
int residual_begin(struct residual_new **out, const struct statedir *s,
    int scratch, const struct shard *sh, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
/* Write the new residual x f32[len] of group g; seen: its statistics.  Call it in
 * rising order of g. */
struct kern_stat;
int residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    const struct kern_stat *seen, struct err *e);
/* Return the writer of the coded shard, for its records and annotations. */
struct writer *residual_writer(struct residual_new *n);
/* Return the io of the next residual file, for io_ahead. */
struct io *residual_io(const struct residual_new *n);
/* Write to w what exists of the coded shard and was not written by an earlier call, but not its
 * end.  This needs no commit, because receivers do not accept a shard without its end. */
int residual_early(struct residual_new *n, struct writer *w, struct err *e);
/* End the residual and the coded shard.  Set *w to the writer of the next residual
 * file, for the shards that remain pending. */
int residual_whole(struct residual_new *n, struct writer **w, struct err *e);
/* After residual_whole, append the coded shard to the next file and rename it into place.
 * The shard's end may be sent only after this call. */
int residual_commit(struct residual_new *n, enum io_sync sync, struct err *e);
/* Copy the coded shard, or the part that residual_early has not written, from the scratch
 * file to w.  Call it after residual_commit. */
int residual_made(struct residual_new *n, struct writer *w, struct err *e);
void residual_free(struct residual_new *n);

#endif
