/*
 * The kernels of ECQ: every table gives the results of the scalar passes, for lengths up
 * to 300 at some of the offsets 0 to 8, in every mode and with every number of states,
 * between inaccessible pages.
 */
#include "guard.h"
#include "../tap.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"

enum { LEN = 300, OFF = 8, CHUNKS = LEN / KERN_ECQ_LANES + 1 };

static struct guard page[6];

/* A coding mode, a tensor's columns, and the number of a coder's states. */
struct way {
	enum kern_ecq_mode mode;
	size_t cols;
	unsigned states;
};

/* Fill q with zeros, more than half, some small values, a few of all sizes; x: about q / 2. */
static void
fill(int16_t *q, float *x, size_t n, uint32_t from)
{
	uint32_t r[4];
	size_t i;
	int a;

	for (i = 0; i < n; i++) {
		rng_block(6, 5, 4, from + (uint32_t)i, r);
		a = r[0] % 8 < 4 ? 0 : r[0] % 8 < 7 ? (int)(r[1] % 4) :
		    r[1] % 9 == 0 ? KERN_QMAX : (int)(r[1] % 700);
		q[i] = (int16_t)(r[2] & 1 ? -a : a);
		x[i] = (float)q[i] * 0.5f + (float)(r[3] % 256) / 1024;
	}
}

static void
begin(struct kern_ecq *m, const struct way *w, int32_t *above)
{
	kern_ecq_start(m, w->mode, 9, w->cols, 3,
	    w->mode == KERN_ECQ_ABOVE ? above : NULL);
}

static int
same(const void *a, const void *b, size_t n)
{
	return n == 0 || memcmp(a, b, n) == 0;
}

/* Return 1 if the tables, the counts and, if any, the means are equal. */
static int
alike(const struct kern_ecq *a, const struct kern_ecq *b)
{
	return same(a->first, b->first, sizeof(a->first)) &&
	    same(a->count, b->count, sizeof(a->count)) &&
	    a->chunks == b->chunks && (a->e.mode == KERN_ECQ_PLAIN ||
	    (a->e.near == b->e.near && a->e.far == b->e.far &&
	    a->e.near_above == b->e.near_above && a->e.at == b->e.at &&
	    a->e.row == b->e.row));
}

/* Input of a kernel and its expected output. */
struct try {
	int16_t *q;
	float *x;
	int32_t above[LEN];
	uint16_t code[LEN];
	uint32_t span[LEN], mark[CHUNKS], state[32];
	unsigned char word[4 * LEN], *w;
	struct kern_ecq m;
};

/* Two or three models in one call give the results of each alone. */
static int
one_many(const struct kern *k, struct try *t, const struct way *way, size_t n)
{
	static const enum kern_ecq_mode mode[] = { KERN_ECQ_LEFT,
	    KERN_ECQ_PLAIN };
	static uint16_t alone[LEN], code[3][LEN];
	static int32_t above[2][LEN];
	struct kern_ecq m[3], a;
	struct kern_ecq_sorted got[3], want = { &a, alone, 0 };
	struct way other = *way;
	unsigned i, many;
	int good = 1;

	for (many = 2; many <= 3; many++) {
		for (i = 0; i < many; i++) {
			other.mode = i == 0 ? way->mode : mode[i - 1];
			begin(&m[i], &other, above[0]);
			got[i] = (struct kern_ecq_sorted){ &m[i], code[i], 77 };
		}
		k->ecq_sort(got, many, t->q, n);
		for (i = 0; i < many; i++) {
			other.mode = i == 0 ? way->mode : mode[i - 1];
			begin(&a, &other, above[1]);
			want.top = 0;
			kern_ecq_sort_some(&want, t->q, 0, n);
			good &= got[i].top == want.top && alike(&m[i], &a) &&
			    same(code[i], alone, 2 * n);
		}
	}
	return good;
}

static int
one_sort(const struct kern *k, struct try *t, const struct way *way, size_t n,
    size_t off)
{
	int32_t *above = guard_place(page[1], n, 4, off);
	uint16_t *code = guard_place(page[2], n, 2, off);
	uint32_t *mark = guard_place(page[3], (n + 15) / 16, 4, off);
	struct kern_ecq m;
	struct kern_ecq_sorted want = { &t->m, t->code, 0 };
	struct kern_ecq_sorted got = { &m, code, 77 };
	uint64_t low[4][4];
	unsigned two;
	size_t i;
	int good;

	begin(&m, way, above);
	begin(&t->m, way, t->above);
	kern_ecq_sort_some(&want, t->q, 0, n);
	k->ecq_sort(&got, 1, t->q, n);
	good = got.top == want.top && alike(&m, &t->m) &&
	    same(code, t->code, 2 * n) && one_many(k, t, way, n);
	/* the coder's tables */
	begin(&t->m, way, t->above);
	kern_ecq_tables(&t->m, want.top > 0 ? want.top : 1);
	kern_ecq_marks(t->code, NULL, n, t->mark, KERN_ECQ_ESCAPE);
	k->ecq_marks(code, NULL, n, mark, KERN_ECQ_ESCAPE);
	good &= same(mark, t->mark, (n + 15) / 16 * 4);
	kern_ecq_marks(t->code, t->q, n, t->mark, KERN_ECQ_ESCAPE);
	k->ecq_marks(code, t->q, n, mark, KERN_ECQ_ESCAPE);
	for (i = 0; i + 16 <= n; i += 16)
		for (two = 0; two < 2; two++) {
			kern_ecq_low(t->q + i, t->code + i, two, low[0], low[1]);
			k->ecq_low(t->q + i, code + i, two, low[2], low[3]);
			good &= same(low[0], low[2], sizeof(*low) * 2);
		}
	return good && same(mark, t->mark, (n + 15) / 16 * 4);
}

/* After one_sort: make spans of the codes and words of the spans, and decode these. */
static int
one_code(const struct kern *k, struct try *t, const struct way *way, size_t n,
    size_t off)
{
	uint32_t *span = guard_place(page[1], n, 4, off), state[32], first[32];
	uint16_t *code = guard_place(page[2], n, 2, off);
	struct kern_ecq m = t->m, again = t->m;
	unsigned char *p, *end = page[4].hi;
	struct kern_ecq_get g;
	size_t len;
	unsigned i;
	int good;

	memcpy(code, t->code, 2 * n);
	kern_ecq_spans(&t->m, t->code, n, t->span);
	k->ecq_spans(&m, code, n, span);
	good = alike(&m, &t->m) && same(span, t->span, 4 * n);
	for (i = 0; i < 32; i++)
		first[i] = state[i] = t->state[i] = KERN_ECQ_LOW +
		    777 * (i + (unsigned)n);
	t->w = kern_ecq_put(t->state, way->states, t->span, n,
	    t->word + sizeof(t->word));
	len = (size_t)(t->word + sizeof(t->word) - t->w);
	p = k->ecq_put(state, way->states, span, n, end);
	good &= (size_t)(end - p) == len && same(p, t->w, len) &&
	    same(state, t->state, 4 * way->states);
	/* the words end at one page, or begin at the other */
	p = guard_place(page[4], len, 1, off);
	memcpy(p, t->w, len);
	g = (struct kern_ecq_get){ state, way->states, p, p + len };
	memset(code, 0, 2 * n);
	again.e.above = guard_place(page[1], n, 4, off);
	good &= k->ecq_get(&again, &g, code, n) == 0 && g.p == p + len &&
	    same(code, t->code, 2 * n) && same(state, first, 4 * way->states);
	if (len == 0)
		return good;
	/* one word is missing */
	again = t->m;
	begin(&again, way, guard_place(page[1], n, 4, off));
	kern_ecq_tables(&again, t->m.top);
	memcpy(state, t->state, sizeof(state));
	g = (struct kern_ecq_get){ state, way->states, p, p + len - 2 };
	return good && k->ecq_get(&again, &g, code, n) == -1;
}

/* Return a state: often a multiple of the frequency f or a limit, or one less. */
static uint32_t
edge(uint32_t f, const uint32_t r[4])
{
	uint32_t few = 1 + r[1] % 0x1ffff, x;

	x = r[0] % 5 == 0 ? f << 17 : r[0] % 5 == 1 ? f * few :
	    r[0] % 5 == 2 ? f * (few % (0xffff / f + 1)) << 16 :
	    r[0] % 5 == 3 ? UINT32_MAX : r[2];
	x -= r[0] >> 16 & 1;
	return x < KERN_ECQ_LOW ? KERN_ECQ_LOW + r[3] % 2 : x;
}

/* Compare ecq_put with kern_ecq_put for any spans and states. */
static void
test_put(const struct kern *k)
{
	uint32_t span[32], state[2][16], r[4], i, j, f, good = 1, states;
	unsigned char word[2][64], *w[2];

	for (i = 0; i < 40000; i++) {
		states = 8u << i % 2;
		for (j = 0; j < 2 * states; j++) {
			rng_block(9, 5, i, j, r);
			f = 1 + r[3] % (r[2] % 3 == 0 ? 0x7fff : 99);
			span[j] = f << 16 | r[1] % ((1u << 15) - f);
			if (j >= states)
				state[0][j - states] = edge(f, r);
		}
		memcpy(state[1], state[0], sizeof(state[0]));
		w[0] = kern_ecq_put(state[0], states, span, 2 * states, word[0] + 64);
		w[1] = k->ecq_put(state[1], states, span, 2 * states, word[1] + 64);
		good &= w[0] - word[0] == w[1] - word[1] &&
		    same(state[0], state[1], 4 * states) &&
		    same(w[0], w[1], (size_t)(word[0] + 64 - w[0]));
	}
	ok(good, "%s: put of any spans into any states", k->name);
}

static int
one_values(const struct kern *k, struct try *t, size_t n, size_t off)
{
	static const float of[KERN_ECQ_SYMBOLS] = { 0, 1, 2.5f, 3, 4, 5, 6, 7,
	    8, 9, 10, 11, 12, 13, 14, 15 };
	static const float delta[4] = { 0, -0.3f, 0.21f, -0.04f };
	float *x = guard_place(page[1], n, 4, off), want[LEN];
	uint16_t *code = guard_place(page[2], n, 2, off);
	uint32_t *mark = guard_place(page[3], (n + 15) / 16, 4, off);
	int64_t sum[3] = { 5, 6, 7 }, sum2[3] = { 5, 6, 7 };
	uint32_t count[3] = { 0 }, count2[3] = { 0 };
	int good;

	memcpy(code, t->code, 2 * n);
	memcpy(mark, t->mark, (n + 15) / 16 * 4);
	kern_ecq_values(want, t->code, t->mark, n, of);
	k->ecq_values(x, code, mark, n, of);
	kern_ecq_centers(t->q, t->x, n, 2, sum, count);
	k->ecq_centers(t->q, t->x, n, 2, sum2, count2);
	good = same(x, want, 4 * n);
	kern_ecq_decoded(want, t->q, t->x, n, delta, 0.3f);
	k->ecq_decoded(x, t->q, t->x, n, delta, 0.3f);
	return good && same(x, want, 4 * n) && same(sum, sum2, sizeof(sum)) &&
	    same(count, count2, sizeof(count));
}

static void
test_way(const struct kern *k, const struct way *way)
{
	static const char *const mode[] = { "plain", "left", "above" };
	static struct try t;
	int sort = 1, code = 1, values = 1;
	size_t n, off;

	for (n = 0; n <= LEN; n++) {
		if (way->mode == KERN_ECQ_ABOVE && !kern_ecq_rows(way->cols, n))
			continue;
		for (off = n % 3; off <= OFF + 1; off += 3) {
			t.q = guard_place(page[0], n, 2, off);
			t.x = guard_place(page[5], n, 4, off);
			fill(t.q, t.x, n, (uint32_t)(n * 16 + off));
			sort &= one_sort(k, &t, way, n, off);
			code &= one_code(k, &t, way, n, off);
			values &= one_values(k, &t, n, off);
		}
	}
	ok(sort && code && values, "%s: %s, %zu columns, %u states%s%s%s",
	    k->name, mode[way->mode], way->cols, way->states,
	    sort ? "" : ", sort or marks", code ? "" : ", spans, put or get",
	    values ? "" : ", values, centers or told");
}

/* Two rows suffice to estimate one from the other. Rows with fewer columns than lanes are
 * counted together, as one row. */
static void
test_rows(void)
{
	ok(kern_ecq_rows(32, 64) && !kern_ecq_rows(32, 63) &&
	    kern_ecq_rows(16, 32) && !kern_ecq_rows(16, 31),
	    "at least two rows are coded as rows");
	ok(kern_ecq_rows(5, 40) && !kern_ecq_rows(5, 39),
	    "four rows of five columns count as one");
	ok(!kern_ecq_rows(1, 1000), "one column is not coded as rows");
}

int
main(void)
{
	static const struct way ways[] = {
		{ KERN_ECQ_PLAIN, 1, 16 }, { KERN_ECQ_LEFT, 100, 16 },
		{ KERN_ECQ_ABOVE, 20, 16 }, { KERN_ECQ_ABOVE, 5, 8 },
		{ KERN_ECQ_ABOVE, 70, 4 }, { KERN_ECQ_LEFT, 17, 2 },
		{ KERN_ECQ_PLAIN, 1, 1 }, { KERN_ECQ_PLAIN, 1, 8 }
	};
	const struct kern *const *l = kern_list();
	size_t i, j;

	for (i = 0; i < 6; i++)
		page[i] = guard_new();
	for (i = 0; l[i] != NULL; i++) {
		for (j = 0; j < sizeof(ways) / sizeof(*ways); j++)
			test_way(l[i], &ways[j]);
		test_put(l[i]);
	}
	test_rows();
	return done_testing();
}
