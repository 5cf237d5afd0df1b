/*
 * A binary adaptive range coder (Martin 1979; Subbotin's and LZMA's kind, with
 * 64 bits and carries written back).
 *
 * Each kind of decision has a probability p that adapts: the n-th time, p
 * moves towards the bit that was seen by 1/(n + 1.5) of the way, as Krichevsky
 * and Trofimov's estimate does.  The rate never falls below about 1/256, so
 * that old decisions are slowly forgotten.
 *
 * The functions are inline, so that a coder stays in registers and a decision
 * costs a few nanoseconds.
 */
#ifndef ACE_RANGE_H
#define ACE_RANGE_H

#include <stddef.h>
#include <stdint.h>

enum { RANGE_BITS = 16, RANGE_LIMIT = 255 };

/* P(1) in units of 2^-16, and how often it was used. */
struct range_bit {
	uint16_t p, n;
};

/* 2^16 / (n + 1.5) */
extern const uint16_t range_rate[RANGE_LIMIT + 1];

/* range_start(b, n): sets b[n] to decisions that have seen nothing yet. */
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

/* The same without a branch: none is 0 for the bit 1, and ~0 for 0. */
RANGE_INLINE void
range_learn_even(struct range_bit *b, uint32_t none)
{
	uint32_t rate = range_rate[b->n], p = b->p, d;

	b->n = (uint16_t)(b->n + (b->n < RANGE_LIMIT));
	/* one product: of the way up to 65512, or down to 24 */
	d = ((65536 - 24 - p) & ~none) | ((p - 24) & none);
	d = (d * rate >> 16 ^ none) - none;
	b->p = (uint16_t)(p + d);
}

/* ---- writing ---- */
struct range_put {
	uint64_t low, range;
	unsigned char *start, *p;
};

/* range_put_start(p): a coder that writes to p, where the caller has room. */
struct range_put range_put_start(unsigned char *p);
/* range_put_end(w): ends the code and returns the number of its bytes, at
 * least one.  It decodes alike whatever bytes follow it; w is used up. */
size_t range_put_end(struct range_put w);
/* range_put_carry(start, p): adds one to the number written in the bytes from
 * start up to p. */
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

/* Without a branch, which would be taken wrongly half of the time. */
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
	size_t at, n;		/* the next byte; past n are zeros */
};

/* range_get_start(p, n): reads a code that lies within the n bytes at p. */
struct range_get range_get_start(const unsigned char *p, size_t n);
/* range_get_end(r): the length of the code in bytes, which is above n when the
 * code was cut short; SIZE_MAX when it does not end as range_put_end would
 * have ended it. */
size_t range_get_end(struct range_get r);
/* range_get_tail(p, at, n): the four bytes from p[at], with zeros for those
 * that lie past p[n]. */
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

/* The same for a decision that nobody can foretell: without a branch, which
 * would be taken wrongly half of the time. */
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
