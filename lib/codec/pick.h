/*
 * Which values of a group are kept: positions, rising.  Ties go to the lower
 * position; zeros are never taken.
 */
#ifndef ACE_PICK_H
#define ACE_PICK_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* Each writes to at, which has room for n + 1 positions, and returns how many;
 * n <= 2^31. */

/* pick_top: the k largest magnitudes. */
size_t pick_top(const float *x, size_t n, size_t k, uint32_t *at);

/* pick_above: those of at least t > 0. */
size_t pick_above(const float *x, size_t n, float t, uint32_t *at);

/* pick_chunks: the k largest of every chunk of c values, k n' / c to the
 * nearest of a last one of n' < c; one at least if that is the only one. */
size_t pick_chunks(const float *x, size_t n, size_t k, size_t c, uint32_t *at);

/*
 * pick_sampled: about k: those not below the threshold that every 64th value
 * suggests (DGC, Lin et al. 2018, section 3.1's hierarchical selection).
 * More than 1.3 k: the k largest of them; fewer than 0.75 k: the k largest.
 */
size_t pick_sampled(const float *x, size_t n, size_t k, uint32_t *at);

#endif
