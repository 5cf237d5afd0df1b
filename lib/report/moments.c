#include <math.h>

#include "kern/kern.h"
#include "report/moments.h"

void
moments_add(struct moments *m, const struct kern *k, const float *x, size_t n)
{
	struct moments g = MOMENTS_INIT;
	struct kern_stat s;
	double d;
	size_t i;

	k->stat(x, n, &s);
	g.n = n - s.nonfinite;
	g.nonzero = s.nonzero;
	g.sumsq = s.sumsq;
	g.max_abs = s.max_abs;
	g.mean = g.n != 0 ? s.sum / (double)g.n : 0;
	g.min = INFINITY;
	g.max = -INFINITY;
	for (i = 0; i < n; i++) {
		if (!isfinite(x[i])) {
			g.nan += isnan(x[i]) != 0;
			g.inf += isinf(x[i]) != 0;
			continue;
		}
		g.min = x[i] < g.min ? x[i] : g.min;
		g.max = x[i] > g.max ? x[i] : g.max;
		d = (double)x[i] - g.mean;
		g.m2 += d * d;
	}
	moments_merge(m, &g);
}

void
moments_zeros(struct moments *m, uint64_t n)
{
	struct moments g = MOMENTS_INIT;

	g.n = n;
	moments_merge(m, &g);
}

void
moments_merge(struct moments *m, const struct moments *o)
{
	double a = (double)m->n, b = (double)o->n, d = o->mean - m->mean;

	m->nan += o->nan;
	m->inf += o->inf;
	if (o->n == 0)
		return;
	m->min = m->n == 0 || o->min < m->min ? o->min : m->min;
	m->max = m->n == 0 || o->max > m->max ? o->max : m->max;
	m->max_abs = o->max_abs > m->max_abs ? o->max_abs : m->max_abs;
	m->mean = m->n == 0 ? o->mean : m->mean + d * (b / (a + b));
	m->m2 += o->m2 + (m->n == 0 ? 0 : d * d * (a * b / (a + b)));
	m->sumsq += o->sumsq;
	m->n += o->n;
	m->nonzero += o->nonzero;
}

double
moments_std(const struct moments *m)
{
	return m->n != 0 ? sqrt(m->m2 / (double)m->n) : 0;
}
