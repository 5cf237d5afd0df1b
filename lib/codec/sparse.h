/*
 * Positions and the codes at them <-> bytes, for TOPK.
 *
 * A code is a half, u16 h, or sign + 2 * j with j of 3, 1 or 0 bits.
 *
 *   plain := RICE128 positions (rice.h)  u16 h[k], or codes packed (bits.h)
 *   coded := u8 sign * 128 + h mod 128 [k], or signs packed
 *            range code (range.h): for each its gap (sparse.c), then h or j
 *
 * The exponent of h is coded in unary, counting down from 30, the largest one.
 * Then come the three bits below it; they have separate probabilities for
 * each of the first 3 counts and for all others together.  j is coded as a
 * walk down a tree of decisions.
 */
#ifndef ACE_SPARSE_H
#define ACE_SPARSE_H

#include <stddef.h>
#include <stdint.h>

struct bytes;

enum { SPARSE_HALF = 16, SPARSE_SLACK = 256 };

struct sparse {
	unsigned width;		/* of a code: SPARSE_HALF, 4, 2 or 1 bits */
	size_t n, k;		/* 0 < k <= n <= 2^31 */
	uint32_t *pos;		/* k, rising */
	uint16_t *code;		/* k */
};

/* sparse_bound(k, n, width): the most bytes that k of n values take, plain. */
size_t sparse_bound(size_t k, size_t n, unsigned width);
size_t sparse_put_plain(unsigned char *p, const struct sparse *s);

/* sparse_put_coded(p, cap, s): writes to p, which has cap + SPARSE_SLACK bytes
 * of room.  Returns the bytes written, or 0 when it takes cap or more. */
size_t sparse_put_coded(unsigned char *p, size_t cap, const struct sparse *s);

/* Both fill pos and code of s.  0, or -1 when the bytes are not valid.  The
 * coded form takes all of b. */
int sparse_get_plain(struct bytes *b, struct sparse *s);
int sparse_get_coded(struct bytes *b, struct sparse *s);

#endif
