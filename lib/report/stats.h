/*
 * Statistics of the decoded values per tensor, and the difference between two streams,
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
 * merged pairwise (Chan, Golub, LeVeque 1979), so that a small deviation around a large
 * mean is precise.  Sums are f64 in stream order: the same on every machine.  Values that
 * are not finite are counted and excluded.
 */
struct stats {
	uint64_t n, nonzero;	/* finite values; non-zero ones */
	uint64_t nan, inf;
	float min, max, max_abs;	/* 0 when n is 0 */
	double mean, m2, sumsq;
};
#define STATS_INIT { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Add the n values of x. */
void stats_add(struct stats *m, const struct kern *k, const float *x, size_t n);
/* Add n zeros, for values not sent. */
void stats_zeros(struct stats *m, uint64_t n);
void stats_merge(struct stats *m, const struct stats *other);
double stats_std(const struct stats *m);

int stats_stream(struct report *p, struct reader *r, struct err *e);

/*
 * Compare the shards of two streams in pairs.
 *
 * NMSE   = sum (x - y)^2 / sum y^2       0 if equal, infinite if only
 *                                        y is all zero
 * cosine = sum x*y / sqrt(sum x^2 * sum y^2)     1 if both are zero, 0
 *                                        if one is
 *
 * x are the f32 values of the inspected stream, y those of the other stream, the
 * original.  Sums are f64 in stream order.  A pair with a value that is not finite is
 * excluded from the sums and counts as different unless both values are the same.
 *
 * Return 0 if the streams are equal; -ERR_NO, without a message, if a tensor's NMSE
 * exceeds p->tolerance (by default: if any value differs) or a shard has no partner.
 * Return -ERR_DATA, "mismatch: ...", if the schemas differ.
 */
int stats_diff(struct report *p, struct reader *x, struct reader *y, struct err *e);

#endif
