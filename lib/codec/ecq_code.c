#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/ecq_bits.h"
#include "codec/ecq_code.h"
#include "codec/rans.h"
#include "kern/kern_tcq.h"

struct work {
	int32_t *above;				/* the row above, for KERN_ECQ_ABOVE */
	uint16_t *code;				/* the codes of all values: one of trial[] */
	uint16_t *trial[KERN_ECQ_MODES];	/* the sample's codes in each mode */
};

/* ---- the mode ---- */

enum {
	MANY = 49152,		/* larger groups choose the mode by a sample */
	TRIAL = 16384,		/* number of sampled values for larger groups */
	DENSE = 12,		/* at lower levels, the sample is larger */
	SPARSE_TRIAL = 32768,	/* number of sampled values at levels below DENSE */
	BANKS = 4,		/* tables of counts; several are faster than one */
	PIECES = 8,		/* number of pieces of the sample */
	LEARN = 3 << 16,	/* cost of learning a symbol, in 2^-16 bits */
	/* n / sample size times this is added to LEARN, since counts of the sample fit the
	 * sample better than the other values */
	FIT = 47000,
	FIRST = 4096,		/* number of first values that decide the level */
	RICH = 22,		/* lower levels are tried from this level on */
	LOWER = 4		/* difference of the levels tried */
};

/* Return 1 if a chunk's codes contain an escape. */
static inline int
escapes(const uint16_t code[KERN_ECQ_LANES], unsigned two)
{
	const unsigned least = KERN_ECQ_CODE(0, KERN_ECQ_ESCAPE - two);
	uint16_t most = 0;
	unsigned i;

	/* in 16 bits, so that compilers vectorise the loop: codes >= `least' become 1024
	 * or more */
	for (i = 0; i < KERN_ECQ_LANES; i++)
		most |= (uint16_t)((code[i] & 1023) + 1024 - least);
	return most >= 1024;
}

/* Return the number of low bits of escapes to store plainly, from the mean escape. */
static unsigned
fine(const uint16_t *code, const int16_t *q, size_t n, unsigned two)
{
	uint64_t sum = 0, k = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		/* escapes are rare: skip chunks without one */
		while (i + KERN_ECQ_LANES < n && !escapes(code + i, two))
			i += KERN_ECQ_LANES;
		if (KERN_ECQ_SYMBOL(code[i]) < KERN_ECQ_ESCAPE - two)
			continue;
		sum += (magnitude(q[i]) >> (kern_ecq_shift(KERN_ECQ_LEVEL(code[i])) +
		    two)) - (KERN_ECQ_ESCAPE >> two);
		k++;
	}
	return sum > k ? bits_length((uint32_t)(sum / k)) - 1 : 0;
}

/* Set count[c] to how often code c occurs, for symbols 0 to top; no symbol is above top. */
static void
counts(const uint16_t *code, size_t n, unsigned top,
    uint32_t count[KERN_ECQ_SYMBOLS << 6])
{
	/* One more row than needed. If the banks were exactly 4096 bytes apart, loads
	 * from one bank would wait for stores to another. */
	uint32_t bank[BANKS][(KERN_ECQ_SYMBOLS + 1) << 6];
	const size_t used = (size_t)(top + 1) << 6;
	size_t i;

	for (i = 0; i < BANKS; i++)
		memset(bank[i], 0, used * sizeof(*bank[i]));
	for (i = 0; i + BANKS <= n; i += BANKS) {
		bank[0][code[i]]++;
		bank[1][code[i + 1]]++;
		bank[2][code[i + 2]]++;
		bank[3][code[i + 3]]++;
	}
	for (; i < n; i++)
		bank[0][code[i]]++;
	for (i = 0; i < used; i++)
		count[i] = bank[0][i] + bank[1][i] + bank[2][i] + bank[3][i];
}

/* Estimate the cost of n values in units of 2^-16 bits from a sample of `some' codes, whose
 * greatest symbol is top: the entropy in each context, the plain bits, and the cost of
 * learning the frequencies. */
static uint64_t
cost(const uint16_t *code, const int16_t *q, size_t some, size_t n, unsigned top)
{
	uint32_t count[KERN_ECQ_SYMBOLS << 6], sum, v;
	uint32_t by[KERN_ECQ_CONTEXTS][KERN_ECQ_SYMBOLS] = { { 0 } };
	uint64_t bits = 0, learn = 0;
	unsigned c, s, l;

	counts(code, some, top, count);
	for (l = 0, v = 0; top == KERN_ECQ_ESCAPE && l < 1 << 6; l++)
		v += count[KERN_ECQ_CODE(l, KERN_ECQ_ESCAPE)];
	if (v != 0)
		bits += v * (fine(code, q, some, 0) + 2);
	for (s = 0; s <= top; s++)
		for (l = 0; l < KERN_ECQ_LEVELS; l++) {
			v = count[KERN_ECQ_CODE(l, s)];
			by[kern_ecq_context(l)][s] += v;
			bits += (uint64_t)v * ((s != 0) + kern_ecq_shift(l));
		}
	bits <<= 16;
	for (c = 0; c < KERN_ECQ_CONTEXTS; c++) {
		for (s = 0, sum = 0; s <= top; s++)
			sum += by[c][s];
		if (sum == 0)
			continue;
		bits += sum * rans_log2(sum);
		for (s = 0; s <= top; s++) {
			v = by[c][s];
			bits -= v != 0 ? v * rans_log2(v) : 0;
			learn += v != 0 && s > 0 ? LEARN + n / some * FIT : 0;
		}
	}
	return bits / some * n + learn;
}

/* Return the level of the mean |q| of the first values. */
static uint8_t
level(const int16_t *q, size_t n)
{
	uint64_t v = 0;
	unsigned o;
	size_t i;

	n = n < FIRST ? n : FIRST;
	for (i = 0; i < n; i++)
		v += magnitude(q[i]);
	v = (v << 10) / n | 1;
	o = bits_length((uint32_t)v) - 1;
	o = 2 * o + (unsigned)(v << 1 >> o & 1);
	return (uint8_t)(o < KERN_ECQ_LEVELS ? o : KERN_ECQ_LEVELS - 1);
}

/* Copy n values of in->q to q, in PIECES pieces; each piece begins at a multiple of stride or,
 * near the start, anywhere. */
static void
sample(const struct ecq_in *in, size_t stride, int16_t *q, size_t n)
{
	size_t i, at, k = n / PIECES;

	for (i = 0; i < PIECES; i++) {
		/* at unequal distances, so that no periodic pattern biases the sample */
		at = i * (in->n / PIECES) + i * 5 % PIECES *
		    (in->n / PIECES - k) / PIECES;
		at -= at % stride < at ? at % stride : 0;
		memcpy(q + i * k, in->q + at, k * sizeof(*q));
	}
}

/* Compute the codes of q in each mode, except KERN_ECQ_ABOVE if there are too few rows for it.
 * Return the number of modes. */
static unsigned
trials(struct work *w, const struct ecq_in *in, unsigned level,
    const int16_t *q, size_t n, struct kern_ecq_sorted t[KERN_ECQ_MODES])
{
	struct kern_ecq m[KERN_ECQ_MODES];
	const unsigned modes = kern_ecq_rows(in->ctx->cols, in->n) ?
	    KERN_ECQ_MODES : KERN_ECQ_ABOVE;
	unsigned i;

	for (i = 0; i < modes; i++) {
		kern_ecq_start(&m[i], (enum kern_ecq_mode)i, level,
		    in->ctx->cols, in->ctx->offset,
		    i == KERN_ECQ_ABOVE ? w->above : NULL);
		t[i] = (struct kern_ecq_sorted){ &m[i], w->trial[i], 0 };
	}
	in->kern->ecq_sort(t, modes, q, n);
	for (i = 0; i < modes; i++)
		t[i].m = NULL;
	return modes;
}

/* Lower s->level while this takes fewer bits. An eighth of its mean is added to each column's
 * mean, so at a high level different columns get nearly the same level. On a gradient at 4
 * bits per value we measured up to 7 % fewer bits. On entry and return *bits and
 * t[KERN_ECQ_ABOVE] are those of s->level; the rest of t is scratch. */
static void
lower(struct work *w, const struct ecq_in *in, struct ecq_side *s,
    const int16_t *q, size_t n, struct kern_ecq_sorted t[KERN_ECQ_MODES],
    uint64_t *bits)
{
	struct kern_ecq_sorted *now = &t[KERN_ECQ_ABOVE], *next = t, swap;
	struct kern_ecq m;
	uint64_t b;

	while (s->level >= RICH) {
		kern_ecq_start(&m, KERN_ECQ_ABOVE, s->level - LOWER,
		    in->ctx->cols, in->ctx->offset, w->above);
		next->m = &m;
		next->top = 0;
		in->kern->ecq_sort(next, 1, q, n);
		next->m = NULL;
		b = cost(next->code, q, n, in->n, next->top);
		if (b >= *bits)
			return;
		*bits = b;
		s->level -= LOWER;
		swap = *now;
		*now = *next;
		*next = swap;
	}
}

/* Set s->states, and set s->mode and s->level to those with the fewest bits for a sample. Set
 * *best to the sample's codes, which are in the memory of w. Return the sample's size in
 * values. */
static size_t
pick(struct work *w, const struct ecq_in *in, struct ecq_side *s,
    struct kern_ecq_sorted *best)
{
	struct kern_ecq_sorted t[KERN_ECQ_MODES];
	size_t n = in->n;
	int16_t some[SPARSE_TRIAL];
	const int16_t *q = in->q;
	uint64_t bits, least = UINT64_MAX;
	unsigned modes, i;

	s->level = level(in->q, in->n);
	if (n > MANY) {
		n = s->level < DENSE ? SPARSE_TRIAL : TRIAL;
		sample(in, in->ctx->cols, some, n);
		q = some;
	}
	s->mode = 0;
	modes = trials(w, in, s->level, q, n, t);
	for (i = 0; i < modes; i++) {
		bits = cost(w->trial[i], q, n, in->n, t[i].top);
		if (bits >= least)
			continue;
		least = bits;
		s->mode = (uint8_t)i;
	}
	if (s->mode == KERN_ECQ_ABOVE)
		lower(w, in, s, q, n, t, &least);
	*best = t[s->mode];
	s->states = 0;
	while (s->states < ECQ_STATES && least >> 19 >= 448u << s->states)
		s->states++;
	return n;
}

/* Call pick, then compute the codes of all values: set w->code and all of s except `delta'
 * and `fine'. */
static void
choose(struct work *w, const struct ecq_in *in, struct ecq_side *s)
{
	struct kern_ecq_sorted all;
	struct kern_ecq m;
	size_t n = pick(w, in, s, &all);

	w->code = all.code;
	if (n < in->n) {
		kern_ecq_start(&m, (enum kern_ecq_mode)s->mode, s->level,
		    in->ctx->cols, in->ctx->offset, w->above);
		all.m = &m;
		in->kern->ecq_sort(&all, 1, in->q, in->n);
	}
	s->top = (uint8_t)(all.top > 0 ? all.top : 1);
}

/* Write the plain bits of a value, except for the sign of a symbol that is not 0. */
ECQ_BITS_INLINE void
put_rest(struct bits *b, int16_t q, unsigned code, float x, unsigned two)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), k;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t a = magnitude(q), e;

	if (s >= KERN_ECQ_ESCAPE - two) {
		e = (a >> (shift + two)) - (KERN_ECQ_ESCAPE >> two);
		k = bits_length((e >> b->fine) + 1) - 1;
		put_bits(b, (1u << k) - 1, k + 1);
		put_bits(b, ((e >> b->fine) + 1) & ((1u << k) - 1), k);
		put_bits(b, e & ((1u << b->fine) - 1), b->fine);
	}
	put_bits(b, a >> two & ((1u << shift) - 1), shift);
	if (s == 0 && a != 0)
		put_bits(b, q < 0, 1);
	if (a == KERN_QMAX)
		put_bits(b, bytes_u32(x) & 0x7fffffff, 31);
}

/* Write the plain bits, chunk by chunk. Return -1 if they exceed limit bytes. */
ECQ_BITS_INLINE int
put_plain(struct bits *b, const struct ecq_in *in, const uint16_t *code,
    const uint32_t *mark, size_t limit, unsigned two)
{
	uint64_t low[4], n[4];
	size_t at, end, i;

	for (at = 0; at < in->n; at = end) {
		end = at + KERN_ECQ_LANES < in->n ? at + KERN_ECQ_LANES : in->n;
		put_bits(b, *mark & 0xffff, *mark >> 16 & 0xff);
		if (*mark >> 24 != 0 && end - at == KERN_ECQ_LANES &&
		    !escapes(code + at, two)) {
			in->kern->ecq_low(in->q + at, code + at, two, low, n);
			for (put_many(b, 0, 0), i = 0; i < 4; i++)
				put_many(b, low[i], (unsigned)n[i]);
		} else for (i = at; *mark >> 24 != 0 && i < end; i++)
			if (!kern_ecq_whole(code[i], KERN_ECQ_ESCAPE - two))
				put_rest(b, in->q[i], code[i], in->x[i], two);
		mark++;
		if ((size_t)(b->p - b->start) > limit)
			return -1;
	}
	return 0;
}

int8_t
ecq_code_mean(int64_t sum, uint32_t n, int unit, unsigned j)
{
	double d = n != 0 ? rint(ldexp((double)sum / n, -unit)) : 0;
	double most = j == 0 ? 128 : 8;

	return (int8_t)(d < -most ? -most : d > most - 1 ? most - 1 : d);
}

static void
centroids(const struct ecq_in *in, int8_t delta[ECQ_CENTROIDS])
{
	int64_t sum[ECQ_CENTROIDS] = { 0 };	/* integers: the same sum in any order */
	uint32_t count[ECQ_CENTROIDS] = { 0 };
	unsigned j;

	in->kern->ecq_centers(in->q, in->x, in->n, in->inv, sum, count);
	for (j = 0; j < ECQ_CENTROIDS; j++)
		delta[j] = ecq_code_mean(sum[j], count[j], j == 0 ? 8 : 11, j);
}

void
ecq_code_delta(const struct ecq_side *s, unsigned two, float of[2][ECQ_CENTROIDS + 1])
{
	unsigned u, j;

	for (u = 0; u <= two; u++)
		for (of[u][0] = 0, j = 0; j < ECQ_CENTROIDS; j++)
			of[u][j + 1] = (float)s->delta[u][j] /
			    (float)((j == 0 ? 256 : 32) >> two);
}

static void
start(struct kern_tcq *m, const struct codec_ctx *ctx, const struct ecq_side *s,
    int32_t *above, unsigned two)
{
	const enum kern_ecq_mode mode = (enum kern_ecq_mode)s->mode;

	if (two) {
		kern_tcq_start(m, mode, s->level, ctx->cols, ctx->offset, above);
		kern_tcq_tables(m, s->top);
		return;
	}
	kern_ecq_start(&m->m, mode, s->level, ctx->cols, ctx->offset, above);
	kern_ecq_tables(&m->m, s->top);
}

/* The first plain bits become the initial states of the coder. */
size_t
ecq_code_write(const struct ecq_in *in, struct ecq_side *s, const uint16_t *code,
    uint32_t *span, unsigned char *raw, unsigned char *p, size_t limit, unsigned two)
{
	const unsigned states = 1u << s->states;
	struct bits b = { .p = raw, .start = raw };
	unsigned char *end = p + limit, *front, *back, *last;
	uint32_t state[KERN_ECQ_LANES];
	struct kern_tcq m;
	unsigned j;
	size_t k;

	s->fine = (uint8_t)(s->top >= KERN_ECQ_ESCAPE - two ?
	    fine(code, in->q, in->n, two) : 0);
	b.fine = s->fine;
	/* marks and spans share memory; marks are not used after put_plain */
	in->kern->ecq_marks(code, in->q, in->n, span, KERN_ECQ_ESCAPE - two);
	if ((two ? put_plain(&b, in, code, span, limit, 1) :
	    put_plain(&b, in, code, span, limit, 0)) < 0)
		return 0;
	/* write the pending bits, and zeros so that each state has 16 bits */
	memset(b.p, 0, 8 + 2 * KERN_ECQ_LANES);
	bytes_set32(b.p, (uint32_t)b.v);
	for (j = 0; j < states; j++)
		state[j] = KERN_ECQ_LOW | bytes_le16(raw + 2 * j);
	/* the codes have the levels, so the model needs no row above */
	start(&m, in->ctx, s, NULL, two);
	if (two)
		in->kern->tcq_spans(&m, code, in->n, span);
	else
		in->kern->ecq_spans(&m.m, code, in->n, span);
	/* A value's code takes at most 15 bits, so the words fit into the memory of the
	 * spans, which are read before they are overwritten. */
	last = (unsigned char *)(span + in->n) + 4 * KERN_ECQ_LANES;
	front = in->kern->ecq_put(state, states, span, in->n, last);
	k = (size_t)(last - front);
	if (k > limit)
		return 0;
	back = ecq_bits_back(state, states, &b, p + k, end);
	if (back == NULL)
		return 0;
	memcpy(p, front, k);
	memmove(p + k, back, (size_t)(end - back));
	return k + (size_t)(end - back);
}

/* Bytes per value of the memory that room() divides: the row above and codes per mode. */
enum { ROOM = sizeof(int32_t) + KERN_ECQ_MODES * sizeof(uint16_t) };

static void
room(struct work *w, int32_t *p, size_t n)
{
	unsigned i;

	w->above = p;
	w->trial[0] = (uint16_t *)(p + n);
	for (i = 1; i < KERN_ECQ_MODES; i++)
		w->trial[i] = w->trial[i - 1] + n;
}

int
ecq_code_pick(const struct ecq_in *in, struct ecq_side *s, struct err *e)
{
	size_t n = (in->n > MANY ? (size_t)MANY : in->n) + KERN_ECQ_LANES;
	struct work w = { .code = NULL };
	struct kern_ecq_sorted best;
	int32_t *p = alloc_raw(n, ROOM, e);

	if (p == NULL)
		return -ERR_SYS;
	room(&w, p, n);
	(void)pick(&w, in, s, &best);
	alloc_free(p);
	return 0;
}

int
ecq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e)
{
	size_t n = in->n + KERN_ECQ_LANES;
	struct work w = { .code = NULL };
	float delta[2][ECQ_CENTROIDS + 1];
	uint32_t *span;

	/* one allocation, which the allocator keeps for the next group */
	span = alloc_raw(n * (sizeof(*span) + ROOM) + limit + ECQ_CODE_RAW, 1, e);
	if (span == NULL)
		return -ERR_SYS;
	room(&w, (int32_t *)(span + n), n);
	choose(&w, in, s);
	centroids(in, s->delta[0]);
	*len = ecq_code_write(in, s, w.code, span,
	    (unsigned char *)(w.trial[KERN_ECQ_MODES - 1] + n), p, limit, 0);
	if (in->y != NULL && *len != 0) {
		ecq_code_delta(s, 0, delta);
		in->kern->ecq_decoded(in->y, in->q, in->x, in->n, delta[0], in->step);
	}
	alloc_free(span);
	return 0;
}

/* Return |q| from a code and its plain bits. If the plain bits have the sign, set *neg. */
ECQ_BITS_INLINE uint32_t
get_rest(struct plain *b, unsigned code, uint32_t *neg, unsigned two)
{
	unsigned shift = kern_ecq_shift(KERN_ECQ_LEVEL(code)), j = 0;
	unsigned s = KERN_ECQ_SYMBOL(code);
	uint32_t k = s >> two;

	if (s >= KERN_ECQ_ESCAPE - two) {
		while (j < 15 && get_bits(b, 1))
			j++;
		k = ((1u << j) | get_bits(b, j)) - 1;
		k = (k << b->fine | get_bits(b, b->fine)) + (KERN_ECQ_ESCAPE >> two);
	}
	b->bad |= k > (uint32_t)KERN_QMAX >> (shift + two);
	k = (k << shift | get_bits(b, shift)) << two | (s & two);
	if (s == 0 && k != 0)
		*neg = get_bits(b, 1);
	return k;
}

/* Decode all values, chunk by chunk, from codes and plain bits. */
ECQ_BITS_INLINE void
get_plain(struct plain *b, const struct ecq_out *o, const struct ecq_side *s,
    const uint16_t *code, uint32_t *mark, unsigned two)
{
	float of[2][ECQ_CENTROIDS + 1], all[2 * KERN_ECQ_SYMBOLS], x;
	const uint32_t *const marks = mark;
	uint32_t signs, neg, k, j;
	size_t at, end, i;

	ecq_code_delta(s, two, of);
	for (j = 0; j < (unsigned)KERN_ECQ_SYMBOLS << two; j++)
		all[j] = ecq_code_value(j % KERN_ECQ_SYMBOLS, j / KERN_ECQ_SYMBOLS,
		    of, o->step, two);
	o->kern->ecq_marks(code, NULL, o->n, mark, KERN_ECQ_ESCAPE - two);
	for (at = 0; at < o->n; at = end, mark++) {
		end = at + KERN_ECQ_LANES < o->n ? at + KERN_ECQ_LANES : o->n;
		signs = get_bits(b, *mark >> 16 & 0xff);
		if (*mark >> 24 == 0) {
			*mark = signs;
			continue;
		}
		for (i = at; i < end; i++) {
			j = KERN_ECQ_SYMBOL(code[i]) != 0;
			neg = signs & j;
			signs >>= j;
			x = all[code[i] >> 6];
			if (!two || !kern_ecq_whole(code[i], KERN_ECQ_ESCAPE - two)) {
				k = get_rest(b, code[i], &neg, two);
				x = k == KERN_QMAX ? bytes_f32(get_bits(b, 31)) :
				    ecq_code_value(k, KERN_TCQ_QUANTISER(code[i]) &
				    two, of, o->step, two);
			}
			/* no branch, because signs cannot be predicted */
			o->x[i] = bytes_f32(bytes_u32(x) ^ neg << 31);
		}
	}
	ecq_bits_whole(two ? o->kern->tcq_values : o->kern->ecq_values, o->x, code,
	    marks, o->n, all);
}

/* Decode all values with a started model. Return 1, or 0 if the code is not valid. */
static int
get_all(struct kern_tcq *m, uint16_t *code, uint32_t *mark,
    const struct ecq_out *o, const struct ecq_side *s, unsigned two,
    const unsigned char *p, size_t len)
{
	unsigned states = 1u << s->states, j;
	uint32_t state[KERN_ECQ_LANES];
	struct kern_ecq_get g = { state, states, p, p + len };
	struct plain b = { .state = state, .end = state + states,
		.t = { p + len, len, 0 }, .fine = s->fine };

	if (ecq_bits_states(&b.t, state, states) < 0 ||
	    (two ? o->kern->tcq_get(m, &g, code, o->n) :
	    o->kern->ecq_get(&m->m, &g, code, o->n)) < 0)
		return 0;
	for (j = 0; j < states; j++)
		if (state[j] >> 17 != 0)
			return 0;
	if (two)
		get_plain(&b, o, s, code, mark, 1);
	else
		get_plain(&b, o, s, code, mark, 0);
	while (b.state < b.end)
		b.bad |= (*b.state++ & 0xffff) != 0;
	return !b.bad && b.v == 0 && bits_get_end(&b.t, g.p);
}

int
ecq_code_get(const struct ecq_out *o, const struct ecq_side *s, unsigned two,
    const unsigned char *p, size_t len, struct err *e)
{
	const int above = s->mode == KERN_ECQ_ABOVE;
	size_t n = o->n + KERN_ECQ_LANES;
	struct kern_tcq m;
	uint32_t *mark;
	int32_t *row;
	int r;

	if (above && !kern_ecq_rows(o->ctx->cols, o->n))
		return 0;
	/* one allocation, which the allocator keeps for the next group */
	row = alloc_raw(n, sizeof(uint16_t) + (above ? sizeof(*row) : 0) +
	    sizeof(uint32_t) / KERN_ECQ_LANES + 1, e);
	if (row == NULL)
		return -ERR_SYS;
	start(&m, o->ctx, s, above ? row : NULL, two);
	mark = (uint32_t *)(above ? row + n : row);
	r = get_all(&m, (uint16_t *)(mark + n / KERN_ECQ_LANES + 1), mark, o, s,
	    two, p, len);
	alloc_free(row);
	return r;
}
