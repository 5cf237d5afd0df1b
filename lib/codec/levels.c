#include <math.h>

#include "base/bytes.h"
#include "codec/levels.h"

enum { STEPS = 16 };

static double
wide(uint16_t h)
{
	return (double)bytes_f32((uint32_t)h << 16);
}

uint16_t
levels_bf16(double v)
{
	uint32_t u = bytes_u32(v < 0x1.fep127 ? (float)v : 0x1.fep127f);

	u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return (uint16_t)(u < LEVELS_TOP ? u : LEVELS_TOP);
}

void
levels_make(struct levels *l)
{
	double v = wide(l->a);
	unsigned j;

	for (j = 0; j < l->n; j++) {
		l->v[j] = v < 0x1.fffffep127 ? (float)v : 0x1.fffffep127f;
		v *= wide(l->r);
	}
}

/* Split m[k] into two clusters. Return the mean of the lower one; set *upper to the other
 * mean. */
static double
two_means(const float *m, size_t k, double mean, double *upper)
{
	double t = mean, last = 0, sum[2], low = mean;
	size_t i, count;
	int step;

	*upper = mean;
	for (step = 0; step < STEPS && t != last; step++) {
		last = t;
		sum[0] = sum[1] = 0;
		for (i = count = 0; i < k; i++) {
			sum[(double)m[i] > t] += (double)m[i];
			count += (double)m[i] > t;
		}
		if (count == 0 || count == k)
			break;
		*upper = sum[1] / (double)count;
		low = sum[0] / (double)(k - count);
		t = (low + *upper) / 2;
	}
	return low;
}

static void
thresholds(const struct levels *l, float t[LEVELS_MAX])
{
	unsigned j;

	for (j = 0; j + 1 < l->n; j++)
		t[j] = (float)(((double)l->v[j] + (double)l->v[j + 1]) / 2);
}

static unsigned
nearest(const struct levels *l, const float t[LEVELS_MAX], float m)
{
	unsigned j, q = 0;

	for (j = 0; j + 1 < l->n; j++)
		q += m > t[j];
	return q;
}

/* Set *l to eight levels that begin at a with ratio r. Return the sum of their squared
 * errors. */
static double
eight(struct levels *l, double a, double r, const float *m, size_t k)
{
	float t[LEVELS_MAX];
	double sum = 0, d;
	size_t i;

	l->a = levels_bf16(a);
	l->r = levels_bf16(r);
	levels_make(l);
	thresholds(l, t);
	for (i = 0; i < k; i++) {
		d = (double)m[i] - (double)l->v[nearest(l, t, m[i])];
		sum += d * d;
	}
	return sum;
}

static double
eighth(double x)
{
	return sqrt(sqrt(sqrt(x)));
}

/* Return about x^(1/7), as 1/7 = 1/8 + 1/64 + ..., by square roots, which are the same on
 * every machine. */
static double
seventh(double x)
{
	double root = 1;
	int i;

	for (i = 0; i < 7; i++) {
		x = eighth(x);
		root *= x;
	}
	return root;
}

static void
fit_eight(struct levels *l, double low, double high, const float *m, size_t k)
{
	double r = low > 0 ? eighth(high / low) : 1;
	double ends = low > 0 ? seventh(high / low) : 1;
	struct levels other = *l;
	double error = eight(l, low * sqrt(r), r, m, k);

	/* levels from low to high are better if a few large magnitudes dominate the
	 * error */
	if (eight(&other, low, ends, m, k) < error)
		*l = other;
}

void
levels_fit(struct levels *l, const float *m, size_t k)
{
	double sum = 0, low = (double)m[0], high = low, a, r = 1;
	size_t i;

	for (i = 0; i < k; i++) {
		sum += (double)m[i];
		low = (double)m[i] < low ? (double)m[i] : low;
		high = (double)m[i] > high ? (double)m[i] : high;
	}
	if (l->n == LEVELS_MAX) {
		fit_eight(l, low, high, m, k);
		return;
	}
	a = sum / (double)k;
	if (l->n == 2) {
		a = two_means(m, k, a, &high);
		/* if the ratio would exceed LEVELS_TOP, keep only the upper level
		 * exact */
		if (a < high / wide(LEVELS_TOP))
			a = high / wide(LEVELS_TOP);
	}
	l->a = levels_bf16(a);
	if (l->n == 2)
		r = l->a > 0 ? high / wide(l->a) : 1;
	l->r = levels_bf16(r);
	levels_make(l);
}

void
levels_code(const struct levels *l, const float *m, size_t k, uint16_t *c)
{
	float t[LEVELS_MAX];
	size_t i;

	thresholds(l, t);
	for (i = 0; i < k; i++)
		c[i] = (uint16_t)nearest(l, t, m[i]);
}
