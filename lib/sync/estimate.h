/*
 * What a codec will cost and lose on a group, foretold from the group's
 * statistics alone (ours).  The histogram has one bin per octave of magnitude;
 * inside a bin the density is taken as a power of x that fits its neighbours.
 * Where values stand in the group is not known: positions are taken as
 * uniform, blocks and rows as independent draws, the dearest case of each.  So
 * what depends on it is a bound: a low rank that a matrix has is not seen, only
 * what rank r is worth where there is none.
 */
#ifndef ACE_ESTIMATE_H
#define ACE_ESTIMATE_H

#include <stdint.h>

#include "codec/codec.h"
#include "codec/stat.h"

enum { ESTIMATE_PIECES = 8, ESTIMATE_POINTS = STAT_BINS * ESTIMATE_PIECES + 1 };

/* The magnitudes, largest first: w[i] values of size x[i]. */
struct estimate {
	double n, nonzero, sumsq, sumabs, max;
	struct codec_ctx ctx;	/* of which only the shape is used */
	unsigned points;
	double x[ESTIMATE_POINTS], w[ESTIMATE_POINTS];
};

/* estimate_init(m, s, ctx): ctx NULL for a group without rows. */
void estimate_init(struct estimate *m, const struct stat_group *s,
    const struct codec_ctx *ctx);

/* estimate_fixed(plan): 1 when the codec's rate depends on the group's shape
 * only, so that estimate_rate is exact. */
int estimate_fixed(const struct codec_plan *plan);

/* estimate_rate(m, plan): bytes of the body; -1 when only coding tells. */
int64_t estimate_rate(const struct estimate *m, const struct codec_plan *plan);

/* estimate_error(m, plan): squared error of the group; -1 when only coding
 * tells, infinite when the codec cannot carry it (f16 overflow). */
double estimate_error(const struct estimate *m, const struct codec_plan *plan);

/* estimate_coded(m, count, levels): bytes of the rANS code (codec/rans.h) of
 * n symbols, count[0] of which are 0 and count[l] +-l, l <= levels. */
double estimate_coded(const struct estimate *m, const double *count,
    unsigned levels);

#endif
