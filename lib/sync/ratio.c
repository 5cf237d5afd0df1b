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
