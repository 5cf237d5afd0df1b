/*
 * How the segments of a shard share its budget (ours).
 *
 * A plan with a budget stands behind the values, so that whoever sends a segment
 * before has to guess it.  What a budget buys hardly changes from step to step:
 * so the guess is the plan of the shard before, and its bytes group by group,
 * reckoned as that plan would have taken them.  Of what is left of the budget a segment
 * gets the share that its groups have in the bytes of all that have not left:
 *
 *   bytes = len (k / k')^e        e: regulate_steep of sync/regulate.h
 *
 * where a group was coded by a rate k and its plan then said k' (coarser the
 * larger), len being the bytes it took.  So shares follow the plan, a step late,
 * and what is wrong with them costs quality and never the budget.
 *
 * They are a memory of the state (memory.h), saved with each step that has cuts.
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
	int known;			/* those of the shard before are there */
	size_t n;
	struct share {
		struct codec_plan plan;	/* of the shard before */
		double bytes;		/* in it */
		struct codec_plan coded;	/* now, by this plan */
		size_t len;		/* 0: not sent */
		size_t values;		/* that there are, not all of them zero */
	} *of;				/* [n] */
	size_t cap;
	double left;			/* bytes of the groups that have not left */
};

/* shares_begin(s, st, sh, n, e): at the first cut of shard sh, of n groups: what is
 * remembered of the one before it.  shares_release: zeros are none. */
int shares_begin(struct shares *s, const struct statedir *st,
    const struct shard *sh, size_t n, struct err *e);
void shares_release(struct shares *s);

/* shares_part(s, bytes, room): what groups that took so many bytes get of room. */
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
