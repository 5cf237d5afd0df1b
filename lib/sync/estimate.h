/*
 * What a codec will cost and lose on a group, foretold from the group's
 * statistics alone (ours).  The histogram has one bin per octave of magnitude;
 * inside a bin the density is taken as a power of x that fits its neighbours.
 * Where values stand in the group is not known: positions are taken as
 * uniform and blocks as independent draws, the dearest case of both.
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
	unsigned points;
	double x[ESTIMATE_POINTS], w[ESTIMATE_POINTS];
};

void estimate_init(struct estimate *m, const struct stat_group *s);

/* estimate_fixed(plan): 1 when the codec's rate depends on n only, so that
 * estimate_rate is exact. */
int estimate_fixed(const struct codec_plan *plan);

/* estimate_rate(m, plan): bytes of the body; -1 when only coding tells. */
int64_t estimate_rate(const struct estimate *m, const struct codec_plan *plan);

/* estimate_error(m, plan): squared error of the group; -1 when only coding
 * tells, infinite when the codec cannot carry it (f16 overflow). */
double estimate_error(const struct estimate *m, const struct codec_plan *plan);

#endif
