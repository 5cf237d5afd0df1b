/*
 * A small training problem: a network with one hidden layer classifies inputs into ten
 * classes.
 *
 *   h = relu(W1 x + b1)      z = W2 h + b2      loss = -log softmax(z)[y]
 *
 * An input is 256 numbers whose scales fall with a power law.  The labels are those of a
 * random network of the same shape, except a tenth, which are random.  Each of the four
 * devices has its own samples, and more of some classes than of others.  Everything
 * depends on the seed alone.
 */
#ifndef EMU_PROBLEM_H
#define EMU_PROBLEM_H

#include <stdlib.h>
#include <string.h>

#include "normal.h"

enum {
	IN = 256, HIDDEN = 48, OUT = 10,
	W1 = 0, B1 = W1 + IN * HIDDEN, W2 = B1 + HIDDEN, B2 = W2 + HIDDEN * OUT,
	VALUES = B2 + OUT,
	DEVICES = 4, SAMPLES = 600, TRIED = 200, BATCH = 8
};

struct problem {
	float x[DEVICES][SAMPLES][IN];
	int y[DEVICES][SAMPLES];
	float start[VALUES];
};

/* Compute h and z (above) for the input x. w has W1 as [IN][HIDDEN], W2 as [HIDDEN][OUT]. */
static void
forward(const float *w, const float *x, float *h, float *z)
{
	size_t i, j;

	memcpy(h, w + B1, HIDDEN * sizeof(*h));
	for (i = 0; i < IN; i++)
		for (j = 0; j < HIDDEN; j++)
			h[j] += x[i] * w[W1 + i * HIDDEN + j];
	memcpy(z, w + B2, OUT * sizeof(*z));
	for (i = 0; i < HIDDEN; i++) {
		h[i] = h[i] > 0 ? h[i] : 0;
		for (j = 0; j < OUT; j++)
			z[j] += h[i] * w[W2 + i * OUT + j];
	}
}

/* Return the loss in nats for label y, and replace z by the probabilities. */
static double
surprise(float *z, int y)
{
	double s = 0, max = z[0], at = z[y];
	size_t j;

	for (j = 1; j < OUT; j++)
		max = z[j] > max ? z[j] : max;
	for (j = 0; j < OUT; j++)
		s += (z[j] = (float)exp(z[j] - max));
	for (j = 0; j < OUT; j++)
		z[j] = (float)(z[j] / s);
	return log(s) + max - at;
}

/* Set grad to the gradient of device k's batch at this step. Return the mean loss. */
static double
gradient(const struct problem *p, const float *w, uint64_t seed, size_t k,
    size_t step, float *grad)
{
	float h[HIDDEN], z[OUT], dh[HIDDEN];
	double loss = 0;
	uint32_t u[4];
	size_t b, i, j;

	memset(grad, 0, VALUES * sizeof(*grad));
	for (b = 0; b < BATCH; b++) {
		const float *x;
		size_t s;

		rng_block(seed, step, (uint32_t)k, (uint32_t)b, u);
		s = u[0] % SAMPLES;
		x = p->x[k][s];
		forward(w, x, h, z);
		loss += surprise(z, p->y[k][s]);
		z[p->y[k][s]] -= 1;
		for (j = 0; j < OUT; j++)
			grad[B2 + j] += z[j] /= (float)BATCH;
		for (i = 0; i < HIDDEN; i++) {
			for (dh[i] = 0, j = 0; j < OUT; j++) {
				dh[i] += z[j] * w[W2 + i * OUT + j];
				grad[W2 + i * OUT + j] += h[i] * z[j];
			}
			dh[i] = h[i] > 0 ? dh[i] : 0;
			grad[B1 + i] += dh[i];
		}
		for (i = 0; i < IN; i++)
			for (j = 0; j < HIDDEN; j++)
				grad[W1 + i * HIDDEN + j] += x[i] * dh[j];
	}
	return loss / (double)BATCH;
}

/* Return the mean loss of TRIED samples, taken from the devices in turn. */
static double
evaluate(const struct problem *p, const float *w)
{
	float h[HIDDEN], z[OUT];
	double loss = 0;
	size_t i;

	for (i = 0; i < TRIED; i++) {
		forward(w, p->x[i % DEVICES][i / DEVICES], h, z);
		loss += surprise(z, p->y[i % DEVICES][i / DEVICES]);
	}
	return loss / (double)TRIED;
}

static void
draw(float *w, uint64_t seed, uint32_t what)
{
	size_t i;

	for (i = 0; i < VALUES; i++)
		w[i] = (float)normal(seed, what, 0, (uint32_t)i) * (i < B1 ?
		    0.2f : i < W2 ? 0 : i < B2 ? 0.2f : 0);
}

/* Draw candidate n for sample s of device k. Return 1 if the device keeps it. */
static int
sample(struct problem *p, const float *teacher, uint64_t seed, size_t k,
    size_t s, uint32_t n)
{
	float *x = p->x[k][s], h[HIDDEN], z[OUT];
	uint32_t u[4], what = (uint32_t)(10 + k);
	size_t i, best = 0;

	for (i = 0; i < IN; i++)
		x[i] = (float)normal(seed, what, 0, n * IN + (uint32_t)i) *
		    3 / sqrtf(1 + (float)i);
	forward(teacher, x, h, z);
	for (i = 1; i < OUT; i++)
		if (z[i] > z[best])
			best = i;
	rng_block(seed, 20 + k, 0, n, u);
	p->y[k][s] = (int)(u[0] % 10 == 0 ? u[1] % OUT : best);
	return best % DEVICES == k || u[2] % 3 == 0;
}

static void
problem_make(struct problem *p, uint64_t seed)
{
	static float teacher[VALUES];
	uint32_t n;
	size_t k, s;

	draw(teacher, seed, 1);
	draw(p->start, seed, 2);
	for (k = 0; k < DEVICES; k++)
		for (s = 0, n = 0; s < SAMPLES; n++)
			s += (size_t)sample(p, teacher, seed, k, s, n);
}

#endif
