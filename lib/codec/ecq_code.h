/*
 * The coded part of an ECQ body (ecq.c): magnitudes by the model of
 * ecq_model.h in a range code from the front, what needs no model from the
 * back (tail.h).
 *
 * Segment by segment: is anything in it not 0; then block by block; then value
 * by value (what the others rule out is not asked); of a value that is not 0
 * the bits of |q| in unary and those below the first, three at most.  From the
 * back its sign, its other bits, the lowest first, and for |q| = ECQ_ESCAPE
 * the 31 bits of |x| as f32.
 */
#ifndef ACE_ECQ_CODE_H
#define ACE_ECQ_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"

struct ecq_model;

enum { ECQ_ESCAPE = KERN_QMAX, ECQ_CENTROIDS = 3 };
enum { ECQ_SEG_ROOM = 16 * 64 };	/* no segment takes more bytes */

/* What a body says before its code. */
struct ecq_side {
	/* the mean of |x| / step - |q| where |q| is 1 (2^-8), 2, 3 and more
	 * (2^-5) */
	int8_t delta[ECQ_CENTROIDS];
	uint8_t level;		/* of the group's mean |q| */
	uint8_t plain;		/* it is the level of all */
};

struct ecq_in {
	const int16_t *q;	/* [n] */
	const float *x;		/* [n] */
	size_t n;
	float inv;		/* 1 / step */
};

/*
 * ecq_code_put(m, in, p, limit, s): to p, which has room for limit + ECQ_SEG_ROOM;
 * the bytes written, 0 when they would be more than limit, or when after half
 * of the values the model foresaw nothing: then s is that of the plain one.
 * s->delta is set.
 */
size_t ecq_code_put(struct ecq_model *m, const struct ecq_in *in, unsigned char *p,
    size_t limit, struct ecq_side *s);

/* ecq_code_get(m, x, n, step, s, p, len): into x[n], all 0 before; -1 when p[len] is
 * no code of n values. */
int ecq_code_get(struct ecq_model *m, float *x, size_t n, float step,
    const struct ecq_side *s, const unsigned char *p, size_t len);

#endif
