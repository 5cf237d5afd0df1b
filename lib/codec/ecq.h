/*
 * The model of ECQ: what is expected of a value from those before it.
 *
 * Values are taken row by row, a row in segments of 16 that do not cross its
 * end, a segment in blocks of 4.  Two things foretell a magnitude: the values
 * to the left (two decaying means of |q|, short and long) and those above (a
 * decaying mean per column).  Their geometric mean, in half octaves, is the
 * context of a decision.  All whole numbers: every machine gets the same.
 */
#ifndef ACE_ECQ_H
#define ACE_ECQ_H

#include <stddef.h>
#include <stdint.h>

#include "codec/range.h"

enum {
	ECQ_SEG = 16, ECQ_BLOCK = 4,
	ECQ_LEVELS = 33,	/* half octaves of a mean, 2^-8 to 2^8 */
	ECQ_CLASSES = 15	/* bits of a magnitude */
};

struct ecq_model {
	struct range_bit seg[ECQ_LEVELS];
	/* second index: how many before it in its segment or block are known
	 * to be zero, 3: one is not */
	struct range_bit block[ECQ_LEVELS][4];
	struct range_bit value[ECQ_LEVELS][4];
	struct range_bit more[ECQ_LEVELS / 2 + 1][ECQ_CLASSES];
	struct range_bit mantissa[ECQ_CLASSES + 1][8];
	uint32_t near, far;	/* means to the left, 2^-16 */
	uint64_t sum, count;	/* of all so far */
	uint16_t *col;		/* mean above, 2^-8; NULL: no columns */
	size_t cols, at;	/* at: column of the next value */
	size_t rows;		/* complete rows so far */
};

#endif
