/*
 * Golomb-Rice codes with an adaptive mean (Golomb 1966; Rice 1979; the mean as in LOCO-I,
 * Weinberger, Seroussi and Sapiro 2000).
 *
 *   v := v >> r zeros, a 1, and the r low bits of v;  r = floor(log2(max(mean, 1)))
 *      | 16 zeros and v, as wide as the largest number   if v >> r is 16 or more
 *
 * After each v the mean moves a quarter of the way to v; it is stored in units of 2^-8.
 * Bits fill bytes from the least significant one; the last byte is padded with 0.
 */
#ifndef ACE_RICE_H
#define ACE_RICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/ecq_bits.h"

enum { RICE_UNARY = 16 };

/* Adaptive model of one kind of number. */
struct rice {
	uint64_t mean;		/* in units of 2^-8 */
	unsigned width;		/* bits of the largest number */
};

/* Return a model of numbers up to most < 2^32 with this mean. */
static inline struct rice
rice_start(uint64_t mean, uint32_t most)
{
	return (struct rice){ mean << 8, 32 - (unsigned)__builtin_clz(most | 1) };
}

/* Return the largest size in bytes of n numbers up to most, including bytes that rice_put
 * stores beyond their end. */
static inline size_t
rice_bound(size_t n, uint32_t most)
{
	return n * (RICE_UNARY + rice_start(0, most).width) / 8 + 9;
}

static inline unsigned
rice_low(const struct rice *g)
{
	return 55 - (unsigned)__builtin_clzll(g->mean | 256);
}

static inline void
rice_learn(struct rice *g, uint64_t v)
{
	g->mean = g->mean - (g->mean >> 2) + (v << 6);
}

/* ---- writing, with put_many (ecq_bits.h) ---- */

static inline void
rice_put(struct bits *w, struct rice *g, uint32_t v)
{
	const unsigned r = rice_low(g);
	const uint32_t q = v >> r;

	if (q < RICE_UNARY) {
		put_many(w, (2 * (uint64_t)(v & (((uint32_t)1 << r) - 1)) + 1) << q,
		    q + 1 + r);
	} else
		put_many(w, (uint64_t)v << RICE_UNARY, RICE_UNARY + g->width);
	rice_learn(g, v);
}

/* Pad the last byte; return the position after it. */
static inline unsigned char *
rice_put_end(struct bits *w)
{
	for (; w->n > 0; w->n -= w->n < 8 ? w->n : 8, w->v >>= 8)
		*w->p++ = (unsigned char)w->v;
	return w->p;
}

/* Return a model for `gaps' gaps between positions below n. */
static inline struct rice
rice_gaps(size_t gaps, size_t n)
{
	return rice_start(n / (gaps + !gaps), (uint32_t)n);
}

/*
 * Write k rising positions below n as gaps: before each position, the number of
 * positions that are left out.  If k > n - k, the left-out positions are written in this
 * way instead, so that k = n takes no bits.
 */
static inline void
rice_put_positions(struct bits *w, const uint32_t *pos, size_t k, size_t n)
{
	const int holes = k > n - k;
	struct rice g = rice_gaps(holes ? n - k : k, n);
	uint32_t next = 0, at = 0;
	size_t i;

	for (i = 0; i < k && !holes; next = pos[i++] + 1)
		rice_put(w, &g, pos[i] - next);
	for (; holes && at < n; at++)
		if (i < k && pos[i] == at)
			i++;
		else {
			rice_put(w, &g, at - next);
			next = at + 1;
		}
}

/* ---- reading ---- */

/* Reader of the bits of a body; at: number of bits read. */
struct rice_in {
	const unsigned char *p;
	size_t n;
	uint64_t at;
	int bad;		/* 1: the bits are not what rice_put writes */
};

static inline struct rice_in
rice_open(const struct bytes *b)
{
	return (struct rice_in){ b->p + b->at, b->n - b->at, 0, b->bad };
}

/* Return the next 57 or more bits; after the end they are 0. */
static inline uint64_t
rice_look(const struct rice_in *in)
{
	const size_t at = (size_t)(in->at / 8);
	uint64_t v = 0;
	size_t i;

	if (in->n >= 8 && at <= in->n - 8)
		return bytes_le64(in->p + at) >> in->at % 8;
	for (i = at; i < in->n; i++)
		v |= (uint64_t)in->p[i] << 8 * (i - at);
	return v >> in->at % 8;
}

static inline uint64_t
rice_get(struct rice_in *in, struct rice *g)
{
	const unsigned r = rice_low(g);
	uint64_t w = rice_look(in), v;
	const unsigned q = (unsigned)__builtin_ctzll(w | 1 << RICE_UNARY);

	w >>= q;
	if (q < RICE_UNARY) {
		v = (uint64_t)q << r | (w >> 1 & (((uint64_t)1 << r) - 1));
		in->at += q + 1 + r;
	} else {
		v = w & (((uint64_t)1 << g->width) - 1);
		in->at += RICE_UNARY + g->width;
		in->bad |= v >> r < RICE_UNARY;
	}
	rice_learn(g, v);
	return v;
}

/* Read n <= 32 bits that were written as they are. */
static inline uint32_t
rice_get_bits(struct rice_in *in, unsigned n)
{
	const uint64_t v = rice_look(in) & (((uint64_t)1 << n) - 1);

	in->at += n;
	return (uint32_t)v;
}

/* Move b past the bits. Return -1 if rice_put cannot have written them, if the body ends
 * early, or if the padding is not 0. */
static inline int
rice_close(const struct rice_in *in, struct bytes *b)
{
	const size_t len = (size_t)((in->at + 7) / 8);

	if (in->bad || len > in->n || (in->at % 8 != 0 &&
	    in->p[len - 1] >> in->at % 8 != 0))
		return -1;
	b->at += len;
	return 0;
}

/* Read a gap, return the position *next + gap, and set *next to the position after it. If
 * the position is not below n or the body ended, set in->bad. */
static inline uint32_t
rice_get_gap(struct rice_in *in, struct rice *g, uint64_t *next, size_t n)
{
	const uint64_t at = *next + rice_get(in, g);

	in->bad |= at >= n || in->at > 8 * (uint64_t)in->n;
	*next = at + 1;
	return (uint32_t)at;
}

/* Read into pos[k] what rice_put_positions wrote. */
static inline void
rice_get_positions(struct rice_in *in, uint32_t *pos, size_t k, size_t n)
{
	const int holes = k > n - k;
	const size_t gaps = holes ? n - k : k;
	struct rice g = rice_gaps(gaps, n);
	uint64_t next = 0;
	uint32_t at = 0, hole;
	size_t i, j = 0;

	for (i = 0; i < gaps && !holes && !in->bad; i++)
		pos[i] = rice_get_gap(in, &g, &next, n);
	for (; i < gaps && !in->bad; i++, at = hole + 1) {
		hole = rice_get_gap(in, &g, &next, n);
		while (at < hole && j < k)
			pos[j++] = at++;
	}
	while (holes && j < k)
		pos[j++] = at++;
}

#endif
