#include <math.h>

#include "base/detmath.h"
#include "sync/ratio.h"

#define RATIO_RISE 0.5		/* share of the difference to a higher rate */
#define RATIO_STILL 0.05	/* share of the rate below which a change is ignored */

double
ratio_factor(double cmin, double cmax, double beta, double bandwidth)
{
	return cmin + (cmax - cmin) * detmath_exp(-beta * bandwidth);
}

double
ratio_beta(double half)
{
	return detmath_log(2) / half;
}

uint64_t
ratio_budget(uint64_t values, double c)
{
	return (uint64_t)(4.0 * (double)values / c);
}

double
ratio_acted(double was, double rate)
{
	if (rate < 0)
		return was;
	if (was < 0 || rate < was * (1 - RATIO_STILL))
		return rate;
	return rate > was * (1 + RATIO_STILL) ? was + RATIO_RISE * (rate - was) : was;
}

double
ratio_paced(uint64_t warmup, double c, uint64_t step)
{
	return step >= warmup ? c :
	    detmath_exp(detmath_log(c) * ((double)step + 1) / (double)warmup);
}

uint64_t
interval_next(const struct interval *o, uint64_t steps, double drift)
{
	double h = (double)steps, f = 2;

	if (interval_force(o, drift))
		return o->min;
	if (drift > 0)
		f = sqrt(o->target / drift);
	f = f < 0.5 ? 0.5 : f > 2 ? 2 : f;
	h = floor(h * f + 0.5);
	if (h < (double)o->min)
		return o->min;
	return h > (double)o->max ? o->max : (uint64_t)h;
}

int
interval_force(const struct interval *o, double drift)
{
	return !(drift <= 4 * o->target);
}
