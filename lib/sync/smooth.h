/*
 * What was measured, smoothed: the one way in which estimates of a link follow
 * it.
 */
#ifndef ACE_SMOOTH_H
#define ACE_SMOOTH_H

/* smooth(was, x, gain): an estimate `was' after the sample x, of which it takes
 * the part gain, in (0, 1].  Of logarithms it is the geometric mean. */
static inline double
smooth(double was, double x, double gain)
{
	return was + gain * (x - was);
}

#endif
