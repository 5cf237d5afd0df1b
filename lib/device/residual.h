/*
 * The residual of error feedback, and the shard that was coded but may not
 * have been delivered yet: one file, `residual', that is itself a stream:
 *
 *   first shard    kind residual, step = the last step absorbed, dense f32
 *   then           the pending shards, payload for payload as they were sent,
 *                  oldest first
 *
 * It is replaced by one rename, so that a reader finds the old one or the new
 * one, whole.  Of a large model the one before stays, as `spare', and the next one
 * is written over it: its pages are there already, and the system takes four times
 * as long for new ones (io_create_over).  Without a sync the names may come to the
 * disk after the bytes, so that IO_SYNC_RENAME does without.
 */
#ifndef ACE_RESIDUAL_H
#define ACE_RESIDUAL_H

#include <stdint.h>

#include "device/dense.h"

struct err;

/* ---- looking ---- */

struct residual {
	struct dense d;		/* d.r NULL: there is none yet */
	uint64_t step;		/* last absorbed */
};

/* residual_open(q, s, e): opens it as it is now; no file is no error. */
int residual_open(struct residual *q, const struct statedir *s, struct err *e);
/* residual_owner(o, s, e): whose it is: 1, or 0 when there is none yet. */
struct residual_owner {
	unsigned char run[SHARD_ID], device[SHARD_ID];
	uint64_t step;
	uint32_t incarnation;
};
int residual_owner(struct residual_owner *o, const struct statedir *s, struct err *e);
/* residual_owns(o, run, device): are these ids the owner's? */
int residual_owns(const struct residual_owner *o, const unsigned char *run,
    const unsigned char *device);
/* residual_pending(q, e): reads on to the next pending shard.  1: q->d.r stands
 * at its READER_SHARD; 0: there is none. */
int residual_pending(struct residual *q, struct err *e);
/* residual_send(q, w, e): after residual_pending gave 1: copies that shard to
 * w. */
int residual_send(struct residual *q, struct writer *w, struct err *e);
void residual_close(struct residual *q);

/* ---- changing ---- */

struct residual_new;

/* residual_begin(out, s, scratch, sh, kv, sc, e): begins the file as it is to be
 * after shard sh of schema sc; kv: keys of the residual, or NULL.  The caller holds
 * statedir_lock.  scratch: an unnamed file, of which only the place is of use. */
int residual_begin(struct residual_new **out, const struct statedir *s,
    int scratch, const struct shard *sh, const struct text_kv *kv,
    const struct schema *sc, struct err *e);
/* residual_put(n, g, x, len, seen, e): the new residual x f32[len] of group g and
 * its statistics, in rising order. */
struct kern_stat;
int residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    const struct kern_stat *seen, struct err *e);
/* residual_record: a record of the coded shard, in rising order; x f32[len] is
 * what it decodes to. */
int residual_record(struct residual_new *n, uint32_t g, uint32_t codec,
    uint8_t param, const struct buf *body, const float *x, size_t len, struct err *e);
/* residual_writer(n): the coded shard, for the annotations that go with it. */
struct writer *residual_writer(struct residual_new *n);
/* residual_io(n): the file to be, in which values may wait (io_ahead). */
struct io *residual_io(const struct residual_new *n);
/* residual_early(n, w, e): writes to w what there is of the coded shard: all but
 * its end, without which nobody takes it for a shard, so that no commit is needed
 * for it. */
int residual_early(struct residual_new *n, struct writer *w, struct err *e);
/* residual_whole(n, w, e): the residual and the coded shard are whole; *w is the
 * file to be, for the shards that are pending longer. */
int residual_whole(struct residual_new *n, struct writer **w, struct err *e);
/* residual_commit(n, sync, digest, e), after residual_whole: the rename; the
 * shard's end may be sent after it, and not before.  digest becomes the coded
 * shard's. */
int residual_commit(struct residual_new *n, enum io_sync sync,
    unsigned char digest[SHARD_DIGEST], struct err *e);
/* residual_made(n, w, e), after the commit: writes the coded shard to w, or what
 * is missing there of it, from the scratch file in which it was made. */
int residual_made(struct residual_new *n, struct writer *w, struct err *e);
void residual_free(struct residual_new *n);

#endif
