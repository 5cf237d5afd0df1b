#include <stdlib.h>
#include <string.h>

#include "train_drift.h"

int
drift_init(struct drift *d, int moments, int control, size_t k, size_t n)
{
	memset(d, 0, sizeof *d);
	d->moments = moments;
	d->k = k;
	d->n = n;
	if (!control)
		return 0;
	d->own = calloc(k * n, sizeof *d->own);
	d->all = calloc(n, sizeof *d->all);
	d->sum = calloc(n, sizeof *d->sum);
	return d->own != NULL && d->all != NULL && d->sum != NULL ? 0 : -1;
}

void
drift_release(struct drift *d)
{
	free(d->own);
	free(d->all);
	free(d->sum);
}

void
drift_gradient(struct drift *d, size_t i, float *g)
{
	const float *own;
	size_t j;

	if (d->own == NULL)
		return;
	own = d->own + i * d->n;
	for (j = 0; j < d->n; j++) {
		d->sum[j] += (double)g[j];
		g[j] += d->all[j] - own[j];
	}
	d->steps++;
}

void
drift_device(struct drift *d, size_t i)
{
	float *own;
	size_t j;

	if (d->own == NULL)
		return;
	own = d->own + i * d->n;
	for (j = 0; j < d->n; j++) {
		own[j] = (float)(d->sum[j] / (double)d->steps);
		d->sum[j] = 0;
	}
	d->steps = 0;
}

/* Give all optimisers the mean of their moments. */
static void
average_moments(struct optim **o, size_t k, size_t n)
{
	size_t i, j;

	for (j = 0; j < n; j++) {
		double m = 0, v = 0;

		for (i = 0; i < k; i++) {
			m += (double)o[i]->m[j] / (double)k;
			v += (double)o[i]->v[j] / (double)k;
		}
		for (i = 0; i < k; i++) {
			o[i]->m[j] = (float)m;
			o[i]->v[j] = (float)v;
		}
	}
}

void
drift_round(struct drift *d, struct optim **o)
{
	size_t i, j;

	if (d->moments)
		average_moments(o, d->k, d->n);
	for (j = 0; d->own != NULL && j < d->n; j++) {
		double c = 0;

		for (i = 0; i < d->k; i++)
			c += (double)d->own[i * d->n + j] / (double)d->k;
		d->all[j] = (float)c;
	}
}
