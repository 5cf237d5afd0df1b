/*
 * Plan a shard within a budget from the statistics of its groups, without coding any
 * group (our method).
 *
 * At the optimum all groups that use the shared codec (ECQ or TCQ, codec_shared) have one
 * step, divided by the root of the group's weight (reverse water-filling; Cover and
 * Thomas, section 10.3).  Bisection on estimated bytes finds this step; ace-compress then
 * corrects the step by the size of the coded groups (sync/rate_control.h).  The Lagrange
 * multiplier lambda is the error that one more byte removes at that step:
 *
 *   lambda = -(dD / ds) / (dR / ds)     D weighted squared error, R bytes
 *
 * A group gets another codec if that gives a clearly smaller D + lambda R.  The shared
 * step is then found again for the rest of the budget, until the set of these exceptions
 * no longer changes, or for ALLOT_ROUNDS rounds.
 */
#ifndef ACE_ALLOT_H
#define ACE_ALLOT_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "codec/stat.h"

struct err;

/* Norms and biases stay dense while all of them together, as q8, take at most this share of
 * the budget; beyond it they are planned like other groups.  In both cases their weight is
 * multiplied by ALLOT_DENSE_WEIGHT.  We chose both numbers; they are not measured. */
#define ALLOT_DENSE_SHARE 0.02
#define ALLOT_DENSE_WEIGHT 4.0

struct allot {
	/* input */
	size_t n;			/* groups */
	const struct stat_group *stat;	/* [n]; all 0: the group is not in the shard */
	const float *weight;		/* [n] weights of the errors; 0: the group is not sent */
	const uint8_t *dense;		/* [n]; 1: a norm or a bias */
	uint32_t shared;		/* codec of the groups that share the step */
	const struct codec_plan *other;	/* [m] codecs for the exceptions */
	size_t m;
	double budget;			/* bytes for bodies and their directory entries */
	void (*ctx)(void *arg, uint32_t g, struct codec_ctx *ctx);	/* set *ctx for group g */
	void *arg;
	/* bytes that a body of this length adds to a shard (size_cost in pipe/size.h) */
	uint64_t (*cost)(uint32_t codec, size_t body, int param);

	/* results */
	struct codec_plan *plan;	/* [n], owned by the caller */
	double step;			/* step of a group of weight 1 */
	double price;			/* lambda: weighted squared error per byte */
	double bytes, dist;		/* estimates: coded bytes; weighted error */
	double energy;			/* weighted sum of squares of all values */
	size_t sent;			/* groups sent */
	int floor;			/* 1: norms and biases stay dense */
};

/* Fill in the results.  If the budget is too small for any group, the plan sends none.
 * Return 0 or -ERR_SYS. */
int allot_plan(struct allot *a, struct err *e);

#endif
