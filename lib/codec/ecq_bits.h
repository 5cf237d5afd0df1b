/*
 * Bits of ECQ and TCQ that are coded without a model (ecq_code.h).  They are written in
 * order.  The first bits become the coder's initial states; the others are at the end of
 * the body.
 */
#ifndef ACE_ECQ_BITS_H
#define ACE_ECQ_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/exact_bits.h"
#include "kern/kern_ecq.h"

/* For functions that are called for each value, or with a constant `two' (ecq_code.h). */
#define ECQ_BITS_INLINE static inline __attribute__((always_inline))

/*
 * ---- bits written from the end of a body towards its start, the least significant
 * bit of each byte and number first.  Bits without a model are written there, because
 * a shift is cheaper than a step of a coder ----
 */

struct tail_put {
	uint64_t bits;		/* n < 32 bits, not written yet */
	unsigned n;
	unsigned char *p;	/* the next byte is written before p */
};

/* Write the n <= 32 low bits of v, whose upper bits are 0. */
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

/* Pad the last byte with 0 and return where the bits begin. */
static inline unsigned char *
tail_put_end(struct tail_put *t)
{
	for (; t->n > 0; t->n -= t->n < 8 ? t->n : 8, t->bits >>= 8)
		*--t->p = (unsigned char)t->bits;
	return t->p;
}

/* ---- bits in the order of writing ---- */

/* Writer of bits, least significant first in each byte. */
struct bits {
	uint64_t v;		/* n < 32 bits, not written yet */
	unsigned n;
	unsigned char *p, *start;	/* p: the next byte; start: the first */
	unsigned fine;		/* `fine' of struct ecq_side */
};

/* Write the n <= 32 low bits of v, whose upper bits are 0. */
ECQ_BITS_INLINE void
put_bits(struct bits *b, uint32_t v, unsigned n)
{
	b->v |= (uint64_t)v << b->n;
	b->n += n;
	if (b->n < 32)
		return;
	bytes_set32(b->p, (uint32_t)b->v);
	b->p += 4;
	b->v >>= 32;
	b->n -= 32;
}

/* Write the n low bits of v, whose upper bits are 0.  n plus the bits not written yet is at
 * most 63; after the call fewer than 8 bits are not written.  This stores eight bytes at b->p. */
ECQ_BITS_INLINE void
put_many(struct bits *b, uint64_t v, unsigned n)
{
	b->v |= v << b->n;
	b->n += n;
	bytes_set64(b->p, b->v);
	b->p += b->n / 8;
	b->v >>= b->n & 56;
	b->n &= 7;
}

/* Write the states, and the bits that the states do not hold, so that they end at `end'.
 * Return where they begin, or NULL if they may not fit between p and `end'. */
static inline unsigned char *
ecq_bits_back(const uint32_t *state, unsigned states, const struct bits *raw,
    const unsigned char *p, unsigned char *end)
{
	struct tail_put t = { 0, 0, end };
	size_t n = (size_t)(raw->p - raw->start) * 8 + raw->n, i;
	unsigned j, e, k;

	if ((size_t)(end - p) < n / 8 + 4 * states + 8)
		return NULL;
	for (j = 0; j < states; j++) {
		e = bits_length(state[j]) - 17;
		tail_put(&t, e, 4);
		tail_put(&t, state[j] & ((1u << (16 + e)) - 1), 16 + e);
	}
	for (i = 16 * (size_t)states; i < n; i += k) {
		k = n - i < 16 ? (unsigned)(n - i) : 16;
		tail_put(&t, bytes_le16(raw->start + i / 8) & ((1u << k) - 1), k);
	}
	return tail_put_end(&t);
}

/* ---- reading ---- */

/* Reader of plain bits: first those in the states, then the others. */
struct plain {
	const uint32_t *state, *end;	/* the states that are not read yet */
	struct bits_get t;
	uint64_t v;		/* n bits of earlier states that get_bits has not returned yet */
	unsigned n, fine;	/* fine: that of struct ecq_side */
	int bad;		/* 1: the bits are not valid */
};

/* Read n <= 32 bits. */
ECQ_BITS_INLINE uint32_t
get_bits(struct plain *b, unsigned n)
{
	uint64_t v;

	if (b->n == 0 && b->state == b->end)
		return (uint32_t)bits_get(&b->t, n);
	while (b->n < n && b->state < b->end) {
		b->v |= (uint64_t)(*b->state++ & 0xffff) << b->n;
		b->n += 16;
	}
	if (b->n < n) {
		b->v |= bits_get(&b->t, n - b->n) << b->n;
		b->n = n;
	}
	v = b->v & (((uint64_t)1 << n) - 1);
	b->v >>= n;
	b->n -= n;
	return (uint32_t)v;
}

/* Decode the chunks whose values have no plain bits except signs, by their marks, with kern's
 * function `values'; `of' is its table of magnitudes. */
static inline void
ecq_bits_whole(void (*values)(float *, const uint16_t *, const uint32_t *, size_t,
    const float *), float *x, const uint16_t *code, const uint32_t *mark,
    size_t n, const float *of)
{
	size_t at, end, i;

	for (at = 0; at < n; at = end) {
		for (end = at; end < n && mark[end / KERN_ECQ_LANES] >> 24 == 0;)
			end += KERN_ECQ_LANES;
		i = end < n ? end : n;
		values(x + at, code + at, mark + at / KERN_ECQ_LANES, i - at, of);
		while (end < n && mark[end / KERN_ECQ_LANES] >> 24 != 0)
			end += KERN_ECQ_LANES;
	}
}

/* Read the n states at the end of a body. Return 0, or -1 if the body is too short. */
static inline int
ecq_bits_states(struct bits_get *t, uint32_t *state, unsigned n)
{
	unsigned i, e;

	for (i = 0; i < n; i++) {
		e = (unsigned)bits_get(t, 4);
		state[i] = KERN_ECQ_LOW << e | (uint32_t)bits_get(t, 16 + e);
	}
	return t->at > 8 * t->len ? -1 : 0;
}

#endif
