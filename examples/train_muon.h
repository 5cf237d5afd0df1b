/*
 * The step of Muon (Jordan et al. 2024): a gradient's nearest matrix with
 * orthogonal rows or columns, so that every direction moves alike.
 */
#ifndef TRAIN_MUON_H
#define TRAIN_MUON_H

#include <stddef.h>

/* Floats of scratch that a matrix of n values needs. */
#define MUON_SCRATCH(n) (4 * (n))

/*
 * muon_orthogonal(g, out, rows, cols, scratch): about U V^T of g = U S V^T.
 *
 *   X = g / |g|,  then five times  X = a X + (b A + c A A) X,  A = X X^T
 *
 * with a, b, c = 3.4445, -4.7750, 2.0315, which carry every singular value
 * into about 0.7 to 1.2 instead of exactly to 1 (their choice: it is soon
 * there).  A matrix with more rows than columns is worked on transposed.
 *
 * g, out f32[rows][cols], may be the same; scratch f32[4 rows cols]
 */
void muon_orthogonal(const float *g, float *out, size_t rows, size_t cols,
    float *scratch);

#endif
