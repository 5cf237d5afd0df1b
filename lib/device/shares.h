/*
 * Divide a shard's budget among its segments.  A segment ends at a cut, with a DATA frame.
 *
 * A segment is coded before the shard's plan is known, because the plan follows all values.
 * Plans hardly change from step to step, so the plan of the previous shard is the estimate,
 * with the bytes that this plan would have taken for each group.
 * A segment gets a share of the remaining budget: the bytes of its groups over the bytes
 * of all groups that have not been sent.
 *
 *   bytes = len (k / k')^e        e: rate_control_steep of sync/rate_control.h
 *
 * Here the group took len bytes at the rate k, and its plan asked for the rate k' (larger is
 * coarser); the factor is from 1/16 to 16.  Shares follow the plan one step late.  A wrong
 * share costs quality but never exceeds the budget.
 *
 * The shares are a file of the state (learned.h), saved at each step with cuts and a budget.
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

#define SHARES_FILE "plan"	/* name of the file in the state (learned.h) */

struct shares {
	int on;				/* 1: this shard has cuts and a budget */
	int known;			/* 1: the previous shard's shares were read */
	size_t n;
	struct share {
		struct codec_plan plan;	/* the group's plan: see shares_begin, shares_save */
		double bytes;		/* bytes that this plan would have taken */
		struct codec_plan coded;	/* plan by which this shard's group was coded */
		size_t len;		/* coded bytes; 0: not sent */
		size_t values;		/* values of the group; 0 if all of them are zero */
	} *of;				/* [n] by group */
	size_t cap;
	double left;			/* sum of `bytes' of the groups not sent yet */
};

/* shares_begin: at the first cut of shard sh, which has n groups, read the shares of
 * the previous shard.  shares_release: free s, which may be all zeros. */
int shares_begin(struct shares *s, const struct statedir *st,
    const struct shard *sh, size_t n, struct err *e);
void shares_release(struct shares *s);

/* Return the share of `room' bytes for groups whose of[].bytes add up to `bytes'. */
static inline uint64_t
shares_part(const struct shares *s, double bytes, uint64_t room)
{
	return bytes > 0 ? (uint64_t)((double)room *
	    (bytes < s->left ? bytes / s->left : 1)) : 0;
}

/* Record that group g was coded by plan p; len and values as in struct share. */
void shares_coded(struct shares *s, size_t g, const struct codec_plan *p,
    size_t len, size_t values);
/* Save the shares for the next shard, after shard sh of schema sc, when of[].plan has
 * the plan of sh.  A group of zeros has no plan, but may have values in the next shard:
 * it gets the plan of the group before it, and no bytes. */
int shares_save(struct shares *s, const struct statedir *st,
    const struct shard *sh, const struct schema *sc, struct err *e);

#endif
