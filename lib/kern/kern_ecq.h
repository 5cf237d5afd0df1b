/*
 * The context model of ECQ's magnitudes (codec/ecq_code.h), and their rANS code.
 *
 * Values are coded in chunks of 16, one per lane.  Each value has a level: its expected
 * magnitude in half octaves.  The expectation depends on two decaying means over earlier
 * chunks (near and far) and on a decaying mean of its column in the rows above, so that
 * the lanes of a chunk are independent.  Each level below 22 has a table of frequencies; the
 * others share two.  Tables change between chunks.  Rounding is the same on every machine.
 *
 * A magnitude a of level l is the symbol s = a >> shift(l), at most 15, coded with the table
 * of context(l).
 */
#ifndef ACE_KERN_ECQ_H
#define ACE_KERN_ECQ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	KERN_ECQ_LANES = 16,
	KERN_ECQ_SYMBOLS = 16,
	KERN_ECQ_ESCAPE = 15,	/* the last symbol, after which extra bits follow */
	KERN_ECQ_CONTEXTS = 24,	/* tables; levels from 22 on share two of them */
	KERN_ECQ_LEVELS = 43,	/* half octaves of a mean, from 2^-10 */
	KERN_ECQ_WIDTH = 32,	/* KERN_ECQ_CONTEXTS, rounded up for vectors */
	KERN_ECQ_SHORTEST = 64,	/* with fewer columns, row starts are not special */
	KERN_ECQ_STEP = 10,	/* increment of a symbol's count */
	KERN_ECQ_FULL = 1 << 18,	/* total at which counts are halved */
	KERN_ECQ_BITS = 15,	/* frequencies sum to 2^15 */
	KERN_ECQ_CAP = 2047	/* a larger magnitude counts as this in the means */
};
#define KERN_ECQ_LOW 0x10000u	/* states lie in [LOW, 2^32) */

/* Inputs of the level.  PLAIN: only the header; LEFT: also the values to the left; ABOVE:
 * also the rows above. */
enum kern_ecq_mode { KERN_ECQ_PLAIN, KERN_ECQ_LEFT, KERN_ECQ_ABOVE,
	KERN_ECQ_MODES };

/* The expectation for a chunk, and the chunk's position. */
struct kern_ecq_expect {
	/* near, far: means of magnitudes; _above: means of the magnitudes that the columns'
	 * means had predicted; all in units of 2^-16 */
	uint32_t near, far, near_above, far_above;
	int32_t *above;		/* [n] columns' means, in units of 2^-12; NULL: unused */
	int32_t base;		/* added to each column's mean */
	size_t stride;		/* distance to the value above: least multiple of cols >= 16 */
	size_t cols, col;	/* columns of the tensor; column of the chunk's first value, if
				 * cols >= KERN_ECQ_SHORTEST */
	size_t at, row;		/* index of the chunk's first value; at / stride */
	unsigned level;		/* level of all values in mode PLAIN, from the body */
	enum kern_ecq_mode mode;
};

struct kern_ecq {
	/* [s][c]: first slot of symbol s, 0 for s = 0, 2^15 above top */
	uint16_t first[KERN_ECQ_SYMBOLS + 1][KERN_ECQ_WIDTH];
	uint32_t count[KERN_ECQ_SYMBOLS][KERN_ECQ_WIDTH];	/* [s][c]: count of symbol s */
	struct kern_ecq_expect e;
	uint32_t chunks;	/* number of chunks counted */
	unsigned top;		/* greatest symbol */
};

/* Initial probability of a non-zero symbol for each context, times 2^16: v / (1 + v), with
 * v = u + sqrt(u) / 8 and u = 2^(l / 2 - 39 / 4) the middle of level l.
 * tests/unit/codec/test_ecq.c checks the table. */
extern const uint16_t kern_ecq_some[KERN_ECQ_CONTEXTS];

/* The code of a value: its level and symbol; in TCQ bit 10 is the quantiser. */
#define KERN_ECQ_CODE(l, s) ((uint16_t)((l) | (s) << 6))
#define KERN_ECQ_LEVEL(c) ((c) & 63u)
#define KERN_ECQ_SYMBOL(c) ((c) >> 6 & 15u)

static inline unsigned
kern_ecq_context(unsigned level)
{
	return level < KERN_ECQ_CONTEXTS ? level : KERN_ECQ_CONTEXTS - 2 + level % 2;
}

static inline unsigned
kern_ecq_shift(unsigned level)
{
	return level < KERN_ECQ_CONTEXTS ? 0 : (level - KERN_ECQ_CONTEXTS + 2) / 2;
}

/* Return 1 if the symbol of a code is the whole magnitude, without extra bits. Symbols
 * from `escape' on never are. */
static inline int
kern_ecq_whole(unsigned code, unsigned escape)
{
	return KERN_ECQ_LEVEL(code) < KERN_ECQ_CONTEXTS &&
	    KERN_ECQ_SYMBOL(code) < escape;
}

/* ---- expected magnitudes, for every table ---- */

/* Return log2(v), 0 < v < 2^31, in eighths of octaves, linear within an octave. */
static inline unsigned
kern_ecq_eighths(uint32_t v)
{
	float f = (float)(int32_t)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (bits >> 20) - (127 << 3);
}

static inline unsigned
kern_ecq_level(int eighth)
{
	return eighth < 0 ? 0 : eighth / 4 < KERN_ECQ_LEVELS ?
	    (unsigned)eighth / 4 : KERN_ECQ_LEVELS - 1;
}

/* For modes LEFT and ABOVE: if the model gives the chunk a single level, set *gain to it and
 * return 1. Otherwise return 0 and set *gain so that the level of a column is kern_ecq_level(b
 * + *gain), b the bits of its mean plus e->base as f32, >> 20. */
static inline int
kern_ecq_gain(const struct kern_ecq_expect *e, int *gain)
{
	int first = e->cols >= KERN_ECQ_SHORTEST && e->col < KERN_ECQ_LANES && e->at > 0;
	int left = (int)kern_ecq_eighths((first ? e->far : e->near) + e->far + 32);

	if (e->mode == KERN_ECQ_LEFT || e->row == 0) {
		*gain = (int)kern_ecq_level(left - 56);
		return 1;
	}
	*gain = -16 - (127 << 3);
	if (!first)
		*gain += left -
		    (int)kern_ecq_eighths(e->near_above + e->far_above + 32);
	return 0;
}

/* Update the means after k values.  sum: the sum of their magnitudes; expected: the sum
 * that their columns' means had predicted, in units of 2^-12. */
static inline void
kern_ecq_follow(struct kern_ecq_expect *e, uint32_t sum, uint32_t expected, size_t k)
{
	sum <<= 12;
	expected = e->row > 0 ? expected : sum;
	e->near += (sum >> 1) + (sum >> 3) - (e->near >> 1) - (e->near >> 3);
	e->far += (sum >> 3) - (e->far >> 3);
	e->near_above += (expected >> 1) + (expected >> 3) -
	    (e->near_above >> 1) - (e->near_above >> 3);
	e->far_above += (expected >> 3) - (e->far_above >> 3);
	e->at += k;
	e->col += k;
	if (e->col >= e->cols)
		e->col -= e->cols < KERN_ECQ_SHORTEST ? e->col : e->cols;
	e->row += e->at >= (e->row + 1) * e->stride;
}

/* Return the weight of a new magnitude in a column's mean, in units of 2^-8. */
static inline int32_t
kern_ecq_pace(size_t row)
{
	return row < 32 ? (int32_t)(256 / (row + 1)) : 8;
}

/* Halve the counts of each context c whose total, sum[c], is too large, and set the new total. */
static inline void
kern_ecq_halve(struct kern_ecq *m, int32_t sum[KERN_ECQ_WIDTH])
{
	unsigned c, s;

	for (c = 0; c < KERN_ECQ_CONTEXTS; c++) {
		if (sum[c] < KERN_ECQ_FULL)
			continue;
		for (s = 0, sum[c] = 0; s <= m->top; s++) {
			m->count[s][c] -= m->count[s][c] / 2;
			sum[c] += (int32_t)m->count[s][c];
		}
	}
}

/* Compute new tables of frequencies from the counts.  The function is in the header so that
 * it is vectorised for each instruction set: sums and quotients are below 2^31, which vectors
 * convert in one instruction, and f64 gives their exact integer parts.  It is called rarely,
 * so it is not inline. */
static __attribute__((noinline, unused)) void
kern_ecq_change(struct kern_ecq *m)
{
	int32_t sum[KERN_ECQ_WIDTH] = { 0 }, rate[KERN_ECQ_WIDTH], most = 0;
	unsigned c, s;

	for (s = 0; s <= m->top; s++)
		for (c = 0; c < KERN_ECQ_WIDTH; c++)
			sum[c] += (int32_t)m->count[s][c];
	for (c = 0; c < KERN_ECQ_WIDTH; c++)
		most |= sum[c];
	if (most >= KERN_ECQ_FULL)
		kern_ecq_halve(m, sum);
	for (c = 0; c < KERN_ECQ_WIDTH; c++)
		rate[c] = (int32_t)((double)(((1 << KERN_ECQ_BITS) - 16) <<
		    16) / (double)sum[c]);
	memset(sum, 0, sizeof(sum));
	for (s = m->top; s > 0; s--)
		for (c = 0; c < KERN_ECQ_WIDTH; c++) {
			sum[c] += (int32_t)m->count[s][c];
			m->first[s][c] = (uint16_t)((1u << KERN_ECQ_BITS) -
			    ((uint32_t)sum[c] * (uint32_t)rate[c] >> 16) -
			    (m->top - s + 1));
		}
}

/* Count one more chunk.  Return 1 if new tables are due. */
static inline int
kern_ecq_due(struct kern_ecq *m)
{
	uint32_t k = ++m->chunks;

	return k < 32 || (k < 128 && k % 8 == 0) ||
	    (k < 1024 && k % 32 == 0) || k % 128 == 0;
}

/* Count one more chunk.  If new tables are due, compute them and return 1. */
static inline int
kern_ecq_learn(struct kern_ecq *m)
{
	int due = kern_ecq_due(m);

	if (due)
		kern_ecq_change(m);
	return due;
}

/* A model, the codes [n] of values by this model, and the greatest symbol of the codes. */
struct kern_ecq_sorted {
	struct kern_ecq *m;
	uint16_t *code;
	unsigned top;
};

/* Input of decoding: the states, and the 16-bit words from p to end. */
struct kern_ecq_get {
	uint32_t *x;		/* [states] */
	unsigned states;	/* 1, 2, 4, 8 or 16 */
	const unsigned char *p, *end;
};

/* Return a symbol's first slot in context c, plus its number of slots << 16, and count it. */
static inline uint32_t
kern_ecq_span(struct kern_ecq *m, unsigned c, unsigned s)
{
	m->count[s][c] += KERN_ECQ_STEP;
	return m->first[s][c] | (uint32_t)(m->first[s + 1][c] - m->first[s][c]) << 16;
}

/* Decode a symbol in context c from state *x and count it. Return the symbol, or -1 if a
 * word is missing. */
static inline int
kern_ecq_symbol(struct kern_ecq *m, struct kern_ecq_get *g, uint32_t *x, unsigned c)
{
	const uint32_t slot = *x & ((1u << KERN_ECQ_BITS) - 1);
	unsigned s = 0;
	uint32_t span;

	while (slot >= m->first[s + 1][c])
		s++;
	span = kern_ecq_span(m, c, s);
	*x = (span >> 16) * (*x >> KERN_ECQ_BITS) + slot - (span & 0xffff);
	if (*x < KERN_ECQ_LOW && g->end - g->p < 2)
		return -1;
	if (*x < KERN_ECQ_LOW) {
		*x = *x << 16 | (uint32_t)(g->p[0] | g->p[1] << 8);
		g->p += 2;
	}
	return (int)s;
}

/* Reset m to its initial state. offset: index of the first value in its tensor. above: room for
 * a mean per value, which m uses; NULL if no levels are computed or the mode is not ABOVE. */
void kern_ecq_start(struct kern_ecq *m, enum kern_ecq_mode mode, unsigned level,
    size_t cols, uint64_t offset, int32_t *above);

/* Return 1 if n values in rows of `cols' columns have enough rows for mode ABOVE, else 0. */
int kern_ecq_rows(size_t cols, size_t n);

/* Initialise the tables for symbols from 0 to top, which is from 1 to 15. */
void kern_ecq_tables(struct kern_ecq *m, unsigned top);

/* kern_ecq_levels: compute the levels of the next chunk. kern_ecq_done: update e with the
 * k magnitudes of that chunk, none above KERN_ECQ_CAP. */
void kern_ecq_levels(const struct kern_ecq_expect *e, uint8_t l[KERN_ECQ_LANES]);
void kern_ecq_done(struct kern_ecq_expect *e, const int32_t mag[KERN_ECQ_LANES],
    size_t k);

/* Reference definitions of ecq_sort and ecq_get of kern.h, value by value.
 * kern_ecq_sort_some: code values `from' to n - 1 by one model; on entry t->top is the
 * greatest symbol of the values before. */
void kern_ecq_sort_some(struct kern_ecq_sorted *t, const int16_t *q,
    size_t from, size_t n);
int kern_ecq_get_some(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code,
    size_t n);

/* The passes in plain C, rows of the table ref; neon has all but the last two; others call some. */
void kern_ecq_sort(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n);
void kern_ecq_spans(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span);
unsigned char *kern_ecq_put(uint32_t *state, unsigned states,
    const uint32_t *span, size_t n, unsigned char *w);
int kern_ecq_get(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n);
void kern_ecq_marks(const uint16_t *code, const int16_t *q, size_t n,
    uint32_t *mark, unsigned escape);
void kern_ecq_low(const int16_t q[KERN_ECQ_LANES], const uint16_t code[KERN_ECQ_LANES],
    unsigned two, uint64_t low[4], uint64_t bits[4]);
void kern_ecq_values(float *x, const uint16_t *code, const uint32_t *mark,
    size_t n, const float *of);
void kern_ecq_centers(const int16_t *q, const float *x, size_t n, float inv,
    int64_t sum[3], uint32_t count[3]);
void kern_ecq_decoded(float *y, const int16_t *q, const float *x, size_t n,
    const float delta[4], float step);

#endif
