#include <string.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "codec/ecq_mode.h"
#include "codec/rans.h"

enum {
	MANY = 49152,		/* up to so many values choose the mode, */
	TRIAL = 16384,		/* beyond that so many, */
	DENSE = 12,		/* and where they are below this level */
	SPARSE_TRIAL = 32768,	/* so many */
	BANKS = 4,		/* one after another costs less time */
	PIECES = 8,		/* from so many places */
	LEARN = 3 << 16,	/* what a symbol of a context costs to learn, */
	FIT = 47000,		/* and what a sample says too well of it */
	FIRST = 4096,		/* and these the level, */
	RICH = 22,		/* instead of which, from this one on, */
	LOWER = 4,		/* one lower by so much is tried */
	ESCAPED = KERN_ECQ_SYMBOLS - 1
};

void
ecq_mode_start(struct ecq_work *w, const struct codec_ctx *ctx,
    const struct ecq_side *s)
{
	kern_ecq_start(&w->m, (enum kern_ecq_mode)s->mode, s->level, ctx->cols,
	    ctx->offset, s->mode == KERN_ECQ_ABOVE ? w->above : NULL);
}

/* Is there an escape among a chunk's codes? */
static inline int
escapes(const uint16_t code[KERN_ECQ_LANES])
{
	unsigned most = 0, i;

	for (i = 0; i < KERN_ECQ_LANES; i++)
		most |= code[i] >= KERN_ECQ_CODE(0, ESCAPED);
	return (int)most;
}

/* The bits of escapes that are as likely 0 as 1, from their mean. */
static unsigned
fine(const uint16_t *code, const int16_t *q, size_t n)
{
	uint64_t sum = 0, k = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		/* they are few */
		while (i + KERN_ECQ_LANES < n && !escapes(code + i))
			i += KERN_ECQ_LANES;
		if (KERN_ECQ_SYMBOL(code[i]) != ESCAPED)
			continue;
		sum += (ecq_magnitude(q[i]) >>
		    kern_ecq_shift(KERN_ECQ_LEVEL(code[i]))) - ESCAPED;
		k++;
	}
	return sum > k ? ecq_length((uint32_t)(sum / k)) - 1 : 0;
}

/* Counts codes, whose symbols are top at most. */
static void
counts(const uint16_t *code, size_t n, unsigned top,
    uint32_t count[KERN_ECQ_SYMBOLS << 6])
{
	/* a row more than is used: banks 4096 bytes apart would wait for each
	 * other's stores */
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

/*
 * Estimates what n values cost, in units of 2^-16 bits, from the codes of some
 * of them, whose greatest symbol is top: each context's entropy, the plain bits,
 * and the cost of learning.
 */
static uint64_t
cost(const uint16_t *code, const int16_t *q, size_t some, size_t n,
    unsigned top)
{
	uint32_t count[KERN_ECQ_SYMBOLS << 6], sum, v;
	uint32_t by[KERN_ECQ_CONTEXTS][KERN_ECQ_SYMBOLS] = { { 0 } };
	uint64_t bits = 0, learn = 0;
	unsigned c, s, l;

	counts(code, some, top, count);
	for (l = 0, v = 0; top == ESCAPED && l < 1 << 6; l++)
		v += count[KERN_ECQ_CODE(l, ESCAPED)];
	if (v != 0)
		bits += v * (fine(code, q, some) + 2);
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

/* The level of the first values. */
static uint8_t
level(const int16_t *q, size_t n)
{
	uint64_t v = 0;
	unsigned o;
	size_t i;

	n = n < FIRST ? n : FIRST;
	for (i = 0; i < n; i++)
		v += ecq_magnitude(q[i]);
	v = (v << 10) / n | 1;
	o = ecq_length((uint32_t)v) - 1;
	o = 2 * o + (unsigned)(v << 1 >> o & 1);
	return (uint8_t)(o < KERN_ECQ_LEVELS ? o : KERN_ECQ_LEVELS - 1);
}

/* Some of q in one piece: whole rows from all over the group. */
static void
sample(const struct ecq_in *in, size_t stride, int16_t *q, size_t n)
{
	size_t i, at, k = n / PIECES;

	for (i = 0; i < PIECES; i++) {
		/* not at equal distances, which patterns may have, too */
		at = i * (in->n / PIECES) + i * 5 % PIECES *
		    (in->n / PIECES - k) / PIECES;
		at -= at % stride < at ? at % stride : 0;
		memcpy(q + i * k, in->q + at, k * sizeof(*q));
	}
}

/* Sorts q by all modes, or by all but the last; returns how many. */
static unsigned
trials(struct ecq_work *w, const struct ecq_in *in, unsigned level,
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

/*
 * What is above says little where it is small beside the level's mean, which is
 * added to it; so where columns are unlike, a lower level takes fewer bits than
 * that of the values (up to 7 % fewer, at 4 bits a value of a real gradient).
 * *bits and t[KERN_ECQ_ABOVE] are what level s->level takes; the other room is
 * free.
 */
static void
lower(struct ecq_work *w, const struct ecq_in *in, struct ecq_side *s,
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

/* The mode and the level that a sample takes fewest bits in, and all in
 * codes. */
void
ecq_mode(struct ecq_work *w, const struct ecq_in *in, struct ecq_side *s)
{
	struct kern_ecq_sorted t[KERN_ECQ_MODES], all;
	size_t n = in->n;
	int16_t some[SPARSE_TRIAL];
	const int16_t *q = in->q;
	uint64_t bits, least = UINT64_MAX;
	unsigned modes, i, best = 0;

	s->level = level(in->q, in->n);
	if (n > MANY) {
		n = s->level < DENSE ? SPARSE_TRIAL : TRIAL;
		sample(in, in->ctx->cols, some, n);
		q = some;
	}
	modes = trials(w, in, s->level, q, n, t);
	for (i = 0; i < modes; i++) {
		bits = cost(w->trial[i], q, n, in->n, t[i].top);
		if (bits >= least)
			continue;
		least = bits;
		best = i;
	}
	s->mode = (uint8_t)best;
	if (best == KERN_ECQ_ABOVE)
		lower(w, in, s, q, n, t, &least);
	all = t[best];
	w->code = all.code;
	if (n < in->n) {
		ecq_mode_start(w, in->ctx, s);
		all.m = &w->m;
		in->kern->ecq_sort(&all, 1, in->q, in->n);
	}
	s->top = (uint8_t)(all.top > 0 ? all.top : 1);
	s->fine = (uint8_t)(all.top == ESCAPED ?
	    fine(w->code, in->q, in->n) : 0);
	s->states = 0;
	while (s->states < ECQ_STATES && least >> 19 >= 448u << s->states)
		s->states++;
}
