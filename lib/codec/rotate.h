/*
 * A seeded random rotation: after it any group looks Gaussian, whatever its
 * tails were.
 *
 *   m = 2^floor(log2 n),  H the m x m Walsh-Hadamard matrix / sqrt(m)
 *   y[0..m)   = H D1 x[0..m),  y[m..n) = x[m..n)
 *   y[n-m..n) = H D2 y[n-m..n)             only when n is no power of two
 *
 * D1, D2 are diagonals of random signs (base/rng.h, keyed by seed, step and
 * group: block i / 128 of D1, 2^20 on for D2, bit i % 128 of the block).  Two
 * overlapping transforms, instead of zeros up to the next power of two, are
 * ours: n values stay n values.  Values before n - m were rotated once, those
 * after it twice; each of the two parts has one variance.
 */
#ifndef ACE_ROTATE_H
#define ACE_ROTATE_H

#include <stddef.h>
#include <stdint.h>

struct codec_ctx;
struct kern;

/* rotate_split(n): n - m, the length of the first part; n > 0. */
size_t rotate_split(size_t n);

/* rotate_there(k, c, y, x, n, scale): y = rotation of scale * x, n in
 * 1..2^27.  y and x are apart. */
void rotate_there(const struct kern *k, const struct codec_ctx *c, float *y,
    const float *x, size_t n, double scale);

/* rotate_back(k, c, y, n, scale): the inverse, in place, times scale. */
void rotate_back(const struct kern *k, const struct codec_ctx *c, float *y,
    size_t n, double scale);

#endif
