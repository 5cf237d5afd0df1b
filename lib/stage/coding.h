/*
 * Code the groups of a shard, immediately or after they have waited for their plan.
 *
 * Groups whose plan is known are coded by several threads in parallel and settled one
 * after another, so the output is the same for any number of threads.
 *
 *   coding_slot returns a slot to fill in, and coding_add adds it; call coding_run
 *   when coding_add says full, or before anything that must follow these groups
 *
 * Groups without a plan wait.  If the plan has a budget, sync/regulate.h chooses their
 * rates, so that the whole coded shard fills it.
 *
 *   coding_next, coding_put for each group; then coding_plan for each, coding_fit;
 *   then for each: coding_get, coding_code
 *
 * Plans hardly change from step to step.  A group that was coded in the state's last
 * shard is therefore coded at that rate while the next groups are read, and coding_fit
 * codes groups again only where the budget requires it.
 */
#ifndef ACE_CODING_H
#define ACE_CODING_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "format/schema.h"
#include "format/shard.h"
#include "pipe/scratch.h"
#include "sync/regulate.h"

struct err;
struct feedback;
struct pool;
struct select_level;

enum { CODING_BATCH = 8 };

struct coding_slot {
	uint32_t group;
	size_t n;
	float *acc, *u;		/* f32[n]: what is to be coded; see feedback.h.
				 * In the slot's room, or elsewhere */
	struct kern_stat seen;	/* of acc, where it is made already */
	struct codec_plan plan;	/* as it is coded */
	int made;		/* sent, body and param are there already */
	int sent;
	struct buf body;
	uint8_t param;
	float *dec;		/* f32[n]: what the body says, if it is sent */
	float *room;		/* f32[3 * most]: acc, u, dec */
};

struct coding {
	struct feedback *fb;		/* NULL: nothing is kept */
	struct pool *pool;
	const struct schema *schema;
	const struct shard *shard;
	struct coding_slot *slot;	/* [slots], the first `filled' are */
	size_t slots, filled;
	size_t most;			/* values of a group */
	/* groups that wait, in rising order; the caller owns their plans */
	struct regulate_group *g;	/* [n] */
	size_t n, cap;
	const float *weight;		/* by group, the caller's; NULL: all
					 * alike */
	size_t cheaper, dropped;	/* groups that did not fit as planned */
	/* private */
	struct scratch values, bodies;
	int beside;			/* 1: u of each group waits, too */
	struct coding_batch {		/* coded early, side by side */
		uint32_t which[CODING_BATCH];
		size_t n, values, bytes;	/* bytes: in the shard before */
	} batch[2];			/* being coded; coded next */
	struct coding_turned {
		struct coding *c;
		const uint32_t *which;
	} turned;			/* what the first one is coded by */
	double now, last, values_last;	/* bytes of those coded early, as by the
					 * rates of the shard before; in it */
	uint64_t base;			/* bytes before the first record */
	uint64_t open;			/* values that may come still */
};

/* coding_open(c, fb, pool, e): both stay the caller's; fb NULL: nothing is
 * kept. */
int coding_open(struct coding *c, struct feedback *fb, struct pool *pool,
    struct err *e);
void coding_close(struct coding *c);
/* coding_begin(c, sc, sh, e): forgets what waits, and begins with shard sh. */
int coding_begin(struct coding *c, const struct schema *sc,
    const struct shard *sh, struct err *e);

/* ---- groups whose plan is known ---- */

/* coding_slot(c): the next one, with acc and u in its room. */
struct coding_slot *coding_slot(struct coding *c);
/* coding_add(c): it is filled in.  1: coding_run has to come next. */
int coding_add(struct coding *c);
/* coding_run(c, settle, arg, e): codes what was added, and finds what it says;
 * then calls settle for each, in the order in which they were added. */
int coding_run(struct coding *c, int (*settle)(void *arg,
    struct coding_slot *w, struct err *e), void *arg, struct err *e);

/* ---- groups that wait ---- */

/* coding_next(c, n, a, u, e): *a and *u, which are room for f32[n] each, become
 * where the next group's n values are best put, as coding_put copies them from
 * elsewhere.
 * coding_put(c, g, absent, a, u, n, seen, e): lets group g wait: a f32[n] is to
 * be coded, u f32[n] to be kept beside it, if feedback_beside says so.  absent:
 * the input does not have the group.  seen: the statistics of a, or NULL.
 * coding_get(c, i, w, e): acc and u of the i-th that waits, in the slot or where
 * they wait: there until it is dropped, and for the caller to change. */
int coding_next(struct coding *c, size_t n, float **a, float **u, struct err *e);
int coding_put(struct coding *c, uint32_t g, int absent, const float *a,
    const float *u, size_t n, const struct kern_stat *seen, struct err *e);
int coding_get(const struct coding *c, size_t i, struct coding_slot *w,
    struct err *e);
/* coding_plan(c, i, p): the i-th that waits is planned so; behind
 * coding_settled(c, e), which waits for what is coded early. */
int coding_settled(struct coding *c, struct err *e);
void coding_plan(struct coding *c, size_t i, const struct codec_plan *p);
/* coding_drop(c, k): removes the first k that wait, which are settled. */
void coding_drop(struct coding *c, size_t k);

/*
 * coding_fit(c, base, budget, e): codes all that waits, where `base' bytes of
 * the coded shard are written already.  If it does not fit however coarse, groups
 * get those of the plan's codecs of fixed size, or none, that lose the least
 * weighted error.  -ERR_REFUSED when not even a shard without groups fits.
 */
int coding_fit(struct coding *c, uint64_t base, uint64_t budget, struct err *e);

/* coding_code(c, i, w, e): how the i-th that waits was coded, and what it became,
 * in the slot. */
int coding_code(const struct coding *c, size_t i, struct coding_slot *w,
    struct err *e);

#endif
