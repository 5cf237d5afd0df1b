/*
 * Mean, deviation and extremes of any number of values that arrive in groups.
 *
 *   mean = sum x / n,  m2 = sum (x - mean)^2,  std = sqrt(m2 / n)
 *
 * merged pairwise (Chan, Golub, LeVeque 1979), so that a small deviation keeps
 * its precision beside a large mean.  Sums are f64, in stream order, so that
 * every machine gets the same result.  Values that are not finite are counted
 * and left out.
 */
#ifndef ACE_MOMENTS_H
#define ACE_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

struct kern;

struct moments {
	uint64_t n, nonzero;	/* finite values; of those, not zero */
	uint64_t nan, inf;
	float min, max, max_abs;	/* 0 when n is 0 */
	double mean, m2, sumsq;
};
#define MOMENTS_INIT { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* moments_add: adds the n values of x. */
void moments_add(struct moments *m, const struct kern *k, const float *x,
    size_t n);
/* Adds n zeros, for values that were not sent. */
void moments_zeros(struct moments *m, uint64_t n);
void moments_merge(struct moments *m, const struct moments *other);
double moments_std(const struct moments *m);

#endif
