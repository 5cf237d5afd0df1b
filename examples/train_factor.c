#include <math.h>
#include <string.h>

#include "train_factor.h"

/* A scale is stored as UNIT times its binary logarithm.  UNIT is large beside the differences of
 * parameters, so that the scales are sent early even at few bits. */
static const double UNIT = 0.25, POWER = 0.25, LEAST = 1e-3;

/* Return the scale that x stands for: a power of 2^(1/2), with the same bits on every machine. */
static float
scale_of(float x)
{
	long k = lround(2 / UNIT * (double)x);

	k = k < -8 ? -8 : k > 8 ? 8 : k;
	return ldexpf((k & 1) != 0 ? 0x1.6a09e6p0f : 1, (int)((k - (k & 1)) / 2));
}

int
factor_due(size_t n)
{
	return n > 0 && (n & (n - 1)) == 0 && n % 3 == 1;
}

/* Set out[n] to common - own, where own are the scales of rows or columns with these sums of
 * squares. */
static void
measure(float *out, const float *sum, const float *common, size_t n)
{
	double mean = 0, share;
	size_t i;

	for (i = 0; i < n; i++)
		mean += (double)sum[i] / (double)n;
	for (i = 0; i < n; i++) {
		share = mean > 0 ? (double)sum[i] / mean : 1;
		share = share < LEAST ? LEAST : share > 1 / LEAST ? 1 / LEAST : share;
		out[i] = common[i] - (float)(UNIT * POWER * log2(share));
	}
}

void
factor_measure(const struct model *m, const float *square, const float *common, float *out)
{
	const struct tensor *t;
	size_t i, j, at = m->params;

	for (t = m->tensor; t < m->tensor + m->ntensors; t++) {
		float *row = out + at, *col = row + t->dim[0];

		if (t->ndim < 2)
			continue;
		memset(row, 0, t->dim[0] * sizeof *row);
		memset(col, 0, t->dim[1] * sizeof *col);
		for (i = 0; i < t->dim[0]; i++)
			for (j = 0; j < t->dim[1]; j++) {
				row[i] += square[t->at + i * t->dim[1] + j];
				col[j] += square[t->at + i * t->dim[1] + j];
			}
		measure(row, row, common + at, t->dim[0]);
		measure(col, col, common + at + t->dim[0], t->dim[1]);
		at += t->dim[0] + t->dim[1];
	}
}

void
factor_apply(const struct model *m, float *x, int back)
{
	const struct tensor *t;
	size_t i, j, at = m->params;

	for (t = m->tensor; m->n > m->params && t < m->tensor + m->ntensors; t++) {
		float *v = x + t->at;

		if (t->ndim < 2)
			continue;
		for (i = 0; i < t->dim[0]; i++)
			for (j = 0; j < t->dim[1]; j++, v++) {
				const float w = scale_of(m->theta[at + i]) *
				    scale_of(m->theta[at + t->dim[0] + j]);

				*v = back ? *v / w : *v * w;
			}
		at += t->dim[0] + t->dim[1];
	}
}

void
factor_update(struct model *m, float *common, const float *x, int use)
{
	size_t i;

	for (i = m->params; i < m->n; i++) {
		common[i] -= x[i];
		if (use)
			m->theta[i] = common[i];
	}
}

struct model
factor_without(const struct model *m)
{
	struct model plain = *m;

	plain.n = m->params;
	plain.nsent = m->ntensors;
	return plain;
}
