/*
 * Which devices belong together: tiers of equal speed, and inside them groups
 * of like devices.  The ACE-Sync paper names clustering and no method; both
 * are ours.
 *
 * Tiers.  A round of a tier lasts as long as its slowest device, so a tier
 * costs the time its devices wait, sum of (max T - T_k).  The best tiers are
 * contiguous in sorted order; with prefix sums P
 *
 *   D[k][j] = min over i of D[k-1][i] + (j - i) T_j - (P_j - P_i)
 *
 * whose best i never falls as j grows, so that divide and conquer finds all of
 * them in O(K n log n).  Times are whole nanoseconds, so the result is exact.
 */
#ifndef ACE_CLUSTER_H
#define ACE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum {
	CLUSTER_TIERS = 64,		/* at most */
	CLUSTER_DEVICES = 1000000,	/* in tiers */
	CLUSTER_GROUP = 2048		/* devices that are grouped by distance */
};

/* cluster_tiers(t, n, most, lambda, tier, idle, k, e): n >= 1 times >= 0 in any
 * order into the number of tiers *k from 1 to most (in 1..CLUSTER_TIERS, at most
 * n) that has the least idle(*k) + lambda *k, the smaller on ties; lambda >= 0:
 * what a tier must save.  tier[i] from 0, the fastest first; *idle: the time
 * waited, summed over the devices.
 * 0, -ERR_USAGE, -ERR_SYS, limit (-ERR_DATA): n times the largest above 2^61. */
int cluster_tiers(const int64_t *t, size_t n, size_t most, int64_t lambda,
    size_t *tier, int64_t *idle, size_t *k, struct err *e);

/* Distances, n x n, of n rows of m finite features.
 * cluster_zscore: Euclid's, each feature less its mean and divided by its
 * standard deviation (a constant one counts nothing).
 * cluster_cosine: 1 - cos, for sketches of updates; a zero row is at 1 from
 * all others. */
void cluster_zscore(const double *x, size_t n, size_t m, double *dist);
void cluster_cosine(const double *x, size_t n, size_t m, double *dist);

/* cluster_linkage(dist, n, theta, group, k, e): groups from distances (symmetric,
 * finite, >= 0; n <= CLUSTER_GROUP): the two with the least mean distance are
 * merged while it is at most theta.  group[i] from 0 in the order of their first
 * members, *k of them; ties to the lower index, so the same input gives the same
 * groups. */
int cluster_linkage(const double *dist, size_t n, double theta, size_t *group,
    size_t *k, struct err *e);

#endif
