/*
 * The number types of tensor files, as little-endian bytes, to f32 and back.
 * Conversions work on the bits, so the payload of a NaN and the sign of a zero
 * survive wherever the narrower type has room for them.
 */
#ifndef ACE_DTYPE_H
#define ACE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* dtype_size(dtype): bytes per value of an enum schema_dtype. */
size_t dtype_size(unsigned dtype);

/*
 * dtype_to_f32: n values from p to x.  Returns n, or the index of the first
 * value that is refused: one f32 does not hold exactly, unless round, then one
 * that is finite and would become infinite.  *rounded grows by the number of
 * values that lost something.
 */
size_t dtype_to_f32(unsigned dtype, int round, const unsigned char *p,
    float *x, size_t n, uint64_t *rounded);

/*
 * dtype_from_f32: n values from x to p, to nearest even.  Returns n, or the
 * index of the first value that is refused: finite and outside the type's
 * range; for the integers also one that is not finite.
 */
size_t dtype_from_f32(unsigned dtype, const float *x, unsigned char *p,
    size_t n);

/* dtype_swap: the other byte order, in place. */
void dtype_swap(unsigned dtype, unsigned char *p, size_t n);

/* dtype_text: the value at p, for a message. */
void dtype_text(unsigned dtype, const unsigned char *p, char out[32]);

#endif
