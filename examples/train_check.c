/*
 * Check the hand-written backward pass.  This file compiles the model's source again with
 * double, and compares the gradient in double with central finite differences of the loss,
 * and the gradient in float with that in double.
 */
#define real		double
#define GEMM		cblas_dgemm
#define model_new	model64_new
#define model_free	model64_free
#define model_init	model64_init
#define model_scatter	model64_scatter
#define model_loss	model64_loss
#define model_backward	model64_backward
#define model_random	model64_random
#define model_order	model64_order
#include "train_model.c"

#include "train_check.h"

enum { PROBES = 24 };

/* Return the worst |difference - gradient| of the probed parameters, relative to the
 * tensor's largest gradient. */
static double
probe(struct model *m, const struct tensor *t, const uint8_t *text, size_t b)
{
	const double h = 1e-5;
	double worst = 0, most = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		most = fmax(most, fabs(m->grad[t->at + i]));
	for (i = 0; i < PROBES; i++) {
		size_t j = t->at + (size_t)(model_random(1, t->at, i) % t->n);
		double x = m->theta[j], d;

		m->theta[j] = x + h;
		d = model_loss(m, text, b, NULL);
		m->theta[j] = x - h;
		d = (d - model_loss(m, text, b, NULL)) / (2 * h);
		m->theta[j] = x;
		worst = fmax(worst, fabs(d - m->grad[j]));
	}
	return most > 0 ? worst / most : INFINITY;
}

/* Return || a - b || / || b ||. */
static double
distance(const float *a, const double *b, size_t n)
{
	double d = 0, s = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		s += b[i] * b[i];
	}
	return s > 0 ? sqrt(d / s) : INFINITY;
}

int
check_gradient(const struct shape *s, const float *theta, const float *grad,
    const uint8_t *text, size_t b, FILE *out)
{
	struct model *m = model_new(s, b);
	size_t i;
	int bad = 0;

	if (m == NULL)
		return -1;
	for (i = 0; i < m->n; i++)
		m->theta[i] = (double)theta[i];
	(void)model_loss(m, text, b, NULL);
	model_backward(m, text, b);
	(void)fprintf(out, "tensor\tdifferences\tfloat\n");
	for (i = 0; i < m->ntensors; i++) {
		const struct tensor *t = &m->tensor[i];
		double f = probe(m, t, text, b);
		double g = distance(grad + t->at, m->grad + t->at, t->n);
		int wrong = !(f < 1e-6) || !(g < 1e-4);

		(void)fprintf(out, "%s\t%.2e\t%.2e%s\n", t->name, f, g,
		    wrong ? "\twrong" : "");
		bad |= wrong;
	}
	model_free(m);
	return bad;
}
