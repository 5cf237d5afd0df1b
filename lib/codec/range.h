/*
 * A binary adaptive range coder (Martin 1979), as Subbotin's and LZMA's, with 64 bits and
 * carries propagated to earlier bytes.
 *
 * Each kind of decision has an adaptive probability p: at its n-th use p moves towards the
 * bit seen by 1/(n + 1.5) of the distance, the Krichevsky-Trofimov estimate.  The rate
 * never falls below about 1/256, so that old decisions are slowly forgotten.
 *
 * The functions are inline, so that a coder stays in registers and a decision takes a few
 * nanoseconds.
 */
#ifndef ACE_RANGE_H
#define ACE_RANGE_H

#include <stddef.h>
#include <stdint.h>

enum { RANGE_BITS = 16, RANGE_LIMIT = 255 };

/* P(1) in units of 2^-16, and the number of uses. */
struct range_bit {
	uint16_t p, n;
};

/* 2^16 / (n + 1.5) */
extern const uint16_t range_rate[RANGE_LIMIT + 1];

/* Reset b[n] to decisions without history. */
void range_start(struct range_bit *b, size_t n);

#define RANGE_INLINE static inline __attribute__((always_inline))

RANGE_INLINE void
range_learn(struct range_bit *b, int bit)
{
	uint32_t rate = range_rate[b->n], p = b->p;

	b->n = (uint16_t)(b->n + (b->n < RANGE_LIMIT));
	if (bit)
		p += (65536 - 24 - p) * rate >> 16;
	else
		p -= (p - 24) * rate >> 16;
	b->p = (uint16_t)p;
}

/* Update without a branch: none is 0 for bit 1, ~0 for bit 0. */
RANGE_INLINE void
range_learn_even(struct range_bit *b, uint32_t none)
{
	uint32_t rate = range_rate[b->n], p = b->p, d;

	b->n = (uint16_t)(b->n + (b->n < RANGE_LIMIT));
	/* one product: towards 65512, or down to 24 */
	d = ((65536 - 24 - p) & ~none) | ((p - 24) & none);
	d = (d * rate >> 16 ^ none) - none;
	b->p = (uint16_t)(p + d);
}

/* ---- writing ---- */
struct range_put {
	uint64_t low, range;
	unsigned char *start, *p;
};

/* Return a coder that writes to p; the caller provides the room. */
struct range_put range_put_start(unsigned char *p);
/* End the code and return its size in bytes, at least one. It decodes alike whatever
 * bytes follow; w cannot be used again. */
size_t range_put_end(struct range_put w);
/* Add one to the number in the bytes from start up to p. */
void range_put_carry(unsigned char *start, unsigned char *p);

RANGE_INLINE void
range_put_shift(struct range_put *w)
{
	uint32_t v = (uint32_t)(w->low >> 32);

	*w->p++ = (unsigned char)(v >> 24);
	*w->p++ = (unsigned char)(v >> 16);
	*w->p++ = (unsigned char)(v >> 8);
	*w->p++ = (unsigned char)v;
	w->low <<= 32;
	w->range <<= 32;
}

/* As range_put, without a branch, for bits that are hard to predict. */
RANGE_INLINE void
range_put_even(struct range_put *w, struct range_bit *b, int bit)
{
	uint64_t bound = (w->range >> RANGE_BITS) * b->p;
	uint64_t none = (uint64_t)bit - 1, add = bound & none;

	w->range = (bound & ~none) | ((w->range - bound) & none);
	w->low += add;
	if (__builtin_expect(w->low < add, 0))
		range_put_carry(w->start, w->p);
	range_learn_even(b, (uint32_t)none);
	if (__builtin_expect(w->range >> 32 == 0, 0))
		range_put_shift(w);
}

/* ---- reading ---- */
struct range_get {
	uint64_t code, range;
	const unsigned char *p;
	size_t at, n;		/* the next byte; zeros from n on */
};

/* Return a decoder of a code that lies within the n bytes at p. */
struct range_get range_get_start(const unsigned char *p, size_t n);
/* Return the length of the code in bytes: above n if the code was cut short, SIZE_MAX
 * if range_put_end would have ended it otherwise. */
size_t range_get_end(struct range_get r);
/* Return the four bytes from p[at], with zeros from p[n] on. */
uint32_t range_get_tail(const unsigned char *p, size_t at, size_t n);

RANGE_INLINE void
range_get_shift(struct range_get *r)
{
	const unsigned char *p;
	uint32_t v;

	if (r->at + 4 <= r->n) {
		p = r->p + r->at;
		v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
		    (uint32_t)p[2] << 8 | p[3];
	} else
		v = range_get_tail(r->p, r->at, r->n);
	r->at += 4;
	r->range <<= 32;
	r->code = r->code << 32 | v;
}

RANGE_INLINE int
range_get_bit(struct range_get *r, struct range_bit *b)
{
	uint64_t bound = (r->range >> RANGE_BITS) * b->p;
	int bit = r->code < bound;

	if (bit)
		r->range = bound;
	else {
		r->code -= bound;
		r->range -= bound;
	}
	range_learn(b, bit);
	if (__builtin_expect(r->range >> 32 == 0, 0))
		range_get_shift(r);
	return bit;
}

/* As range_get, without a branch, for bits that are hard to predict. */
RANGE_INLINE int
range_get_even(struct range_get *r, struct range_bit *b)
{
	uint64_t bound = (r->range >> RANGE_BITS) * b->p;
	uint64_t none = (uint64_t)(r->code < bound) - 1;

	r->range = (bound & ~none) | ((r->range - bound) & none);
	r->code -= bound & none;
	range_learn_even(b, (uint32_t)none);
	if (__builtin_expect(r->range >> 32 == 0, 0))
		range_get_shift(r);
	return (int)(none + 1);
}

#endif
