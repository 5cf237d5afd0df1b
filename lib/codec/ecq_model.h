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
#include <string.h>

#include "codec/range.h"

struct codec_ctx;
struct err;

enum {
	ECQ_SEG = 16, ECQ_BLOCK = 4,
	ECQ_LEVELS = 36,	/* half octaves of a mean from 2^-10 to 2^8 */
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
	uint64_t sum, count;	/* of all rows so far */
	unsigned left;		/* half octaves of near and far */
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

/* Half octaves of v < 2^18 in 2^-10. */
static inline unsigned
ecq_half_octaves(uint32_t v)
{
	unsigned o = 31 - (unsigned)__builtin_clz(v | 1);

	return 2 * o + (v << 1 >> o & 1);
}

/* ecq_model_look(m): to the left, once for all levels of a block. */
static inline void
ecq_model_look(struct ecq_model *m)
{
	m->left = ecq_half_octaves((m->near + m->far) >> 7);
}

/* ecq_model_level(m, i, k): the context of the k values from the i-th of the
 * segment on. */
static inline unsigned
ecq_model_level(const struct ecq_model *m, size_t i, size_t k)
{
	const int16_t *c;
	int s = 0;
	size_t j;

	if (m->rows == 0 || m->col == NULL)
		return m->left;
	c = m->col + m->at + i;
	if (k == 1)
		s = c[0] << 3;
	else if (k == ECQ_BLOCK)
		s = (c[0] + c[1] + c[2] + c[3]) << 1;
	else if (k == ECQ_SEG) {
		for (j = 0; j < ECQ_SEG; j++)
			s += c[j];
		s >>= 1;
	} else {
		for (j = 0; j < k; j++)
			s += c[j];
		s = 8 * s / (int)k;
	}
	return (m->left + ecq_half_octaves((uint32_t)s) + 1) / 2;
}

/* ecq_model_left(m, sum, k): k values with this sum of magnitudes went by. */
static inline void
ecq_model_left(struct ecq_model *m, uint32_t sum, size_t k)
{
	uint32_t mean = k == ECQ_BLOCK ? sum << 14 : (sum << 16) / (uint32_t)k;

	m->near = m->near - (m->near >> 2) + (mean >> 2);
	m->far = m->far - (m->far >> 5) + (mean >> 5);
	m->sum += sum;
}

/*
 * ecq_model_above(m, a, k): the segment is done; a[i] are its magnitudes, at
 * most ECQ_CAP.  c += (a - c) / 2^rows, to minus infinity.
 */
static inline void
ecq_model_above(struct ecq_model *m, const int16_t a[ECQ_SEG], size_t k)
{
	typedef int16_t vec __attribute__((vector_size(16)));
	int16_t *c;
	unsigned shift = m->rows;
	vec v[2], w[2];
	size_t i;

	c = m->col != NULL ? m->col + m->at : NULL;
	m->at += k;
	m->count += k;
	if (c == NULL)
		return;
	if (k == ECQ_SEG) {
		memcpy(v, c, sizeof(v));
		memcpy(w, a, sizeof(w));
		v[0] += ((w[0] << 7) - v[0]) >> shift;
		v[1] += ((w[1] << 7) - v[1]) >> shift;
		memcpy(c, v, sizeof(v));
		return;
	}
	for (i = 0; i < k; i++)
		c[i] = (int16_t)(c[i] + (((a[i] << 7) - c[i]) >> shift));
}

#endif
