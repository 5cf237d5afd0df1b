/*
 * Statistics of the decoded values of each tensor, and how two streams differ,
 * value by value.  Values that were not sent count as zero.
 */
#ifndef ACE_STATS_H
#define ACE_STATS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct kern;
struct reader;
struct report;

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
struct stats {
	uint64_t n, nonzero;	/* finite values; of those, not zero */
	uint64_t nan, inf;
	float min, max, max_abs;	/* 0 when n is 0 */
	double mean, m2, sumsq;
};
#define STATS_INIT { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* stats_add: adds the n values of x. */
void stats_add(struct stats *m, const struct kern *k, const float *x,
    size_t n);
/* Adds n zeros, for values that were not sent. */
void stats_zeros(struct stats *m, uint64_t n);
void stats_merge(struct stats *m, const struct stats *other);
double stats_std(const struct stats *m);

int stats_stream(struct report *p, struct reader *r, struct err *e);

/*
 * stats_diff(p, x, y, e): reads the shards of two streams in pairs.
 *
 *   NMSE   = sum (x - y)^2 / sum y^2       0 when equal, infinite when only
 *                                          y is all zero
 *   cosine = sum x*y / sqrt(sum x^2 * sum y^2)     1 when both are zero, 0
 *                                          when one is
 *
 * where x are the f32 values of the inspected stream and y those of the other
 * one, the original.  Sums are f64, in stream order.  A pair in which a value is
 * not finite stays out of the sums; it counts as different unless both values are
 * the same.
 *
 * Returns 0 when the streams are equal; -ERR_NO, without a message, when a
 * tensor's NMSE is above p->tolerance (by default: when any value differs) or
 * when a shard has no partner.  Streams with different schemas: -ERR_DATA,
 * "mismatch: ...".
 */
int stats_diff(struct report *p, struct reader *x, struct reader *y,
    struct err *e);

#endif
