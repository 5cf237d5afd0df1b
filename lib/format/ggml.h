/*
 * Tensor types of GGUF files, by ggml's numbers. Types of single values are also types of
 * streams. In the others a block of values has one or two scales and small integers.
 * Their blocks are sent as bytes, in a u8 tensor whose last dimension is the number of
 * bytes per row and whose kind is the block's type.
 */
#ifndef ACE_GGML_H
#define ACE_GGML_H

#include <stdint.h>

enum { GGML_KIND = 256 };	/* kind of type 0; kinds are GGML_KIND + type */

struct ggml_type {
	const char *name;
	uint16_t values, bytes;	/* per block; types of single values have 1 value */
};

/* Return the type with number n, or NULL if it is unknown. */
const struct ggml_type *ggml_type(uint64_t n);

#endif
