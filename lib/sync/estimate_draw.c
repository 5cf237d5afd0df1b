#include <math.h>

#include "sync/estimate_draw.h"

enum { TERN_BLOCK = 320, TERN_CLIP = 1, TERN_MSE = 2, TERN_STEPS = 12 };
enum { NATURAL_DEPTH = 127 };		/* ace-stream(5) */

/* Stochastic rounding to multiples of the norm / levels. */
double
estimate_draw_qsgd(const struct estimate *m, double levels)
{
	double unit = sqrt(m->sumsq) / levels, sum = 0, f;
	unsigned i;

	for (i = 0; i < m->points && unit > 0; i++) {
		f = m->x[i] / unit;
		f -= floor(f);
		sum += m->w[i] * unit * unit * f * (1 - f);
	}
	return sum;
}

/* ---- natural ---- */

/* x between 2^k, returned, and its double; *up: P of the double. */
static double
power(double x, int *k, double *up)
{
	double f = frexp(x, k);

	*k -= 1;
	*up = 2 * f - 1;
	return ldexp(1, *k);
}

double
estimate_draw_natural(const struct estimate *m)
{
	double sum = 0, up, low;
	unsigned i;
	int k;

	for (i = 0; i < m->points; i++) {
		low = power(m->x[i], &k, &up);
		sum += m->w[i] * low * low * up * (1 - up);
	}
	return sum;
}

int64_t
estimate_draw_natural_rate(const struct estimate *m)
{
	double count[NATURAL_DEPTH + 1] = { 0 }, up, bytes;
	unsigned i, d;
	int top, k;

	if (m->points == 0)
		return 0;
	(void)power(m->max, &top, &up);
	count[0] = m->n - m->nonzero;
	for (i = 0; i < m->points; i++) {
		(void)power(m->x[i], &k, &up);
		d = (unsigned)(top - k) + 2;
		d = d < NATURAL_DEPTH ? d : NATURAL_DEPTH;
		count[d] += m->w[i] * (1 - up);
		count[d - 1] += m->w[i] * up;
	}
	/* each has two signs in the table */
	bytes = estimate_coded(m, count, NATURAL_DEPTH) + 2 * STAT_BINS;
	return 2 + (int64_t)fmin(bytes, m->n);
}

/* ---- tern ---- */

/* A block whose largest is x[i], the rest drawn from the points from i on:
 * sums of w, w x, w x^2 of the points from each on. */
struct tern {
	double n[ESTIMATE_POINTS + 1], sum[ESTIMATE_POINTS + 1],
	    sum2[ESTIMATE_POINTS + 1];
};

/* The error of a value of such a block that is -s, 0 or s, nearest. */
static double
nearest(const struct estimate *m, const struct tern *t, unsigned i)
{
	double rest = t->n[i] + m->n - m->nonzero;
	double few = rest > 0 ? (TERN_BLOCK - 1) / rest : 0, all, n, sum, s, last;
	unsigned j = i;
	int k;

	all = m->x[i] * m->x[i] + few * t->sum2[i];
	s = 1.224 * sqrt(all / TERN_BLOCK);
	n = sum = 0;
	for (k = 0, last = 0; k < TERN_STEPS && s != last; k++) {
		last = s;
		for (j = i; j < m->points && m->x[j] > s / 2; j++)
			;
		n = 1 + few * (t->n[i] - t->n[j]);
		sum = m->x[i] + few * (t->sum[i] - t->sum[j]);
		s = sum / n;
	}
	return (all - 2 * s * sum + n * s * s) / TERN_BLOCK;
}

/* Of one that is s with P(|x| / s), at most 1. */
static double
drawn(const struct estimate *m, const struct tern *t, unsigned i,
    unsigned mode)
{
	double rest = t->n[i] + m->n - m->nonzero;
	double few = rest > 0 ? (TERN_BLOCK - 1) / rest : 0, s = m->x[i], error;
	unsigned j = i;

	if (mode == TERN_CLIP)
		s = fmin(s, 2.5 * sqrt((m->x[i] * m->x[i] + few * t->sum2[i]) /
		    TERN_BLOCK));
	for (; j < m->points && m->x[j] > s; j++)
		;
	/* those above s are s, those below err by x (s - x) */
	error = t->sum2[i] - t->sum2[j] - 2 * s * (t->sum[i] - t->sum[j]) +
	    s * s * (t->n[i] - t->n[j]) + s * t->sum[j] - t->sum2[j];
	return ((m->x[i] - s) * (m->x[i] - s) + few * error) / TERN_BLOCK;
}

/* Over the distribution of the largest of a block, P(max <= x) = F(x)^320. */
double
estimate_draw_tern(const struct estimate *m, unsigned mode)
{
	double above = 0, was = 1, f, p, error = 0;
	struct tern t;
	unsigned i;

	t.n[m->points] = t.sum[m->points] = t.sum2[m->points] = 0;
	for (i = m->points; i-- > 0;) {
		t.n[i] = t.n[i + 1] + m->w[i];
		t.sum[i] = t.sum[i + 1] + m->w[i] * m->x[i];
		t.sum2[i] = t.sum2[i + 1] + m->w[i] * m->x[i] * m->x[i];
	}
	for (i = 0; i < m->points; i++) {
		above += m->w[i];
		f = above < m->n ? 1 - above / m->n : 0;
		p = f * f * f * f * f;			/* 320 = 5 * 64 */
		p *= p, p *= p, p *= p, p *= p, p *= p, p *= p;
		error += (was - p) * (mode == TERN_MSE ? nearest(m, &t, i) :
		    drawn(m, &t, i, mode));
		was = p;
	}
	return fmin(error * m->n, mode == TERN_MSE ? m->sumsq : HUGE_VAL);
}
