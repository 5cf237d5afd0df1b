/*
 * Plain bits after an entropy code, for exact and ECQ. They fill each byte from its least
 * significant bit on, and the body from its last byte backwards.
 */
#ifndef ACE_EXACT_BITS_H
#define ACE_EXACT_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

static inline unsigned
bits_length(uint64_t v)
{
	return v != 0 ? 64u - (unsigned)__builtin_clzll(v) : 0;
}

/* Writer of bits from p upwards; exact_given.c reverses the bytes. p stays at `most' or
 * below. */
struct bits_put {
	unsigned char *p, *most;
	uint64_t v;
	unsigned n;
};

/* Write the n <= 56 low bits of v. This stores eight bytes at b->p. */
static inline void
bits_put(struct bits_put *b, uint64_t v, unsigned n)
{
	b->v |= (v & (((uint64_t)1 << n) - 1)) << b->n;
	b->n += n;
	bytes_set64(b->p, b->v);
	b->p += b->n / 8;
	b->v >>= b->n / 8 * 8;
	b->n %= 8;
	if (__builtin_expect(b->p > b->most, 0))
		b->p = b->most;
}

/* Write a number of at most `most'. */
static inline void
bits_put_count(struct bits_put *b, size_t c, size_t most)
{
	bits_put(b, bits_length(c), bits_length(bits_length(most)));
	bits_put(b, c, c > 1 ? bits_length(c) - 1 : 0);
}

struct bits_get {
	const unsigned char *end;
	size_t len, at;		/* len: bytes of the body; at: index of the next bit */
};

/* Read n <= 56 bits. Bits before the start of the body are 0. */
static inline uint64_t
bits_get(struct bits_get *b, unsigned n)
{
	size_t at = b->at / 8, i;
	uint64_t v = 0;

	if (__builtin_expect(at + 8 <= b->len, 1))
		v = __builtin_bswap64(bytes_le64(b->end - at - 8));
	else
		for (i = 0; i < 8 && at + i < b->len; i++)
			v |= (uint64_t)*(b->end - at - i - 1) << 8 * i;
	v = v >> b->at % 8 & (((uint64_t)1 << n) - 1);
	b->at += n;
	return v;
}

/* Return 1 if p is the last byte that was read and the unread bits of this byte are 0. */
static inline int
bits_get_end(const struct bits_get *b, const unsigned char *p)
{
	const size_t bytes = (b->at + 7) / 8;

	return bytes <= b->len && p == b->end - bytes &&
	    (b->at % 8 == 0 || *p >> b->at % 8 == 0);
}

/* Read a number that should be at most `most'; the caller checks that it is. */
static inline size_t
bits_get_count(struct bits_get *b, size_t most)
{
	unsigned k = (unsigned)bits_get(b, bits_length(bits_length(most)));

	return k < 2 ? k : (size_t)1 << (k - 1) | bits_get(b, k - 1);
}

#endif
