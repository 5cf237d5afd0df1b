/*
 * Statistics of a group's values: enough to score the group and to estimate the bytes and
 * error of codecs (annotation sTAT).
 */
#ifndef ACE_STAT_H
#define ACE_STAT_H

#include <stddef.h>
#include <stdint.h>

enum { STAT_BINS = 32 };

struct stat_group {
	uint32_t n;		/* number of values */
	uint32_t nonzero;
	float sumsq;		/* sum of x^2, computed in f64, at most FLT_MAX (so the next two) */
	float sumabs;		/* sum of |x|, computed in f64 */
	float sum;		/* sum of x, computed in f64 */
	float max_abs;
	/* hist[b]: number of values with |x| in [2^(E-b), 2^(E-b+1)), where E is the exponent
	 * of max_abs. The last bin also has all smaller non-zero values. */
	uint32_t hist[STAT_BINS];
};

/* Compute the statistics of x f32[n]. Return 0, or 1 + index of the first value that is
 * not finite; s is then unchanged. */
size_t stat_group_of(const float *x, size_t n, struct stat_group *s);

/* Compute the statistics of x f32[n], all finite, given t, the result of kern->stat. */
struct kern_stat;
void stat_group_from(const float *x, size_t n, const struct kern_stat *t,
    struct stat_group *s);

#endif
