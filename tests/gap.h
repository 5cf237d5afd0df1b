/*
 * An upper bound on the gap between an answer of select_budget and the optimum.  Add
 * each group's best level at the answer's Lagrange multiplier and subtract the budget
 * times the multiplier: no choice within the budget has less distortion (Everett 1963).
 */
#ifndef GAP_H
#define GAP_H

#include <math.h>

#include "sync/select.h"

static inline double
gap(const struct select_level *l, size_t n, size_t m, int64_t budget,
    const struct select_result *r)
{
	double bound = -r->lambda * (double)budget;
	const struct select_level *best;
	size_t i;

	for (i = 0; i < n; i++) {
		best = l + i * m + select_price(l + i * m, m, r->lambda);
		bound += best->dist + r->lambda * (double)best->bytes;
	}
	return r->dist > bound ? (r->dist - bound) / fmax(0, bound) : 0;
}

#endif
