/*
 * The arithmetic of error feedback, on arrays: what a coder loses at one step
 * is not lost.  The variants differ in what is coded (the target a) and what
 * is kept, for gradient g, dec the decoded code, r what the receiver
 * reconstructs:
 *
 *   ef        a = g + gamma e            e' = a - dec         r = dec
 *             (ACE-Sync, equation 7; gamma < 1: SparseLoCo's decay)
 *   momentum  u = m u + g, a = u + gamma e,  e' = a - dec     r = dec
 *             u = 0 where dec != 0       (DGC, Lin et al. 2018, section 3)
 *   ef21      a = g - h,  h' = h + dec                        r = h'
 *             (EF21, Richtarik et al. 2021)
 *   cache     a = g + gamma e,  r = dec if sent, else rho h,
 *             e' = a - r,  h' = r        (ACE-Sync's reconstruction of what
 *             was not sent from cached history; the form is ours)
 *
 * In every one but ef21 the sum is kept at each step, element by element:
 * r + e' = a; bit for bit where the code is exact.  ef21 keeps h on both sides
 * equal instead, and h + (g - h) = g trivially.
 */
#ifndef ACE_COMPENSATE_H
#define ACE_COMPENSATE_H

#include <stddef.h>

#include "kern/kern.h"

enum compensate_kind {
	COMPENSATE_EF, COMPENSATE_MOMENTUM, COMPENSATE_EF21, COMPENSATE_CACHE
};

struct compensate {
	enum compensate_kind kind;
	float gamma, m, rho;
	const struct kern *kern;
};

/* Of a group, all f32[n]. */
struct compensate_from {
	const float *g;		/* NULL: zeros, as the other two */
	const float *e;
	const float *u;		/* kept beside e: u or h */
	const float *const *back;	/* [nback]: what was sent in vain */
	size_t nback;
};

/* compensate_target(c, from, n, a, u): a f32[n] is to be coded, u f32[n] is
 * kept beside; ef does not use u. */
void compensate_target(const struct compensate *c,
    const struct compensate_from *from, size_t n, float *a, float *u);

/* compensate_settle(c, a, u, dec, n): after coding, dec f32[n] or NULL: not
 * sent.  a becomes e', but for ef21, which has none; u what is kept. */
void compensate_settle(const struct compensate *c, float *a, float *u,
    const float *dec, size_t n);

/* compensate_receive(c, h, sent, x, n): ef21's and cache's receiver: x f32[n],
 * decoded, zeros if not sent, becomes r; h f32[n] is its history. */
void compensate_receive(const struct compensate *c, const float *h, int sent,
    float *x, size_t n);

#endif
