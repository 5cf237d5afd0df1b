/*
 * The cosine transform of DeMo (Peng, Quesnelle and Kingma 2024).  A matrix is divided into
 * blocks of n1 x n2, the largest divisors of its sides up to DCT_SIDE, a vector into blocks
 * of 1 x n.  Each block x becomes
 *
 *   y = C1 x C2^T		C[k][i] = sqrt((k > 0 ? 2 : 1) / n)
 * 				    cos(pi (2 i + 1) k / (2 n))
 *
 * The inverse is the transpose.  Blocks are stored one after another: if the sides are
 * multiples of DCT_SIDE, chunk:K/4096 of ace-compress keeps the K largest values of each block.
 */
#ifndef TRAIN_DCT_H
#define TRAIN_DCT_H

#include "train_model.h"

enum { DCT_SIDE = 64 };

/* Compute y f32[m->n] = scale times the transform of x f32[m->n], tensor by tensor. */
void dct_forward(const struct model *m, float scale, const float *x, float *y);

/* Compute x f32[m->n] from its transform y f32[m->n]. */
void dct_inverse(const struct model *m, const float *y, float *x);

#endif
