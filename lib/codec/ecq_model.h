/*
 * The model of ECQ: what is expected of a value from those before it.
 *
 * Values are taken row by row, a row in segments of 16 columns, a segment in
 * blocks of 4.  Two things foretell a magnitude: the values to the left (two
 * decaying means of |q|, near and far) and those above (a decaying mean per
 * column).  Their geometric mean, in half octaves, is the context of a
 * decision.  Rows count only where they are at least a segment long and two
 * of them fit in the group.  All whole numbers: the same on every machine.
 *
 * Inline, because every value passes here.
 */
#ifndef ACE_ECQ_MODEL_H
#define ACE_ECQ_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "codec/range.h"

struct codec_ctx;
struct err;

enum {
	ECQ_SEG = 16, ECQ_BLOCK = 4,
	ECQ_LEVELS = 32,	/* half octaves of a mean from 2^-8 to 2^8 */
	ECQ_CLASSES = 15,	/* bits of a magnitude */
	ECQ_CAP = 255		/* a magnitude counts as no more than this */
};

/* What is known of the others in a segment or block when one is asked for:
 * how many are zero (0 to 2), or that one is not. */
enum { ECQ_FOUND = 3, ECQ_STATES = 4 };

struct ecq_model {
	struct range_bit seg[ECQ_LEVELS];
	struct range_bit block[ECQ_LEVELS][ECQ_STATES];
	struct range_bit value[ECQ_LEVELS][ECQ_STATES];
	/* [l / 2][c - 1]: has a magnitude of c bits or more, more */
	struct range_bit more[ECQ_LEVELS / 2][ECQ_CLASSES];
	/* of c bits: the three after the first, as a tree */
	struct range_bit mantissa[ECQ_CLASSES + 1][8];
	uint32_t near, far;	/* means to the left, 2^-16 */
	uint64_t sum, count;	/* of all so far */
	int16_t *col;		/* means above, 2^-7; NULL: no rows */
	size_t cols, at;	/* at: column of the next value */
	unsigned rows;		/* whole rows so far, at most 3 */
};

/* ecq_model_init(m, ctx, n, e): for a group of n.  0 or -ERR_SYS. */
int ecq_model_init(struct ecq_model *m, const struct codec_ctx *ctx, size_t n,
    struct err *e);
void ecq_model_free(struct ecq_model *m);

/* ecq_model_next(m, left): the length of the next segment. */
static inline size_t
ecq_model_next(struct ecq_model *m, size_t left)
{
	size_t k;

	if (m->at == m->cols) {
		m->at = 0;
		m->rows += m->rows < 3;
		/* a new row may be unlike the one before */
		m->near = m->far = (uint32_t)((m->sum << 16) / m->count);
	}
	k = ECQ_SEG - m->at % ECQ_SEG;
	if (k > m->cols - m->at)
		k = m->cols - m->at;
	return k < left ? k : left;
}

/* Half octaves of v < 2^16 in 2^-8; 0 below 2^-8. */
static inline unsigned
ecq_half_octaves(uint32_t v)
{
	unsigned o;

	if (v < 2)
		return v;
	o = 31 - (unsigned)__builtin_clz(v);
	return 2 * o + (v >> (o - 1) & 1);
}

/* ecq_model_level(m, i, k): the context of the k values from the i-th of the
 * segment on. */
static inline unsigned
ecq_model_level(const struct ecq_model *m, size_t i, size_t k)
{
	unsigned l = ecq_half_octaves((m->near + m->far) >> 9);
	const int16_t *c;
	int s = 0;
	size_t j;

	if (m->rows == 0 || m->col == NULL)
		return l;
	c = m->col + m->at + i;
	if (k == ECQ_SEG) {
		for (j = 0; j < ECQ_SEG; j++)
			s += c[j];
		s >>= 3;
	} else if (k == ECQ_BLOCK)
		s = (c[0] + c[1] + c[2] + c[3]) >> 1;
	else {
		for (j = 0; j < k; j++)
			s += c[j];
		s = 2 * s / (int)k;
	}
	return (l + ecq_half_octaves((uint32_t)s) + 1) / 2;
}

/* ecq_model_left(m, sum, k): k values with this sum of magnitudes went by. */
static inline void
ecq_model_left(struct ecq_model *m, uint32_t sum, size_t k)
{
	uint32_t mean = k == ECQ_BLOCK ? sum << 14 : (sum << 16) / (uint32_t)k;

	m->near = m->near - (m->near >> 2) + (mean >> 2);
	m->far = m->far - (m->far >> 5) + (mean >> 5);
	m->sum += sum;
	m->count += k;
}

static inline void
ecq_model_decay(int16_t *c, const int16_t *q, size_t k, unsigned shift)
{
	int16_t a;
	size_t i;

	for (i = 0; i < k; i++) {
		a = (int16_t)(q[i] < 0 ? -q[i] : q[i]);
		a = (int16_t)((a < ECQ_CAP ? a : ECQ_CAP) << 7);
		a = (int16_t)(a - c[i]);
		c[i] = (int16_t)(c[i] + (a >> shift));
	}
}

/* ecq_model_above(m, q, k): the segment is done; q NULL: all zero. */
static inline void
ecq_model_above(struct ecq_model *m, const int16_t *q, size_t k)
{
	static const int16_t none[ECQ_SEG];

	q = q != NULL ? q : none;
	if (m->col != NULL && k == ECQ_SEG)	/* of a length known here */
		ecq_model_decay(m->col + m->at, q, ECQ_SEG, m->rows);
	else if (m->col != NULL)
		ecq_model_decay(m->col + m->at, q, k, m->rows);
	m->at += k;
}

#endif
