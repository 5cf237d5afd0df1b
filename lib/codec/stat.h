/*
 * Statistics of a group's values, gathered in one pass: enough to score the
 * group and to predict the bytes and the error of any codec (annotation sTAT).
 */
#ifndef ACE_STAT_H
#define ACE_STAT_H

#include <stddef.h>
#include <stdint.h>

enum { STAT_BINS = 32 };

struct stat_group {
	uint32_t n;		/* values */
	uint32_t nonzero;
	float sumsq;		/* sum of x^2, from f64 */
	float sumabs;		/* sum of |x|, from f64 */
	float sum;		/* sum of x, from f64 */
	float max_abs;
	/* hist[b]: values in (2^(E-b-1), 2^(E-b)] * 2 where E = exponent of
	 * max_abs: bin 0 is max_abs's own octave, bin b is b octaves below it,
	 * the last bin is everything non-zero below that. */
	uint32_t hist[STAT_BINS];
};

/* stat_group_of(x, n, s): x f32[n], finite.  Returns 0, or 1 + index of the
 * first value that is not finite (s is then undefined). */
size_t stat_group_of(const float *x, size_t n, struct stat_group *s);

/* stat_group_from(x, n, t, s): the same, where t is kern->stat of x, and all of
 * x is finite. */
struct kern_stat;
void stat_group_from(const float *x, size_t n, const struct kern_stat *t,
    struct stat_group *s);

#endif
