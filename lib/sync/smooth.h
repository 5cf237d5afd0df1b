/*
 * Exponential smoothing, for estimates of a link.
 */
#ifndef ACE_SMOOTH_H
#define ACE_SMOOTH_H

/* Move the estimate `was' towards the sample x by the part `gain', in (0, 1], of their
 * difference, and return the result.  With logarithms the result is the logarithm of a
 * geometric mean. */
static inline double
smooth(double was, double x, double gain)
{
	return was + gain * (x - was);
}

#endif
