/*
 * The plan of a shard under a budget, from statistics alone: one number and
 * its exceptions (ours).
 *
 * At the optimum all groups coded with ECQ share one step, divided by the root
 * of their weight (reverse water-filling; Cover and Thomas, section 10.3).  It
 * is found by bisection on the rates that are foretold of it; whoever codes
 * corrects it by what coding really takes.  The price of a byte is what it
 * would buy at that step:
 *
 *   lambda = -(dD / ds) / (dR / ds)     D weighted squared error, R bytes
 *
 * A group is an exception where another codec, or not being sent, is clearly
 * better at that price: least w D + lambda R.  Then the step is found again
 * with what the exceptions leave, until they stay.
 */
#ifndef ACE_ALLOT_H
#define ACE_ALLOT_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "codec/stat.h"

struct err;

/* Norms and biases stay dense while that takes at most this share of the
 * budget; beyond, they are like all others of this weight. */
#define ALLOT_DENSE_SHARE 0.02
#define ALLOT_DENSE_WEIGHT 4.0

struct allot {
	/* given */
	size_t n;			/* groups */
	const struct stat_group *stat;	/* [n]; zeros: not in the shard */
	const float *weight;		/* [n] */
	const uint8_t *dense;		/* [n]: better not made sparse */
	const struct codec_plan *other;	/* [m]: codecs of the exceptions */
	size_t m;
	double budget;			/* bytes of bodies and their entries */
	void (*ctx)(void *arg, uint32_t g, struct codec_ctx *ctx);
	void *arg;

	/* found */
	struct codec_plan *plan;	/* [n], the caller's */
	double step;			/* of a group of weight 1 */
	double price;			/* of a byte */
	double bytes, dist;		/* foretold */
	double energy;			/* weighted, of all */
	size_t sent;			/* groups */
	int floor;			/* norms and biases stayed dense */
};

/* allot_cost(body): bytes of a body and its directory entry, about. */
int64_t allot_cost(size_t body);

/* allot_plan(a, e): fills in what is found.  A budget too small for any group
 * gives a plan that sends none.  -ERR_SYS. */
int allot_plan(struct allot *a, struct err *e);

#endif
