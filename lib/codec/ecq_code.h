/*
 * The coded part of an ECQ body (ecq.c): rANS words from the front, bits from
 * the back.
 *
 * Magnitudes become symbols (kern/kern_ecq.h), and symbols become rANS words,
 * with as many coder states as suit the length.  What a symbol leaves out, and
 * the signs, are plain bits: of a chunk of 32 values first the signs of the
 * symbols that are not 0, then, value by value,
 *
 *   the escape, where the symbol is 15:  with e = (|q| >> shift) - 15,
 *       (e >> fine) + 1 as so many 1 as it has bits below its first, a 0, and
 *       these bits; the lowest `fine' bits of e
 *   the lowest `shift' bits of |q|
 *   the sign, where the symbol is 0 and |q| is not
 *   of |q| = KERN_QMAX the 31 bits of |x| as f32
 *
 * The first 16 of them for each state are what the states end with; those
 * that are left follow the states, from the back.  A state is 4 bits, e, and
 * 16 + e bits below its first one.
 */
#ifndef ACE_ECQ_CODE_H
#define ACE_ECQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "kern/kern_ecq.h"

struct codec_ctx;
struct err;

enum { ECQ_CENTROIDS = 3, ECQ_STATES = 4, ECQ_FINE = 14 };

/* What a body says before its code.  Where `two' is 1, here and below, it is one of
 * TCQ, whose |q| = k and u are those of kern_tcq.h; where it is 0 there is one
 * quantiser, and 2 k - u stands for |q|. */
struct ecq_side {
	/* of each quantiser the mean of |x| / step - (2 k - u) where k is 1 (2^-8,
	 * of TCQ 2^-7), 2, 3 and more (2^-5, 2^-4) */
	int8_t delta[2][ECQ_CENTROIDS];
	uint8_t level;		/* of the group's mean |q|, or lower */
	uint8_t mode;		/* enum kern_ecq_mode */
	uint8_t states;		/* 2^states of them */
	uint8_t top;		/* the greatest symbol; 0: all values are 0 */
	uint8_t fine;		/* of an escape; 0 where top is not one */
};

struct ecq_in {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	const int16_t *q;	/* [n], not all 0; NULL where TCQ is to decide */
	const float *x;		/* [n] */
	size_t n;
	float step, inv;	/* inv: 1 / step */
	float *y;		/* [n] or NULL: becomes what a reader decodes */
};

/* ecq_code_mean(sum, n, unit, j): a delta of |q| = j + 1, in units that are 2^unit
 * of the sum's. */
int8_t ecq_code_mean(int64_t sum, uint32_t n, int unit, unsigned j);

/* ecq_code_delta(s, two, of): as kern.h's ecq_told has them: of[u][min(|q|, 3)]. */
void ecq_code_delta(const struct ecq_side *s, unsigned two,
    float of[2][ECQ_CENTROIDS + 1]);

/* What a level k of quantiser u means, without its sign. */
static inline float
ecq_code_value(uint32_t k, unsigned u, float of[2][ECQ_CENTROIDS + 1], float step,
    unsigned two)
{
	return k == 0 ? 0 : ((float)(int32_t)((k << two) - u) +
	    of[u][k < ECQ_CENTROIDS ? k : ECQ_CENTROIDS]) * step;
}

/* ecq_code_pick(in, s, e): the mode, the level and the states of s that some of
 * the values, or all, take fewest bits in; in->x is not looked at.  0 or
 * -ERR_SYS. */
int ecq_code_pick(const struct ecq_in *in, struct ecq_side *s, struct err *e);

/* ecq_code_put(in, p, limit, s, len, e): writes the code to p, which has room
 * for limit bytes, and fills s.  *len is the number of bytes, or 0 when the
 * code would take more than limit.  0 or -ERR_SYS. */
int ecq_code_put(const struct ecq_in *in, unsigned char *p, size_t limit,
    struct ecq_side *s, size_t *len, struct err *e);

/* What a chunk's bits take at most, the states' zeros, and a few bytes more. */
enum { ECQ_CODE_RAW = 9 * KERN_ECQ_LANES + 128 };

/* ecq_code_write(in, s, code, span, raw, p, limit, two): the same once the codes of
 * in->q, and all of s but fine, are there.  span is room for n + 16 spans, raw for
 * limit + ECQ_CODE_RAW bytes.  The number of bytes, or 0. */
size_t ecq_code_write(const struct ecq_in *in, struct ecq_side *s,
    const uint16_t *code, uint32_t *span, unsigned char *raw, unsigned char *p,
    size_t limit, unsigned two);

struct ecq_out {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	float *x;		/* [n] */
	size_t n;
	float step;
};

/* ecq_code_get(out, s, two, p, len, e): 1, or 0 when p[len] is no code of n values,
 * or -ERR_SYS. */
int ecq_code_get(const struct ecq_out *out, const struct ecq_side *s,
    unsigned two, const unsigned char *p, size_t len, struct err *e);

#endif
