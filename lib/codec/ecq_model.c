#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/ecq_model.h"

/* The uses that the start is worth: more where the level is the right one. */
enum { TRUST = 8, TRUST_PLAIN = 60 };

/*
 * 2^16 z, z = 1 / (1 + u): the probability of 0 where magnitudes are geometric
 * with mean u = 2^(l / 2 - 10 + 1/4), the middle of level l (of the first,
 * 2^-11).
 */
static const uint32_t zero[ECQ_LEVELS] = {
	65504, 65429, 65384, 65321, 65233, 65108, 64933, 64686, 64340,
	63858, 63188, 62264, 61002, 59303, 57055, 54152, 50517, 46138,
	41099, 35600, 29936, 24437, 19398, 15019, 11384, 8481, 6233,
	4534, 3272, 2348, 1678, 1196, 850, 603, 428, 303,
};

static void
set(struct range_bit *b, uint64_t p, unsigned trust)
{
	b->p = (uint16_t)(p < 64 ? 64 : p > 65472 ? 65472 : p);
	b->n = (uint16_t)trust;
}

/* v^2 where v is in units of 2^-16. */
static uint64_t
square(uint64_t v)
{
	return v * v >> 16;
}

/*
 * Where everything starts: as if magnitudes were geometric.
 *
 *   P(some of r are not 0) = 1 - z^r
 *   P(this is not 0 | some of r are not) = (1 - z) / (1 - z^r)
 *   P(c bits or more, and more) = (1 - z)^(2^(c-1))
 */
static void
start_level(struct ecq_model *m, unsigned l, unsigned trust)
{
	uint64_t z = zero[l], z2 = square(z), z4 = square(z2), z8 = square(z4);
	uint64_t p = 65536 - z, p4 = 65536 - z4;
	/* [s]: some of the 4 - s that are left */
	uint64_t left[3] = { p4, 65536 - (z2 * z >> 16), 65536 - z2 };
	uint64_t left4[3] = { 65536 - square(z8), 65536 - (z8 * z4 >> 16),
		65536 - z8 };
	unsigned s, c;

	set(&m->seg[l], left4[0], trust);
	for (s = 0; s < ECQ_FOUND; s++) {
		set(&m->block[l][s], (p4 << 16) / left4[s], trust);
		set(&m->value[l][s], (p << 16) / left[s], trust);
	}
	set(&m->block[l][ECQ_FOUND], p4, trust);
	set(&m->value[l][ECQ_FOUND], p, trust);
	for (c = 0; l % 2 == 0 && c < ECQ_CLASSES; c++) {
		set(&m->more[l / 2][c], p, trust);
		p = square(p);
	}
}

int
ecq_model_init(struct ecq_model *m, const struct codec_ctx *ctx, size_t n,
    int plain, struct err *e)
{
	unsigned l;

	memset(m, 0, sizeof(*m));
	for (l = 0; l < ECQ_LEVELS; l++)
		start_level(m, l, plain ? TRUST_PLAIN : TRUST);
	range_start(m->mantissa[0], (ECQ_CLASSES + 1) * 8);
	m->cols = ctx->cols;
	if (plain || m->cols < ECQ_SEG || m->cols > n / 2) {
		m->cols = n;
		return 0;
	}
	m->at = ctx->offset % m->cols;
	n = m->cols / ECQ_SEG + 1;
	m->col = alloc_get(n, ECQ_SEG * (sizeof(*m->col) +
	    sizeof(*m->value_above)) + ECQ_SEG / ECQ_BLOCK *
	    sizeof(*m->block_above) + sizeof(*m->seg_above), e);
	if (m->col == NULL)
		return -ERR_SYS;
	m->value_above = (uint16_t *)(m->col + ECQ_SEG * n);
	m->block_above = (uint32_t *)(m->value_above + ECQ_SEG * n);
	m->seg_above = (uint8_t *)(m->block_above + ECQ_SEG / ECQ_BLOCK * n);
	return 0;
}

void
ecq_model_free(struct ecq_model *m)
{
	alloc_free(m->col);
}

/* The mean of the row's columns from at on, k at most, in half octaves. */
static unsigned
mean(const struct ecq_model *m, size_t at, size_t k)
{
	size_t sum = 0, i;

	if (k > m->cols - at)
		k = m->cols - at;
	for (i = 0; i < k; i++)
		sum += (size_t)m->col[at + i];
	return ecq_half_octaves((uint32_t)(8 * sum / k));
}

void
ecq_model_above(struct ecq_model *m, const int16_t *q, size_t k)
{
	size_t at = m->at, i;
	int c;

	for (i = at; i < at + k; i++) {
		c = m->col[i];
		c += (q[i - at] * 128 - c) >> m->rows;
		m->col[i] = (int16_t)c;
		m->value_above[i] = (uint16_t)ecq_half_octaves((uint32_t)c * 8);
	}
	for (i = at / ECQ_BLOCK; i * ECQ_BLOCK < at + k; i++)
		m->block_above[i] = mean(m, i * ECQ_BLOCK, ECQ_BLOCK);
	i = at / ECQ_SEG;
	m->seg_above[i] = (uint8_t)mean(m, i * ECQ_SEG, ECQ_SEG);
}
