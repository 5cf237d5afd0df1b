/*
 * How hard to compress for a given bandwidth.
 */
#ifndef ACE_RATIO_H
#define ACE_RATIO_H

#include <stdint.h>

/*
 * ratio_factor(cmin, cmax, beta, bandwidth): the compression factor.
 *
 *   c_k = c_min + (c_max - c_min) * exp(-beta * B_k)	(ACE-Sync, eq. 5)
 *
 * bandwidth  bit/s, >= 0		cmin, cmax  dense bytes / coded bytes,
 * beta       s/bit, >= 0		            1 <= cmin <= cmax
 *
 * c is large where bandwidth is small: a factor, not a fraction.  The paper
 * states no units; these are ours.
 */
double ratio_factor(double cmin, double cmax, double beta, double bandwidth);

/* ratio_beta(half): the beta that puts c midway between its ends at `half'
 * bit/s: ln 2 / half (ours). */
double ratio_beta(double half);

/* ratio_budget(values, c): bytes for a shard of that many f32 values:
 * floor(4 * values / c). */
uint64_t ratio_budget(uint64_t values, double c);

/*
 * How the compression factor changes over time: it follows the measured link
 * without trembling, and it may begin low.
 *
 *   link      a rate that falls counts at once; of a rise, `rise' is taken at
 *             each shard; a change of less than `still' is none (ours)
 *   warm-up   c_t = c^((t + 1) / warmup) for steps t < warmup: the share that
 *             is sent falls exponentially (Lin et al., Deep Gradient
 *             Compression, ICLR 2018, section 3.3)
 */
struct ratio_pace {
	/* given */
	double rise, still;		/* in (0, 1]; in [0, 1) */
	uint64_t warmup;		/* 0: none */
	/* found: what a state keeps */
	double rate;			/* bit/s acted on; < 0: none yet */
};
#define RATIO_PACE_INIT { 0.5, 0.05, 0, -1 }

/* ratio_acted(p, rate): the rate to act on; rate in bit/s, < 0 unknown, which
 * changes nothing. */
double ratio_acted(struct ratio_pace *p, double rate);

/* ratio_paced(p, c, step): the factor for that step in place of c >= 1; at
 * least 1. */
double ratio_paced(const struct ratio_pace *p, double c, uint64_t step);

#endif
