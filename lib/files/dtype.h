/*
 * Convert the number types of tensor files, little-endian bytes, to f32 and back.
 * Conversions work on bits, so that a NaN's payload and a zero's sign are kept if the
 * narrower type has room for them.
 */
#ifndef ACE_DTYPE_H
#define ACE_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* dtype_size: bytes per value of an enum schema_dtype; 0 for f4, two of which are one byte.
 * dtype_bytes: bytes of n values. */
size_t dtype_size(unsigned dtype);
uint64_t dtype_bytes(unsigned dtype, uint64_t n);

/* Convert n values at p, of a type that is not one of schema_bits, to f32. Return n, or the
 * index of the first refused value: one that f32 cannot hold exactly (with round = 1, only a
 * finite one that would become infinite), or a bool above 1. Add the number of rounded values
 * to *rounded. */
size_t dtype_to_f32(unsigned dtype, int round, const unsigned char *p,
    float *x, size_t n, uint64_t *rounded);

/* Convert n values of x into p, of a type that is not one of schema_bits, rounding to nearest even.
 * Return n, or the index of the first refused value: a finite one outside the type's range, or for
 * schema_exact types one that the type does not have. */
size_t dtype_from_f32(unsigned dtype, const float *x, unsigned char *p, size_t n);

/* Reverse the byte order of n values in place. */
void dtype_swap(unsigned dtype, unsigned char *p, size_t n);

/* Write the value at p as text, for a message. */
void dtype_text(unsigned dtype, const unsigned char *p, char out[32]);

#endif
