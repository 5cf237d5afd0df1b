/*
 * An exponential mean of a model's weights over the rounds.
 */
#ifndef TRAIN_MEAN_H
#define TRAIN_MEAN_H

#include <stddef.h>

struct mean {
	double keep;		/* factor on all weights per step; 0: no mean */
	double of;		/* the sum of all weights */
	float *x;		/* f32[n] the weighted sum */
	size_t n;
};

/* Returns 0, or -1 without memory. */
int mean_init(struct mean *m, double keep, size_t n);
void mean_release(struct mean *m);

/* Add theta f32[n], h steps after the previous one. */
void mean_add(struct mean *m, const float *theta, size_t h);

/* Copy the mean into theta f32[n], if there is one. */
void mean_get(const struct mean *m, float *theta);

#endif
