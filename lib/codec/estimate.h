/*
 * An estimate of the distribution of a group's magnitudes from its statistics. The codecs
 * estimate their bytes and error from this distribution (estimate_coding). The method is
 * our own. The histogram has one bin per octave of magnitude; within a bin the density is
 * a power of x that fits the neighbouring bins. The positions of values are unknown, so
 * the most expensive case is assumed: uniform positions, and independent blocks and rows.
 * Estimates that depend on this assumption are often too high. For example, lowrank's
 * estimate assumes that no direction of the matrix dominates.
 */
#ifndef ACE_ESTIMATE_H
#define ACE_ESTIMATE_H

#include <stdint.h>

#include "codec/codec.h"
#include "codec/stat.h"

enum { ESTIMATE_PIECES = 8, ESTIMATE_POINTS = STAT_BINS * ESTIMATE_PIECES + 1 };

/* The magnitudes, largest first: w[i] values of size x[i]. The scalars are those of
 * stat.h. */
struct estimate {
	double n, nonzero, sumsq, sumabs, max;
	struct codec_ctx ctx;	/* only cols and offset are used */
	unsigned points;
	double x[ESTIMATE_POINTS], w[ESTIMATE_POINTS];
	/* sums of w, w x^2 and w log2(w / x) over the points from i on */
	double count[ESTIMATE_POINTS + 1], energy[ESTIMATE_POINTS + 1],
	    log[ESTIMATE_POINTS + 1];
};

/* Build m from statistics; ctx is NULL for a group without rows. */
void estimate_init(struct estimate *m, const struct stat_group *s,
    const struct codec_ctx *ctx);

/*
 * Estimate what coding a group will cost.
 *
 * bytes    size of the body, or an upper bound if it cannot be estimated
 * error    sum of squared differences, or -1 if it cannot be estimated;
 *          infinite if the codec cannot hold the values (overflow of f16)
 */
void estimate_coding(const struct estimate *m, const struct codec_plan *plan,
    int64_t *bytes, double *error);

/* ---- for the codecs ---- */

/* Return log2(x), x > 0, to nine digits, the same on every machine. */
double estimate_log2(double x);

/* Estimate the bits that rice_put_positions takes for k uniform positions in a group of
 * m->n: their entropy and 0.25 bit per gap. */
double estimate_positions(const struct estimate *m, double k);

/* Return the index of the first point below x, m->points if there is none. */
unsigned estimate_below(const struct estimate *m, double x);

/* Estimate the bytes of the rANS code (codec/rans.h) of n symbols: count[0] zeros and
 * count[l] of +-l, l <= levels. */
double estimate_coded(const struct estimate *m, const double *count, unsigned levels);

#endif
