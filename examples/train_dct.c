#include <cblas.h>
#include <math.h>

#include "train_dct.h"

/* The transform of n values, along one side of a tensor's blocks. */
struct side {
	int n;
	float c[DCT_SIDE * DCT_SIDE];	/* C, [n][n] */
};

static void
side_of(struct side *s, size_t length)
{
	int n = length < DCT_SIDE ? (int)length : DCT_SIDE, i, k;

	while (length % (size_t)n != 0)
		n--;
	if (s->n == n)
		return;		/* c already is the transform of n values */
	s->n = n;
	for (k = 0; k < n; k++)
		for (i = 0; i < n; i++)
			s->c[k * n + i] = (float)(sqrt((k > 0 ? 2.0 : 1.0) / n) *
			    cos(3.14159265358979323846 * (2 * i + 1) * k /
			    (2.0 * n)));
}

/* Compute z = a C1 x C2^T, or with back z = a C1^T x C2.  Rows of x are xs values apart,
 * and rows of z zs values. */
static void
block(const struct side *s1, const struct side *s2, int back, float a,
    const float *x, size_t xs, float *z, size_t zs)
{
	const enum CBLAS_TRANSPOSE left = back ? CblasTrans : CblasNoTrans;
	const enum CBLAS_TRANSPOSE right = back ? CblasNoTrans : CblasTrans;
	const int n1 = s1->n, n2 = s2->n;
	float t[DCT_SIDE * DCT_SIDE];

	cblas_sgemm(CblasRowMajor, left, CblasNoTrans, n1, n2, n1, a, s1->c, n1,
	    x, (int)xs, 0, t, n2);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, right, n1, n2, n2, 1, t, n2,
	    s2->c, n2, 0, z, (int)zs);
}

static void
transform(const struct model *m, int back, float a, const float *from, float *to)
{
	struct side s1 = { .n = 0 }, s2 = { .n = 0 };
	size_t k, i, j, at;

	for (k = 0; k < m->ntensors; k++) {
		const struct tensor *t = &m->tensor[k];
		const size_t cols = t->dim[t->ndim - 1], rows = t->n / cols;

		side_of(&s1, rows);
		side_of(&s2, cols);
		at = t->at;
		for (i = 0; i < rows; i += (size_t)s1.n)
			for (j = 0; j < cols; j += (size_t)s2.n) {
				const size_t in = t->at + i * cols + j;

				if (back)
					block(&s1, &s2, 1, a, from + at,
					    (size_t)s2.n, to + in, cols);
				else
					block(&s1, &s2, 0, a, from + in, cols,
					    to + at, (size_t)s2.n);
				at += (size_t)(s1.n * s2.n);
			}
	}
}

void
dct_forward(const struct model *m, float scale, const float *x, float *y)
{
	transform(m, 0, scale, x, y);
}

void
dct_inverse(const struct model *m, const float *y, float *x)
{
	transform(m, 1, 1, y, x);
}
