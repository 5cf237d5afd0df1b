#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_tcq.h"

void
kern_tcq_start(struct kern_tcq *m, enum kern_ecq_mode mode, unsigned level,
    size_t cols, uint64_t offset, int32_t *above)
{
	kern_ecq_start(&m->m, mode, level, cols, offset, above);
	kern_ecq_start(&m->odd, mode, level, cols, offset, NULL);
	memset(m->state, 0, sizeof(m->state));
}

void
kern_tcq_tables(struct kern_tcq *m, unsigned top)
{
	kern_ecq_tables(&m->m, top);
	kern_ecq_tables(&m->odd, top);
}

static inline struct kern_ecq *
tables(struct kern_tcq *m, unsigned u)
{
	return u != 0 ? &m->odd : &m->m;
}

unsigned
kern_tcq_sort(struct kern_tcq *m, const int16_t *q, size_t n, uint16_t *code)
{
	int32_t mag[KERN_ECQ_LANES];
	uint8_t l[KERN_ECQ_LANES];
	unsigned a, s, h, top = 0;
	size_t i, j, k;

	for (i = 0; i < n; i += k) {
		k = n - i < KERN_ECQ_LANES ? n - i : KERN_ECQ_LANES;
		kern_ecq_levels(&m->m.e, l);
		for (j = 0; j < k; j++) {
			a = (unsigned)(q[i + j] < 0 ? -q[i + j] : q[i + j]);
			h = kern_ecq_shift(l[j]);
			s = kern_tcq_symbol(a, h);
			top = s > top ? s : top;
			code[i + j] = KERN_TCQ_CODE(l[j], s, m->state[j] & 1u);
			m->state[j] = (uint8_t)kern_tcq_next(m->state[j], s & 1);
			mag[j] = kern_tcq_counted(s, h);
		}
		kern_ecq_done(&m->m.e, mag, k);
	}
	return top;
}

void
kern_tcq_spans(struct kern_tcq *m, const uint16_t *code, size_t n,
    uint32_t *span)
{
	struct kern_ecq *t;
	unsigned c, s;
	size_t i;

	for (i = 0; i < n; i++) {
		c = kern_ecq_context(KERN_ECQ_LEVEL(code[i]));
		s = KERN_TCQ_SYMBOL(code[i]);
		t = tables(m, KERN_TCQ_QUANTISER(code[i]));
		span[i] = t->first[s][c] |
		    (uint32_t)(t->first[s + 1][c] - t->first[s][c]) << 16;
		t->count[s][c] += KERN_ECQ_STEP;
		if ((i + 1) % KERN_ECQ_LANES == 0) {
			kern_ecq_learn(&m->m);
			kern_ecq_learn(&m->odd);
		}
	}
}

int
kern_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code,
    size_t n)
{
	int32_t mag[KERN_ECQ_LANES];
	uint8_t l[KERN_ECQ_LANES];
	struct kern_ecq *t;
	uint32_t *x, slot;
	size_t i, j, k;
	unsigned c, s;

	for (i = 0; i < n; i += k) {
		k = n - i < KERN_ECQ_LANES ? n - i : KERN_ECQ_LANES;
		kern_ecq_levels(&m->m.e, l);
		for (j = 0; j < k; j++) {
			x = &g->x[j & (g->states - 1)];
			c = kern_ecq_context(l[j]);
			t = tables(m, m->state[j] & 1u);
			slot = *x & ((1u << KERN_ECQ_BITS) - 1);
			for (s = 0; slot >= t->first[s + 1][c]; s++)
				continue;
			*x = (uint32_t)(t->first[s + 1][c] - t->first[s][c]) *
			    (*x >> KERN_ECQ_BITS) + slot - t->first[s][c];
			if (*x < KERN_ECQ_LOW && g->end - g->p < 2)
				return -1;
			if (*x < KERN_ECQ_LOW) {
				*x = *x << 16 | bytes_le16(g->p);
				g->p += 2;
			}
			t->count[s][c] += KERN_ECQ_STEP;
			code[i + j] = KERN_TCQ_CODE(l[j], s, m->state[j] & 1u);
			m->state[j] = (uint8_t)kern_tcq_next(m->state[j], s & 1);
			mag[j] = kern_tcq_counted(s, kern_ecq_shift(l[j]));
		}
		kern_ecq_done(&m->m.e, mag, k);
		if (k == KERN_ECQ_LANES) {
			kern_ecq_learn(&m->m);
			kern_ecq_learn(&m->odd);
		}
	}
	return 0;
}

/* ---- decisions ---- */

/* What a value costs by one way, and which k that is; a = |x| / step.  The
 * levels of a way are four steps apart: the nearest, or 0 where it has that. */
static float
way(const struct kern_tcq_walk *w, float a, unsigned level, unsigned u,
    unsigned p, int16_t *k)
{
	const float off = (float)((int)(2 * p) - (int)u);
	const float *cost = w->cost[u][kern_ecq_context(level)];
	int j = (int)((a - off) * 0.25f + KERN_TCQ_ROUND), at;
	float d, all, none;

	j = j < 1 && p == 0 ? 1 : j;
	j = j > KERN_QMAX / 2 ? KERN_QMAX / 2 : j;
	at = p == 0 ? (j < 2 ? 1 : 2) : j < 1 ? 0 : 2;
	d = a - ((float)(4 * j) + off + w->center[u][at]);
	*k = (int16_t)(2 * j + (int)p);
	at = j >> kern_ecq_shift(level);
	all = (*k == KERN_QMAX ? 0 : d * d) + cost[2 * (at < 7 ? at : 7) + (int)p];
	if (p != 0)
		return all;
	none = a * a + cost[0];
	if (none <= all) {
		*k = 0;
		return none;
	}
	return all;
}

/* One value, in the trellis of a lane. */
static void
branch(const struct kern_tcq_walk *w, size_t i, struct kern_tcq_ends *ends)
{
	const size_t j = i % KERN_ECQ_LANES, chunk = i / KERN_ECQ_LANES;
	const uint16_t bit = (uint16_t)(1u << j);
	float a = bytes_f32(bytes_u32(w->x[i]) & 0x7fffffff) * w->inv;
	float cost[KERN_TCQ_WAYS], was[KERN_TCQ_STATES], low, high;
	unsigned s, n, v;

	a = a < KERN_TCQ_FAR ? a : KERN_TCQ_FAR;
	for (v = 0; v < KERN_TCQ_WAYS; v++)
		cost[v] = way(w, a, KERN_ECQ_LEVEL(w->code[i]), v / 2, v % 2,
		    &w->way[chunk][v][j]);
	for (s = 0; s < KERN_TCQ_STATES; s++)
		was[s] = ends->cost[s][j];
	for (n = 0; n < KERN_TCQ_STATES; n++) {
		/* the two states before n differ in the highest bit */
		s = n >> 2 | ((n ^ n >> 2) & 1) << 1;
		v = (s & 1) * 2 + (n >> 1 & 1);
		low = was[s] + cost[v];
		high = was[s | 4] + cost[v ^ 1];
		if (high < low)
			w->from[chunk][n] |= bit;
		ends->cost[n][j] = high < low ? high : low;
	}
	low = ends->cost[0][j];		/* of interest is what differs */
	for (n = 0; n < KERN_TCQ_STATES; n++)
		ends->cost[n][j] -= low;
}

void
kern_tcq_walk_start(struct kern_tcq_ends *ends)
{
	unsigned s, j;

	for (s = 0; s < KERN_TCQ_STATES; s++)
		for (j = 0; j < KERN_ECQ_LANES; j++)
			ends->cost[s][j] = s == 0 ? 0 : 1e30f;
}

void
kern_tcq_walk_some(const struct kern_tcq_walk *w, size_t from,
    struct kern_tcq_ends *ends)
{
	size_t i;

	for (i = from; i < w->n; i++) {
		if (i % KERN_ECQ_LANES == 0)
			memset(w->from[i / KERN_ECQ_LANES], 0, sizeof(*w->from));
		branch(w, i, ends);
	}
}

void
kern_tcq_walk_back(const struct kern_tcq_walk *w, size_t to,
    const struct kern_tcq_ends *ends, uint32_t state[KERN_ECQ_LANES],
    int16_t *q)
{
	unsigned n, j, b;
	int16_t k;
	size_t i, chunk;

	for (j = 0; j < KERN_ECQ_LANES; j++)
		for (n = 1, state[j] = 0; n < KERN_TCQ_STATES; n++)
			if (ends->cost[n][j] < ends->cost[state[j]][j])
				state[j] = n;
	for (i = w->n; i-- > to;) {
		j = i % KERN_ECQ_LANES;
		chunk = i / KERN_ECQ_LANES;
		n = state[j];
		b = w->from[chunk][n] >> j & 1;
		state[j] = n >> 2 | ((n ^ n >> 2) & 1) << 1 | b << 2;
		k = w->way[chunk][(n >> 2) * 2 + ((n >> 1 ^ b) & 1)][j];
		q[i] = (int16_t)(w->x[i] < 0 ? -k : k);
	}
}

void
kern_tcq_walk(const struct kern_tcq_walk *w, int16_t *q)
{
	uint32_t state[KERN_ECQ_LANES];
	struct kern_tcq_ends ends;

	kern_tcq_walk_start(&ends);
	kern_tcq_walk_some(w, 0, &ends);
	kern_tcq_walk_back(w, 0, &ends, state, q);
}
