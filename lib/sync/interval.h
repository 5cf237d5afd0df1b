/*
 * How often to synchronise: the interval in local steps, controlled so that the
 * relative drift r stays near a target.
 *
 *   D_k = || theta_k - theta ||_2			(ACE-Sync, eq. 9)
 *   r_k = D_k / || theta ||
 *   H'  = clamp(H * sqrt(target / r_k), H/2, 2H), then into [min, max];
 *         min at once when r_k > 4 * target
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

/* interval_drift(d2, t2): sqrt(d2 / t2) from sums of squares; 0 when the
 * model's is 0. */
double interval_drift(double d2, double t2);

/* interval_next(o, steps, drift): local steps until the next synchronisation,
 * given the last interval and the drift it led to.  Rounds to nearest; a drift
 * of 0 doubles, one that interval_force sees is answered with the least. */
uint64_t interval_next(const struct interval *o, uint64_t steps, double drift);

/* interval_force(o, drift): 1 when drift > 4 * target, or not a number:
 * synchronise now. */
int interval_force(const struct interval *o, double drift);

/* interval_weight(samples, age, age0, rho, drift): what a device that is late
 * or has drifted counts in the mean, before normalising (ours):
 *   samples * exp(-age / age0) / (1 + rho * drift) */
double interval_weight(double samples, double age, double age0, double rho,
    double drift);

#endif
