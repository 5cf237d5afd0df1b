/*
 * The one way in which estimates of a link are smoothed.
 */
#ifndef ACE_SMOOTH_H
#define ACE_SMOOTH_H

/* smooth(was, x, gain): the estimate `was' moves towards the sample x by the
 * part `gain' of the difference, in (0, 1].  With logarithms the mean is
 * geometric. */
static inline double
smooth(double was, double x, double gain)
{
	return was + gain * (x - was);
}

#endif
