/*
 * Control the rate: choose a code for each group, so that the coded shard fills its
 * budget and, if codes that fit are found, does not exceed it (ours).
 *
 * The rate parameters of all groups are multiplied by e^t; t > 0 makes the codes coarser.
 * All groups are coded once near the t at which their sizes are expected to add up to the
 * budget.  A slope per group extrapolates its size to another t.  Then some groups are coded
 * again, at most RATE_CONTROL_APART finer or coarser than the others, to make up the
 * difference.  A group keeps its last two codes.  Since all codes are at nearly the same t,
 * one byte removes about the same error in each group, so sizes alone decide between two codes.
 *
 * The result depends only on the shard, the plan, the budget and the codes that the
 * caller had before.
 *
 * This module does arithmetic only.  The caller codes:
 *
 *	rate_control_open(r, e);
 *	while (rate_control_next(r, size of the coded shard))
 *		code each g[which[0]] to g[which[many - 1]] with the parameter of
 *		its plan times e^code.t, and fill in the rest of its code
 *	rate_control_close(r);
 */
#ifndef ACE_RATE_CONTROL_H
#define ACE_RATE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "kern/kern.h"

struct err;

/* A group of the shard: its plan, and its codes once it has been coded. */
struct rate_control_group {
	uint32_t group, n;		/* number of the group; number of its values */
	uint8_t absent;			/* 1: the group is not in the input; for the caller */
	uint8_t tries;			/* private */
	uint64_t at;			/* position of the values, for the caller */
	struct codec_plan plan;
	struct kern_stat seen;		/* statistics of the values */
	struct rate_control_code {
		double t;		/* log(parameter / the plan's); HUGE_VAL: no code */
		uint64_t at;		/* position of the body, for the caller */
		size_t len;		/* bytes of the body; 0: the group is not sent */
		uint8_t param;		/* parameter in the body's directory entry */
	} code, other;			/* code: the chosen code; other: another known code */
	double weight;			/* private */
};

struct rate_control {
	/* given */
	struct rate_control_group *g;	/* [n]; if |code.t| < 1.4, `code' is kept from before */
	size_t n;
	uint64_t budget;		/* largest size of the coded shard in bytes */
	/* bytes that a body of this length adds to a shard (size_cost in pipe/size.h) */
	uint64_t (*cost)(uint32_t codec, size_t len, int param);

	/* [many] indices in g of the groups to code next; many 0: code none, but call
	 * rate_control_next again with the size */
	uint32_t *which;
	size_t many;

	/* found */
	uint64_t bytes;			/* the last size that rate_control_next was given */
	size_t made, tried;		/* groups coded; their values; both count repetitions */

	/* private */
	int phase;
	uint32_t *order;		/* [k] indices in g of groups with a rate parameter */
	size_t k;
	double all;			/* estimate of the t at which the shard fills the budget */
	double e;			/* -d log bytes / d t at `all' */
	double band, slack;		/* band: bytes that may stay unused; slack: kept free */
	double now, sent;		/* bytes of the k groups; now: as coded; sent: at `all' */
	double left;			/* sum of the weights of the uncoded groups */
	size_t fresh;			/* number of uncoded groups */
	double over, within;		/* largest t found over the budget; smallest within it */
	int rounds, whole;		/* rounds so far; times that all were coded again */
	int even;			/* 1: all groups were coded near `all' */
	size_t chosen;			/* groups that got the longer of two codes */
};

/* Begin a search; the caller has set the members `given'.  Return 0 or -ERR_SYS; call
 * rate_control_close in both cases. */
int rate_control_open(struct rate_control *r, struct err *e);
void rate_control_close(struct rate_control *r);

/* Return 1 if the caller must code the groups of `which', if any, and call again with the
 * new size; 0 at the end.  If r->bytes then exceeds the budget, no t was found that fits. */
int rate_control_next(struct rate_control *r, uint64_t bytes);

/* Estimate the slope -d log bytes / d t of n values that are coded in `bytes' bytes. */
double rate_control_steep(double bytes, double n);

#endif
