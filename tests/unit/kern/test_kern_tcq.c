/*
 * The kernels of TCQ: every table gives the results of the scalar passes, for lengths 0
 * to 300 at some of the offsets 0 to 7, between inaccessible pages; and no path through
 * the trellis costs less than the one found.
 */
#include <math.h>
#include <stdlib.h>

#include "guard.h"
#include "../tap.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "kern/kern_tcq.h"

enum { LEN = 300, OFF = 8, CHUNKS = LEN / KERN_ECQ_LANES + 1 };

static struct guard page[6];

struct way {
	enum kern_ecq_mode mode;
	unsigned level;
	size_t cols;
	unsigned states;
};

/* Input of a kernel and its expected output. */
struct try {
	float *x;
	int16_t q[LEN];
	int32_t above[LEN];
	uint16_t code[LEN];
	uint32_t span[LEN], state[KERN_ECQ_LANES];
	unsigned char word[4 * LEN];
	struct kern_tcq m;
};

static uint16_t from_room[CHUNKS][KERN_TCQ_STATES + 2];

static int
same(const void *a, const void *b, size_t n)
{
	return n == 0 || memcmp(a, b, n) == 0;
}

/* Fill x: most magnitudes below 16 steps of 1/2, some zeros, a few beyond the last level. */
static void
fill(float *x, size_t n, uint32_t from)
{
	uint32_t r[4];
	size_t i;
	float a;

	for (i = 0; i < n; i++) {
		rng_block(6, 5, 4, from + (uint32_t)i, r);
		a = (float)(r[1] % 4096) / 512;
		a = r[0] % 8 < 2 ? 0 : r[0] % 8 < 7 ? a : r[0] % 64 == 7 ?
		    1e9f : a * 1000;
		x[i] = r[2] & 1 ? -a : a;
	}
}

static void
begin(struct kern_tcq *m, const struct way *w, int32_t *above)
{
	kern_tcq_start(m, w->mode, w->level, w->cols, 3, above);
}

static int
alike(const struct kern_tcq *a, const struct kern_tcq *b)
{
	return same(a->m.first, b->m.first, sizeof(a->m.first)) &&
	    same(a->m.count, b->m.count, sizeof(a->m.count)) &&
	    same(a->odd.first, b->odd.first, sizeof(a->odd.first)) &&
	    same(a->odd.count, b->odd.count, sizeof(a->odd.count)) &&
	    a->m.chunks == b->m.chunks && a->odd.chunks == b->odd.chunks &&
	    same(a->state, b->state, sizeof(a->state));
}

static void
costs(struct kern_tcq_walk *w, uint32_t seed)
{
	uint32_t r[4], i;
	uint16_t *cost = &w->cost[0][0][0];
	int16_t *center = &w->center[0][0];

	for (i = 0; i < sizeof(w->cost) / sizeof(*cost); i++) {
		rng_block(8, 5, seed, i, r);
		cost[i] = (uint16_t)(r[0] % 8 == 0 ? KERN_TCQ_MOST : r[0] % 1024);
	}
	for (i = 0; i < sizeof(w->center) / sizeof(*center); i++) {
		rng_block(8, 6, seed, i, r);
		center[i] = (int16_t)((int)(r[0] % 256) - 128);
	}
}

/* Return 1 if k's walk gives the levels and codes of plain C's, which are kept in t. */
static int
one_walk(const struct kern *k, struct try *t, const struct way *way, size_t n,
    size_t off)
{
	int16_t *q = guard_place(page[1], n, 2, off);
	uint16_t *code = guard_place(page[2], n, 2, off);
	struct kern_tcq_walk w = { .x = t->x, .code = code, .n = n, .inv = 2 * KERN_TCQ_FINE,
	    .from = from_room };
	struct kern_tcq m;
	unsigned top, want;
	int good;

	memset(t->q, 0, 2 * n);
	begin(&t->m, way, t->above);
	(void)kern_tcq_sort(&t->m, t->q, n, code);
	costs(&w, (uint32_t)n);
	kern_tcq_walk(&w, t->q);
	k->tcq_walk(&w, q);
	good = same(q, t->q, 2 * n);
	begin(&t->m, way, t->above);
	begin(&m, way, guard_place(page[3], n, 4, off));
	want = kern_tcq_sort(&t->m, t->q, n, t->code);
	top = k->tcq_sort(&m, q, n, code);
	good &= top == want && same(code, t->code, 2 * n) &&
	    same(m.state, t->m.state, sizeof(m.state));
	begin(&t->m, way, t->above);
	kern_tcq_tables(&t->m, want > 0 ? want : 1);
	return good;
}

/* After one_walk: code to words and decode, also with one word too few. */
static int
one_code(const struct kern *k, struct try *t, const struct way *way, size_t n,
    size_t off)
{
	uint32_t *span = guard_place(page[1], n, 4, off), first[KERN_ECQ_LANES];
	uint32_t state[KERN_ECQ_LANES];
	uint16_t *code = guard_place(page[2], n, 2, off);
	struct kern_tcq m = t->m, again = t->m;
	struct kern_ecq_get g;
	unsigned char *p, *w;
	size_t len;
	unsigned i;
	int good;

	memcpy(code, t->code, 2 * n);
	kern_tcq_spans(&t->m, t->code, n, t->span);
	k->tcq_spans(&m, code, n, span);
	good = alike(&m, &t->m) && same(span, t->span, 4 * n);
	for (i = 0; i < KERN_ECQ_LANES; i++)
		first[i] = state[i] = KERN_ECQ_LOW + 777 * (i + (unsigned)n);
	w = kern_ecq_put(state, way->states, t->span, n, t->word + sizeof(t->word));
	memcpy(t->state, state, sizeof(state));
	len = (size_t)(t->word + sizeof(t->word) - w);
	p = guard_place(page[4], len, 1, off);
	memcpy(p, w, len);
	m = again;
	g = (struct kern_ecq_get){ state, way->states, p, p + len };
	memset(code, 0, 2 * n);
	m.m.e.above = guard_place(page[3], n, 4, off);
	good &= k->tcq_get(&m, &g, code, n) == 0 && g.p == p + len &&
	    same(code, t->code, 2 * n) && same(state, first, 4 * way->states);
	if (len == 0)
		return good;
	m = again;
	m.m.e.above = guard_place(page[3], n, 4, off);
	g = (struct kern_ecq_get){ t->state, way->states, p, p + len - 2 };
	return good && k->tcq_get(&m, &g, code, n) == -1;
}

/* After one_walk: marks, and values from them. */
static int
one_values(const struct kern *k, struct try *t, size_t n, size_t off)
{
	const size_t marks = 4 * ((n + 15) / 16);
	float *x = guard_place(page[1], n, 4, off), want[LEN];
	uint16_t *code = guard_place(page[2], n, 2, off);
	uint32_t *mark = guard_place(page[3], marks / 4, 4, off), first[CHUNKS];
	float of[2 * KERN_ECQ_SYMBOLS];
	unsigned i;
	int good;

	for (i = 0; i < 2 * KERN_ECQ_SYMBOLS; i++)
		of[i] = i % KERN_ECQ_SYMBOLS == 0 ? 0 : (float)i;
	memcpy(code, t->code, 2 * n);
	kern_ecq_marks(t->code, NULL, n, first, KERN_TCQ_ESCAPE);
	k->ecq_marks(code, NULL, n, mark, KERN_TCQ_ESCAPE);
	good = same(mark, first, marks);
	kern_ecq_marks(t->code, t->q, n, first, KERN_TCQ_ESCAPE);
	k->ecq_marks(code, t->q, n, mark, KERN_TCQ_ESCAPE);
	good &= same(mark, first, marks);
	kern_ecq_values(want, t->code, first, n, of);
	k->tcq_values(x, code, mark, n, of);
	return good && same(x, want, 4 * n);
}

static void
test_way(const struct kern *k, const struct way *way)
{
	static const char *const mode[] = { "plain", "left", "above" };
	static struct try t;
	int walk = 1, code = 1, values = 1;
	size_t n, off;

	for (n = 0; n <= LEN; n++) {
		if (way->mode == KERN_ECQ_ABOVE && !kern_ecq_rows(way->cols, n))
			continue;
		for (off = n % 3; off <= OFF; off += 3) {
			t.x = guard_place(page[0], n, 4, off);
			fill(t.x, n, (uint32_t)(n * 16 + off));
			walk &= one_walk(k, &t, way, n, off);
			code &= one_code(k, &t, way, n, off);
			values &= one_values(k, &t, n, off);
		}
	}
	ok(walk && code && values, "%s: %s, level %u, %zu columns, %u states%s%s%s", k->name,
	    mode[way->mode], way->level, way->cols, way->states,
	    walk ? "" : ", walk or sort", code ? "" : ", spans or get",
	    values ? "" : ", marks or values");
}

/* ---- the path of least cost ---- */

/* Return the cost of k with quantiser u, if costs depend only on k's parity and on whether
 * k is 0. */
static double
price(const struct kern_tcq_walk *w, float x, unsigned u, unsigned k)
{
	double a = fabs((double)x), d = k == 0 ? a : a - (2.0 * k - u);

	return d * d * 1024 + w->cost[0][0][k == 0 ? 4 + u : 2 * u + k % 2];
}

/* Return the least cost of values i, i + 16, ..., coded from this state on. */
static double
least(const struct kern_tcq_walk *w, size_t i, unsigned state)
{
	double best[2] = { HUGE_VAL, HUGE_VAL };
	unsigned k;

	if (i >= w->n)
		return 0;
	for (k = 0; k < 40; k++)
		best[k % 2] = fmin(best[k % 2], price(w, w->x[i], state & 1, k));
	return fmin(best[0] + least(w, i + KERN_ECQ_LANES, kern_tcq_next(state,
	    0)), best[1] + least(w, i + KERN_ECQ_LANES, kern_tcq_next(state, 1)));
}

static double
taken(const struct kern_tcq_walk *w, const int16_t *q, size_t i)
{
	unsigned state = 0, k;
	double sum = 0;

	for (; i < w->n; i += KERN_ECQ_LANES) {
		k = (unsigned)abs(q[i]);
		sum += price(w, w->x[i], state & 1, k);
		state = kern_tcq_next(state, k % 2);
	}
	return sum;
}

static void
test_least(const struct kern *k)
{
	static float x[LEN];
	static uint16_t code[LEN];
	static int16_t q[LEN];
	struct kern_tcq_walk w = { .x = x, .code = code,
	    .inv = KERN_TCQ_FINE, .from = from_room };
	unsigned u, s, c, try, worse = 0, all = 0;
	uint32_t r[4];
	size_t i;

	for (try = 0; try < 40; try++) {
		w.n = 100 + try;
		for (i = 0; i < w.n; i++) {
			rng_block(7, 7, try, (uint32_t)i, r);
			x[i] = 0.25f + (float)(r[0] % 14);
			x[i] = r[1] & 1 ? -x[i] : x[i];
		}
		rng_block(7, 8, try, 0, r);
		for (c = 0; c <= KERN_ECQ_CONTEXTS; c++)
			for (s = 0; s < KERN_TCQ_CELLS; s++)
				for (u = 0; u < 6; u++)
					w.cost[c][s][u] = (uint16_t)(16 * (r[u % 2] >>
					    4 * (u / 2) & 255));
		k->tcq_walk(&w, q);
		for (i = 0; i < KERN_ECQ_LANES; i++, all++)
			worse += taken(&w, q, i) > least(&w, i, 0) + 3;
	}
	ok(worse == 0, "%s: of %u paths %u are not the cheapest", k->name, all,
	    worse);
}

int
main(void)
{
	static const struct way ways[] = {
		{ KERN_ECQ_PLAIN, 9, 1, 16 }, { KERN_ECQ_LEFT, 20, 100, 16 },
		{ KERN_ECQ_ABOVE, 17, 20, 16 }, { KERN_ECQ_ABOVE, 30, 5, 8 },
		{ KERN_ECQ_ABOVE, 9, 70, 4 }, { KERN_ECQ_LEFT, 38, 17, 2 },
		{ KERN_ECQ_PLAIN, 27, 1, 1 }, { KERN_ECQ_PLAIN, 42, 1, 8 }
	};
	const struct kern *const *l = kern_list();
	size_t i, j;

	for (i = 0; i < 6; i++)
		page[i] = guard_new();
	for (i = 0; l[i] != NULL; i++) {
		for (j = 0; j < sizeof(ways) / sizeof(*ways); j++)
			test_way(l[i], &ways[j]);
		test_least(l[i]);
	}
	return done_testing();
}
