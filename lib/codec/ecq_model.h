/*
 * The model of ECQ: what is expected of a value from those before it.
 *
 * Values are taken row by row, a row in segments of 16 columns, a segment in
 * blocks of 4.  Two things foretell a magnitude: the values to the left (two
 * decaying means of |q|, near and far) and those above (a decaying mean per
 * column).  Their geometric mean, in half octaves, is the level that a decision
 * is made at.  Rows count only where they are at least a segment long and two
 * of them fit in the group.  Or nothing foretells anything, all is of the level
 * of the group's mean, and less is to be learnt.  All whole numbers: the same
 * on every machine.
 *
 * Inline, because every value passes here.
 */
#ifndef ACE_ECQ_MODEL_H
#define ACE_ECQ_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "codec/range.h"

struct codec_ctx;
struct err;

enum {
	ECQ_SEG = 16, ECQ_BLOCK = 4,
	ECQ_LEVELS = 36,	/* half octaves of a mean from 2^-10 to 2^8 */
	ECQ_CLASSES = 15,	/* bits of a magnitude */
	ECQ_TREE = 3,		/* bits below the first that are learnt */
	ECQ_CAP = 255		/* a magnitude counts as no more than this */
};

/* Before a block's loop: copies are worth a twentieth of the time.  With every
 * access checked they would take minutes to compile. */
#ifdef ACE_SANITIZED
#define ECQ_UNROLL
#else
#define ECQ_UNROLL _Pragma("GCC unroll 4")
#endif

/* What is known of the others in a segment or block when one is asked for:
 * how many are zero (0 to 2), or that one is not. */
enum { ECQ_FOUND = 3, ECQ_STATES = 4 };

typedef int32_t ecq_four __attribute__((vector_size(16)));

struct ecq_model {
	struct range_bit seg[ECQ_LEVELS];
	struct range_bit block[ECQ_LEVELS][ECQ_STATES];
	struct range_bit value[ECQ_LEVELS][ECQ_STATES];
	/* [l / 2][c - 1]: has a magnitude of c bits or more, more */
	struct range_bit more[ECQ_LEVELS / 2][ECQ_CLASSES];
	/* of c bits: those after the first, as a tree */
	struct range_bit mantissa[ECQ_CLASSES + 1][1 << ECQ_TREE];
	int16_t *col;		/* means above, 2^-7; NULL: no rows */
	/* their half octaves: of columns, blocks and segments of a row */
	uint16_t *value_above;
	uint32_t *block_above;
	uint8_t *seg_above;
	size_t cols, at;	/* at: column of the next value */
	unsigned rows;		/* whole rows so far, at most 3 */
};

/* What makes a level. */
enum ecq_mode { ECQ_PLAIN, ECQ_LEFT, ECQ_ABOVE };

/* What is to the left; apart, so that it lives in registers. */
struct ecq_left {
	uint32_t near, far;	/* means, 2^-16 */
	unsigned plain;		/* the level of all */
	uint64_t sum;		/* of all |q| so far */
};

/* ecq_model_init(m, ctx, n, plain, e): for a group of n.  0 or -ERR_SYS. */
int ecq_model_init(struct ecq_model *m, const struct codec_ctx *ctx, size_t n,
    int plain, struct err *e);
void ecq_model_free(struct ecq_model *m);

/* ecq_model_mode(m): of this row, when it is not plain. */
static inline enum ecq_mode
ecq_model_mode(const struct ecq_model *m)
{
	return m->col != NULL && m->rows > 0 ? ECQ_ABOVE : ECQ_LEFT;
}

/* ecq_model_start(l): level l to the left of the first value. */
static inline struct ecq_left
ecq_model_start(unsigned l)
{
	uint32_t mean = ((2 + (l & 1)) << l / 2 >> 1) << 6;
	struct ecq_left f = { mean, mean, l, 0 };

	return f;
}

/* ecq_model_next(m, f, i, n): the length of the segment at i of n. */
static inline size_t
ecq_model_next(struct ecq_model *m, struct ecq_left *f, size_t i, size_t n)
{
	size_t k;

	if (m->at == m->cols) {
		m->at = 0;
		m->rows += m->rows < 3;
		/* a new row may be unlike the one before */
		f->near = f->far = (uint32_t)((f->sum << 16) / i);
	}
	k = ECQ_SEG - m->at % ECQ_SEG;
	if (k > m->cols - m->at)
		k = m->cols - m->at;
	return k < n - i ? k : n - i;
}

/* Half octaves of v < 2^18 in 2^-10. */
RANGE_INLINE unsigned
ecq_half_octaves(uint32_t v)
{
	unsigned o = 31 - (unsigned)__builtin_clz(v | 1);

	return 2 * o + (v << 1 >> o & 1);
}

/* The level of n > 0 values with this sum of magnitudes. */
static inline uint8_t
ecq_model_mean(uint64_t sum, size_t n)
{
	uint64_t v = (sum << 10) / n;

	return (uint8_t)ecq_half_octaves(v < 1 << 18 ? (uint32_t)v :
	    (1 << 18) - 1);
}

/* The same of four at once. */
RANGE_INLINE ecq_four
ecq_half_octaves_four(ecq_four v)
{
	typedef float four __attribute__((vector_size(16)));
	four f = __builtin_convertvector(v, four);
	ecq_four h;

	/* exponent and first bit of the significand; below 1 of v = 0 */
	memcpy(&h, &f, sizeof(h));
	h = (h >> 22) - 254;
	return h & ~(h >> 31);
}

RANGE_INLINE unsigned
ecq_model_look(const struct ecq_left *f, enum ecq_mode mode)
{
	if (mode == ECQ_PLAIN)
		return f->plain;
	return ecq_half_octaves((f->near + f->far) >> 7);
}

/* The levels of the segment, block, value in column c, of what is so much to
 * the left. */
RANGE_INLINE unsigned
ecq_model_seg(const struct ecq_model *m, enum ecq_mode mode, unsigned left,
    size_t c)
{
	return mode == ECQ_ABOVE ?
	    (left + m->seg_above[c / ECQ_SEG] + 1) / 2 : left;
}

RANGE_INLINE unsigned
ecq_model_block(const struct ecq_model *m, enum ecq_mode mode, unsigned left,
    size_t c)
{
	return mode == ECQ_ABOVE ?
	    (left + m->block_above[c / ECQ_BLOCK] + 1) / 2 : left;
}

RANGE_INLINE unsigned
ecq_model_value(const struct ecq_model *m, enum ecq_mode mode, unsigned left,
    size_t c)
{
	return mode == ECQ_ABOVE ? (left + m->value_above[c] + 1u) / 2 : left;
}

/* k values with this sum of magnitudes went by. */
RANGE_INLINE void
ecq_model_left(struct ecq_left *f, enum ecq_mode mode, uint32_t sum, size_t k)
{
	uint32_t mean = k == ECQ_BLOCK ? sum << 14 : (uint32_t)((sum << 16) / k);

	if (mode == ECQ_PLAIN)
		return;
	f->near = f->near - (f->near >> 2) + (mean >> 2);
	f->far = f->far - (f->far >> 5) + (mean >> 5);
	f->sum += sum;
}

/* ecq_model_above(m, q, k): of the k columns of this row from m->at on, within
 * a segment; q[i] are magnitudes, at most ECQ_CAP.
 * c += (q - c) / 2^rows, to minus infinity. */
void ecq_model_above(struct ecq_model *m, const int16_t *q, size_t k);

/* The same of a whole segment. */
RANGE_INLINE void
ecq_model_above_all(struct ecq_model *m, const int16_t q[ECQ_SEG])
{
	typedef int16_t vec __attribute__((vector_size(16)));
	ecq_four u[2], odd, even, s;
	size_t at = m->at;
	vec v[2], w[2];
	int i;

	memcpy(v, m->col + at, sizeof(v));
	memcpy(w, q, sizeof(w));
	for (i = 0; i < 2; i++)
		v[i] += ((w[i] << 7) - v[i]) >> (int16_t)m->rows;
	memcpy(m->col + at, v, sizeof(v));
	memcpy(u, v, sizeof(u));
	for (i = 0; i < 2; i++) {
		even = u[i] & 0xffff;
		odd = u[i] >> 16;
		u[i] = even + odd;
		v[i] = (vec)(ecq_half_octaves_four(even << 3) |
		    ecq_half_octaves_four(odd << 3) << 16);
	}
	memcpy(m->value_above + at, v, sizeof(v));
	s = __builtin_shufflevector(u[0], u[1], 0, 2, 4, 6) +
	    __builtin_shufflevector(u[0], u[1], 1, 3, 5, 7);
	m->seg_above[at / ECQ_SEG] = (uint8_t)ecq_half_octaves(
	    (uint32_t)(s[0] + s[1] + s[2] + s[3]) >> 1);
	s = ecq_half_octaves_four(s << 1);
	memcpy(m->block_above + at / ECQ_BLOCK, &s, sizeof(s));
}

/* The k values from column m->at on are done. */
RANGE_INLINE void
ecq_model_done(struct ecq_model *m, const int16_t q[ECQ_SEG], size_t k)
{
	if (m->col != NULL && k == ECQ_SEG)
		ecq_model_above_all(m, q);
	else if (m->col != NULL)
		ecq_model_above(m, q, k);
	m->at += k;
}

#endif
