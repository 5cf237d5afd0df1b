/*
 * Positions and the codes at them <-> bytes, for TOPK.
 *
 * A code is a half, u16 h, or sign + 2 * j with j of 3, 1 or 0 bits.
 *
 *   body := u16 m, only of halves: the largest h mod 2^15, or 2^15 + the least
 *           for each of them the gap to the position before, and its code
 *
 * Gaps, halves as 2 |h - m| mod 2^15 + sign, and codes of 4 bits are rice.h's numbers,
 * the others bits as they are.  What exceeds the least that is kept of many falls off
 * about exponentially, and so does its logarithm, which h is; where all are kept that
 * there are, the distance from the largest does.
 */
#ifndef ACE_SPARSE_H
#define ACE_SPARSE_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

enum { SPARSE_HALF = 16 };

struct sparse {
	unsigned width;		/* of a code: SPARSE_HALF, 4, 2 or 1 bits */
	size_t n, k;		/* 0 < k <= n <= 2^31 */
	uint32_t *pos;		/* k, rising */
	uint16_t *code;		/* k */
};

/* sparse_bound(k, n, width): the most bytes that k of n values take. */
size_t sparse_bound(size_t k, size_t n, unsigned width);

/* sparse_put(p, s): writes to p, which has room for that many. */
size_t sparse_put(unsigned char *p, const struct sparse *s);

/* sparse_get(b, s): fills pos and code of s.  0, or -1 when the bytes are not valid. */
int sparse_get(struct bytes *b, struct sparse *s);

#endif
