/*
 * What DeMo says of a gradient (Peng, Quesnelle and Kingma 2024): each matrix in
 * blocks of n1 x n2, the largest divisors of its sides up to DCT_SIDE, a vector in
 * blocks of 1 x n, and of each block its cosine transform,
 *
 *   y = C1 x C2^T		C[k][i] = sqrt((k > 0 ? 2 : 1) / n)
 *				    cos(pi (2 i + 1) k / (2 n))
 *
 * whose inverse is its transpose.  Block after block, so that where the sides are
 * multiples of DCT_SIDE the largest of each block are the largest of every
 * DCT_SIDE^2 values: chunk:K/4096 of ace-compress.
 */
#ifndef TRAIN_DCT_H
#define TRAIN_DCT_H

#include "train_model.h"

enum { DCT_SIDE = 64 };

/* y f32[m->n] = scale times the transform of x f32[m->n], tensor by tensor. */
void dct_forward(const struct model *m, float scale, const float *x, float *y);

/* x f32[m->n]: what y f32[m->n] is the transform of. */
void dct_inverse(const struct model *m, const float *y, float *x);

#endif
