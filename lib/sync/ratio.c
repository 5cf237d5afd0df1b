#include "base/detmath.h"
#include "sync/ratio.h"
#include "sync/smooth.h"

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
		p->rate = smooth(p->rate, rate, p->rise);
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
