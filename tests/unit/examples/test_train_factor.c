/*
 * train_factor: the scales of rows and columns, for squares with known factors.
 */
#include <math.h>

#include "../../../examples/train_factor.h"
#include "../tap.h"

int
main(void)
{
	const struct shape shape = { 1, 2, 1, 2, 1 };
	struct model *m = model_new(&shape, 1), plain = factor_without(m);
	const struct tensor *t = m->tensor;
	float *square = calloc(m->n, sizeof *square), *x = calloc(m->n, sizeof *x),
	    *common = calloc(m->n, sizeof *common);
	size_t i, n = 0;

	/* wte's first row has 16 times the mean of the others, its second column nothing */
	for (i = 0; i < t->n; i += 2)
		square[i] = i < 2 ? 16.0f * 255 : 255 - 16;
	ok(m->nsent == m->ntensors + 1 && plain.nsent == m->ntensors && plain.n == m->params &&
	    m->n == plain.n + 294, "scales of all: %zu",
	    m->n - plain.n);
	factor_measure(m, square, common, x);
	factor_update(m, common, x, 0);
	factor_apply(m, x, 0);
	factor_measure(m, square, common, x);
	for (i = m->params; i < m->n && fabsf(x[i]) < 1e-6f && m->theta[i] == 0; i++)
		;
	ok(i == m->n, "the common scales are these, and not yet in use");
	factor_update(m, common, x, 1);
	for (i = 0; i < m->params; i++)
		x[i] = 1;
	factor_apply(m, x, 0);
	/* 16^(1/4) 2^(1/4), and the limit 1000^(-1/4), to the nearest half octaves */
	ok(fabsf(x[0] - 2 * 1.414214f) < 1e-5f && fabsf(x[1] - 2 * 0.176777f) < 1e-5f,
	    "fourth roots: %g and %g", x[0], x[1]);
	ok(x[t[2].at] == 1 && x[t[3].at] == 1, "no gradient, or no rows: 1");
	factor_apply(m, x, 1);
	for (i = 0; i < m->params && fabsf(x[i] - 1) < 1e-6f; i++)
		;
	ok(i == m->params, "divided by the scales, all values are what they were");
	for (i = 0; i < 300; i++)
		n += factor_due(i) ? i : 0;
	ok(n == 1 + 4 + 16 + 64 + 256, "they are due in rounds 1, 4, 16, 64 and 256");
	free(square);
	free(x);
	free(common);
	model_free(m);
	return done_testing();
}
