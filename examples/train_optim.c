#include <math.h>
#include <stdlib.h>

#include "train_optim.h"

struct optim *
optim_new(size_t n)
{
	struct optim *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	o->n = n;
	o->m = calloc(n, sizeof *o->m);
	o->v = calloc(n, sizeof *o->v);
	o->outer = calloc(n, sizeof *o->outer);
	if (o->m == NULL || o->v == NULL || o->outer == NULL) {
		optim_free(o);
		return NULL;
	}
	return o;
}

void
optim_free(struct optim *o)
{
	if (o == NULL)
		return;
	free(o->m);
	free(o->v);
	free(o->outer);
	free(o);
}

double
optim_rate(const struct optim_rule *r, size_t t)
{
	double x;

	if (t < r->warmup)
		return r->rate * (double)(t + 1) / (double)r->warmup;
	if (t >= r->steps)
		return r->rate * r->last;
	x = (double)(t - r->warmup) / (double)(r->steps - r->warmup);
	return r->rate * (r->last + (1 - r->last) * 0.5 *
	    (1 + cos(3.14159265358979 * x)));
}

static void
clip(float *g, size_t n, double most)
{
	double s = 0;
	float a;
	size_t i;

	for (i = 0; i < n; i++)
		s += (double)g[i] * (double)g[i];
	if (most <= 0 || s <= most * most)
		return;
	a = (float)(most / sqrt(s));
	for (i = 0; i < n; i++)
		g[i] *= a;
}

void
optim_step(struct optim *o, const struct optim_rule *r, struct model *m)
{
	const float b1 = (float)r->beta1, b2 = (float)r->beta2;
	const double rate = optim_rate(r, o->t);
	const double t = (double)(o->t + 1);
	const float a = (float)(rate / (1 - pow(r->beta1, t)));
	const float c = (float)(1 / (1 - pow(r->beta2, t)));
	size_t i, j;

	clip(m->grad, m->n, r->clip);
	for (i = 0; i < m->ntensors; i++) {
		const struct tensor *s = &m->tensor[i];
		const float keep = s->ndim == 2 ?
		    (float)(1 - rate * r->decay) : 1.0f;

		for (j = s->at; j < s->at + s->n; j++) {
			const float g = m->grad[j];

			o->m[j] = b1 * o->m[j] + (1 - b1) * g;
			o->v[j] = b2 * o->v[j] + (1 - b2) * (g * g);
			m->theta[j] = keep * m->theta[j] - a * o->m[j] /
			    (sqrtf(c * o->v[j]) + 1e-8f);
		}
	}
	o->t++;
}

void
optim_outer(struct optim *o, const struct optim_rule *r, float *theta,
    const float *start, const float *delta)
{
	const float mu = (float)r->outer_momentum, a = (float)r->outer_rate;
	size_t i;

	for (i = 0; i < o->n; i++) {
		o->outer[i] = mu * o->outer[i] + delta[i];
		theta[i] = start[i] - a * (delta[i] + mu * o->outer[i]);
	}
}
