/*
 * Bits that are written from the end of a body towards its start, the least
 * significant of a byte and of a number first.  Bits that need no model go
 * there, because a shift is cheaper than a step of the range coder (range.h).
 */
#ifndef ACE_TAIL_H
#define ACE_TAIL_H

#include <stddef.h>
#include <stdint.h>

struct tail_put {
	uint64_t bits;		/* n < 32 of them */
	unsigned n;
	unsigned char *p;	/* the next byte goes before it */
};

/* tail_put(t, v, n): writes the n <= 32 low bits of v; its others are 0. */
static inline void
tail_put(struct tail_put *t, uint32_t v, unsigned n)
{
	t->bits |= (uint64_t)v << t->n;
	t->n += n;
	if (t->n < 32)
		return;
	t->p -= 4;
	t->p[0] = (unsigned char)(t->bits >> 24);
	t->p[1] = (unsigned char)(t->bits >> 16);
	t->p[2] = (unsigned char)(t->bits >> 8);
	t->p[3] = (unsigned char)t->bits;
	t->bits >>= 32;
	t->n -= 32;
}

/* tail_put_end(t): pads the last byte with 0 and returns where the bits
 * begin. */
static inline unsigned char *
tail_put_end(struct tail_put *t)
{
	for (; t->n > 0; t->n -= t->n < 8 ? t->n : 8, t->bits >>= 8)
		*--t->p = (unsigned char)t->bits;
	return t->p;
}

struct tail_get {
	uint64_t bits;
	unsigned n;		/* of them */
	const unsigned char *p;
	size_t at;		/* p[at] and what follows was taken */
	int bad;		/* more than there was */
};

/* tail_get(t, n): the next n <= 32 bits; zeros where p has no more bytes. */
static inline uint32_t
tail_get(struct tail_get *t, unsigned n)
{
	const unsigned char *p;
	uint64_t v;

	while (t->n < n) {
		if (t->at >= 4) {
			p = t->p + (t->at -= 4);
			v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
			    (uint32_t)p[2] << 8 | p[3];
			t->bits |= v << t->n;
			t->n += 32;
			continue;
		}
		t->bad |= t->at == 0;
		v = t->at > 0 ? t->p[--t->at] : 0u;
		t->bits |= v << t->n;
		t->n += 8;
	}
	v = t->bits & (((uint64_t)1 << n) - 1);
	t->bits >>= n;
	t->n -= n;
	return (uint32_t)v;
}

/* tail_get_end(t, start): 0 when the bits that were read, padded with 0, begin
 * exactly at p[start], -1 otherwise. */
static inline int
tail_get_end(const struct tail_get *t, size_t start)
{
	return t->bad || t->at + t->n / 8 != start ||
	    (t->bits & ((1u << t->n % 8) - 1)) != 0 ? -1 : 0;
}

#endif
