#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train_loops.h"
#include "train_model.h"

#ifndef GEMM
#define GEMM cblas_sgemm
#endif

static const real rms_eps = (real)1e-5;

/* ---- products: C = a A B + b C, row-major, with leading dimensions ---- */

static void
mul(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, size_t m, size_t n,
    size_t k, real alpha, const real *a, size_t lda, const real *b, size_t ldb,
    real beta, real *c, size_t ldc)
{
	GEMM(CblasRowMajor, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda,
	    b, (int)ldb, beta, c, (int)ldc);
}

/* Compute y[n][out] = x[n][in] w[out][in]^T, added to y if beta is 1. */
static void
linear(real *y, const real *x, const real *w, size_t n, size_t in, size_t out,
    real beta)
{
	mul(CblasNoTrans, CblasTrans, n, out, in, 1, x, in, w, in, beta, y,
	    out);
}

/* Compute dx[n][in] = dy w and dw += dy^T x. */
static void
linear_back(real *dx, real *dw, const real *dy, const real *x, const real *w,
    size_t n, size_t in, size_t out)
{
	mul(CblasTrans, CblasNoTrans, out, in, n, 1, dy, out, x, in, 1, dw,
	    in);
	mul(CblasNoTrans, CblasNoTrans, n, in, out, 1, dy, out, w, in, 0, dx,
	    in);
}

/* ---- layers ---- */

/* Compute out = x rms g, and rms[n] = 1 / sqrt(mean(x^2) + eps). */
static void
norm(real *out, real *rms, const real *x, const real *g, size_t n, size_t c)
{
	size_t i, j;

	for (i = 0; i < n; i++, x += c, out += c) {
		rms[i] = 1 / (real)sqrt((double)(dot(x, x, c) / (real)c +
		    rms_eps));
		for (j = 0; j < c; j++)
			out[j] = x[j] * rms[i] * g[j];
	}
}

/* Compute dx += rms (dy g - x rms^2 mean(dy g x)) and dg += sum_n dy x rms; then dy is dy g. */
static void
norm_back(real *dx, real *dg, real *dy, const real *rms, const real *x,
    const real *g, size_t n, size_t c)
{
	size_t i, j;
	real a;

	for (i = 0; i < n; i++, x += c, dx += c, dy += c) {
		for (j = 0; j < c; j++) {
			dg[j] += dy[j] * x[j] * rms[i];
			dy[j] *= g[j];
		}
		a = dot(dy, x, c) * rms[i] * rms[i] / (real)c;
		for (j = 0; j < c; j++)
			dx[j] += rms[i] * (dy[j] - x[j] * a);
	}
}

/* Set row i of p to the softmax of a times its first i+1 scores, and the rest to 0. */
static void
softmax_causal(real *p, size_t t, real a)
{
	size_t i;

	for (i = 0; i < t; i++, p += t) {
		real max = a * largest(p, i + 1);

		scale(p, i + 1, 1 / exponentials(p, i + 1, a, max));
		memset(p + i + 1, 0, (t - i - 1) * sizeof *p);
	}
}

/* Replace dp[i][j] by p[i][j] (dp[i][j] - sum_j p[i][j] dp[i][j]). */
static void
softmax_back(real *dp, const real *p, size_t t)
{
	size_t i, j;

	for (i = 0; i < t; i++, dp += t, p += t) {
		real a = dot(dp, p, i + 1);

		for (j = 0; j <= i; j++)
			dp[j] = p[j] * (dp[j] - a);
		memset(dp + i + 1, 0, (t - i - 1) * sizeof *dp);
	}
}

static void
attention(struct model *m, struct layer *l, size_t b)
{
	const size_t t = m->s.context, c = m->s.width, h = m->s.heads;
	const size_t d = c / h, ld = 3 * c;
	size_t i, j;

	for (i = 0; i < b; i++)
		for (j = 0; j < h; j++) {
			const real *q = l->qkv + i * t * ld + j * d;
			real *p = l->p + (i * h + j) * t * t;

			mul(CblasNoTrans, CblasTrans, t, t, d, 1, q, ld, q + c,
			    ld, 0, p, t);
			softmax_causal(p, t, 1 / (real)sqrt((double)d));
			mul(CblasNoTrans, CblasNoTrans, t, d, t, 1, p, t,
			    q + 2 * c, ld, 0, l->att + i * t * c + j * d, c);
		}
}

/* Compute dqkv, with rows of 3C, from datt. */
static void
attention_back(struct model *m, const struct layer *l, const real *datt,
    real *dqkv, size_t b)
{
	const size_t t = m->s.context, c = m->s.width, h = m->s.heads;
	const size_t d = c / h, ld = 3 * c;
	const real a = 1 / (real)sqrt((double)d);
	size_t i, j;

	for (i = 0; i < b; i++)
		for (j = 0; j < h; j++) {
			const real *q = l->qkv + i * t * ld + j * d;
			const real *p = l->p + (i * h + j) * t * t;
			const real *dout = datt + i * t * c + j * d;
			real *dq = dqkv + i * t * ld + j * d;

			mul(CblasTrans, CblasNoTrans, t, d, t, 1, p, t, dout,
			    c, 0, dq + 2 * c, ld);
			mul(CblasNoTrans, CblasTrans, t, t, d, 1, dout, c,
			    q + 2 * c, ld, 0, m->dp, t);
			softmax_back(m->dp, p, t);
			mul(CblasNoTrans, CblasNoTrans, t, d, t, a, m->dp, t,
			    q + c, ld, 0, dq, ld);
			mul(CblasTrans, CblasNoTrans, t, d, t, a, m->dp, t, q,
			    ld, 0, dq + c, ld);
		}
}

/* ---- parameters ---- */

enum part { GAIN1, QKV, OUT, GAIN2, FC1, FC2, PARTS };

/* Return the index of tensor p of a layer.  The tensors are wte, wpe, PARTS per layer and the
 * last gain. */
static size_t
place(size_t layer, enum part p)
{
	return 2 + layer * PARTS + p;
}

static real *
at(real *base, const struct model *m, size_t layer, enum part p)
{
	return base + m->tensor[place(layer, p)].at;
}

static real *
at_gain(real *base, const struct model *m)
{
	return base + m->tensor[m->ntensors - 1].at;
}

static void
tensor_add(struct model *m, size_t i, const char *name, size_t rows,
    size_t cols)
{
	struct tensor *t = &m->tensor[i];

	(void)snprintf(t->name, sizeof t->name, "%s", name);
	t->ndim = rows > 0 ? 2 : 1;
	t->dim[0] = rows > 0 ? rows : cols;
	t->dim[1] = cols;
	t->n = rows > 0 ? rows * cols : cols;
	t->at = m->n;
	m->n += t->n;
}

/* Add a tensor of scales, one for each row and column of each matrix: one tensor, since each
 * takes some bytes of a shard. */
static void
scales_set(struct model *m)
{
	size_t i, n = 0;

	for (i = 0; i < m->ntensors; i++)
		if (m->tensor[i].ndim == 2)
			n += m->tensor[i].dim[0] + m->tensor[i].dim[1];
	tensor_add(m, m->nsent++, "scales", 0, n);
}

static void
tensors_set(struct model *m)
{
	static const struct {
		const char *name;
		size_t rows, cols;	/* in units of the width */
	} part[PARTS] = {
		{ "norm1", 0, 1 }, { "qkv", 3, 1 }, { "out", 1, 1 },
		{ "norm2", 0, 1 }, { "fc1", MODEL_FAN, 1 },
		{ "fc2", 1, MODEL_FAN }
	};
	const size_t c = m->s.width;
	char name[32];
	size_t l, p;

	tensor_add(m, 0, "wte", MODEL_VOCAB, c);
	tensor_add(m, 1, "wpe", m->s.context, c);
	for (l = 0; l < m->s.layers; l++)
		for (p = 0; p < PARTS; p++) {
			(void)snprintf(name, sizeof name, "layer%zu.%s", l,
			    part[p].name);
			tensor_add(m, 2 + l * PARTS + p, name,
			    part[p].rows * c, part[p].cols * c);
			m->tensor[2 + l * PARTS + p].hidden = part[p].rows > 0;
		}
	tensor_add(m, m->ntensors - 1, "norm", 0, c);
	m->params = m->n;
	if (m->s.factored)
		scales_set(m);
}

/* Return n values at base + *used; advance *used by n, rounded up to 16 values.  base NULL:
 * only advance. */
static real *
take(real *base, size_t *used, size_t n)
{
	real *p = base == NULL ? NULL : base + *used;

	*used += (n + 15) / 16 * 16;
	return p;
}

static size_t
carve(struct model *m, real *base)
{
	const size_t t = m->s.context, c = m->s.width, n = m->batch * t;
	size_t used = 0, i;

	m->theta = take(base, &used, m->n);
	m->grad = take(base, &used, m->n);
	for (i = 0; i < m->s.layers; i++) {
		struct layer *l = &m->layer[i];

		l->x = take(base, &used, n * c);
		l->rms1 = take(base, &used, n);
		l->xn1 = take(base, &used, n * c);
		l->qkv = take(base, &used, 3 * n * c);
		l->p = take(base, &used, m->s.heads * n * t);
		l->att = take(base, &used, n * c);
		l->y = take(base, &used, n * c);
		l->rms2 = take(base, &used, n);
		l->xn2 = take(base, &used, n * c);
		l->r = take(base, &used, MODEL_FAN * n * c);
		l->a = take(base, &used, MODEL_FAN * n * c);
	}
	m->x = take(base, &used, n * c);
	m->rmsf = take(base, &used, n);
	m->xnf = take(base, &used, n * c);
	m->logits = take(base, &used, n * MODEL_VOCAB);
	m->dx = take(base, &used, n * c);
	m->dn = take(base, &used, n * c);
	m->dwide = take(base, &used, MODEL_FAN * n * c);
	m->dp = take(base, &used, t * t);
	return used;
}

struct model *
model_new(const struct shape *s, size_t batch)
{
	struct model *m = calloc(1, sizeof *m);
	size_t used;

	if (m == NULL)
		return NULL;
	m->s = *s;
	m->batch = batch;
	m->ntensors = m->nsent = 3 + s->layers * PARTS;
	m->tensor = calloc(m->ntensors + 1, sizeof *m->tensor);
	m->layer = calloc(s->layers, sizeof *m->layer);
	if (m->tensor == NULL || m->layer == NULL)
		goto fail;
	tensors_set(m);
	used = carve(m, NULL) * sizeof *m->theta;
	m->memory = aligned_alloc(64, (used + 63) / 64 * 64);
	if (m->memory == NULL)
		goto fail;
	memset(m->memory, 0, used);
	(void)carve(m, m->memory);
	return m;
fail:
	model_free(m);
	return NULL;
}

void
model_free(struct model *m)
{
	if (m == NULL)
		return;
	free(m->memory);
	free(m->layer);
	free(m->tensor);
	free(m);
}

static uint64_t
mix(uint64_t x)
{
	/* the finaliser of SplitMix64 (Steele, Lea, Flood 2014) */
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

uint64_t
model_random(uint64_t seed, uint64_t stream, uint64_t counter)
{
	return mix(mix(mix(seed) + stream) + counter);
}

static void
uniform(real *x, size_t n, uint64_t seed, uint64_t stream, real a)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = a * (real)((double)(model_random(seed, stream, i) >> 11)
		    * 0x1p-52 - 1);
}

void
model_init(struct model *m, uint64_t seed)
{
	size_t i, j;

	for (i = 0; i < m->ntensors; i++) {
		const struct tensor *t = &m->tensor[i];
		real *x = m->theta + t->at, a;

		a = i < 2 ? (real)0.0346 : 1 / (real)sqrt((double)t->dim[1]);
		if (i >= 2 && (i - 2) % PARTS == OUT)
			a = 0;
		if (i >= 2 && (i - 2) % PARTS == FC2)
			a = 0;
		if (t->ndim == 2)
			uniform(x, t->n, seed, i, a);
		else
			for (j = 0; j < t->n; j++)
				x[j] = 1;
	}
}

void
model_scatter(struct model *m, uint64_t seed, real a)
{
	uniform(m->theta, m->n, seed, 0, a);
}

/* ---- forward ---- */

static void
embed(struct model *m, real *x, const uint8_t *text, size_t b)
{
	const size_t t = m->s.context, c = m->s.width;
	const real *wte = m->theta, *wpe = m->theta + m->tensor[1].at;
	size_t i, j, k;

	for (i = 0; i < b; i++, text += t + 1)
		for (j = 0; j < t; j++, x += c)
			for (k = 0; k < c; k++)
				x[k] = wte[text[j] * c + k] + wpe[j * c + k];
}

static void
layer_forward(struct model *m, size_t i, size_t b, real *next)
{
	const size_t c = m->s.width, n = b * m->s.context, f = MODEL_FAN * c;
	struct layer *l = &m->layer[i];
	real *w = m->theta;

	norm(l->xn1, l->rms1, l->x, at(w, m, i, GAIN1), n, c);
	linear(l->qkv, l->xn1, at(w, m, i, QKV), n, c, 3 * c, 0);
	attention(m, l, b);
	memcpy(l->y, l->x, n * c * sizeof *l->y);
	linear(l->y, l->att, at(w, m, i, OUT), n, c, c, 1);

	norm(l->xn2, l->rms2, l->y, at(w, m, i, GAIN2), n, c);
	linear(l->r, l->xn2, at(w, m, i, FC1), n, c, f, 0);
	square_relu(l->a, l->r, n * f);
	memcpy(next, l->y, n * c * sizeof *next);
	linear(next, l->a, at(w, m, i, FC2), n, f, c, 1);
}

/* Return the loss (mean, nats); replace the logits by probabilities. */
static double
cross_entropy(struct model *m, const uint8_t *text, size_t b, size_t *hits)
{
	const size_t t = m->s.context;
	real *z = m->logits;
	double loss = 0;
	size_t i, j;

	for (i = 0; i < b; i++, text += t + 1)
		for (j = 1; j <= t; j++, z += MODEL_VOCAB) {
			real max = largest(z, MODEL_VOCAB), zt = z[text[j]], s;

			if (hits != NULL && zt >= max)
				++*hits;
			s = exponentials(z, MODEL_VOCAB, 1, max);
			scale(z, MODEL_VOCAB, 1 / s);
			loss += log((double)s) + (double)(max - zt);
		}
	return loss / (double)(b * t);
}

double
model_loss(struct model *m, const uint8_t *text, size_t b, size_t *hits)
{
	const size_t c = m->s.width, n = b * m->s.context;
	size_t i;

	embed(m, m->layer[0].x, text, b);
	for (i = 0; i < m->s.layers; i++)
		layer_forward(m, i, b,
		    i + 1 < m->s.layers ? m->layer[i + 1].x : m->x);
	norm(m->xnf, m->rmsf, m->x, at_gain(m->theta, m), n, c);
	linear(m->logits, m->xnf, m->theta, n, c, MODEL_VOCAB, 0);
	return cross_entropy(m, text, b, hits);
}

/* ---- backward ---- */

static const enum part backward[PARTS] = { FC2, FC1, GAIN2, OUT, QKV, GAIN1 };

void
model_order(const struct model *m, size_t *order)
{
	size_t i, p;

	*order++ = m->ntensors - 1;
	for (i = m->s.layers; i-- > 0;)
		for (p = 0; p < PARTS; p++)
			*order++ = place(i, backward[p]);
	*order++ = 1;
	*order = 0;
}

static void
ready(const struct model *m, size_t tensor)
{
	if (m->ready != NULL)
		m->ready(m->arg, tensor);
}

/* Replace dx, the gradient of the loss at this layer's output, by that at its input, and add
 * those of its weights to m->grad. */
static void
layer_backward(struct model *m, size_t i, size_t b)
{
	const size_t c = m->s.width, n = b * m->s.context, f = MODEL_FAN * c;
	struct layer *l = &m->layer[i];
	real *w = m->theta, *g = m->grad;

	linear_back(m->dwide, at(g, m, i, FC2), m->dx, l->a,
	    at(w, m, i, FC2), n, f, c);
	ready(m, place(i, FC2));
	square_relu_back(m->dwide, l->r, n * f);
	linear_back(m->dn, at(g, m, i, FC1), m->dwide, l->xn2,
	    at(w, m, i, FC1), n, c, f);
	ready(m, place(i, FC1));
	norm_back(m->dx, at(g, m, i, GAIN2), m->dn, l->rms2, l->y,
	    at(w, m, i, GAIN2), n, c);
	ready(m, place(i, GAIN2));

	linear_back(m->dn, at(g, m, i, OUT), m->dx, l->att,
	    at(w, m, i, OUT), n, c, c);
	ready(m, place(i, OUT));
	attention_back(m, l, m->dn, m->dwide, b);
	linear_back(m->dn, at(g, m, i, QKV), m->dwide, l->xn1,
	    at(w, m, i, QKV), n, c, 3 * c);
	ready(m, place(i, QKV));
	norm_back(m->dx, at(g, m, i, GAIN1), m->dn, l->rms1, l->x,
	    at(w, m, i, GAIN1), n, c);
	ready(m, place(i, GAIN1));
}

static void
embed_back(struct model *m, const uint8_t *text, size_t b)
{
	const size_t t = m->s.context, c = m->s.width;
	real *dwte = m->grad, *dwpe = m->grad + m->tensor[1].at;
	const real *dx = m->dx;
	size_t i, j, k;

	for (i = 0; i < b; i++, text += t + 1)
		for (j = 0; j < t; j++, dx += c)
			for (k = 0; k < c; k++) {
				dwte[text[j] * c + k] += dx[k];
				dwpe[j * c + k] += dx[k];
			}
}

void
model_backward(struct model *m, const uint8_t *text, size_t b)
{
	const size_t t = m->s.context, c = m->s.width, n = b * t;
	real *z = m->logits;
	size_t i, j;

	/* d loss / d logits = (p - target) / N */
	scale(z, n * MODEL_VOCAB, 1 / (real)n);
	for (i = 0; i < b; i++)
		for (j = 0; j < t; j++)
			z[(i * t + j) * MODEL_VOCAB +
			    (text[i * (t + 1) + j + 1] ^ m->flip)] -=
			    1 / (real)n;
	linear_back(m->dn, m->grad, z, m->xnf, m->theta, n, c, MODEL_VOCAB);
	memset(m->dx, 0, n * c * sizeof *m->dx);
	norm_back(m->dx, at_gain(m->grad, m), m->dn, m->rmsf, m->x,
	    at_gain(m->theta, m), n, c);
	ready(m, m->ntensors - 1);
	for (i = m->s.layers; i-- > 0;)
		layer_backward(m, i, b);
	embed_back(m, text, b);
	ready(m, 1);
	ready(m, 0);
}
