/* Calculate how much to compress for a given bandwidth, and how often to synchronise. */
#ifndef ACE_RATIO_H
#define ACE_RATIO_H

#include <stdint.h>

/*
 * Return the compression factor for a bandwidth.
 *
 *   c_k = c_min + (c_max - c_min) * exp(-beta * B_k)	(ACE-Sync, eq. 5)
 *
 * bandwidth  bit/s, >= 0		cmin, cmax  dense bytes / coded bytes,
 * beta       s/bit, >= 0		            1 <= cmin <= cmax
 *
 * c is a factor, large where the bandwidth is small.  The paper states no units; these
 * are ours.
 */
double ratio_factor(double cmin, double cmax, double beta, double bandwidth);

/* Return the beta that puts c midway between its ends at `half' bit/s:
 * ln 2 / half (ours). */
double ratio_beta(double half);

/* Return the byte budget of a shard of `values' f32 values at factor c:
 * floor(4 * values / c). */
uint64_t ratio_budget(uint64_t values, double c);

/*
 * The compression factor over time: it follows the measured link, ignores small
 * changes, and may begin low.
 *
 *   link      a lower rate is used immediately; a higher one is approached by half of
 *             the difference per shard; a change smaller than a twentieth is ignored
 *             (ours)
 *   warm-up   c_t = c^((t + 1) / warmup) for steps t < warmup: the share that
 *             is sent falls exponentially (Lin et al., Deep Gradient
 *             Compression, ICLR 2018, section 3.3)
 */

/* Return the rate to use after `rate' was measured while `was' was used; in bit/s, < 0: none
 * was measured. */
double ratio_acted(double was, double rate);

/* Return the factor for this step: c or, in the first `warmup' steps, from 1 to c.  c is at
 * least 1. */
double ratio_paced(uint64_t warmup, double c, uint64_t step);

/*
 * Control how often to synchronise: set the interval, in local steps, so that the
 * relative drift r stays near a target.
 *
 *   D_k = || theta_k - theta ||_2			(ACE-Sync, eq. 9)
 *   r_k = D_k / || theta ||
 *   H'  = clamp(H * sqrt(target / r_k), H/2, 2H), then into [min, max];
 *         when r_k > 4 * target: min
 *
 * The paper gives D_k but no rule for H; the controller is ours.
 */
struct interval {
	double target;		/* relative drift aimed at, > 0 */
	uint64_t min, max;	/* local steps, 1 <= min <= max */
};

/* Return the number of local steps until the next synchronisation, given the last
 * interval and the drift at its end.  The result is rounded to nearest.  A drift of 0
 * doubles the interval; if interval_force returns 1, the result is min. */
uint64_t interval_next(const struct interval *o, uint64_t steps, double drift);

/* Return 1 if drift > 4 * target or drift is NaN: then the caller must synchronise
 * now. */
int interval_force(const struct interval *o, double drift);

#endif
