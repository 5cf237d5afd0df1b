#include <cblas.h>
#include <math.h>
#include <string.h>

#include "train_muon.h"

enum { ROUNDS = 5, EXACT = 6 };

static const float ca = 3.4445f, cb = -4.7750f, cc = 2.0315f;

/* Compute y = a x, or y = a x^T if transposed; x f32[rows][cols]. */
static void
copy(float *y, const float *x, size_t rows, size_t cols, int transposed,
    float a)
{
	size_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < cols; j++)
			y[transposed ? j * rows + i : i * cols + j] =
			    a * x[i * cols + j];
}

static float
inverse_norm(const float *x, size_t n)
{
	double s = 0;
	size_t i;

	for (i = 0; i < n; i++)
		s += (double)x[i] * (double)x[i];
	return (float)(1 / (sqrt(s) + 1e-7));
}

/* Iterate once (train_muon.h) on x f32[r][c], r <= c; scratch: a, b f32[r][r], y f32[r][c]. */
static void
iterate(float *x, float *y, float *a, float *b, size_t r, size_t c)
{
	const int ri = (int)r, ci = (int)c;
	size_t i;

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ri, ri, ci, 1, x,
	    ci, x, ci, 0, a, ri);
	memcpy(b, a, r * r * sizeof *b);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ri, ri, ri, cc,
	    a, ri, a, ri, cb, b, ri);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ri, ci, ri, 1,
	    b, ri, x, ci, 0, y, ci);
	for (i = 0; i < r * c; i++)
		x[i] = ca * x[i] + y[i];
}

void
muon_orthogonal(const float *g, float *out, size_t rows, size_t cols,
    float *scratch)
{
	const int tall = rows > cols;
	const size_t r = tall ? cols : rows, c = tall ? rows : cols, n = r * c;
	float *x = scratch, *y = x + n, *a = y + n, *b = a + n;
	int i;

	copy(x, g, rows, cols, tall, inverse_norm(g, n));
	for (i = 0; i < ROUNDS; i++)
		iterate(x, y, a, b, r, c);
	copy(out, x, r, c, tall, 1);
}

void
muon_turn(float *m, const float *dir, float share, size_t rows, size_t cols,
    float *scratch)
{
	const int tall = rows > cols;
	const size_t r = tall ? cols : rows, c = tall ? rows : cols, n = r * c;
	const int ri = (int)r, ci = (int)c;
	float *x = scratch, *d = x + n, *u = d + n, *y = u + n, *a = y + n, *w = a + n;
	size_t i, j;

	copy(x, m, rows, cols, tall, 1);
	copy(d, dir, rows, cols, tall, 1);
	muon_orthogonal(x, u, r, c, y);
	for (i = 0; i < EXACT; i++) {	/* u = 1.5 u - 0.5 u u^T u */
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ri, ri, ci, 1, u,
		    ci, u, ci, 0, a, ri);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ri, ci, ri,
		    -0.5f, a, ri, u, ci, 0, y, ci);
		for (j = 0; j < n; j++)
			u[j] = 1.5f * u[j] + y[j];
	}
	/* |m| = x u^T, made symmetric again after rounding */
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ri, ri, ci, 1, x, ci, u, ci,
	    0, a, ri);
	for (i = 0; i < r; i++)
		for (j = 0; j < r; j++)
			w[i * r + j] = 0.5f * (a[i * r + j] + a[j * r + i]);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ri, ci, ri, 1, w, ri, d,
	    ci, 0, y, ci);
	for (j = 0; j < n; j++)
		x[j] = (1 - share) * x[j] + share * y[j];
	copy(m, x, r, c, tall, 1);
}
