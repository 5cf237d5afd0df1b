#include <string.h>

#include "base/bytes.h"
#include "codec/bits.h"
#include "codec/range.h"
#include "codec/rice.h"
#include "codec/sparse.h"

enum { FIELD = 30, KINDS = 4, PART = 64 };

size_t
sparse_bound(size_t k, size_t n, unsigned width)
{
	return rice_bound(k, n) + k / 8 * width + (k % 8 * width + 7) / 8;
}

size_t
sparse_put_plain(unsigned char *p, const struct sparse *s)
{
	unsigned char *start = p, t[PART];
	size_t i, j, m;

	p += rice_put(p, s->pos, s->k);
	for (i = 0; s->width == SPARSE_HALF && i < s->k; i++, p += 2)
		bytes_set16(p, s->code[i]);
	for (i = 0; s->width != SPARSE_HALF && i < s->k; i += m) {
		m = s->k - i < PART ? s->k - i : PART;
		for (j = 0; j < m; j++)
			t[j] = (unsigned char)s->code[i + j];
		bits_pack(p, t, m, s->width);
		p += bits_size(m, s->width);
	}
	return (size_t)(p - start);
}

int
sparse_get_plain(struct bytes *b, struct sparse *s)
{
	const unsigned char *p;
	unsigned char t[PART];
	size_t i, j, m;

	if (rice_get(b, s->pos, s->k, s->n) < 0)
		return -1;
	p = bytes_take(b, s->width == SPARSE_HALF ? 2 * s->k :
	    bits_size(s->k, s->width));
	if (p == NULL)
		return -1;
	for (i = 0; s->width == SPARSE_HALF && i < s->k; i++, p += 2)
		s->code[i] = bytes_le16(p);
	for (i = 0; s->width != SPARSE_HALF && i < s->k; i += m) {
		m = s->k - i < PART ? s->k - i : PART;
		if (bits_unpack(t, p, m, s->width) < 0)
			return -1;
		for (j = 0; j < m; j++)
			s->code[i + j] = t[j];
		p += bits_size(m, s->width);
	}
	return 0;
}

/*
 * ---- rising positions, with the range coder (range.h) ----
 *
 * Spread at random they take about their entropy, and less where they cluster.
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

enum { GAPS_CLASSES = 5, GAPS_OCTAVES = 32, GAPS_KNOWN = 3, GAPS_TRUST = 40 };

struct gaps {
	struct range_bit octave[GAPS_CLASSES][GAPS_OCTAVES];
	struct range_bit top[GAPS_OCTAVES][1 << GAPS_KNOWN];
	uint64_t mean;		/* of v, 2^-8 */
	int expect;		/* octave of n / k in the same units */
};

/* A decision with probability p, as if it had been seen GAPS_TRUST times. */
static struct range_bit
believe(double p)
{
	struct range_bit b = { 32, GAPS_TRUST };

	if (p * 65536 > 65504)
		b.p = 65504;
	else if (p * 65536 > 32)
		b.p = (uint16_t)(p * 65536);
	return b;
}

/* For k positions below n; 0 < k <= n <= 2^31. */
static void
gaps_start(struct gaps *g, size_t k, size_t n)
{
	double q = 1 - (double)k / (double)n, half[GAPS_OCTAVES], p, low, all;
	double above[GAPS_OCTAVES + 1];	/* P(b >= i) = P(v > 2^i - 1) */
	unsigned i, j, c, width;

	above[0] = 1;
	for (i = 0, p = q; i < GAPS_OCTAVES; i++, p *= p) {
		half[i] = p / (1 + p);	/* p = q^(2^i) */
		above[i + 1] = above[i] * p;
	}
	above[GAPS_OCTAVES] = 0;
	for (i = 1; i < GAPS_OCTAVES; i++) {
		/* node i of the tree covers width octaves from j */
		width = GAPS_OCTAVES >> (31 - __builtin_clz(i));
		j = i * width - GAPS_OCTAVES;
		all = above[j] - above[j + width];
		low = above[j] - above[j + width / 2];
		for (c = 0; c < GAPS_CLASSES; c++)
			g->octave[c][i] = believe(all > 0 ? 1 - low / all : 0);
	}
	for (i = 0; i < GAPS_OCTAVES; i++)
		for (j = 1; j < 1 << GAPS_KNOWN; j++) {
			c = 31 - (unsigned)__builtin_clz(j);
			g->top[i][j] = believe(i > c ? half[i - c - 1] : 0);
		}
	g->mean = ((uint64_t)n << 8) / k;
	g->expect = 63 - __builtin_clzll(g->mean);
}

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

/* ---- coded ---- */

struct model {
	struct gaps gaps;
	struct range_bit field[FIELD], top[KINDS][8], level[8];
};

static void
model_start(struct model *m, const struct sparse *s)
{
	gaps_start(&m->gaps, s->k, s->n);
	range_start(m->field, FIELD);
	range_start(m->top[0], KINDS * 8);
	range_start(m->level, 8);
}

RANGE_INLINE void
put_half(struct model *m, struct range_put *w, unsigned h)
{
	unsigned down = FIELD - (h >> 10 & 31), i, at = 1;
	struct range_bit *top = m->top[down < KINDS ? down : KINDS - 1];

	for (i = 0; i < down; i++)
		range_put_bit(w, &m->field[i], 1);
	if (down < FIELD)
		range_put_bit(w, &m->field[down], 0);
	for (i = 9; i > 6; i--) {
		range_put_even(w, &top[at], (int)(h >> i & 1));
		at = at * 2 + (h >> i & 1);
	}
}

RANGE_INLINE unsigned
get_half(struct model *m, struct range_get *r)
{
	unsigned down = 0, at = 1;
	struct range_bit *top;

	while (down < FIELD && range_get_bit(r, &m->field[down]))
		down++;
	top = m->top[down < KINDS ? down : KINDS - 1];
	while (at < 8)
		at = at * 2 + (unsigned)range_get_even(r, &top[at]);
	return (FIELD - down) << 10 | (at & 7) << 7;
}

/* j of width - 1 bits */
RANGE_INLINE void
put_level(struct model *m, struct range_put *w, unsigned width, unsigned j)
{
	unsigned at = 1;

	while (--width > 0) {
		range_put_even(w, &m->level[at], (int)(j >> (width - 1) & 1));
		at = at * 2 + (j >> (width - 1) & 1);
	}
}

RANGE_INLINE unsigned
get_level(struct model *m, struct range_get *r, unsigned width)
{
	unsigned at = 1, end = 1u << (width - 1);

	while (at < end)
		at = at * 2 + (unsigned)range_get_even(r, &m->level[at]);
	return at - end;
}

static size_t
side_size(const struct sparse *s)
{
	return s->width == SPARSE_HALF ? s->k : (s->k + 7) / 8;
}

size_t
sparse_put_coded(unsigned char *p, size_t cap, const struct sparse *s)
{
	size_t i, side = side_size(s);
	uint32_t next = 0;
	struct range_put w;
	struct model m;
	unsigned c;

	if (side >= cap)
		return 0;
	memset(p, 0, side);
	for (i = 0; i < s->k; i++) {
		c = s->code[i];
		if (s->width == SPARSE_HALF)
			p[i] = (unsigned char)((c >> 8 & 128) | (c & 127));
		else
			p[i / 8] |= (unsigned char)((c & 1) << i % 8);
	}
	model_start(&m, s);
	w = range_put_start(p + side);
	for (i = 0; i < s->k; i++) {
		gaps_put(&m.gaps, &w, s->pos[i] - next);
		next = s->pos[i] + 1;
		if (s->width == SPARSE_HALF)
			put_half(&m, &w, s->code[i]);
		else
			put_level(&m, &w, s->width, s->code[i] / 2u);
		if ((size_t)(w.p - p) >= cap)
			return 0;
	}
	side += range_put_end(w);
	return side < cap ? side : 0;
}

int
sparse_get_coded(struct bytes *b, struct sparse *s)
{
	const unsigned char *p = bytes_take(b, side_size(s));
	uint64_t next = 0;
	struct range_get r;
	struct model m;
	unsigned c;
	size_t i;

	if (p == NULL)
		return -1;
	if (s->width != SPARSE_HALF && s->k % 8 != 0 &&
	    p[s->k / 8] >> s->k % 8 != 0)
		return -1;
	model_start(&m, s);
	r = range_get_start(b->p + b->at, b->n - b->at);
	for (i = 0; i < s->k; i++) {
		next += gaps_get(&m.gaps, &r);
		if (next >= s->n)
			return -1;
		s->pos[i] = (uint32_t)next++;
		if (s->width == SPARSE_HALF) {
			c = get_half(&m, &r);
			s->code[i] = (uint16_t)((p[i] & 128u) << 8 | c |
			    (p[i] & 127u));
		} else {
			c = get_level(&m, &r, s->width);
			s->code[i] = (uint16_t)(c * 2 +
			    ((unsigned)p[i / 8] >> i % 8 & 1));
		}
	}
	if (range_get_end(r) != b->n - b->at)
		return -1;
	b->at = b->n;
	return 0;
}
