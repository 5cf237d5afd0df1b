/*
 * One group of a step's result, from the K values that devices sent for each
 * of its elements:
 *
 *   y = (sum_k f_k * x_k) / d
 *
 * summed in f64 in the order of the calls and rounded to f32 once; or what a
 * rule against bad devices makes of them (robust_combine).
 */
#ifndef ACE_COMBINE_H
#define ACE_COMBINE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "sync/robust.h"

struct err;

struct combine {
	const struct kern *kern;
	double *acc;
	float *y;
	size_t n, cap;
};

/* combine_room(c, cap, e): makes room for groups of up to cap values.  Before
 * the first call all of c is zero but for c->kern. */
int combine_room(struct combine *c, size_t cap, struct err *e);
void combine_release(struct combine *c);

/* combine_begin(c, n): begins a group of n values with zeros.  combine_add(c,
 * f, x): adds f * x[n].  combine_add_some: adds f * x[i] at pos[i] only, k of
 * them, which for zeros elsewhere is the same to the bit: the sums begin as +0,
 * so that none is ever -0. */
void combine_begin(struct combine *c, size_t n);
void combine_add(struct combine *c, double f, const float *x);
void combine_add_some(struct combine *c, double f, const uint32_t *pos,
    const float *x, size_t k);
/* combine_less(c, d, b, f): the sums of c become c / d - b / f, value by
 * value. */
void combine_less(struct combine *c, double d, const struct combine *b,
    double f);
/* combine_round(c, d): the sums divided by d, rounded to f32[n]; NULL when one
 * of them is not finite then. */
const float *combine_round(struct combine *c, double d);

#endif
