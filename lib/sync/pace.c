#include "base/detmath.h"
#include "sync/pace.h"
#include "sync/smooth.h"

double
pace_rate(struct pace *p, double rate)
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
pace_factor(const struct pace *p, double c, uint64_t step)
{
	if (step < p->warmup)
		c = detmath_exp(detmath_log(c) * ((double)step + 1) /
		    (double)p->warmup);
	return c;
}
