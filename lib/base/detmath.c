#include <math.h>

#include "base/detmath.h"

#define ELEM_LN2_HI 0.693147180369123816490	/* 32 bits, so k*HI is exact */
#define ELEM_LN2_LO 1.90821492927058770002e-10
#define ELEM_LOG2E 1.44269504088896340736

double
detmath_log(double x)
{
	int k, i;
	double m = frexp(x, &k), s, s2, sum = 0;

	if (m < 0.70710678118654752440) {
		m *= 2;
		k--;
	}
	/* log m = 2 atanh(s), |s| < 0.172: s^25 is below 1e-19 */
	s = (m - 1) / (m + 1);
	s2 = s * s;
	for (i = 23; i >= 1; i -= 2)
		sum = sum * s2 + 1.0 / i;
	return k * ELEM_LN2_HI + (2 * s * sum + k * ELEM_LN2_LO);
}

double
detmath_exp(double x)
{
	double k, r, sum = 1;
	int i;

	if (x < -700)
		return 0;
	if (x > 700)
		x = 700;
	k = floor(x * ELEM_LOG2E + 0.5);
	r = (x - k * ELEM_LN2_HI) - k * ELEM_LN2_LO;
	/* Taylor, |r| < 0.347: r^15/15! is below 1e-19 */
	for (i = 14; i >= 1; i--)
		sum = 1 + sum * r / i;
	return ldexp(sum, (int)k);
}

double
detmath_sigmoid(double x)
{
	double t = detmath_exp(-fabs(x));

	return x >= 0 ? 1 / (1 + t) : t / (1 + t);
}
