/*
 * Code the groups of a shard, immediately or after they have waited for their plan.
 *
 * Groups whose plan is known are coded by several threads in parallel and settled one
 * after another, so the output is the same for any number of threads.
 *
 *   coding_slot returns a slot to fill in, and coding_add adds it; coding_run finishes
 *   the added groups before anything that must follow them
 *
 * Groups without a plan wait.  If the plan has a budget, sync/rate_control.h chooses the
 * groups' rates, so that the whole coded shard fills it.
 *
 *   coding_next, coding_put for each group; then coding_settled, coding_plan for each,
 *   coding_fit; then for each: coding_get, coding_code, coding_add
 *
 * Plans hardly change from step to step.  So in a large model a group that the state's last
 * shard has is coded at about the same rate while the next groups are read.  coding_fit
 * codes groups again only if the budget requires it.
 */
#ifndef ACE_CODING_H
#define ACE_CODING_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "device/error_feedback.h"
#include "format/schema.h"
#include "format/shard.h"
#include "pipe/scratch.h"
#include "sync/rate_control.h"

struct err;
struct pool;

enum { CODING_BATCH = 8 };

struct coding_slot {
	uint32_t group;
	size_t n;
	float *acc;		/* f32[n]: values to code, in `room' or elsewhere */
	struct codec_plan plan;	/* codec and parameter of the group */
	int seen;		/* 1: code.target is set */
	int made;		/* 1: code.sent, code.body and code.param are set, too */
	struct feedback_code code;
	float *room;		/* f32[2 * most]: acc, code.dec */
};

struct coding {
	struct feedback *fb;		/* NULL: no error feedback */
	int contracting;		/* 1: make unbiased codes contracting (codec_contracting) */
	struct pool *pool;
	const struct schema *schema;
	const struct shard *shard;
	/* slot: [slots], of which the first `filled' are filled in; before: [slots], of which the
	 * first `running' are being coded.  The two are halves of `all', and change places. */
	struct coding_slot *all, *slot, *before;
	size_t slots, filled, running;
	/* called for each group after it was coded, in the order of coding_add */
	int (*settle)(void *arg, struct coding_slot *w, struct err *e);
	void *arg;			/* argument of settle */
	size_t most;			/* most values of a group */
	/* groups that wait, in rising order; coding_plan sets their plans */
	struct rate_control_group *g;	/* [n] */
	size_t n, cap;
	size_t dropped;			/* groups of the plan not sent, to fit the budget */
	/* private */
	struct scratch values, bodies;
	struct coding_batch {		/* coded early, in parallel */
		uint32_t which[CODING_BATCH];
		size_t n, values, bytes;	/* groups; values; bytes in the previous shard */
	} batch[2];			/* [0] is being coded, [1] is next */
	const uint32_t *which;		/* groups that threads are coding */
	float *room;			/* of all slots */
	/* sums over groups coded early, older ones weighted less.  now: bytes at the rates of the
	 * previous shard; last: bytes in that shard; values_last: values */
	double now, last, values_last;
	uint64_t base;			/* bytes of the shard that are already written */
	uint64_t open;			/* number of values that may still come */
};

/* Initialise c; the caller then sets contracting, settle and arg, and still owns fb and pool.
 * fb NULL: no residual is kept.  Return 0 or -ERR_SYS. */
int coding_open(struct coding *c, struct feedback *fb, struct pool *pool,
    struct err *e);
void coding_close(struct coding *c);
/* Drop the waiting groups and begin shard sh. */
int coding_begin(struct coding *c, const struct schema *sc,
    const struct shard *sh, struct err *e);

/* ---- groups whose plan is known ---- */

/* Return the next slot, with acc in its room. */
struct coding_slot *coding_slot(struct coding *c);
/* Add the slot that was filled in.  If all slots are filled or its codec uses the previous shard
 * (codec_after), code and settle them; with a residual, several threads and no such codec, only
 * begin to code them, and settle those coded before.  Return 0 or an error of coding or settle. */
int coding_add(struct coding *c, struct err *e);
/* Code and settle all added groups. */
int coding_run(struct coding *c, struct err *e);

/* ---- groups that wait ---- */

/* coding_next: the group of slot w, with w->n values, will wait.  If possible, set w->acc to
 * the place where its values will wait; otherwise coding_put copies them to that place.
 * coding_put: let the group of slot w wait.  absent: the input does not have the group.
 * coding_get: set the group, n and statistics of slot w from the i-th waiting group, and acc to
 * its values, in place or copied into the slot's room.  They may be changed, and are valid until
 * the group is dropped or, if copied, the slot is used again. */
int coding_next(struct coding *c, struct coding_slot *w, struct err *e);
int coding_put(struct coding *c, struct coding_slot *w, int absent, struct err *e);
int coding_get(const struct coding *c, size_t i, struct coding_slot *w,
    struct err *e);
/* coding_settled: wait for the groups that are being coded early.
 * coding_plan: set the plan of the i-th waiting group, after coding_settled. */
int coding_settled(struct coding *c, struct err *e);
void coding_plan(struct coding *c, size_t i, const struct codec_plan *p);
/* Remove the first k waiting groups, after coding_settled and, if they are in slots,
 * coding_run. */
void coding_drop(struct coding *c, size_t k);

/* Code all waiting groups within the budget in bytes, of which `base' are already written.
 * If even the coarsest rates do not fit, groups are left out, those with the least energy
 * per byte first. Return -ERR_REFUSED if a shard with only the groups that are sent without
 * loss (schema_exact_group) does not fit. */
int coding_fit(struct coding *c, uint64_t base, uint64_t budget, struct err *e);

/* Copy the code of the i-th waiting group, and the plan by which it was coded, into
 * slot w. */
int coding_code(const struct coding *c, size_t i, struct coding_slot *w,
    struct err *e);

#endif
