#include <math.h>

#include "base/err.h"
#include "sync/deco.h"

static int
known(double v, double lo, const char *what, struct err *e)
{
	if (v >= lo && v <= 1e15)
		return 0;
	return err_set(e, ERR_USAGE, "%s is %g, expected %g to 1e15", what, v, lo);
}

int
deco_check(const struct deco *d, struct err *e)
{
	int r;

	if ((r = known(d->compute, DECO_LEAST, "the time of a step in s", e)) < 0 ||
	    (r = known(d->bandwidth, 1e-15, "the bandwidth in bit/s", e)) < 0 ||
	    (r = known(d->latency, 0, "the latency in s", e)) < 0 ||
	    (r = known(d->size, 1e-15, "the size of a gradient in bits", e)) < 0 ||
	    (r = known(d->kc, 0, "kc", e)) < 0 || (r = known(d->kd, 0, "kd", e)) < 0)
		return r;
	if (!(d->min >= 1e-15 && d->min <= 1))
		return err_set(e, ERR_USAGE, "the smallest delta is %g, expected 1e-15 "
		    "to 1", d->min);
	if (d->most < 0 || d->most > DECO_MOST)
		return err_set(e, ERR_USAGE, "the largest tau is %d, expected 0 to "
		    "%d", d->most, DECO_MOST);
	return 0;
}

double
deco_time(const struct deco *d, struct deco_plan p)
{
	double x = p.delta * d->size / d->bandwidth;

	return fmax(fmax(d->compute, x),
	    (d->compute + d->latency + x) / (p.tau + 1));
}

/* Return v^n for n >= 0, by squaring: the same bits on every machine. */
static double
power(double v, int n)
{
	double r = 1;

	for (; n > 0; n >>= 1, v *= v)
		if (n & 1)
			r *= v;
	return r;
}

double
deco_phi(const struct deco *d, enum deco_phi phi, struct deco_plan p)
{
	double x = p.delta;

	switch (phi) {
	case DECO_S2:
		/* the common factor 1 - x is cancelled: it is 0 at x = 1 */
		if (p.tau == 0)
			return (1 - x) / x;
		return 1 / (x * power(1 - x, p.tau - 1));
	case DECO_ADDITIVE:
		return d->kc * (1 - x) / x + d->kd * p.tau;
	default:
		return (1 - x) / (x * power(1 - x / 2, p.tau));
	}
}

double
deco_steps(const struct deco *d, struct deco_plan p)
{
	return 1 + d->kc * (1 - p.delta) / p.delta + d->kd * p.tau;
}

struct deco_plan
deco_best(const struct deco *d)
{
	struct deco_plan best = { 0, 1 }, p;
	double a = d->bandwidth / d->size, t = d->compute, b = d->latency;
	double least = INFINITY, cost, x[6], slope;
	int i, n;

	for (p.tau = 0; p.tau <= d->most; p.tau++) {
		x[0] = 1;
		x[1] = d->min;
		x[2] = a * t;
		x[3] = a * (p.tau * t - b);
		n = 4;
		if (p.tau > 0)
			x[n++] = a * (t + b) / p.tau;
		slope = 1 - d->kc + d->kd * p.tau;
		if (slope > 0)
			x[n++] = sqrt(d->kc * (t + b) * a / slope);
		for (i = 0; i < n; i++) {
			p.delta = fmin(1, fmax(d->min, x[i]));
			cost = deco_steps(d, p) * deco_time(d, p);
			if (cost < least) {
				least = cost;
				best = p;
			}
		}
	}
	return best;
}

int
deco_bubbles(const struct deco *d, enum deco_phi phi, struct deco_plan *p)
{
	double a = d->bandwidth / d->size, t = d->compute, b = d->latency;
	double first = floor(b / t) + 1, last = ceil((b + fmin(t, 1 / a)) / t);
	double least = INFINITY, v;
	struct deco_plan q;
	int found = 0;

	last = fmin(last, d->most);
	for (; first <= last; first++) {
		q.tau = (int)first;
		q.delta = fmin(1, fmin(a * t, a * (q.tau * t - b)));
		if (q.delta < d->min)
			continue;
		v = deco_phi(d, phi, q);
		if (!found || v < least) {
			found = 1;
			least = v;
			*p = q;
		}
	}
	if (!found)
		*p = deco_best(d);
	return found;
}
