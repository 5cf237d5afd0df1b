/*
 * The step of Muon (Jordan et al. 2024): the matrix with orthonormal rows or columns that
 * is nearest to a gradient.
 */
#ifndef TRAIN_MUON_H
#define TRAIN_MUON_H

#include <stddef.h>

/* Return how many floats of scratch are enough for a matrix of n values. */
#define MUON_SCRATCH(n) (8 * (n))

/*
 * muon_orthogonal(g, out, rows, cols, scratch): approximate U V^T of g = U S V^T.
 *
 *   X = g / |g|,  then five times  X = a X + (b A + c A A) X,  A = X X^T
 *
 * with a, b, c = 3.4445, -4.7750, 2.0315 (the authors' choice).  These move every singular
 * value of at least 0.002 |g| to about 0.7 to 1.2 instead of exactly 1, in few iterations.
 * A matrix with more rows than columns is transposed first.
 *
 * g, out f32[rows][cols], may be the same; scratch f32[4 rows cols]
 */
void muon_orthogonal(const float *g, float *out, size_t rows, size_t cols,
    float *scratch);

/*
 * muon_turn(m, dir, share, rows, cols, scratch): m = (1 - share) m + share |m| dir, where
 * |m| = (m m^T)^1/2: with share 1 and orthonormal rows in dir, m keeps its singular values.
 * With more rows than columns |m| = (m^T m)^1/2 is on the right.
 *
 * m, dir f32[rows][cols]; scratch f32[8 rows cols]
 */
void muon_turn(float *m, const float *dir, float share, size_t rows, size_t cols,
    float *scratch);

#endif
