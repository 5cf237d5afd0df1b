/*
 * The groups of a shard that wait until their plan is known, and rate control:
 * they are then coded so that the whole coded shard takes its budget, by
 * sync/land.h.
 *
 *   rate_next, rate_put for each group; then rate_run;
 *   then for each: rate_get, rate_code
 */
#ifndef ACE_RATE_H
#define ACE_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "format/schema.h"
#include "format/shard.h"
#include "kern/kern.h"
#include "pipe/hold.h"
#include "sync/land.h"
#include "sync/told.h"

struct err;
struct estimate;
struct feedback;
struct pool;

struct rate_group {
	uint32_t group, n;
	int absent;			/* not in the input */
	uint64_t at;
	struct codec_plan plan;		/* the caller's, before rate_run */
	struct kern_stat seen;		/* of what is to be coded */
};

struct rate {
	/* given */
	struct feedback *fb;		/* NULL: nothing is kept */
	const struct schema *schema;
	const struct shard *shard;
	/* the groups, rising */
	struct rate_group *g;
	size_t n, cap;
	const float *weight;		/* by group; NULL: all alike */
	size_t cheaper, dropped;	/* groups that did not fit as planned */
	/* private */
	struct hold values, bodies;
	int beside;			/* 1: u of each group waits, too */
	uint64_t base;			/* bytes before the first record */
	uint64_t open;			/* values that may come still */
	uint64_t budget;
	struct pool *pool;
	struct rate_thread {		/* [pool_size(pool)] */
		float *x;
		size_t cap;
		struct buf body;
	} *thread;
	struct estimate *estimate;	/* [TOLD_ASKED] */
	unsigned char counted[TOLD_ASKED];
	struct land land;
	size_t code_cap, knob_cap, values_cap;
	uint8_t *knob;
	uint32_t *count;
};

/* rate_init(q, fb, pool): both stay the caller's; fb NULL: nothing is kept. */
void rate_init(struct rate *q, struct feedback *fb, struct pool *pool);
void rate_release(struct rate *q);
/* rate_begin(q, sc, sh): forgets what waits, and begins with shard sh. */
void rate_begin(struct rate *q, const struct schema *sc,
    const struct shard *sh);

/* rate_next(q, n, a, u, e): *a and *u, which are room for f32[n] each, become
 * where the next group's n values are best put, as rate_put copies them from
 * elsewhere.
 * rate_put(q, g, absent, a, u, n, seen, e): lets group g wait: a f32[n] is to be
 * coded, u f32[n] to be kept beside it, if feedback_beside says so.  absent:
 * the input does not have the group.  seen: the statistics of a, or NULL.
 * rate_get(q, i, a, u, e): the i-th that waits, in *a and *u, or where these
 * point then: there until it is dropped, and for the caller to change. */
int rate_next(struct rate *q, size_t n, float **a, float **u, struct err *e);
int rate_put(struct rate *q, uint32_t g, int absent, const float *a,
    const float *u, size_t n, const struct kern_stat *seen, struct err *e);
int rate_get(const struct rate *q, size_t i, float **a, float **u,
    struct err *e);
/* rate_drop(q, k): removes the first k that wait. */
void rate_drop(struct rate *q, size_t k);

/*
 * rate_run(q, base, budget, e): codes all that waits, where `base' bytes of
 * the coded shard are written already.  If it does not fit however coarse, the
 * groups without a knob get those of the plan's codecs, or none, that lose the
 * least weighted error; then groups with a knob are left out, the ones with the
 * least energy for a byte first.  -ERR_REFUSED when not even a shard without
 * groups fits.
 */
int rate_run(struct rate *q, uint64_t base, uint64_t budget, struct err *e);

/* rate_code(q, i, plan, body, param, e): 1 and how the i-th that waits was
 * coded, and what it became; 0: it is not sent. */
int rate_code(const struct rate *q, size_t i, struct codec_plan *plan,
    struct buf *body, uint8_t *param, struct err *e);

/* rate_encode(q, g, p, x, n, seen, body, param, y, e): codes x f32[n], which is
 * group g, as plan p says: 1, with what a reader decodes in y f32[n] unless it
 * is NULL; 0: it is not to be sent.  seen: the statistics of x, or NULL where
 * they are not known. */
int rate_encode(struct rate *q, uint32_t g, const struct codec_plan *p,
    const float *x, size_t n, const struct kern_stat *seen, struct buf *body,
    uint8_t *param, float *y, struct err *e);

#endif
