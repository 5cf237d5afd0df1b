/*
 * The quantised values of TCQ (codec/tcq_code.h): a trellis of eight states per lane.
 *
 * A value is quantised to q, |q| = k, by one of two quantisers, u = 0 or 1.  It is decoded as
 * sign(q) * (2 k - u + delta) * step, with delta by u and min(k, 3) from struct ecq_side, or as
 * 0 for k = 0; with k = KERN_QMAX the value itself is sent.  Value i goes through the trellis
 * of lane i mod 16, which begins in state 0.  u is the lowest bit of the state; the parity of k
 * selects the next state.  The context model is that of kern_ecq.h, applied to k; each
 * quantiser has its own tables of frequencies.
 *
 * Because the symbol must give the parity, k is coded as the symbol s = 2 * min(k >>
 * (shift(l) + 1), 7) + k % 2, with l the level of kern_ecq.h; s is k if shift(l) = 0, k < 14.
 */
#ifndef ACE_KERN_TCQ_H
#define ACE_KERN_TCQ_H

#include "kern/kern_ecq.h"

enum {
	KERN_TCQ_STATES = 8,
	KERN_TCQ_ESCAPE = 14,		/* this symbol and the next are escapes */
	KERN_TCQ_CENTERS = 3,		/* for k = 1, k = 2, and k >= 3 */
	KERN_TCQ_WAYS = 4,		/* a way is 2 u + k % 2 */
	KERN_TCQ_FINE = 512,		/* units of a position per step */
	KERN_TCQ_AHEAD = 451,		/* a cell begins so many units below its step */
	KERN_TCQ_LAST = 32,		/* from this step on, costs repeat every 4 steps */
	KERN_TCQ_CELLS = 40,
	KERN_TCQ_FAR = 65528,		/* from this cell on, k is KERN_QMAX - 1 or KERN_QMAX */
	/* Limits on costs, in 2^-10 of a squared step: so small that a path from another
	 * first state than 0 is never the cheapest. */
	KERN_TCQ_MOST = 4095,		/* most cost of a symbol */
	KERN_TCQ_NEVER = 21000		/* cost of k = KERN_QMAX - 1 */
};

struct kern_tcq {
	struct kern_ecq m;		/* means, and the tables of quantiser 0 */
	struct kern_ecq odd;		/* the tables of quantiser 1 */
	uint8_t state[KERN_ECQ_LANES];	/* state of each lane's trellis */
};

/* The code of a value: as KERN_ECQ_CODE, with its quantiser u, 0 or 1. */
#define KERN_TCQ_CODE(l, s, u) ((uint16_t)((l) | (s) << 6 | (u) << 10))
#define KERN_TCQ_QUANTISER(c) ((unsigned)(c) >> 10)

static inline unsigned
kern_tcq_next(unsigned state, unsigned parity)
{
	return ((state ^ state >> 1) & 1) | ((state >> 2 ^ parity) & 1) << 1 |
	    (state & 1) << 2;
}

static inline unsigned
kern_tcq_symbol(unsigned k, unsigned shift)
{
	unsigned s = k >> (shift + 1);

	return 2 * (s < 7 ? s : 7) + k % 2;
}

/* Return what a symbol counts as in the means of magnitudes. */
static inline int32_t
kern_tcq_counted(unsigned symbol, unsigned shift)
{
	uint32_t k = (symbol >> 1) << (shift + 1) | (symbol & 1);

	return k < KERN_ECQ_CAP ? (int32_t)k : KERN_ECQ_CAP;
}

/* Return the position of a value x, given a = |x| * inv: KERN_TCQ_FINE units are a step.  A
 * cell is one step wide; each way has one nearest level to it, since a way's levels are four
 * steps apart. */
static inline uint32_t
kern_tcq_place(float a)
{
	const float most = 0x1p26f;

	return (uint32_t)(int32_t)(a < most ? a : most);
}

static inline uint32_t
kern_tcq_cell(uint32_t place)
{
	return (place + KERN_TCQ_AHEAD) / KERN_TCQ_FINE;
}

/* Return k / 2 for the level of way 2 u + p, other than 0, that is nearest to a cell. */
static inline uint32_t
kern_tcq_half(uint32_t cell, unsigned u, unsigned p)
{
	uint32_t j = cell + u + 1;

	j = (j > 2 * p ? j - 2 * p : 0) / 4;
	return j < 1 && p == 0 ? 1 : j;
}

/* Input of the decisions.  At levels that shift, values take many bits and all symbols
 * cost the same: 0, in the last row. */
struct kern_tcq_walk {
	const float *x;		/* [n] */
	const uint16_t *code;	/* [n] codes, of which only the levels are used */
	size_t n;
	float inv;		/* KERN_TCQ_FINE / step */
	/* [context][cell]: costs of the symbols of the four ways, of 0 for each u, and padding */
	uint16_t cost[KERN_ECQ_CONTEXTS + 1][KERN_TCQ_CELLS][8];
	/* [u][j]: centre less 2 k - u, in 1 / 512 step, of k = j + 1; if j is 2, of all k >= 3 */
	int16_t center[2][KERN_TCQ_CENTERS];
	/* per chunk: for each state a bit per lane, 1 if its path comes from the lower of
	 * its two predecessors; then for each u whether the even level is 0 */
	uint16_t (*from)[KERN_TCQ_STATES + 2];
};

/* Costs of the best paths to each state, per lane. */
struct kern_tcq_ends {
	uint16_t cost[KERN_TCQ_STATES][KERN_ECQ_LANES];
};

/* Like kern_ecq_start and kern_ecq_tables, for both quantisers. */
void kern_tcq_start(struct kern_tcq *m, enum kern_ecq_mode mode, unsigned level,
    size_t cols, uint64_t offset, int32_t *above);
void kern_tcq_tables(struct kern_tcq *m, unsigned top);

/* Reference definitions of kern.h's passes, value by value.  kern_tcq_walk_start sets the ends
 * before the first value.  kern_tcq_walk_some goes from value `from', the first of a chunk, to the
 * last, updates the ends, and sets w->from.  kern_tcq_walk_back goes from the best ends back to
 * value `to', the first of a chunk, sets q from there on and `state' to the states before it. */
unsigned kern_tcq_sort(struct kern_tcq *m, const int16_t *q, size_t n, uint16_t *code);
void kern_tcq_spans(struct kern_tcq *m, const uint16_t *code, size_t n, uint32_t *span);
int kern_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code, size_t n);
void kern_tcq_walk(const struct kern_tcq_walk *w, int16_t *q);
void kern_tcq_walk_start(struct kern_tcq_ends *ends);
void kern_tcq_walk_some(const struct kern_tcq_walk *w, size_t from,
    struct kern_tcq_ends *ends);
void kern_tcq_walk_back(const struct kern_tcq_walk *w, size_t to,
    const struct kern_tcq_ends *ends, uint32_t state[KERN_ECQ_LANES],
    int16_t *q);

/* Rows of a table with these passes and kern_ecq.h's, except ecq_centers and ecq_decoded. */
#define KERN_TCQ_ROWS \
	.ecq_sort = kern_ecq_sort, \
	.ecq_spans = kern_ecq_spans, \
	.ecq_put = kern_ecq_put, \
	.ecq_get = kern_ecq_get, \
	.ecq_marks = kern_ecq_marks, \
	.ecq_low = kern_ecq_low, \
	.ecq_values = kern_ecq_values, \
	.tcq_sort = kern_tcq_sort, \
	.tcq_spans = kern_tcq_spans, \
	.tcq_get = kern_tcq_get, \
	.tcq_walk = kern_tcq_walk, \
	.tcq_values = kern_ecq_values

#endif
