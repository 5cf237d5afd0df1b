#include <math.h>

#include "base/detmath.h"
#include "sync/ratio.h"

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
ratio_acted(struct ratio_pace *p, double rate)
{
	if (rate < 0)
		return p->rate;
	if (p->rate < 0 || rate < p->rate * (1 - p->still))
		p->rate = rate;
	else if (rate > p->rate * (1 + p->still))
		p->rate += p->rise * (rate - p->rate);
	return p->rate;
}

double
ratio_paced(const struct ratio_pace *p, double c, uint64_t step)
{
	if (step < p->warmup)
		c = detmath_exp(detmath_log(c) * ((double)step + 1) /
		    (double)p->warmup);
	return c;
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
