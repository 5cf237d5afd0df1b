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
 * computed per group and then merged (Chan, Golub, LeVeque 1979), so that a small deviation
 * around a large mean is precise.  Sums are f64 and the same on every machine.  Values that
 * are not finite are counted in nan and inf only.
 */
struct stats {
	uint64_t n, nonzero;	/* number of finite values; of those that are not 0 */
	uint64_t nan, inf;
	float min, max, max_abs;	/* 0 when n is 0 */
	double mean, m2, sumsq;
};
#define STATS_INIT { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

void stats_add(struct stats *m, const struct kern *k, const float *x, size_t n);
void stats_zeros(struct stats *m, uint64_t n);
void stats_merge(struct stats *m, const struct stats *other);	/* add other's values to m */
double stats_std(const struct stats *m);	/* 0 if m has no values */

/* Print statistics of each tensor of the shards that p->pick selects. Return 0 or -ERR_x. */
int stats_stream(struct report *p, struct reader *r, struct err *e);

/*
 * Compare each shard of x that p->pick selects with the next such shard of y.
 *
 * NMSE   = sum (x - y)^2 / sum y^2       0 if equal, infinite if only
 *                                        y is all zero
 * cosine = sum x*y / sqrt(sum x^2 * sum y^2)     1 if both are zero, 0
 *                                        if one is
 *
 * x are the f32 values of the inspected stream, y those of the other stream, the
 * original.  Sums are f64 in stream order.  A pair with a value that is not finite is
 * excluded from the sums and counts as different unless both values have the same bits.
 *
 * Return -ERR_NO, without a message, if a tensor differs or a shard has no partner; else 0.
 * A tensor, of those that p->glob matches, differs if any value does.  With p->tolerance > 0,
 * finite values may differ up to this NMSE, but not those of exact types (schema_exact).
 * Return -ERR_DATA, "mismatch: ...", if the schemas differ.
 */
int stats_diff(struct report *p, struct reader *x, struct reader *y, struct err *e);

#endif
