/*
 * Converts the number types of tensor files, as little-endian bytes, to f32 and
 * back.
 * Conversions work on the bits, so the payload of a NaN and the sign of a zero
 * survive wherever the narrower type has room for them.
 */
#ifndef ACE_DTYPE_H
#define ACE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* dtype_size(dtype): bytes per value of an enum schema_dtype; 0 where two are in
 * one.  dtype_bytes(dtype, n): those of n values. */
size_t dtype_size(unsigned dtype);
uint64_t dtype_bytes(unsigned dtype, uint64_t n);

/*
 * dtype_to_f32: converts n values at p to f32 in x.  Returns n, or the index
 * of the first value that is refused.  Without round, that is a value which f32
 * cannot hold exactly; with round, only a finite value that would become
 * infinite.  The number of values that were rounded is added to *rounded.
 */
size_t dtype_to_f32(unsigned dtype, int round, const unsigned char *p,
    float *x, size_t n, uint64_t *rounded);

/*
 * dtype_from_f32: converts n values of x into p, rounding to nearest even.
 * Returns n, or the index of the first value that is refused: a finite one
 * outside the range of the type; and where values mean only themselves
 * (schema_exact) also one that is none of the type's.
 */
size_t dtype_from_f32(unsigned dtype, const float *x, unsigned char *p,
    size_t n);

/* dtype_swap: reverses the byte order of n values, in place. */
void dtype_swap(unsigned dtype, unsigned char *p, size_t n);

/* dtype_text: writes the value at p as text, for a message. */
void dtype_text(unsigned dtype, const unsigned char *p, char out[32]);

#endif
