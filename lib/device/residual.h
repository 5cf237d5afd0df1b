/*
 * The residual of error feedback, and the shard that was coded but may not
 * have been delivered yet: one file, `residual', that is itself a stream:
 *
 *   first shard    kind residual, step = the last step absorbed, dense f32
 *   then           the pending shards, payload for payload as they were sent,
 *                  oldest first
 *
 * It changes by one rename: whoever looks finds the old one or the new one.
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

/* residual_open(q, s, e): as it is now; no file is not an error. */
int residual_open(struct residual *q, const struct state *s, struct err *e);
/* residual_pending(q, e): reads on to the next pending shard.  1: q->d.r stands
 * at its READER_SHARD; 0: there is none. */
int residual_pending(struct residual *q, struct err *e);
/* residual_send(q, w, e): after residual_pending gave 1: that shard to w. */
int residual_send(struct residual *q, struct writer *w, struct err *e);
void residual_close(struct residual *q);

/* ---- changing ---- */

struct residual_new;

/* residual_begin(out, s, sh, kv, sc, e): the state after shard sh of schema
 * sc; kv: keys the residual keeps, or NULL.  Needs state_lock. */
int residual_begin(struct residual_new **out, const struct state *s,
    const struct shard *sh, const struct text_kv *kv, const struct schema *sc,
    struct err *e);
/* e' of group g, in rising order. */
int residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    struct err *e);
/* One record of the pending shard, in rising order; x f32[len] what it decodes
 * to. */
int residual_record(struct residual_new *n, uint32_t g, uint32_t codec,
    uint8_t param, const struct buf *body, const float *x, size_t len,
    struct err *e);
/* The pending shard, for the annotations that go with it. */
struct writer *residual_writer(struct residual_new *n);
/* The commit: after it, and not before, the shard may be sent.  What `old'
 * still holds of p's open shards stays in the file; digest: of the new one. */
struct pending;
int residual_commit(struct residual_new *n, struct residual *old,
    const struct pending *p, enum io_sync sync,
    unsigned char digest[SHARD_DIGEST], struct err *e);
/* residual_made(n, w, e), after the commit: the pending shard, from where it
 * was made, to w. */
int residual_made(struct residual_new *n, struct writer *w, struct err *e);
void residual_free(struct residual_new *n);

#endif
