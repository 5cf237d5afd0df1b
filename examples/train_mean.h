/* The mean of a model's weights over the rounds, of which the newest weigh most. */
#ifndef TRAIN_MEAN_H
#define TRAIN_MEAN_H

#include <stddef.h>

struct mean {
	double keep;		/* what a weight is after one more step; 0: no mean */
	double of;		/* the sum of all weights */
	float *x;		/* f32[n] the weighted sum */
	size_t n;
};

/* -1 when memory runs out. */
int mean_init(struct mean *m, double keep, size_t n);
void mean_release(struct mean *m);

/* theta f32[n], h steps after the one before. */
void mean_add(struct mean *m, const float *theta, size_t h);

/* theta f32[n] becomes the mean, if there is one. */
void mean_get(const struct mean *m, float *theta);

#endif
