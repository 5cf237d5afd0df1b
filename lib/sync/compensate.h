/*
 * The arithmetic of error feedback, on arrays.  g is the gradient, e the residual, a the
 * target, which is coded, dec its decoded values, r what the receiver reconstructs, h the
 * history; ' marks the value kept for the next step:
 *
 *   a = g + gamma e        e' = a - r
 *             (ACE-Sync, equation 7; gamma < 1: SparseLoCo's decay)
 *   ef        r = dec if sent, else 0
 *   cache     r = dec if sent, else rho h,  h' = r
 *             (ACE-Sync's reconstruction of what was not sent from cached
 *             history; the form is ours)
 *
 * No step loses anything: r + e' = a for every element, bit for bit where the code is
 * exact.
 */
#ifndef ACE_COMPENSATE_H
#define ACE_COMPENSATE_H

#include <stddef.h>

#include "kern/kern.h"

/* The inputs of one group, all f32[n]. */
struct compensate_from {
	const float *g;		/* g and e: NULL stands for zeros */
	const float *e;
	const float *const *back;	/* [nback] decoded values of rejected shards: add them */
	size_t nback;
};

/* Set a f32[n] to the target: g + gamma e plus the sum of `back'. */
void compensate_target(const struct kern *k, float gamma,
    const struct compensate_from *from, size_t n, float *a);

/* With the form `cache', set r f32[n] to rho h, the reconstruction of a group that was not
 * sent.  h f32[n] is the history, and may be r. */
void compensate_absent(float rho, const float *h, float *r, size_t n);

#endif
