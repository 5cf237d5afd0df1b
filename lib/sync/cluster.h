/*
 * Find which devices belong together: tiers of about equal speed, and groups of similar
 * devices in a tier.  The ACE-Sync paper names clustering but no method; both methods are
 * ours.
 *
 * Tiers.  A round of a tier lasts as long as its slowest device, so the cost of a tier is
 * the time that its devices wait, sum of (max T - T_k).  The best tiers are contiguous in
 * sorted order.  With prefix sums P, the least wait of the j fastest devices in k tiers is
 *
 *   D[k][j] = min over i of D[k-1][i] + (j - i) T_j - (P_j - P_i)
 *
 * The best i never falls as j grows, so divide and conquer finds all of them in
 * O(K n log n).  Times are whole nanoseconds, so the result is exact.
 */
#ifndef ACE_CLUSTER_H
#define ACE_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum {
	CLUSTER_TIERS = 64,		/* most tiers */
	CLUSTER_DEVICES = 1000000,	/* most devices in tiers */
	CLUSTER_GROUP = 2048		/* most devices grouped by distance */
};

/* Split n >= 1 devices into *k tiers; device i takes the time t[i] >= 0. *k is the number
 * from 1 to `most' (at most CLUSTER_TIERS) with the least idle(*k) + lambda *k; ties go
 * to the smaller number. lambda >= 0 is the time that one more tier must save. tier[i]
 * counts from 0, the fastest first; *idle is the waiting time of all devices together.
 * Return 0, -ERR_USAGE, -ERR_SYS, or -ERR_DATA (limit) if n times the largest time is
 * above 2^61. */
int cluster_tiers(const int64_t *t, size_t n, size_t most, int64_t lambda,
    size_t *tier, int64_t *idle, size_t *k, struct err *e);

/* Fill in the n x n distances 1 - cos between n rows of m finite features, as for
 * sketches of updates.  A zero row has the distance 1 to all others. */
void cluster_cosine(const double *x, size_t n, size_t m, double *dist);

/* Group n <= CLUSTER_GROUP devices by their distances (symmetric, finite, >= 0): merge
 * the two groups with the least mean distance while it is at most theta.  group[i]
 * counts from 0 in the order of first members; *k is the number of groups.  Ties go to
 * the lower index, so the same input gives the same groups.  Return 0, -ERR_USAGE or
 * -ERR_SYS. */
int cluster_linkage(const double *dist, size_t n, double theta, size_t *group,
    size_t *k, struct err *e);

#endif
