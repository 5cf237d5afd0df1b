/*
 * Divide the budget of a shard among its segments (ours).
 *
 * The plan of a budget follows the values, so a segment that is sent earlier needs an
 * estimate of it.  Plans hardly change from step to step.  The estimate is the plan of
 * the previous shard, with the bytes that this plan would have taken for each group.
 * A segment gets a share of the remaining budget: the bytes of its groups over the
 * bytes of all groups that have not been sent.
 *
 *   bytes = len (k / k')^e        e: regulate_steep of sync/regulate.h
 *
 * Here the group took len bytes at the rate k, and its plan asked for the rate k'
 * (larger is coarser).  Shares follow the plan one step late.  A wrong share costs
 * quality but never exceeds the budget.
 *
 * The shares are a memory of the state (memory.h), saved at each step with cuts.
 */
#ifndef ACE_SHARES_H
#define ACE_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include "base/statedir.h"
#include "codec/codec.h"

struct err;
struct schema;
struct shard;

#define SHARES_FILE "plan"	/* the memory's name */

struct shares {
	int on;				/* this shard has cuts and a budget */
	int known;			/* the previous shard's shares are there */
	size_t n;
	struct share {
		struct codec_plan plan;	/* of the shard before */
		double bytes;		/* in it */
		struct codec_plan coded;	/* now, by this plan */
		size_t len;		/* 0: not sent */
		size_t values;		/* 0 if all values are zero */
	} *of;				/* [n] */
	size_t cap;
	double left;			/* bytes of the groups that have not left */
};

/* shares_begin(s, st, sh, n, e): at the first cut of shard sh, of n groups: what is
 * remembered of the one before it.  shares_release: zeros are none. */
int shares_begin(struct shares *s, const struct statedir *st,
    const struct shard *sh, size_t n, struct err *e);
void shares_release(struct shares *s);

/* shares_part(s, bytes, room): the share in room of groups that took `bytes'. */
static inline uint64_t
shares_part(const struct shares *s, double bytes, uint64_t room)
{
	return bytes > 0 ? (uint64_t)((double)room *
	    (bytes < s->left ? bytes / s->left : 1)) : 0;
}

/* shares_coded(s, g, p, len, values): group g was coded by plan p in len bytes; 0:
 * it is not sent. */
void shares_coded(struct shares *s, size_t g, const struct codec_plan *p,
    size_t len, size_t values);
/* shares_save(s, st, sh, sc, e): behind shard sh of schema sc, of which of[].plan is
 * the plan by now: what the next one is to remember.  A group of zeros has no plan,
 * and may have values in the next shard: it gets that of the group before it, and no
 * bytes. */
int shares_save(struct shares *s, const struct statedir *st,
    const struct shard *sh, const struct schema *sc, struct err *e);

#endif
