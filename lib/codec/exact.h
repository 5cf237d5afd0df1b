/*
 * The bits of a group of values, exactly, of whatever type they are: whole, or
 * given what they were before.
 *
 * Most weights of a model keep their bits from one step to the next, and which do
 * not is told by the weight itself: a step moves all weights by about the same
 * amount, and half of a unit in the last place is as large as the exponent says.
 * So the values are taken level by level, a level being those of one exponent,
 * from the smallest on; at each the values that changed are rarer by half.  What is
 * written are the distances between them, in values of that level, and by how many
 * steps along the values of their type each moved.  What one level has taught
 * about distances and moves begins the next, one binary step further.
 * What has no exponent is one level, in which values that share a scale change
 * together: a change close behind another one is said shortly.  Bytes that are two
 * values of 4 bits are taken as these.
 * Ours; the format is in ace-stream(5), codec 17.
 */
#ifndef ACE_EXACT_H
#define ACE_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

/* What the bits of a word mean: the lower half of the record's parameter. */
enum exact_form {
	EXACT_F32, EXACT_F16, EXACT_BF16, EXACT_F64, EXACT_F8E4M3,
	EXACT_F8E5M2, EXACT_INT8, EXACT_INT16, EXACT_INT32, EXACT_INT64,
	EXACT_NFORM,
	EXACT_HALVES = EXACT_NFORM,	/* of INT8, in a parameter only: of the
					 * halves of the bytes */
	EXACT_FORM = 15,	/* of a parameter */
	EXACT_GIVEN = 16,	/* or'ed: coded given the old words */
	EXACT_PART = 32		/* or'ed: of the words that a slice has, which are
				 * values to nobody; exact_get is called without */
};

/* exact_size(form): bytes of a word. */
size_t exact_size(unsigned form);

/* exact_bound(form, n): the most bytes that exact_put appends. */
size_t exact_bound(unsigned form, size_t n);

/*
 * exact_put(form, old, new, n, out, param, e): appends the body of n words, as they
 * are in memory, little-endian.  old[n], what the reader has in their place; NULL:
 * nothing.  Whatever takes fewer bytes: whole, or given the old ones; whole is
 * only tried where given takes more than a sixteenth of the words' own bytes.
 * Returns how many words changed, of whole n; 0: nothing was appended.  -ERR_SYS.
 */
int exact_put(unsigned form, const unsigned char *old, const unsigned char *new,
    size_t n, struct buf *out, uint8_t *param, struct err *e);

/*
 * exact_get(param, form, old, body, len, new, n, e): the inverse, of a tensor whose
 * words have this form.  old may be new.  -ERR_DATA where the body is not what
 * exact_put writes ("corrupt"), where the parameter is of another form
 * ("mismatch"), or where it needs old words and old is NULL ("mismatch").
 */
int exact_get(uint8_t param, unsigned form, const unsigned char *old,
    const unsigned char *body, size_t len, unsigned char *new, size_t n,
    struct err *e);

#endif
