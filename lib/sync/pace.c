#include <math.h>

#include "base/detmath.h"
#include "sync/pace.h"
#include "sync/smooth.h"

double
pace_rate(struct pace *p, double rate)
{
	if (rate < 0)
		return p->seen.rate;
	if (p->seen.rate < 0 || rate < p->seen.rate * (1 - p->still))
		p->seen.rate = rate;
	else if (rate > p->seen.rate * (1 + p->still))
		p->seen.rate = smooth(p->seen.rate, rate, p->rise);
	return p->seen.rate;
}

double
pace_factor(const struct pace *p, double c, uint64_t step)
{
	if (p->window > 0 && p->seen.critical > 0)
		c /= p->ease;
	if (c < 1)
		c = 1;
	if (step < p->warmup)
		c = detmath_exp(detmath_log(c) * ((double)step + 1) /
		    (double)p->warmup);
	return c;
}

void
pace_see(struct pace *p, double sumsq)
{
	double was, is;

	if (p->window == 0)
		return;
	if (!(p->seen.sum + sumsq <= 1e300)) {	/* it diverges */
		p->seen.last = p->seen.sum = p->seen.shards = 0;
		p->seen.critical = 1;
		return;
	}
	p->seen.sum += sumsq;
	p->seen.shards++;
	if (p->seen.shards < (double)p->window)
		return;
	was = sqrt(p->seen.last);
	is = sqrt(p->seen.sum);
	p->seen.critical = !(was > 0) || fabs(was - is) >= p->eta * was;
	p->seen.last = p->seen.sum;
	p->seen.sum = p->seen.shards = 0;
}

int
pace_check(const struct pace *p)
{
	const struct pace_seen *s = &p->seen;

	if (!isfinite(s->rate) || !isfinite(s->last) || !isfinite(s->sum) ||
	    !isfinite(s->shards))
		return -1;
	return s->last < 0 || s->sum < 0 || s->shards < 0 ||
	    !(s->critical >= 0 && s->critical <= 1) ? -1 : 0;
}
