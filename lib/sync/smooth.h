/*
 * Exponential smoothing, used for all estimates of a link.
 */
#ifndef ACE_SMOOTH_H
#define ACE_SMOOTH_H

/* Return the estimate `was' after it moved towards the sample x by the part `gain', in
 * (0, 1], of their difference.  Given logarithms, it yields a geometric mean's
 * logarithm. */
static inline double
smooth(double was, double x, double gain)
{
	return was + gain * (x - was);
}

#endif
