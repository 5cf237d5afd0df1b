/*
 * Scales for the rows and columns of each matrix.  A device multiplies its difference by them
 * before it sends, and divides the average by them.  So a lossy code has smaller errors in rows
 * and columns with large gradients, at the same bytes.  The scale of a value is
 *
 *   (R_i / mean)^(1/4) (C_j / mean)^(1/4)
 *
 * where R_i and C_j are the means of row i and column j of the mean squared gradient: the factored
 * second moments of Adafactor (Shazeer, Stern 2018, algorithm 1).  Their use and the power are
 * ours.
 *
 * All devices need the same scales.  In rounds 1, 4, 16, 64 and so on, each device sends how far
 * its own scales are from the common ones, in one more tensor; the averages update the common
 * ones.  Later rounds send what the code left out.  A residual is in units of the scales with
 * which it was made, so the scales in use should change rarely: they become the common ones at the
 * end of rounds 2, 5, 17, 65 and so on.
 */
#ifndef TRAIN_FACTOR_H
#define TRAIN_FACTOR_H

#include "train_model.h"

/* Return 1 if n is a power of 4. */
int factor_due(size_t n);

/* Set the scales in out f32[m->n] to common - own; square f32[m->params]: this device's mean
 * squared gradient. */
void factor_measure(const struct model *m, const float *square, const float *common,
    float *out);

/* Multiply the matrices in x f32[m->n] by the scales in m->theta, or divide them if `back'. */
void factor_apply(const struct model *m, float *x, int back);

/* Update the common scales by their average difference x f32[m->n]; if `use', also those in
 * m->theta. */
void factor_update(struct model *m, float *common, const float *x, int use);

/* Return m without the scales.  It borrows all arrays of m. */
struct model factor_without(const struct model *m);

#endif
