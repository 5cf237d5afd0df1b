/* L-GreCo (Markov et al., MLSys 2024), for comparison. */
#ifndef LGRECO_H
#define LGRECO_H

#include <math.h>
#include <stdlib.h>

/* L-GreCo's dynamic programme on its own objective (after lgreco_hook.py): the
 * least size whose sum of error norms is at most target, with 10,000 buckets and
 * errors rounded up. */
enum { BUCKETS = 10000 };

static inline double
lgreco(const double *size, const double *error, size_t n, size_t m,
    double target)
{
	double *row = calloc(2 * (BUCKETS + 1), sizeof(*row));
	double *best = row, *next = row + BUCKETS + 1, *t, out;
	size_t i, k, b, cost;

	if (row == NULL)
		return -1;
	for (i = 0; i < n; i++) {
		for (b = 0; b <= BUCKETS; b++) {
			next[b] = HUGE_VAL;
			for (k = 0; k < m; k++) {
				cost = (size_t)ceil(error[i * m + k] / target *
				    (double)BUCKETS);
				cost = cost < 1 ? 1 : cost;
				if (cost <= b && best[b - cost] +
				    size[i * m + k] < next[b])
					next[b] = best[b - cost] + size[i * m + k];
			}
		}
		t = best;
		best = next;
		next = t;
	}
	out = best[BUCKETS];
	free(row);
	return out;
}

#endif
