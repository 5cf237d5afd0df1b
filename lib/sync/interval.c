#include <math.h>

#include "sync/interval.h"

double
interval_drift(double d2, double t2)
{
	return t2 > 0 ? sqrt(d2 / t2) : 0;
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
