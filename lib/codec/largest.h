/*
 * Choose which values of a group to keep, as rising positions. Of equal magnitudes those
 * at lower positions are kept; zeros are never kept.
 */
#ifndef ACE_LARGEST_H
#define ACE_LARGEST_H

#include <stddef.h>
#include <stdint.h>

struct kern;

/* Both functions write positions to at, which has room for n + 1, and return their
 * number; n <= 2^31. */

/* Choose the k largest magnitudes. */
size_t largest_of(const struct kern *kern, const float *x, size_t n, size_t k,
    uint32_t *at);

/* Choose the k largest of every chunk of c values. A shorter last chunk of m values
 * keeps k m / c, rounded to nearest, and at least one if it is the only chunk. */
size_t largest_chunks(const struct kern *kern, const float *x, size_t n, size_t k,
    size_t c, uint32_t *at);

#endif
