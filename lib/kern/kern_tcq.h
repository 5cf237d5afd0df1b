/*
 * The levels of TCQ (codec/tcq_code.h): a trellis of eight states for each lane.
 *
 * A value is |q| = k of one of two quantisers, u = 0 or 1, and means
 * sign(q) * (2 k - u) * step, 0 for k = 0.  Value i goes through the trellis of
 * lane i mod 16, which begins in state 0; u is the lowest bit of the state, which
 * the parity of k moves on.  What is expected of a chunk is ECQ's (kern_ecq.h),
 * of k; each quantiser has tables of frequencies of its own.
 *
 * As the parity has to be known with the symbol, a k of level l is the symbol
 * s = 2 * min(k >> (shift(l) + 1), 7) + k % 2: that is k where nothing is shifted
 * and k is below 14.
 */
#ifndef ACE_KERN_TCQ_H
#define ACE_KERN_TCQ_H

#include "kern/kern_ecq.h"

enum {
	KERN_TCQ_STATES = 8,
	KERN_TCQ_ESCAPE = 14,		/* this symbol and the one above */
	KERN_TCQ_CENTERS = 3,		/* for k = 1, 2, 3 and more */
	KERN_TCQ_WAYS = 4,		/* 2 u + k % 2 */
	KERN_TCQ_FINE = 512,		/* of a step: where a value is */
	KERN_TCQ_AHEAD = 451,		/* that a cell begins below its step */
	KERN_TCQ_LAST = 32,		/* from this step on all four are alike */
	KERN_TCQ_CELLS = 40,
	KERN_TCQ_FAR = 65528,		/* no level reaches this step */
	/* costs, in 2^-10 of a squared step, are small enough that no path from
	 * another state than the first is ever the cheapest */
	KERN_TCQ_MOST = 4095,		/* of a symbol */
	KERN_TCQ_NEVER = 21000
};

struct kern_tcq {
	struct kern_ecq m;		/* and the tables of quantiser 0 */
	struct kern_ecq odd;		/* the tables of quantiser 1 */
	uint8_t state[KERN_ECQ_LANES];
};

/* A value as it is coded: as ECQ's, and its quantiser. */
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

/* What a symbol counts as, of the magnitudes that are followed. */
static inline int32_t
kern_tcq_counted(unsigned symbol, unsigned shift)
{
	uint32_t k = (symbol >> 1) << (shift + 1) | (symbol & 1);

	return k < KERN_ECQ_CAP ? (int32_t)k : KERN_ECQ_CAP;
}

/* Where a value is, in KERN_TCQ_FINE of a step, and its cell: of a step's width,
 * in which each way's levels, four steps apart, have one that is nearest. */
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

/* A way's k / 2 there, when it is not 0 where it might be. */
static inline uint32_t
kern_tcq_half(uint32_t cell, unsigned u, unsigned p)
{
	uint32_t j = cell + u + 1;

	j = (j > 2 * p ? j - 2 * p : 0) / 4;
	return j < 1 && p == 0 ? 1 : j;
}

/* What the decisions are made from.  Where levels shift there are many bits and
 * all symbols cost alike: 0, the last row. */
struct kern_tcq_walk {
	const float *x;
	const uint16_t *code;	/* [n] whose levels are taken */
	size_t n;
	float inv;		/* KERN_TCQ_FINE / step */
	/* of a cell the cost of each way's symbol, of 0 by u, and nothing */
	uint16_t cost[KERN_ECQ_CONTEXTS + 1][KERN_TCQ_CELLS][8];
	/* [u][j]: the centre of k = j + 1 lies by so much above 2 k - u */
	int16_t center[2][KERN_TCQ_CENTERS];
	/* room for each chunk: for each state, a bit of each lane, 1 where
	 * it comes from the lower of two before it; then by u whether 0 is the even level */
	uint16_t (*from)[KERN_TCQ_STATES + 2];
};

/* The ends of the paths so far, and what they cost. */
struct kern_tcq_ends {
	uint16_t cost[KERN_TCQ_STATES][KERN_ECQ_LANES];
};

/* kern_tcq_start(m, ...): as kern_ecq_start.  kern_tcq_tables(m, top): as
 * kern_ecq_tables, for both quantisers. */
void kern_tcq_start(struct kern_tcq *m, enum kern_ecq_mode mode, unsigned level,
    size_t cols, uint64_t offset, int32_t *above);
void kern_tcq_tables(struct kern_tcq *m, unsigned top);

/* The passes of kern.h, value by value, which defines them; walk from a chunk
 * on, given the ends before it, and back from the best of all ends to a chunk,
 * with the states before it. */
unsigned kern_tcq_sort(struct kern_tcq *m, const int16_t *q, size_t n,
    uint16_t *code);
void kern_tcq_spans(struct kern_tcq *m, const uint16_t *code, size_t n,
    uint32_t *span);
int kern_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code,
    size_t n);
void kern_tcq_walk(const struct kern_tcq_walk *w, int16_t *q);
void kern_tcq_walk_start(struct kern_tcq_ends *ends);
void kern_tcq_walk_some(const struct kern_tcq_walk *w, size_t from,
    struct kern_tcq_ends *ends);
void kern_tcq_walk_back(const struct kern_tcq_walk *w, size_t to,
    const struct kern_tcq_ends *ends, uint32_t state[KERN_ECQ_LANES],
    int16_t *q);

/* The rows of ECQ and TCQ in a table that has no passes of its own. */
#define KERN_TCQ_ROWS \
	.ecq_sort = kern_ecq_sort, \
	.ecq_spans = kern_ecq_spans, \
	.ecq_put = kern_ecq_put, \
	.ecq_get = kern_ecq_get, \
	.ecq_marks = kern_ecq_marks, \
	.ecq_values = kern_ecq_values, \
	.tcq_sort = kern_tcq_sort, \
	.tcq_spans = kern_tcq_spans, \
	.tcq_get = kern_tcq_get, \
	.tcq_walk = kern_tcq_walk, \
	.tcq_values = kern_ecq_values

#endif
