/*
 * A binary adaptive range coder (Martin 1979; Subbotin's and LZMA's kind, with
 * 64 bits and carries written back).
 *
 * A decision has a probability that learns: p moves towards what was seen by
 * 1/(n + 1.5) of the way the n-th time, as Krichevsky and Trofimov's estimate
 * does, and by 1/RANGE_WINDOW once n is large.
 *
 * Inline, because a decision costs a few nanoseconds.
 */
#ifndef ACE_RANGE_H
#define ACE_RANGE_H

#include <stddef.h>
#include <stdint.h>

enum { RANGE_BITS = 16, RANGE_LIMIT = 1023 };

/* P(1) in units of 2^-16, and how often it was used. */
struct range_bit {
	uint16_t p, n;
};

/* 2^16 / (n + 1.5) */
extern const uint16_t range_rate[RANGE_LIMIT + 1];

/* range_start(b, n): n decisions that know nothing. */
void range_start(struct range_bit *b, size_t n);

static inline void
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

/* ---- writing ---- */
struct range_put {
	uint64_t low, range;
	unsigned char *start, *p;
};

/* range_put_start(w, p): to p; the caller has room. */
void range_put_start(struct range_put *w, unsigned char *p);
/* range_put_end(w): the bytes written; what zeros past the end say is left
 * out. */
size_t range_put_end(struct range_put *w);
void range_put_carry(struct range_put *w);

static inline void
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

static inline void
range_put_bit(struct range_put *w, struct range_bit *b, int bit)
{
	uint64_t bound = (w->range >> RANGE_BITS) * b->p;

	if (bit)
		w->range = bound;
	else {
		w->low += bound;
		w->range -= bound;
		if (w->low < bound)
			range_put_carry(w);
	}
	range_learn(b, bit);
	if (w->range >> 32 == 0)
		range_put_shift(w);
}

/* n bits of v, each as likely as not. */
static inline void
range_put_raw(struct range_put *w, uint32_t v, unsigned n)
{
	uint64_t half;

	while (n-- > 0) {
		half = w->range >> 1;
		if (v >> n & 1)
			w->range = half;
		else {
			w->low += half;
			w->range -= half;
			if (w->low < half)
				range_put_carry(w);
		}
		if (w->range >> 32 == 0)
			range_put_shift(w);
	}
}

/* ---- reading ---- */
struct range_get {
	uint64_t code, range;
	uint64_t seen;		/* the last eight bytes */
	const unsigned char *start, *p, *end;
};

void range_get_start(struct range_get *r, const unsigned char *p, size_t n);
/* range_get_end(r): 0 when the bytes end as range_put_end ends them, -1
 * otherwise.  Past the end are zeros, as many as are asked for. */
int range_get_end(const struct range_get *r);
void range_get_last(struct range_get *r);	/* near the end */

static inline void
range_get_shift(struct range_get *r)
{
	uint32_t v;

	r->range <<= 32;
	if (r->end - r->p >= 4) {
		v = (uint32_t)r->p[0] << 24 | (uint32_t)r->p[1] << 16 |
		    (uint32_t)r->p[2] << 8 | r->p[3];
		r->code = r->code << 32 | v;
		r->seen = r->seen << 32 | v;
		r->p += 4;
	} else
		range_get_last(r);
}

static inline int
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
	if (r->range >> 32 == 0)
		range_get_shift(r);
	return bit;
}

static inline uint32_t
range_get_raw(struct range_get *r, unsigned n)
{
	uint64_t half;
	uint32_t v = 0;

	while (n-- > 0) {
		half = r->range >> 1;
		v <<= 1;
		if (r->code < half) {
			r->range = half;
			v |= 1;
		} else {
			r->code -= half;
			r->range -= half;
		}
		if (r->range >> 32 == 0)
			range_get_shift(r);
	}
	return v;
}

#endif
