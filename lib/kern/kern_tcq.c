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
kern_tcq_spans(struct kern_tcq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	size_t i;

	for (i = 0; i < n; i++) {
		span[i] = kern_ecq_span(tables(m, KERN_TCQ_QUANTISER(code[i])),
		    kern_ecq_context(KERN_ECQ_LEVEL(code[i])), KERN_ECQ_SYMBOL(code[i]));
		if ((i + 1) % KERN_ECQ_LANES == 0) {
			kern_ecq_learn(&m->m);
			kern_ecq_learn(&m->odd);
		}
	}
}

int
kern_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	int32_t mag[KERN_ECQ_LANES];
	uint8_t l[KERN_ECQ_LANES];
	size_t i, j, k;
	int s;

	for (i = 0; i < n; i += k) {
		k = n - i < KERN_ECQ_LANES ? n - i : KERN_ECQ_LANES;
		kern_ecq_levels(&m->m.e, l);
		for (j = 0; j < k; j++) {
			if ((s = kern_ecq_symbol(tables(m, m->state[j] & 1u), g,
			    &g->x[j & (g->states - 1)], kern_ecq_context(l[j]))) < 0)
				return -1;
			code[i + j] = KERN_TCQ_CODE(l[j], (unsigned)s,
			    m->state[j] & 1u);
			m->state[j] = (uint8_t)kern_tcq_next(m->state[j],
			    (unsigned)s & 1);
			mag[j] = kern_tcq_counted((unsigned)s, kern_ecq_shift(l[j]));
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

static inline uint32_t
place(const struct kern_tcq_walk *w, float x)
{
	return kern_tcq_place(bytes_f32(bytes_u32(x) & 0x7fffffff) * w->inv);
}

static inline uint32_t
most16(uint32_t v)
{
	return v < 65535 ? v : 65535;
}

/* Set cost to the cost of value i coded each way, and none[u] to 1 if u's even way means
 * k = 0. */
static void
ways(const struct kern_tcq_walk *w, size_t i, uint32_t cost[KERN_TCQ_WAYS],
    unsigned none[2])
{
	uint32_t at = place(w, w->x[i]), cell, j, zero;
	const unsigned level = KERN_ECQ_LEVEL(w->code[i]);
	const int far = kern_tcq_cell(at) >= KERN_TCQ_FAR;
	const uint16_t *row;
	unsigned v, u, p;
	int32_t d;

	if (at >= KERN_TCQ_LAST * KERN_TCQ_FINE)
		at = KERN_TCQ_LAST * KERN_TCQ_FINE + at % (4 * KERN_TCQ_FINE);
	cell = kern_tcq_cell(at);
	row = w->cost[level < KERN_ECQ_CONTEXTS ? level : KERN_ECQ_CONTEXTS][cell];
	zero = at < 4095 ? at * at >> 8 : 4095 * 4095 >> 8;
	for (v = 0; v < KERN_TCQ_WAYS; v++) {
		u = v / 2;
		p = v % 2;
		j = kern_tcq_half(cell, u, p);
		d = (int32_t)at - (int32_t)(4 * j + 2 * p) * KERN_TCQ_FINE +
		    (int32_t)u * KERN_TCQ_FINE -
		    w->center[u][p == 0 ? 1 + (j > 1) : 2 * (j > 0)];
		cost[v] = (uint32_t)(d * d >> 8) + row[v];
		if (p != 0)
			continue;
		none[u] = most16(zero + row[4 + u]) <= cost[v];
		cost[v] = far ? KERN_TCQ_NEVER : none[u] ?
		    most16(zero + row[4 + u]) : cost[v];
	}
}

/* Advance the trellis of a lane by one value. */
static void
branch(const struct kern_tcq_walk *w, size_t i, struct kern_tcq_ends *ends)
{
	const size_t j = i % KERN_ECQ_LANES, chunk = i / KERN_ECQ_LANES;
	uint32_t cost[KERN_TCQ_WAYS], now[KERN_TCQ_STATES], low, high, least;
	unsigned none[2], s, n, v;

	ways(w, i, cost, none);
	for (n = 0, least = 65535; n < KERN_TCQ_STATES; n++) {
		/* the two predecessors of n differ in the highest bit */
		s = n >> 2 | ((n ^ n >> 2) & 1) << 1;
		v = (s & 1) * 2 + (n >> 1 & 1);
		low = most16(ends->cost[s][j] + cost[v]);
		high = most16(ends->cost[s | 4][j] + cost[v ^ 1]);
		w->from[chunk][n] |= (uint16_t)((low <= high) << j);
		now[n] = high < low ? high : low;
		least = now[n] < least ? now[n] : least;
	}
	for (n = 0; n < 2; n++)
		w->from[chunk][KERN_TCQ_STATES + n] |= (uint16_t)(none[n] << j);
	for (n = 0; n < KERN_TCQ_STATES; n++)	/* only differences matter */
		ends->cost[n][j] = (uint16_t)(now[n] - least);
}

void
kern_tcq_walk_start(struct kern_tcq_ends *ends)
{
	unsigned s, j;

	for (s = 0; s < KERN_TCQ_STATES; s++)
		for (j = 0; j < KERN_ECQ_LANES; j++)
			ends->cost[s][j] = s == 0 ? 0 : 65535;
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
	unsigned n, j, b, u, p;
	uint32_t cell, k;
	size_t i, chunk;

	for (j = 0; j < KERN_ECQ_LANES; j++)
		for (n = 1, state[j] = 0; n < KERN_TCQ_STATES; n++)
			if (ends->cost[n][j] < ends->cost[state[j]][j])
				state[j] = n;
	for (i = w->n; i-- > to;) {
		j = i % KERN_ECQ_LANES;
		chunk = i / KERN_ECQ_LANES;
		n = state[j];
		b = ~w->from[chunk][n] >> j & 1;
		state[j] = n >> 2 | ((n ^ n >> 2) & 1) << 1 | b << 2;
		u = n >> 2;
		p = (n >> 1 ^ b) & 1;
		cell = kern_tcq_cell(place(w, w->x[i]));
		k = cell >= KERN_TCQ_FAR ? KERN_QMAX - 1 + p :
		    2 * kern_tcq_half(cell, u, p) + p;
		if (p == 0 && (w->from[chunk][KERN_TCQ_STATES + u] >> j & 1) != 0)
			k = 0;
		q[i] = (int16_t)(w->x[i] < 0 ? -(int32_t)k : (int32_t)k);
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
