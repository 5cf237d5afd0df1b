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

/* Split m[k], whose mean is `mean', into two clusters. Return the mean of the lower one; set
 * *upper to the other mean. If all are equal, both are `mean'. */
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

void
levels_fit(struct levels *l, const float *m, size_t k)
{
	double sum = 0, a, high = 0, r = 1;
	size_t i;

	for (i = 0; i < k; i++)
		sum += (double)m[i];
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
	const float middle = l->n == 1 ? INFINITY :
	    (float)(((double)l->v[0] + (double)l->v[1]) / 2);
	size_t i;

	for (i = 0; i < k; i++)
		c[i] = m[i] > middle;
}
