/*
 * A seeded random rotation: after it any group looks Gaussian, whatever its
 * tails were.
 *
 *   m = 2^floor(log2 n),  H the m x m Walsh-Hadamard matrix / sqrt(m)
 *   y[0..m)   = H D1 x[0..m),  y[m..n) = x[m..n)
 *   y[n-m..n) = H D2 y[n-m..n)             only when n is no power of two
 *
 * D1 and D2 are diagonals of random signs from base/rng.h, keyed by seed, step
 * and group: sign i of D1 is bit i % 128 of random block i / 128, and D2 uses
 * the blocks from 2^20 on.  The two overlapping transforms are our own choice:
 * padding with zeros to the next power of two would make more values of n.
 * The variance is the same throughout each of the two parts of y, those before
 * n - m and from it on, but may differ between them.
 */
#ifndef ACE_ROTATE_H
#define ACE_ROTATE_H

#include <stddef.h>
#include <stdint.h>

struct codec_ctx;

/* rotate_split(n): n - m, the length of the first part; n > 0. */
size_t rotate_split(size_t n);

/* rotate_there(c, y, x, n, scale): y = rotation of scale * x, n in
 * 1..2^27.  y and x are apart. */
void rotate_there(const struct codec_ctx *c, float *y, const float *x, size_t n,
    double scale);

/* rotate_back(c, y, n, scale): the inverse, in place, times scale. */
void rotate_back(const struct codec_ctx *c, float *y, size_t n, double scale);

#endif
