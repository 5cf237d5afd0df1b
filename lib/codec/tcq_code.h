/*
 * The coded part of a TCQ body (tcq.c): levels decided by the least sum of error
 * and bits over all paths through the trellis of each lane (kern/kern_tcq.h),
 * coded as ECQ's are (ecq_code.h): rANS words from the front, bits from the back.
 *
 * Of a chunk the bits are the signs of the symbols that are not 0, then, value
 * by value,
 *
 *   the escape, where the symbol is 14 or 15:  with e = (k >> (shift + 1)) - 7,
 *       written as ECQ's
 *   bits 1 to `shift' of k, from the lowest
 *   the sign, where the symbol is 0 and k is not
 *   of k = TCQ_EXACT the 31 bits of |x| as f32
 */
#ifndef ACE_TCQ_CODE_H
#define ACE_TCQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "kern/kern_tcq.h"

struct codec_ctx;
struct err;

enum { TCQ_EXACT = KERN_QMAX, TCQ_STATES = 4, TCQ_FINE = 14 };

/* What a body says before its code. */
struct tcq_side {
	/* of each quantiser the mean of |x| / step - (2 k - u) where k is 1
	 * (2^-7), 2, 3 and more (2^-4) */
	int8_t delta[2][KERN_TCQ_CENTERS];
	uint8_t level;		/* of the group's mean k, or lower */
	uint8_t mode;		/* enum kern_ecq_mode */
	uint8_t states;		/* 2^states of them, of the coder */
	uint8_t top;		/* the greatest symbol; 0: all values are 0 */
	uint8_t fine;		/* of an escape; 0 where there is none */
};

struct tcq_in {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	const float *x;		/* [n] */
	size_t n;
	float step, inv;	/* inv: 1 / step */
	float *y;		/* [n] or NULL: becomes what a reader decodes */
};

/* tcq_code_put(in, p, limit, s, len, e): writes the code to p, which has room
 * for limit bytes, and fills s.  *len is the number of bytes, or 0 when the
 * code would take more than limit, or all values are 0.  0 or -ERR_SYS. */
int tcq_code_put(const struct tcq_in *in, unsigned char *p, size_t limit,
    struct tcq_side *s, size_t *len, struct err *e);

struct tcq_out {
	const struct kern *kern;
	const struct codec_ctx *ctx;
	float *x;		/* [n] */
	size_t n;
	float step;
};

/* tcq_code_get(out, s, p, len, e): 1, or 0 when p[len] is no code of n values,
 * or -ERR_SYS. */
int tcq_code_get(const struct tcq_out *out, const struct tcq_side *s,
    const unsigned char *p, size_t len, struct err *e);

#endif
