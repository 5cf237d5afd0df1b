#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train_muon.h"
#include "train_optim.h"

struct optim *
optim_new(const struct model *m)
{
	struct optim *o = calloc(1, sizeof *o);
	const size_t n = m->n;
	size_t i, most = 0;

	if (o == NULL)
		return NULL;
	for (i = 0; i < m->ntensors; i++)
		most = m->tensor[i].n > most ? m->tensor[i].n : most;
	o->n = m->params;
	o->scratch = calloc(MUON_SCRATCH(most), sizeof *o->scratch);
	o->m = calloc(n, sizeof *o->m);
	o->v = calloc(n, sizeof *o->v);
	o->outer = calloc(n, sizeof *o->outer);
	if (o->m == NULL || o->v == NULL || o->outer == NULL ||
	    o->scratch == NULL) {
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
	free(o->scratch);
	free(o);
}

double
optim_share(const struct optim_rule *r, size_t t)
{
	double x;

	if (t < r->warmup)
		return (double)(t + 1) / (double)r->warmup;
	if (t >= r->steps)
		return r->last;
	x = (double)(t - r->warmup) / (double)(r->steps - r->warmup);
	return r->last + (1 - r->last) * 0.5 * (1 + cos(3.14159265358979 * x));
}

void
optim_clip(float *g, size_t n, double most)
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

int
optim_frozen(const struct optim *o, const struct optim_rule *r)
{
	return r->frozen > 0 && o->t >= r->frozen;
}

void
optim_momentum(const struct optim *o, const struct optim_rule *r, float *g)
{
	const float b1 = (float)r->beta1;
	size_t i;

	for (i = 0; i < o->n; i++)
		g[i] = b1 * o->m[i] + (1 - b1) * g[i];
}

static void
adamw(struct optim *o, const struct optim_rule *r, const struct tensor *s,
    float *theta, float *grad)
{
	const float b1 = (float)r->beta1, b2 = (float)r->beta2;
	const double rate = r->rate * optim_share(r, o->t);
	const int frozen = optim_frozen(o, r);
	const double t = (double)(o->t + 1);
	const float a = (float)(rate / (1 - pow(r->beta1, t)));
	const float c = (float)(1 / (1 - pow(r->beta2,
	    frozen ? (double)r->frozen : t)));
	const float keep = s->ndim == 2 ? (float)(1 - rate * r->decay) : 1.0f;
	size_t j;

	for (j = s->at; j < s->at + s->n; j++) {
		const float g = grad[j];

		o->m[j] = frozen ? g : b1 * o->m[j] + (1 - b1) * g;
		if (!frozen)
			o->v[j] = b2 * o->v[j] + (1 - b2) * (g * g);
		theta[j] = keep * theta[j] - a * o->m[j] /
		    (sqrtf(c * o->v[j]) + 1e-8f);
	}
}

/* Take Muon's step for a matrix; grad is overwritten. */
static void
muon_step(struct optim *o, const struct optim_rule *r, const struct tensor *s,
    float *theta, float *grad)
{
	const double rate = r->muon * optim_share(r, o->t);
	const float keep = (float)(1 - rate * r->decay);
	const double tall = (double)s->dim[0] / (double)s->dim[1];
	const float a = (float)(rate * sqrt(tall > 1 ? tall : 1));
	const float momentum = (float)r->momentum;
	float *g = grad + s->at, *m = o->m + s->at;
	size_t j;

	for (j = 0; j < s->n; j++) {
		m[j] = momentum * m[j] + g[j];
		g[j] += momentum * m[j];
	}
	muon_orthogonal(g, g, s->dim[0], s->dim[1], o->scratch);
	for (j = 0; j < s->n; j++)
		theta[s->at + j] = keep * theta[s->at + j] - a * g[j];
}

static void
sign_step(struct optim *o, const struct optim_rule *r, const struct tensor *s,
    float *theta, float *grad)
{
	const double rate = r->rate * optim_share(r, o->t);
	const float keep = s->ndim == 2 ? (float)(1 - rate * r->decay) : 1.0f;
	const float a = (float)rate;
	size_t j;

	for (j = s->at; j < s->at + s->n; j++)
		theta[j] = keep * theta[j] - (grad[j] > 0 ? a :
		    grad[j] < 0 ? -a : 0);
}

void
optim_step(struct optim *o, const struct optim_rule *r, struct model *m)
{
	size_t i;

	if (!r->sign && !optim_frozen(o, r))
		optim_clip(m->grad, m->n, r->clip);
	for (i = 0; i < m->ntensors; i++)
		if (!m->tensor[i].still)
			(r->sign ? sign_step : r->muon > 0 &&
			    m->tensor[i].hidden ? muon_step : adamw)(o, r,
			    &m->tensor[i], m->theta, m->grad);
	o->t++;
}

void
optim_copy(struct optim *to, const struct optim *from)
{
	memcpy(to->m, from->m, from->n * sizeof *to->m);
	memcpy(to->v, from->v, from->n * sizeof *to->v);
	memcpy(to->outer, from->outer, from->n * sizeof *to->outer);
	to->t = from->t;
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

static void
realign(struct optim *o, const struct optim_rule *r, const struct tensor *s,
    float *dir, size_t first, size_t h, const float *start, const float *delta,
    double share)
{
	const double tall = (double)s->dim[0] / (double)s->dim[1];
	double a = 0, keep = 1, rate;
	size_t i;

	for (i = first; i < first + h; i++) {
		rate = r->muon * optim_share(r, i);
		a = a * (1 - rate * r->decay) + rate * sqrt(tall > 1 ? tall : 1);
		keep *= 1 - rate * r->decay;
	}
	for (i = s->at; i < s->at + s->n; i++)
		dir[i] = (float)(((double)delta[i] - (1 - keep) * (double)start[i]) / a);
	muon_turn(o->m + s->at, dir + s->at, (float)share, s->dim[0], s->dim[1],
	    o->scratch);
}

void
optim_realign(struct optim *o, const struct optim_rule *r, struct model *model,
    size_t first, size_t h, const float *start, const float *delta, double share)
{
	size_t i;

	for (i = 0; i < model->ntensors; i++)
		if (model->tensor[i].hidden && !model->tensor[i].still)
			realign(o, r, &model->tensor[i], model->grad, first, h, start,
			    delta, share);
}

void
optim_average(struct optim *const *o, size_t k, size_t n)
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
