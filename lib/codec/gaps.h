/*
 * Codes rising positions with the range coder (range.h).  Positions that are
 * spread at random take about their entropy, positions that cluster less.
 *
 * A gap is position - position before - 1, the first the position itself;
 * v = gap + 1 = 2^b + rest.  b is a walk down a tree of five decisions, the
 * three bits after v's first are decisions too, those below are raw.  The
 * context of b is the octave of a decaying mean of v, relative to the octave
 * of n / k; the mean is in units of 2^-8 and moves 1/4 of the way to each v.
 *
 * k positions drawn at random of n have geometric gaps, P(v > m) = q^m with
 * q = 1 - k / n.  The decisions start from the probabilities that this gives,
 * as if they had seen it GAPS_TRUST times, because a few hundred positions are
 * too few to learn it.
 */
#ifndef ACE_GAPS_H
#define ACE_GAPS_H

#include <stddef.h>
#include <stdint.h>

#include "codec/range.h"

enum { GAPS_CLASSES = 5, GAPS_OCTAVES = 32, GAPS_KNOWN = 3, GAPS_TRUST = 40 };

struct gaps {
	struct range_bit octave[GAPS_CLASSES][GAPS_OCTAVES];
	struct range_bit top[GAPS_OCTAVES][1 << GAPS_KNOWN];
	uint64_t mean;		/* of v, 2^-8 */
	int expect;		/* octave of n / k in the same units */
};

/* gaps_start(g, k, n): for k positions below n; 0 < k <= n <= 2^31. */
void gaps_start(struct gaps *g, size_t k, size_t n);

RANGE_INLINE struct range_bit *
gaps_class(struct gaps *g)
{
	int c = 63 - __builtin_clzll(g->mean) - g->expect + GAPS_CLASSES / 2;

	c = c < 0 ? 0 : c < GAPS_CLASSES ? c : GAPS_CLASSES - 1;
	return g->octave[c];
}

RANGE_INLINE void
gaps_learn(struct gaps *g, uint64_t v)
{
	g->mean = g->mean - (g->mean >> 2) + (v << 6);
}

RANGE_INLINE void
gaps_put(struct gaps *g, struct range_put *w, uint32_t gap)
{
	uint64_t v = (uint64_t)gap + 1;
	unsigned b = 63 - (unsigned)__builtin_clzll(v), i = b, at;
	struct range_bit *o = gaps_class(g);

	for (at = 1; at < GAPS_OCTAVES; at = at * 2 + (b >> 4 & 1), b <<= 1)
		range_put_bit(w, &o[at], (int)(b >> 4 & 1));
	b = i;
	for (at = 1; i > 0 && at < 1 << GAPS_KNOWN; i--) {
		range_put_even(w, &g->top[b][at], (int)(v >> (i - 1) & 1));
		at = at * 2 + (unsigned)(v >> (i - 1) & 1);
	}
	range_put_raw(w, (uint32_t)v & (((uint32_t)1 << i) - 1), i);
	gaps_learn(g, v);
}

RANGE_INLINE uint64_t
gaps_get(struct gaps *g, struct range_get *r)
{
	struct range_bit *o = gaps_class(g);
	unsigned b = 1, i, at;
	uint64_t v = 1;

	while (b < GAPS_OCTAVES)
		b = b * 2 + (unsigned)range_get_bit(r, &o[b]);
	b -= GAPS_OCTAVES;
	i = b;
	for (at = 1; i > 0 && at < 1 << GAPS_KNOWN; i--)
		at = at * 2 + (unsigned)range_get_even(r, &g->top[b][at]);
	v = (uint64_t)at << i | range_get_raw(r, i);
	gaps_learn(g, v);
	return v - 1;
}

#endif
