#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/rans.h"
#include "codec/tcq_code.h"
#include "kern/kern_tcq.h"

enum {
	PASSES = 5,		/* number of passes over a sample */
	SAMPLE = 4096,		/* values in a sample; only groups above 2 * SAMPLE are sampled */
	PIECE = 256		/* values in each piece of the sample */
};
/* Lagrange multiplier: the squared steps of error that one bit is worth, found by trial.
 * tests/unit/codec/test_tcq.c measures the bits at equal error. */
#define PRICE 0.2f

struct work {
	struct kern_tcq m;
	struct kern_tcq_walk w;		/* the walk over all values */
	uint32_t *span;
	int32_t *above;
	uint16_t *code;
	int16_t *q;
};

static inline unsigned
center(uint32_t k)
{
	return k < KERN_TCQ_CENTERS ? k - 1 : KERN_TCQ_CENTERS - 1;
}

/* Result of a pass: counts of symbols, and sums of the values' distances from their levels. */
struct tally {
	uint32_t n[2][KERN_ECQ_CONTEXTS][KERN_ECQ_SYMBOLS];
	uint32_t count[2][KERN_TCQ_CENTERS];
	int64_t sum[2][KERN_TCQ_CENTERS];	/* in 2^-16 steps; integers add in any order */
};

/* Compute each symbol's cost from the counts, in units of 2^-10 squared steps. A context
 * without symbols keeps its costs, except in the first pass. */
static void
prices(struct kern_tcq_walk *w, const struct tally *k, int first)
{
	struct kern_ecq m;
	uint32_t count[KERN_ECQ_SYMBOLS], sum, cost[KERN_ECQ_SYMBOLS], j;
	unsigned u, c, s, p;
	float bits;

	kern_ecq_tables(&m, KERN_ECQ_SYMBOLS - 1);
	for (u = 0; u < 2; u++)
		for (c = 0; c < KERN_ECQ_CONTEXTS; c++) {
			for (s = 0, sum = 0; s < KERN_ECQ_SYMBOLS; s++)
				sum += k->n[u][c][s];
			if (sum == 0 && !first)
				continue;
			for (s = 0, sum = 0; s < KERN_ECQ_SYMBOLS; s++) {
				count[s] = m.count[s][c] + 1 +
				    KERN_ECQ_STEP * k->n[u][c][s];
				sum += count[s];
			}
			for (s = 0; s < KERN_ECQ_SYMBOLS; s++) {
				bits = (float)(int64_t)(rans_log2(sum) -
				    rans_log2(count[s])) / 65536 +
				    (float)(s > 0);
				bits *= PRICE * 1024;
				cost[s] = (uint32_t)(bits < (float)KERN_TCQ_MOST ?
				    bits : (float)KERN_TCQ_MOST);
			}
			for (s = 0; s < KERN_TCQ_CELLS; s++) {
				for (p = 0; p < 2; p++) {
					j = kern_tcq_half(s, u, p);
					w->cost[c][s][2 * u + p] = (uint16_t)
					    cost[2 * (j < 7 ? j : 7) + p];
				}
				w->cost[c][s][4 + u] = (uint16_t)cost[0];
			}
		}
}

/* Begin the counts: count each value twice, as if each quantiser had coded it. */
static void
first_tally(const struct kern_tcq_walk *w, struct tally *t)
{
	unsigned c, h, k;
	size_t i;
	float a;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < w->n; i++) {
		c = kern_ecq_context(KERN_ECQ_LEVEL(w->code[i]));
		h = kern_ecq_shift(KERN_ECQ_LEVEL(w->code[i]));
		t->n[0][c][KERN_ECQ_SYMBOL(w->code[i])]++;
		a = bytes_f32(bytes_u32(w->x[i]) & 0x7fffffff) * w->inv;
		k = kern_tcq_place(a) / KERN_TCQ_FINE;
		t->n[1][c][kern_tcq_symbol(a < 0.6f * (float)KERN_TCQ_FINE ? 0 :
		    (k + 2) / 2, h)]++;
	}
}

static void
tally(const struct kern_tcq_walk *w, const int16_t *q, float inv, struct tally *t)
{
	uint8_t state[KERN_ECQ_LANES] = { 0 }, *at;
	unsigned l, s, u;
	uint32_t k;
	size_t i;
	float a;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < w->n; i++) {
		at = &state[i % KERN_ECQ_LANES];
		u = *at & 1u;
		l = KERN_ECQ_LEVEL(w->code[i]);
		k = magnitude(q[i]);
		s = kern_tcq_symbol(k, kern_ecq_shift(l));
		*at = (uint8_t)kern_tcq_next(*at, s & 1);
		t->n[u][kern_ecq_context(l)][s]++;
		if (k == 0 || k >= KERN_QMAX - 1)
			continue;
		a = bytes_f32(bytes_u32(w->x[i]) & 0x7fffffff) * inv;
		t->sum[u][center(k)] += (int64_t)((a -
		    (float)(int32_t)(2 * k - u)) * 65536);
		t->count[u][center(k)]++;
	}
}

/* Compute the centres from a tally, both as the body stores them and for the next
 * pass. */
static void
find_centers(const struct tally *t, struct ecq_side *s, struct kern_tcq_walk *w)
{
	unsigned u, j;

	for (u = 0; u < 2; u++)
		for (j = 0; j < KERN_TCQ_CENTERS; j++) {
			s->delta[u][j] = ecq_code_mean(t->sum[u][j],
			    t->count[u][j], j == 0 ? 9 : 13, j);
			w->center[u][j] = (int16_t)(s->delta[u][j] *
			    (KERN_TCQ_FINE / (j == 0 ? 128 : 16)));
		}
}

static void
sort(struct work *w, const struct ecq_in *in, struct ecq_side *s)
{
	kern_tcq_start(&w->m, (enum kern_ecq_mode)s->mode, s->level,
	    in->ctx->cols, in->ctx->offset, w->above);
	s->top = (uint8_t)in->kern->tcq_sort(&w->m, w->q, in->n, w->code);
}

/* If the group is large, copy a sample of it to x and code, and let w point to the
 * sample. */
static void
sample(struct kern_tcq_walk *w, float *x, uint16_t *code)
{
	size_t i, at, pieces = SAMPLE / PIECE;

	if (w->n <= 2 * SAMPLE)
		return;
	for (i = 0; i < pieces; i++) {
		at = w->n / pieces * i / KERN_ECQ_LANES * KERN_ECQ_LANES;
		memcpy(x + i * PIECE, w->x + at, PIECE * sizeof(*x));
		memcpy(code + i * PIECE, w->code + at, PIECE * sizeof(*code));
	}
	w->x = x;
	w->code = code;
	w->n = SAMPLE;
}

/* Choose w->q, and set w->code and all of s except `fine'. The first pass uses costs from
 * first_tally; each later pass, and the walk over all values, uses the costs and centres of
 * the pass before. */
static int
decide(struct work *w, const struct ecq_in *in, struct ecq_side *s, struct err *e)
{
	struct kern_tcq_walk some;
	struct tally t;
	float x[SAMPLE];
	uint16_t code[SAMPLE];
	int i;

	memset(s, 0, sizeof(*s));
	in->kern->deadzone(w->q, in->x, in->n, in->inv * 0.5f, 0.6f, 0.45f);
	if (ecq_code_pick(in, s, e) < 0)
		return -ERR_SYS;
	sort(w, in, s);
	some = w->w;
	sample(&some, x, code);
	first_tally(&some, &t);
	prices(&some, &t, 1);
	for (i = 0; i < PASSES; i++) {
		in->kern->tcq_walk(&some, w->q);
		tally(&some, w->q, in->inv, &t);
		find_centers(&t, s, &some);
		prices(&some, &t, 0);
	}
	memcpy(w->w.cost, some.cost, sizeof(some.cost));
	memcpy(w->w.center, some.center, sizeof(some.center));
	in->kern->tcq_walk(&w->w, w->q);
	sort(w, in, s);
	return 0;
}

static void
fill_y(const struct work *w, const struct ecq_in *in, const struct ecq_side *s)
{
	float of[2][ECQ_CENTROIDS + 1], v;
	uint32_t k;
	size_t i;

	ecq_code_delta(s, 1, of);
	for (i = 0; i < in->n; i++) {
		k = magnitude(w->q[i]);
		v = ecq_code_value(k, KERN_TCQ_QUANTISER(w->code[i]), of, in->step, 1);
		in->y[i] = k == KERN_QMAX ? in->x[i] : w->q[i] < 0 ? -v : v;
	}
}

int
tcq_code_put(const struct ecq_in *from, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e)
{
	size_t chunks = from->n / KERN_ECQ_LANES + 1, n = chunks * KERN_ECQ_LANES;
	struct work w = { .w = { .x = from->x, .n = from->n,
		.inv = (float)KERN_TCQ_FINE * from->inv } };
	struct ecq_in in = *from;
	size_t i;
	int r, far = 0;

	/* one allocation, which the allocator keeps for the next group */
	w.span = alloc_raw((n + KERN_ECQ_LANES) * (sizeof(*w.span) +
	    sizeof(*w.above) + sizeof(*w.code) + sizeof(*w.q)) + chunks *
	    sizeof(*w.w.from) + limit + ECQ_CODE_RAW, 1, e);
	if (w.span == NULL)
		return -ERR_SYS;
	n += KERN_ECQ_LANES;
	w.above = (int32_t *)(w.span + n);
	w.code = (uint16_t *)(w.above + n);
	in.q = w.q = (int16_t *)(w.code + n);
	w.w.code = w.code;
	w.w.from = (uint16_t (*)[KERN_TCQ_STATES + 2])(w.q + n);
	*len = 0;
	r = decide(&w, &in, s, e);
	/* the search may give a value beyond the quantiser its last level, if near ones cost more:
	 * then do not code the group */
	for (i = 0; i < in.n && r == 0 && !far; i++)
		far = magnitude(w.q[i]) == KERN_QMAX - 1 &&
		    fabsf(in.x[i]) * in.inv > 2 * (float)KERN_QMAX;
	if (r == 0 && s->top > 0 && !far) {
		if (in.y != NULL)
			fill_y(&w, &in, s);
		*len = ecq_code_write(&in, s, w.code, w.span,
		    (unsigned char *)(w.w.from + chunks), p, limit, 1);
	}
	alloc_free(w.span);
	return r;
}
