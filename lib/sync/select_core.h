/*
 * The exact search of the knapsack, over the groups that the price of a byte
 * alone does not decide.
 */
#ifndef ACE_SELECT_CORE_H
#define ACE_SELECT_CORE_H

#include "sync/select.h"

/*
 * select_core_search(level, n, m, budget, choice, res, e): a better choice,
 * whose totals and bound are in res; sets res->exact when it is proved best.
 *
 * With c(l) = dist + lambda * rate, a level of group i can be part of a better
 * answer only if c_i(l) - min c_i <= gap = dist - (sum_i min c_i - lambda B).
 * Groups with more than one such level make the core: the most undecided 24
 * (64 when n <= 64) of them are searched by a list of undominated (rate,
 * dist) pairs, capped at 4000; the rest stays as it is.
 * Returns 0 or -ERR_SYS (choice as it was).
 */
int select_core_search(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res, struct err *e);

#endif
