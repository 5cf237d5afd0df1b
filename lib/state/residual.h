/*
 * The residual of error feedback, and the shard that was coded but may not
 * have been delivered yet: one file, `residual', that is itself a stream:
 *
 *   first shard    kind residual, step = the last step absorbed, dense f32;
 *                  groups that are all zero are left out
 *   second shard   the pending one, payload for payload as it was sent
 *
 * It changes by one rename: whoever looks finds the old one or the new one.
 */
#ifndef ACE_RESIDUAL_H
#define ACE_RESIDUAL_H

#include <stdint.h>

#include "base/io.h"
#include "state/state.h"
#include "stream/values.h"
#include "stream/writer.h"

struct err;

enum { RESIDUAL_STAMP = 33 };	/* 32 hex digits and a zero */

/* ---- looking ---- */

struct residual {
	struct reader *r;	/* NULL: there is none yet, all zeros */
	struct values v;
	int k;			/* what values_next said last: 1 while in v */
	uint64_t step;		/* last absorbed */
	int stamped;
	char stamp[RESIDUAL_STAMP];	/* identifies the file's contents */
};

/* residual_open(q, s, e): opens the file as it is now; a later commit does not
 * disturb it.  No file is not an error (q->r == NULL, stamp "none"). */
int residual_open(struct residual *q, const struct state *s, struct err *e);
/* residual_check(q, sh, sc, e): is it the residual of this device's run and
 * model?  -ERR_DATA "mismatch: ..." when not. */
int residual_check(const struct residual *q, const struct shard *sh,
    const struct schema *sc, struct err *e);
/* residual_group(q, g, x, e): *x = f32[n] of group g, or NULL when it is all
 * zero.  g must rise from call to call. */
int residual_group(struct residual *q, uint32_t g, const float **x,
    struct err *e);
/* residual_pending(q, e): reads on to the pending shard.  1: q->r stands at
 * its READER_SHARD; 0: there is none. */
int residual_pending(struct residual *q, struct err *e);
/* residual_send(q, w, e): after residual_pending gave 1: that shard to w. */
int residual_send(struct residual *q, struct writer *w, struct err *e);
void residual_close(struct residual *q);

/* ---- changing ---- */

struct residual_new;

/* residual_begin(out, s, sh, sc, tool, e): the state after shard sh of schema
 * sc.  Needs state_lock. */
int residual_begin(struct residual_new **out, const struct state *s,
    const struct shard *sh, const struct schema *sc, const char *tool,
    struct err *e);
/* e' of group g, in rising order; all zero is left out. */
int residual_put(struct residual_new *n, uint32_t g, const float *x, size_t len,
    struct err *e);
/* One record of the pending shard, in rising order; x f32[len] what it decodes
 * to. */
int residual_record(struct residual_new *n, uint32_t g, uint8_t codec,
    uint8_t param, const struct buf *body, const float *x, size_t len,
    struct err *e);
void residual_dropped(struct residual_new *n, uint64_t count);
/* Annotations that go with the pending shard. */
int residual_note(struct residual_new *n, const struct reader *r,
    struct err *e);
/* The commit: after it, and not before, the shard may be sent. */
int residual_commit(struct residual_new *n, enum io_sync sync, struct err *e);
void residual_free(struct residual_new *n);

#endif
