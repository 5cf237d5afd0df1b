/*
 * Which values of a group are kept, as positions in rising order.  Of equal
 * magnitudes the lower position is taken first; zeros are never taken.
 */
#ifndef ACE_LARGEST_H
#define ACE_LARGEST_H

#include <stddef.h>
#include <stdint.h>

struct kern;

/* Each writes to at, which has room for n + 1 positions, and returns how many;
 * n <= 2^31. */

/* largest_of: the k largest magnitudes. */
size_t largest_of(const struct kern *kern, const float *x, size_t n, size_t k,
    uint32_t *at);

/* largest_chunks: the k largest of every chunk of c values.  Of a last, shorter
 * chunk of n' values it takes k n' / c, rounded to the nearest number, and at
 * least one when there is no other chunk. */
size_t largest_chunks(const struct kern *kern, const float *x, size_t n, size_t k,
    size_t c, uint32_t *at);

#endif
