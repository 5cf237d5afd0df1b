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
#ifndef ACE_PACE_H
#define ACE_PACE_H

#include <stdint.h>

struct pace {
	/* given */
	double rise, still;		/* in (0, 1]; in [0, 1) */
	uint64_t warmup;		/* 0: none */
	/* found: what a state keeps */
	double rate;			/* bit/s acted on; < 0: none yet */
};
#define PACE_INIT { 0.5, 0.05, 0, -1 }

/* pace_rate(p, rate): the rate to act on; rate in bit/s, < 0 unknown, which
 * changes nothing. */
double pace_rate(struct pace *p, double rate);

/* pace_factor(p, c, step): the factor for that step in place of c >= 1; at
 * least 1. */
double pace_factor(const struct pace *p, double c, uint64_t step);

#endif
