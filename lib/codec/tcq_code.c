#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/ecq_bits.h"
#include "codec/ecq_code.h"
#include "codec/rans.h"
#include "codec/tcq_code.h"

enum {
	PASSES = 5,		/* over a sample; a fourth changes nothing */
	SAMPLE = 4096,		/* values, where there are twice as many, */
	PIECE = 256,		/* in pieces from all over */
	RAW_MOST = 9 * KERN_ECQ_LANES	/* bytes that a chunk's bits take */
};
/* What a bit costs, in squared steps: the slope of error against bits where
 * both are least (tests/unit/codec/test_tcq.c). */
#define PRICE 0.2f

struct work {
	struct kern_tcq m;
	struct kern_tcq_walk w;		/* of all values */
	uint32_t state[KERN_ECQ_LANES];
	uint32_t *span;
	int32_t *above;
	uint16_t *code;
	int16_t *q;
};

static inline uint32_t
magnitude(int16_t q)
{
	return (uint32_t)(q < 0 ? -q : q);
}

static inline unsigned
center(uint32_t k)
{
	return k < KERN_TCQ_CENTERS ? k - 1 : KERN_TCQ_CENTERS - 1;
}

static void
centers(const int8_t delta[2][KERN_TCQ_CENTERS],
    float of[2][KERN_TCQ_CENTERS])
{
	unsigned u, j;

	for (u = 0; u < 2; u++)
		for (j = 0; j < KERN_TCQ_CENTERS; j++)
			of[u][j] = (float)delta[u][j] / (j == 0 ? 128 : 16);
}

/* ---- decided ---- */

/* What a pass has decided: symbols; how far values are from their levels. */
struct tally {
	uint32_t n[2][KERN_ECQ_CONTEXTS][KERN_ECQ_SYMBOLS];
	uint32_t count[2][KERN_TCQ_CENTERS];
	int64_t sum[2][KERN_TCQ_CENTERS];	/* whole: no order */
};

/* What each symbol costs once so many of each have been learnt; of a context that
 * has none what it was, but at first. */
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
				cost[s] = (uint32_t)(bits < KERN_TCQ_MOST ?
				    bits : KERN_TCQ_MOST);
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

/* To begin with: each value as either quantiser has it. */
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
		t->n[1][c][kern_tcq_symbol(a < 0.6f * KERN_TCQ_FINE ? 0 :
		    (k + 2) / 2, h)]++;
	}
}

static void
tally(const struct kern_tcq_walk *w, const int16_t *q, float inv,
    struct tally *t)
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
		if (k == 0 || k >= TCQ_EXACT - 1)
			continue;
		a = bytes_f32(bytes_u32(w->x[i]) & 0x7fffffff) * inv;
		t->sum[u][center(k)] += (int64_t)((a -
		    (float)(int32_t)(2 * k - u)) * 65536);
		t->count[u][center(k)]++;
	}
}

static int8_t
mean(int64_t sum, uint32_t n, int bits)
{
	double d = n != 0 ? rint(ldexp((double)sum / n, bits - 17)) : 0;
	double most = 1 << (bits - 1);

	return (int8_t)(d < -most ? -most : d > most - 1 ? most - 1 : d);
}

/* The centres of a tally, for the reader and for the next pass. */
static void
find_centers(const struct tally *t, struct tcq_side *s, struct kern_tcq_walk *w)
{
	unsigned u, j;

	for (u = 0; u < 2; u++)
		for (j = 0; j < KERN_TCQ_CENTERS; j++) {
			s->delta[u][j] = mean(t->sum[u][j], t->count[u][j],
			    j == 0 ? 8 : 4);
			w->center[u][j] = (int16_t)(s->delta[u][j] *
			    (KERN_TCQ_FINE / (j == 0 ? 128 : 16)));
		}
}

static void
sort(struct work *w, const struct tcq_in *in, struct tcq_side *s)
{
	kern_tcq_start(&w->m, (enum kern_ecq_mode)s->mode, s->level,
	    in->ctx->cols, in->ctx->offset, w->above);
	s->top = (uint8_t)in->kern->tcq_sort(&w->m, w->q, in->n, w->code);
}

/* The part of all that the first passes are over; x and code have room for it. */
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

/* The levels of all values: from those of one quantiser, in passes each of which
 * has the costs and centres of the one before. */
static int
decide(struct work *w, const struct tcq_in *in, struct tcq_side *s,
    struct err *e)
{
	struct ecq_in pick = { in->kern, in->ctx, w->q, NULL, in->n, 0, 0,
		NULL };
	struct ecq_side side;
	struct kern_tcq_walk some;
	struct tally t;
	float x[SAMPLE];
	uint16_t code[SAMPLE];
	int i;

	memset(s, 0, sizeof(*s));
	in->kern->deadzone(w->q, in->x, in->n, in->inv * 0.5f, 0.6f, 0.45f);
	if (ecq_code_pick(&pick, &side, e) < 0)
		return -ERR_SYS;
	s->level = side.level;
	s->mode = side.mode;
	s->states = side.states;
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

/* ---- written ---- */

/* The bits of escapes that are as likely 0 as 1, from their mean. */
static uint8_t
fine(const struct work *w, size_t n)
{
	uint64_t sum = 0, k = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (KERN_ECQ_SYMBOL(w->code[i]) < KERN_TCQ_ESCAPE)
			continue;
		sum += (magnitude(w->q[i]) >> (kern_ecq_shift(
		    KERN_ECQ_LEVEL(w->code[i])) + 1)) - 7;
		k++;
	}
	return (uint8_t)(sum > k ?
	    ecq_bits_length((uint32_t)(sum / k)) - 1 : 0);
}

/* The bits that a symbol leaves out, and the sign where it has none. */
static void
put_rest(struct bits *b, int16_t q, unsigned code, float x)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), j;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t k = magnitude(q), e;

	if (s >= KERN_TCQ_ESCAPE) {
		e = (k >> (shift + 1)) - 7;
		j = ecq_bits_length((e >> b->fine) + 1) - 1;
		put_bits(b, (1u << j) - 1, j + 1);
		put_bits(b, ((e >> b->fine) + 1) & ((1u << j) - 1), j);
		put_bits(b, e & ((1u << b->fine) - 1), b->fine);
	}
	put_bits(b, k >> 1 & ((1u << shift) - 1), shift);
	if (s == 0 && k != 0)
		put_bits(b, q < 0, 1);
	if (k == TCQ_EXACT)
		put_bits(b, bytes_u32(x) & 0x7fffffff, 31);
}

/* All bits, a chunk after another; -1 when they are more than limit. */
static int
put_plain(struct bits *b, const struct work *w, const struct tcq_in *in,
    size_t limit)
{
	const uint32_t *mark = w->span;
	size_t at, end, i;

	for (at = 0; at < in->n; at = end, mark++) {
		end = at + KERN_ECQ_LANES < in->n ? at + KERN_ECQ_LANES : in->n;
		put_bits(b, *mark & 0xffff, *mark >> 16 & 0xff);
		for (i = at; *mark >> 24 != 0 && i < end; i++)
			if (!kern_ecq_whole(w->code[i], KERN_TCQ_ESCAPE))
				put_rest(b, w->q[i], w->code[i], in->x[i]);
		if ((size_t)(b->p - b->start) > limit)
			return -1;
	}
	return 0;
}

/* What a level means, without its sign. */
static inline float
value(uint32_t k, unsigned u, float of[2][KERN_TCQ_CENTERS], float step)
{
	return k == 0 ? 0 : ((float)(int32_t)(2 * k - u) +
	    of[u][center(k)]) * step;
}

static void
told(const struct work *w, const struct tcq_in *in, const struct tcq_side *s)
{
	float of[2][KERN_TCQ_CENTERS], v;
	uint32_t k;
	size_t i;

	centers((const int8_t (*)[KERN_TCQ_CENTERS])s->delta, of);
	for (i = 0; i < in->n; i++) {
		k = magnitude(w->q[i]);
		v = value(k, KERN_TCQ_QUANTISER(w->code[i]), of, in->step);
		in->y[i] = k == TCQ_EXACT ? in->x[i] : w->q[i] < 0 ? -v : v;
	}
}

/* The states, as the bits leave them, then all symbols. */
static size_t
put_all(struct work *w, const struct tcq_in *in, const struct tcq_side *s,
    struct bits *raw, unsigned char *p, size_t limit)
{
	unsigned states = 1u << s->states, j;
	unsigned char *end = p + limit, *front, *back, *last;
	size_t k;

	raw->fine = s->fine;
	/* the marks are done with before there are spans */
	in->kern->ecq_marks(w->code, w->q, in->n, w->span,
	    KERN_TCQ_ESCAPE);
	if (put_plain(raw, w, in, limit) < 0)
		return 0;
	/* what was pending, and zeros for every state */
	memset(raw->p, 0, 8 + 2 * KERN_ECQ_LANES);
	bytes_set32(raw->p, (uint32_t)raw->v);
	for (j = 0; j < states; j++)
		w->state[j] = KERN_ECQ_LOW | bytes_le16(raw->start + 2 * j);
	kern_tcq_tables(&w->m, s->top);
	in->kern->tcq_spans(&w->m, w->code, in->n, w->span);
	/* at most 15 bits a value: there is room in the spans for the words,
	 * which are read before they are written over */
	last = (unsigned char *)(w->span + in->n) + 4 * KERN_ECQ_LANES;
	front = in->kern->ecq_put(w->state, states, w->span, in->n, last);
	k = (size_t)(last - front);
	if (k > limit)
		return 0;
	back = ecq_bits_back(w->state, states, raw, p + k, end);
	if (back == NULL)
		return 0;
	memcpy(p, front, k);
	memmove(p + k, back, (size_t)(end - back));
	return k + (size_t)(end - back);
}

int
tcq_code_put(const struct tcq_in *in, unsigned char *p, size_t limit,
    struct tcq_side *s, size_t *len, struct err *e)
{
	size_t chunks = in->n / KERN_ECQ_LANES + 1, n = chunks * KERN_ECQ_LANES;
	struct work w = { .w = { .x = in->x, .n = in->n,
		.inv = KERN_TCQ_FINE * in->inv } };
	struct bits raw = { .n = 0 };
	int r;

	/* in one piece, which the allocator keeps */
	w.span = alloc_raw((n + KERN_ECQ_LANES) * (sizeof(*w.span) +
	    sizeof(*w.above) + sizeof(*w.code) + sizeof(*w.q)) + chunks *
	    sizeof(*w.w.from) + limit + RAW_MOST + 128, 1, e);
	if (w.span == NULL)
		return -ERR_SYS;
	n += KERN_ECQ_LANES;
	w.above = (int32_t *)(w.span + n);
	w.code = (uint16_t *)(w.above + n);
	w.q = (int16_t *)(w.code + n);
	w.w.code = w.code;
	w.w.from = (uint16_t (*)[KERN_TCQ_STATES + 2])(w.q + n);
	raw.p = raw.start = (unsigned char *)(w.w.from + chunks);
	*len = 0;
	r = decide(&w, in, s, e);
	if (r == 0 && s->top > 0) {
		if (s->top >= KERN_TCQ_ESCAPE)
			s->fine = fine(&w, in->n);
		if (in->y != NULL)
			told(&w, in, s);
		*len = put_all(&w, in, s, &raw, p, limit);
	}
	alloc_free(w.span);
	return r;
}

/* ---- read ---- */

/* The value of a code and bits of its own; neg: the sign, if it is known. */
static float
read_one(struct plain *b, unsigned code, uint32_t neg,
    float of[2][KERN_TCQ_CENTERS], float step)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), j = 0;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t k = s >> 1;
	float x;

	if (s >= KERN_TCQ_ESCAPE) {
		while (j < 15 && get_bits(b, 1))
			j++;
		k = ((1u << j) | get_bits(b, j)) - 1;
		k = (k << b->fine | get_bits(b, b->fine)) + 7;
	}
	b->bad |= k > (uint32_t)TCQ_EXACT >> (shift + 1);
	k = (k << shift | get_bits(b, shift)) << 1 | (s & 1);
	if (s == 0 && k != 0)
		neg = get_bits(b, 1);
	x = k == TCQ_EXACT ? bytes_f32(get_bits(b, 31)) :
	    value(k, KERN_TCQ_QUANTISER(code), of, step);
	return neg ? -x : x;
}

/* All values, a chunk after another, from codes and plain bits. */
static void
get_plain(struct plain *b, const struct tcq_out *o, const struct tcq_side *s,
    const uint16_t *code, uint32_t *mark)
{
	float of[2][KERN_TCQ_CENTERS], all[2 * KERN_ECQ_SYMBOLS];
	const uint32_t *const marks = mark;
	uint32_t signs, some;
	size_t at, end, i;
	unsigned j;

	centers((const int8_t (*)[KERN_TCQ_CENTERS])s->delta, of);
	for (j = 0; j < 2 * KERN_ECQ_SYMBOLS; j++)
		all[j] = value(j % KERN_ECQ_SYMBOLS, j / KERN_ECQ_SYMBOLS, of,
		    o->step);
	o->kern->ecq_marks(code, NULL, o->n, mark, KERN_TCQ_ESCAPE);
	for (at = 0; at < o->n; at = end, mark++) {
		end = at + KERN_ECQ_LANES < o->n ? at + KERN_ECQ_LANES : o->n;
		signs = get_bits(b, *mark >> 16 & 0xff);
		if (*mark >> 24 == 0) {
			*mark = signs;
			continue;
		}
		for (i = at; i < end; i++) {
			j = KERN_ECQ_SYMBOL(code[i]);
			some = j != 0;
			o->x[i] = !kern_ecq_whole(code[i], KERN_TCQ_ESCAPE) ? read_one(b, code[i],
			    some & signs, of, o->step) : bytes_f32(bytes_u32(
			    all[code[i] >> 6]) ^ (some & signs) << 31);
			signs >>= some;
		}
	}
	ecq_bits_whole(o->kern->tcq_values, o->x, code, marks, o->n, all);
}

/* All of it, the model started: 1 or 0. */
static int
get_all(struct kern_tcq *m, uint16_t *code, uint32_t *mark,
    const struct tcq_out *o, const struct tcq_side *s, const unsigned char *p,
    size_t len)
{
	unsigned states = 1u << s->states, j;
	uint32_t state[KERN_ECQ_LANES];
	struct kern_ecq_get g = { state, states, p, p + len };
	struct plain b = { .state = state, .end = state + states,
		.t = { 0, 0, p, len, 0 }, .fine = s->fine };

	kern_tcq_tables(m, s->top);
	if (ecq_bits_states(&b.t, state, states) < 0 ||
	    o->kern->tcq_get(m, &g, code, o->n) < 0)
		return 0;
	for (j = 0; j < states; j++)
		if (state[j] >> 17 != 0)
			return 0;
	get_plain(&b, o, s, code, mark);
	while (b.state < b.end)
		b.bad |= (*b.state++ & 0xffff) != 0;
	return !b.bad && b.v == 0 &&
	    tail_get_end(&b.t, (size_t)(g.p - p)) == 0;
}

int
tcq_code_get(const struct tcq_out *o, const struct tcq_side *s,
    const unsigned char *p, size_t len, struct err *e)
{
	const int above = s->mode == KERN_ECQ_ABOVE;
	size_t n = o->n + KERN_ECQ_LANES;
	struct kern_tcq m;
	uint32_t *mark;
	int32_t *room;
	int r;

	if (above && !kern_ecq_rows(o->ctx->cols, o->n))
		return 0;
	room = alloc_raw(n, sizeof(uint16_t) + (above ? sizeof(*room) : 0) +
	    sizeof(uint32_t) / KERN_ECQ_LANES + 1, e);
	if (room == NULL)
		return -ERR_SYS;
	kern_tcq_start(&m, (enum kern_ecq_mode)s->mode, s->level, o->ctx->cols,
	    o->ctx->offset, room);
	mark = (uint32_t *)(above ? room + n : room);
	r = get_all(&m, (uint16_t *)(mark + n / KERN_ECQ_LANES + 1), mark, o, s,
	    p, len);
	alloc_free(room);
	return r;
}
