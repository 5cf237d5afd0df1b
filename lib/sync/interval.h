/*
 * Control how often to synchronise: set the interval, in local steps, so that the
 * relative drift r stays near a target.
 *
 *   D_k = || theta_k - theta ||_2			(ACE-Sync, eq. 9)
 *   r_k = D_k / || theta ||
 *   H'  = clamp(H * sqrt(target / r_k), H/2, 2H), then into [min, max];
 *         when r_k > 4 * target: min
 *
 * The paper gives D_k and no rule; the controller is ours.
 */
#ifndef ACE_INTERVAL_H
#define ACE_INTERVAL_H

#include <stdint.h>

struct interval {
	double target;		/* relative drift aimed at, > 0 */
	uint64_t min, max;	/* local steps, 1 <= min <= max */
};
#define INTERVAL_INIT { 0.01, 1, 1000 }

/* Return the relative drift sqrt(d2 / t2), from the sums of squares of the drift and of
 * the model; 0 when t2 is 0. */
double interval_drift(double d2, double t2);

/* Return the number of local steps until the next synchronisation, given the last
 * interval and the drift at its end.  Rounds to nearest.  A drift of 0 doubles the
 * interval; where interval_force returns 1 the result is min. */
uint64_t interval_next(const struct interval *o, uint64_t steps, double drift);

/* Return 1 when drift > 4 * target or drift is NaN: the caller must synchronise
 * now. */
int interval_force(const struct interval *o, double drift);

#endif
