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

#endif
