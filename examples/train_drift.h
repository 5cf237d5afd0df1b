/*
 * What keeps devices together that take steps of their own, where all of them are
 * in one process, so that it costs no bytes: to see what it would be worth.
 *
 *   moments    at each round the optimisers' moments become their mean
 *   control    control variates (SCAFFOLD, Karimireddy et al. 2020, algorithm 1):
 *              to each gradient of device i is added c - c_i, where c_i is the
 *              mean of its own gradients in the round before and c the mean of
 *              all c_i.  There they are had from the differences of models; with
 *              AdamW and Muon these are no gradients, so here they are the
 *              gradients themselves, which no stream would carry
 */
#ifndef TRAIN_DRIFT_H
#define TRAIN_DRIFT_H

#include "train_optim.h"

struct drift {
	int moments;
	size_t k, n;		/* devices, values */
	float *own;		/* f32[k][n] c_i; NULL: no control variates */
	float *all;		/* f32[n] c */
	double *sum;		/* f64[n] gradients of this round, of one device */
	size_t steps;		/* how many */
};

/* -1 when memory runs out; drift_release all the same. */
int drift_init(struct drift *d, int moments, int control, size_t k, size_t n);
void drift_release(struct drift *d);

/* Device i's gradient of a step: g becomes what its optimiser gets. */
void drift_gradient(struct drift *d, size_t i, float *g);

/* Device i has taken its steps of this round. */
void drift_device(struct drift *d, size_t i);

/* All k devices have, with these optimisers. */
void drift_round(struct drift *d, struct optim **o);

#endif
