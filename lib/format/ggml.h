/*
 * The types of tensors in GGUF files, as ggml numbers them.  Those of one value are
 * types of ours; of the others a block of values has one or two scales and small whole
 * numbers, and travels as its bytes: a tensor of u8, whose last dimension is the bytes
 * of a row, and whose kind says which blocks they are.
 */
#ifndef ACE_GGML_H
#define ACE_GGML_H

#include <stdint.h>

enum { GGML_KIND = 256 };	/* of type 0; kinds are GGML_KIND + type */

struct ggml_type {
	const char *name;
	uint16_t values, bytes;	/* of a block; of a plain type 1 value */
};

/* ggml_type(n): NULL for a number that is no type, or none that is known here. */
const struct ggml_type *ggml_type(uint64_t n);

#endif
