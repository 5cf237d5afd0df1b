/*
 * How the compression factor changes over time: it follows the measured link
 * without trembling, it may begin low, and it may be lowered while the
 * gradient's norm changes.
 *
 *   link      a rate that falls counts at once; of a rise, `rise' is taken at
 *             each shard; a change of less than `still' is none (ours)
 *   warm-up   c_t = c^((t + 1) / warmup) for steps t < warmup: the share that
 *             is sent falls exponentially (Lin et al., Deep Gradient
 *             Compression, ICLR 2018, section 3.3)
 *   critical  every `window' shards the norm of the window's gradients is
 *             compared with the last one's: a change of at least `eta' of it,
 *             or no last one, makes the window to come critical (Agarwal et
 *             al., Accordion, MLSys 2021, algorithm 1).  There the layers
 *             of a critical regime are compressed less; here the factor is
 *             divided by `ease' (ours).
 */
#ifndef ACE_PACE_H
#define ACE_PACE_H

#include <stdint.h>

struct pace {
	/* given */
	double rise, still;		/* in (0, 1]; in [0, 1) */
	uint64_t warmup, window;	/* 0: none */
	double eta, ease;		/* > 0; >= 1 */
	struct pace_seen {		/* found: what a state keeps */
		double rate;		/* bit/s acted on; < 0: none yet */
		double last;		/* sum of squares of the last window */
		double sum, shards;	/* of this one */
		double critical;	/* 1 or 0 */
	} seen;
};
enum { PACE_NUMBERS = sizeof(struct pace_seen) / sizeof(double) };
#define PACE_INIT { 0.5, 0.05, 0, 0, 0.5, 2, { -1, 0, 0, 0, 1 } }

/* pace_rate(p, rate): the rate to act on; rate in bit/s, < 0 unknown, which
 * changes nothing. */
double pace_rate(struct pace *p, double rate);

/* pace_factor(p, c, step): the factor for that step in place of c >= 1; at
 * least 1. */
double pace_factor(const struct pace *p, double c, uint64_t step);

/* pace_see(p, sumsq): a shard with that sum of squares has passed.  A sum that
 * is NaN, or beyond 1e300, begins a new window, which is critical. */
void pace_see(struct pace *p, double sumsq);

/* pace_check(p): 0 when p->seen is such as pace_see leaves behind, else -1. */
int pace_check(const struct pace *p);

#endif
