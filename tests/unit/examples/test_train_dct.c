/*
 * train_dct: the block-wise cosine transform of a model's tensors compared with its
 * definition in double, and its inverse.
 */
#include "../../../examples/train_dct.h"
#include "../tap.h"

static double
cosine(size_t k, size_t i, size_t n)
{
	return sqrt((k > 0 ? 2.0 : 1.0) / (double)n) *
	    cos(acos(-1) * (double)((2 * i + 1) * k) / (2.0 * (double)n));
}

static size_t
side(size_t length)
{
	size_t n = 64;

	while (length % n != 0)
		n--;
	return n;
}

/* Return the largest difference to the definition for one tensor. */
static double
worst(const struct tensor *t, float scale, const float *x, const float *y)
{
	const size_t cols = t->dim[t->ndim - 1], rows = t->n / cols;
	const size_t n1 = side(rows), n2 = side(cols);
	size_t b, k, l, i, j, r, c;
	double most = 0, s;

	/* some values of each block: all would take n1 n2 times as many terms */
	for (b = 0; b < t->n / (n1 * n2); b++)
		for (k = 0; k < n1; k += 7)
			for (l = 0; l < n2; l += 5) {
				r = b / (cols / n2) * n1;
				c = b % (cols / n2) * n2;
				for (s = 0, i = 0; i < n1; i++)
					for (j = 0; j < n2; j++)
						s += cosine(k, i, n1) *
						    cosine(l, j, n2) *
						    (double)x[t->at +
						    (r + i) * cols + c + j];
				s = fabs((double)scale * s - (double)y[t->at +
				    (b * n1 + k) * n2 + l]);
				most = s > most ? s : most;
			}
	return most;
}

static void
transformed(const struct shape *shape, float scale)
{
	struct model *m = model_new(shape, 1);
	float *y = calloc(m->n, sizeof *y), *z = calloc(m->n, sizeof *z);
	double far = 0, back = 0, d, sx = 0, sy = 0;
	size_t i;

	model_scatter(m, 7, 1);
	dct_forward(m, scale, m->theta, y);
	dct_inverse(m, y, z);
	for (i = 0; i < m->ntensors; i++) {
		d = worst(&m->tensor[i], scale, m->theta, y);
		far = d > far ? d : far;
	}
	for (i = 0; i < m->n; i++) {
		d = fabs((double)z[i] - (double)(scale * m->theta[i]));
		back = d > back ? d : back;
		sx += (double)m->theta[i] * (double)m->theta[i];
		sy += (double)y[i] * (double)y[i];
	}
	ok(far < 4e-6, "width %zu: as it is defined, block after block (%g)",
	    shape->width, far);
	ok(back < 4e-6, "width %zu: taken back (%g)", shape->width, back);
	ok(fabs(sqrt(sy / sx) - (double)scale) < 1e-6,
	    "width %zu: as long as before", shape->width);
	free(y);
	free(z);
	model_free(m);
}

int
main(void)
{
	/* sides of 64 and multiples, with adjacent blocks; sides whose blocks are 48, 45
	 * and 61, their largest divisors */
	transformed(&(struct shape){ 1, 64, 2, 64 }, 1);
	transformed(&(struct shape){ 1, 96, 2, 90 }, 0.5f);
	transformed(&(struct shape){ 1, 61, 1, 3 }, 1);
	return done_testing();
}
