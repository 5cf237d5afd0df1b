/*
 * Code a group's values of any type bit for bit: whole, or as the difference to the
 * old values.
 *
 * Most weights of a model keep their bits from one step to the next. The share of changes
 * depends on the exponent: a step moves all weights by about the same amount, and a larger
 * weight needs a larger move to change. So values are coded by level, one level per exponent
 * (the first takes smaller ones, too), each with its own share of changes. A level's code
 * says which values change (subset.h), then how many representable values each moves: first
 * which distances have more than 1, 2, ... bits (as subsets, too), then their lower bits.
 *
 * Values that share a scale or a row change together. So blocks of 8 to 32768 values
 * without a change are first left out, if this saves bits. Bytes that hold two 4-bit
 * values are coded as two values. The method is ours; format: ace-stream(5), codec 17.
 */
#ifndef ACE_EXACT_H
#define ACE_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

/* Types of words: the lower half of the record's parameter byte. */
enum exact_form {
	EXACT_F32, EXACT_F16, EXACT_BF16, EXACT_F64, EXACT_F8E4M3,
	EXACT_F8E5M2, EXACT_INT8, EXACT_INT16, EXACT_INT32, EXACT_INT64,
	EXACT_NFORM,
	/* INT8 coded as half bytes; used only in a record's parameter */
	EXACT_HALVES = EXACT_NFORM,
	EXACT_FORM = 15,	/* mask: the form in a parameter */
	EXACT_GIVEN = 16	/* flag: coded as the difference to the old words */
};

/* Return the bytes of one word. */
size_t exact_size(unsigned form);

/* Return the largest size in bytes that exact_put appends. */
size_t exact_bound(unsigned form, size_t n);

/* Append the body of n little-endian words. old[n]: the reader's words, or NULL if the reader
 * has none. The words are coded whole or given the old words, whichever is shorter; whole is
 * tried only if the other body takes more than a sixteenth of the words' size. Return the
 * number of changed words, n if old is NULL; 0 if nothing was appended; or an error < 0. */
int exact_put(unsigned form, const unsigned char *old, const unsigned char *new,
    size_t n, struct buf *out, uint8_t *param, struct err *e);

/* Decode a body to new[n], words of this form; old may be new. Return 0; -ERR_DATA
 * "corrupt" if exact_put cannot have written the body; -ERR_DATA "mismatch" if its parameter
 * has another form, or if it needs old words and old is NULL; -ERR_SYS; or -ERR_USAGE. */
int exact_get(uint8_t param, unsigned form, const unsigned char *old,
    const unsigned char *body, size_t len, unsigned char *new, size_t n,
    struct err *e);

#endif
