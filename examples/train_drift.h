/*
 * Methods that keep devices together between rounds.  All devices are in one process, so
 * that these methods cost no bytes: they measure what such a method could gain.
 *
 *   moments    at each round the optimisers' moments become their mean
 *   control    control variates (SCAFFOLD, Karimireddy et al. 2020, algorithm 1): device
 *              i adds c - c_i to each gradient, where c_i is the mean of its own
 *              gradients in the previous round and c is the mean of all c_i.  The paper
 *              derives the c_i from the differences of models.  With AdamW and Muon those
 *              are no gradients, so here the gradients themselves are used, which no
 *              stream would carry
 */
#ifndef TRAIN_DRIFT_H
#define TRAIN_DRIFT_H

#include "train_optim.h"

struct drift {
	int moments;
	size_t k, n;		/* devices, values */
	float *own;		/* f32[k][n] c_i; NULL: no control variates */
	float *all;		/* f32[n] c */
	double *sum;		/* f64[n] sum of one device's gradients this round */
	size_t steps;		/* gradients in sum */
};

/* Returns 0, or -1 without memory; call drift_release in both cases. */
int drift_init(struct drift *d, int moments, int control, size_t k, size_t n);
void drift_release(struct drift *d);

/* Correct device i's gradient g of a step, before its optimiser gets it. */
void drift_gradient(struct drift *d, size_t i, float *g);

/* Note that device i has taken its steps of this round. */
void drift_device(struct drift *d, size_t i);

/* Mix the optimisers, after all k devices have taken their steps of this round. */
void drift_round(struct drift *d, struct optim **o);

#endif
