/*
 * One group of a step's result, from the K values that devices sent for each
 * of its elements:
 *
 *   y = (sum_k f_k * x_k) / d
 *
 * in f64 in the order of the calls, rounded to f32 once; or what a rule against
 * bad devices makes of them (robust_combine).
 */
#ifndef ACE_COMBINE_H
#define ACE_COMBINE_H

#include <stddef.h>

#include "kern/kern.h"
#include "sync/robust.h"

struct err;

struct combine {
	const struct kern *kern;
	double *acc;
	float *y;
	size_t n, cap;
};

/* combine_room(c, cap, e): for groups of up to cap values; c is zeros at first,
 * but for the kernel. */
int combine_room(struct combine *c, size_t cap, struct err *e);
void combine_release(struct combine *c);

/* combine_begin(c, n): n zeros.  combine_add(c, f, x): adds f * x[n]. */
void combine_begin(struct combine *c, size_t n);
void combine_add(struct combine *c, double f, const float *x);
/* combine_less(c, d, b, f): c / d - b / f, of as many values each. */
void combine_less(struct combine *c, double d, const struct combine *b,
    double f);
/* combine_round(c, d): y[n], after division by d; NULL when a value is not
 * finite in f32.  d = 1 divides nothing. */
const float *combine_round(struct combine *c, double d);

#endif
