/*
 * The distribution of a group's magnitudes, estimated from its statistics; the
 * codecs predict their bytes and error from it (estimate_coding).  The method is
 * our own.  The histogram has one bin per octave of magnitude; inside a bin the
 * density is taken as a power of x that fits its neighbours.  Where values
 * stand in the group is not known, so the most expensive case is assumed:
 * uniform positions, and blocks and rows that are independent draws.  What
 * depends on it is therefore a bound.  For example, a low rank of the matrix
 * is not seen, only what rank r is worth where there is none.
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
	/* sums over the points from i on, of w, w x^2, w log2(w / x) */
	double count[ESTIMATE_POINTS + 1], energy[ESTIMATE_POINTS + 1],
	    log[ESTIMATE_POINTS + 1];
};

/* estimate_init(m, s, ctx): ctx NULL for a group without rows. */
void estimate_init(struct estimate *m, const struct stat_group *s,
    const struct codec_ctx *ctx);

/*
 * What coding a group will cost and lose.
 *
 * bytes    of the body, or -1 when they cannot be predicted
 * error    sum of squared differences, or -1 when it cannot be predicted;
 *          infinite when the codec cannot carry the group (f16 overflow)
 */
void estimate_coding(const struct estimate *m, const struct codec_plan *plan,
    int64_t *bytes, double *error);

/* ---- for the codecs ---- */

/* estimate_log2(x), x > 0: to nine digits, the same bits on every machine. */
double estimate_log2(double x);

/* Return the bits of k uniform positions (rice_put_positions) in a group of m->n: their
 * entropy and at most 0.25 bit per gap. */
double estimate_positions(const struct estimate *m, double k);

/* estimate_below(m, x): the first point below x, m->points when none is. */
unsigned estimate_below(const struct estimate *m, double x);

/* estimate_coded(m, count, levels): bytes of the rANS code (codec/rans.h) of
 * n symbols, count[0] of which are 0 and count[l] +-l, l <= levels. */
double estimate_coded(const struct estimate *m, const double *count,
    unsigned levels);

#endif
