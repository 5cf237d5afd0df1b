#include <math.h>
#include <stdlib.h>

#include "train_mean.h"

int
mean_init(struct mean *m, double keep, size_t n)
{
	m->keep = keep;
	m->of = 0;
	m->n = n;
	m->x = keep > 0 ? calloc(n, sizeof *m->x) : NULL;
	return keep > 0 && m->x == NULL ? -1 : 0;
}

void
mean_release(struct mean *m)
{
	free(m->x);
}

void
mean_add(struct mean *m, const float *theta, size_t h)
{
	const double a = pow(m->keep, (double)h);
	size_t i;

	if (m->x == NULL)
		return;
	for (i = 0; i < m->n; i++)
		m->x[i] = (float)(a * (double)m->x[i] +
		    (1 - a) * (double)theta[i]);
	m->of = a * m->of + 1 - a;
}

void
mean_get(const struct mean *m, float *theta)
{
	size_t i;

	for (i = 0; m->of > 0 && i < m->n; i++)
		theta[i] = (float)((double)m->x[i] / m->of);
}
