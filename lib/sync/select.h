/*
 * Select the groups to send and their codecs: by a share of the values or of the
 * importance (equation 2), or by solving a multiple-choice knapsack within a byte budget.
 *
 *   minimise  sum_i w_i D_i(l_i)   subject to   sum_i R_i(l_i) <= B
 *
 * The paper names the knapsack but not a method; this one is ours.  Bisection finds
 * one Lagrange multiplier, and each group gets its best level at that multiplier
 * (Everett 1963; Shoham and Gersho 1988).  This solves the linear relaxation exactly,
 * except for groups that have several best levels at that multiplier.  A search decides
 * these.  Ties at that multiplier go to fewer bytes, others to the lower group, then level.
 */
#ifndef ACE_SELECT_H
#define ACE_SELECT_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct stat_group;

enum { SELECT_LEVELS = 64 };	/* most levels a group can have */
#define SELECT_DIST 0x1p+800	/* largest distortion of a level, so that sums over any
				 * number of groups are finite */

/* One level of one group. */
struct select_level {
	int64_t bytes;		/* 0 to 2^40; < 0: the level is unusable */
	double dist;		/* w_i * D_i: weighted squared error, >= 0; NaN
				 * or above SELECT_DIST: unusable */
};

/* Return 1 when the level is usable. */
int select_usable(const struct select_level *l);

struct select_result {
	double dist;		/* sum over the chosen levels */
	double lambda;		/* Lagrange multiplier; 0: all best levels fit, or 1 was returned */
	int64_t bytes;		/* of the chosen levels; <= budget, unless 1 was returned */
};

/*
 * Choose a level for each group within the budget, in bytes.
 *
 * level   [n][m], row by row; every group has at least one usable level
 * choice  u8[n]   out: the level of each group
 *
 * The search keeps at most 4000 partial answers per group, so the choice may not be optimal.
 * Return 0; 1 when even the cheapest levels exceed the budget (then choice has the
 * cheapest ones, and res->bytes is their size); -ERR_USAGE without a usable level in some
 * group or if m > SELECT_LEVELS; or -ERR_SYS.
 * It takes about 64 n m operations, then at most about 2^25 to fill the budget, plus the search.
 */
int select_budget(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res, struct err *e);

/* Return the level of one group with the least dist + lambda * bytes, or m when no
 * level is usable. */
size_t select_price(const struct select_level *level, size_t m, double lambda);

/*
 * Choose the most important groups, as few as are needed for the share p of the values
 * (ACE-Sync, eq. 2, where p is a fraction of the parameters):
 *
 *   sum_{i chosen} size_i >= p * sum_i size_i
 *
 * If size is NULL, p is a share of the importance (ours): I_i replaces size_i.  If two
 * groups have the same importance, the one with the larger mean square is chosen first,
 * since leaving it out would lose more.
 *
 * score f32[n], >= 0; stat[n], with stat[i].n = 0 if the mean square of group i is unknown;
 * size u32[n] or NULL; p in [0,1]; chosen u8[n], out: 1 for each chosen group, else 0.
 * p = 0 chooses no group, p = 1 every group with a score above 0, and with `size' also the
 * others that the share needs.  Return 0 or -ERR_SYS.
 */
int select_share(const float *score, const struct stat_group *stat,
    const uint32_t *size, size_t n, double p, uint8_t *chosen, struct err *e);

#endif
