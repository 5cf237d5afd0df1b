/*
 * The optimisers: AdamW (Loshchilov, Hutter 2019), Muon (Jordan et al. 2024) or DeMo's sign for
 * inner steps, a plain or Nesterov step for outer ones.  The order of summation is fixed, so
 * two devices that apply the same numbers have the same bits.  With Muon, the BLAS library
 * sets the order: both devices then need the same library and kind of processor.
 */
#ifndef TRAIN_OPTIM_H
#define TRAIN_OPTIM_H

#include "train_model.h"

struct optim_rule {
	double rate;		/* highest rate of the schedule */
	double beta1, beta2;
	double decay;		/* weight decay of matrices; the rate multiplies it */
	double clip;		/* largest norm of a gradient; 0: none */
	double last;		/* rate at the end, as a share of the highest rate */
	size_t warmup, steps;	/* the rate rises until step `warmup', and falls until `steps' */
	double outer_rate, outer_momentum;
	double muon;		/* highest rate of Muon's steps; 0: no Muon */
	int sign;		/* 1: DeMo: the step is the gradient's sign */
	size_t frozen;		/* 1-bit Adam: the step after which v is constant; 0: never */
	double momentum;	/* momentum of Muon */
};

struct optim {
	float *m, *v;		/* moments of the gradient; with Muon m is its momentum */
	float *outer;		/* the outer step's momentum; after it, scales (train_factor.h) */
	float *scratch;		/* scratch for Muon */
	size_t n;		/* parameters, without scales */
	size_t t;		/* steps taken */
};

/* Return an optimiser for m that has taken no step, or NULL without memory. */
struct optim *optim_new(const struct model *m);
void optim_free(struct optim *o);

/* Return the rate of step t, counted from 0, as a share of the highest rate. */
double optim_share(const struct optim_rule *r, size_t t);

/*
 * Take one step of theta with m->grad, which may be overwritten; `still' tensors stay.  With
 * AdamW, g is the clipped m->grad, and t the number of this step, from 1:
 *
 *   m = b1 m + (1-b1) g      v = b2 v + (1-b2) g^2
 *   theta -= rate (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + 1e-8)
 *            + rate decay theta                                (matrices)
 *
 * After step `frozen', m->grad is the average of the devices' momenta, each
 * b1 m + (1-b1) g (optim_momentum).  It becomes m, and v / (1-b2^t) stays: 1-bit Adam
 * (Tang et al. 2021, algorithm 1).
 *
 * With Muon, the matrices inside the layers take this step instead.  o->m is their plain
 * momentum, and s = muon times the schedule's share of the highest rate:
 *
 *   m = momentum m + g
 *   theta -= s (sqrt(max(1, rows / cols)) orthogonal(g + momentum m)
 *		+ decay theta)
 *
 * With sign, for all tensors, and nothing is clipped:
 *
 *   theta -= rate (sign(g) + decay theta)		(decay: matrices)
 */
void optim_step(struct optim *o, const struct optim_rule *r, struct model *m);

/* Return 1 if the next step does not change v (1-bit Adam). */
int optim_frozen(const struct optim *o, const struct optim_rule *r);

/* Call if optim_frozen: replace g[o->n] by what a device then sends, b1 m + (1-b1) g. */
void optim_momentum(const struct optim *o, const struct optim_rule *r, float *g);

/* Scale g[n] down to the norm `most' if it is longer; 0: no limit. */
void optim_clip(float *g, size_t n, double most);

/* Copy the moments, the outer momentum and the number of steps; both have the same n. */
void optim_copy(struct optim *to, const struct optim *from);

/*
 * Take the outer step.  delta is the average of start - theta over the devices, and acts
 * like a gradient (DiLoCo, Douillard et al. 2023).
 *
 *   u = momentum u + delta
 *   theta = start - rate (delta + momentum u)
 *
 * With rate 1 and momentum 0 the result is the average of the devices' models.
 */
void optim_outer(struct optim *o, const struct optim_rule *r, float *theta,
    const float *start, const float *delta);

/*
 * Realign Muon's momenta after a round: m = (1 - share) m + share |m| O (muon_turn).  O is
 * the mean of the devices' orthogonal steps, h of each device, from step `first' on.  It
 * follows from the devices' averaged difference, delta = start - end:
 *
 *   O = (delta - (1 - keep) start) / sum of s sqrt(max(1, rows / cols)) (optim_step)
 *
 * where each term of the sum is decayed by the later steps, and keep is the whole decay.
 *
 * Every device has delta and start, so no more bytes are sent.  model->grad is overwritten.
 */
void optim_realign(struct optim *o, const struct optim_rule *r, struct model *model,
    size_t first, size_t h, const float *start, const float *delta, double share);

/* Give all k optimisers the mean of their moments, f32[n] each.  It is not sent in any
 * stream: it is for measuring what separate moments cost. */
void optim_average(struct optim *const *o, size_t k, size_t n);

#endif
