/*
 * The arithmetic of error feedback, on arrays.  The three kinds differ in what is coded
 * (the target a) and in what is kept.  g is the gradient, e the residual, dec the decoded
 * values of a, r what the receiver reconstructs; ' marks the value kept for the next
 * step:
 *
 *   ef        a = g + gamma e            e' = a - dec         r = dec
 *             (ACE-Sync, equation 7; gamma < 1: SparseLoCo's decay)
 *   momentum  u = m u + g, a = u + gamma e,  e' = a - dec     r = dec
 *             u = 0 where dec != 0       (DGC, Lin et al. 2018, section 3)
 *   cache     a = g + gamma e,  r = dec if sent, else rho h,
 *             e' = a - r,  h' = r        (ACE-Sync's reconstruction of what
 *             was not sent from cached history; the form is ours)
 *
 * No step loses anything: r + e' = a for every element, bit for bit where the code is
 * exact.
 */
#ifndef ACE_COMPENSATE_H
#define ACE_COMPENSATE_H

#include <stddef.h>

#include "kern/kern.h"

enum compensate_kind {
	COMPENSATE_EF, COMPENSATE_MOMENTUM, COMPENSATE_CACHE
};

struct compensate {
	enum compensate_kind kind;
	float gamma, m, rho;
	const struct kern *kern;
};

/* The inputs of one group, all f32[n]. */
struct compensate_from {
	const float *g;		/* g, e and u: NULL stands for zeros */
	const float *e;
	const float *u;		/* u or h of the table above */
	const float *const *back;	/* [nback] decoded values of rejected shards, to
					 * be added back */
	size_t nback;
};

/* Set a[n] to the target, and u[n] to what is kept beside the residual.  The kind ef does
 * not use u. */
void compensate_target(const struct compensate *c,
    const struct compensate_from *from, size_t n, float *a, float *u);

/* Settle a group after coding.  dec f32[n] has the decoded values, or is NULL if the
 * group is not sent.  Set a to e', and u to u' or h'. */
void compensate_settle(const struct compensate *c, float *a, float *u,
    const float *dec, size_t n);

/* Reconstruct a group at the receiver of cache.  x f32[n] holds the decoded
 * values, or zeros if the group was not sent, and becomes r; h f32[n] is the
 * history. */
void compensate_receive(const struct compensate *c, const float *h, int sent,
    float *x, size_t n);

#endif
