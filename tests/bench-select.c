/*
 * bench-select: the knapsack's time and gap, and L-GreCo's dynamic programme
 * beside it on L-GreCo's own objective: least size within a sum of errors.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "lgreco.h"
#include "rnd.h"
#include "sync/select.h"

static void
knapsack(size_t n, size_t m)
{
	struct select_level *l = calloc(n * m, sizeof(*l));
	uint8_t *c = calloc(n, 1);
	struct select_result r;
	double t, worst = 0, gap = 0, b, size, s;
	size_t i, k;

	if (l == NULL || c == NULL)
		exit(1);
	for (i = 0; i < n; i++) {
		size = 16384 * (1 + floor(4 * rnd()));
		s = size * exp(8 * rnd());
		for (k = 0; k < m; k++) {
			l[i * m + k].rate = (int64_t)(size * (double)(k * k) /
			    36);
			l[i * m + k].dist = s * exp(-0.15 * (double)(k * k));
		}
	}
	for (b = 1e5; b < 2e8; b *= 2) {
		t = now();
		if (select_budget(l, n, m, (int64_t)b, c, &r,
		    NULL) < 0)
			exit(1);
		worst = fmax(worst, now() - t);
		gap = fmax(gap, select_gap(&r));
	}
	(void)printf("knapsack, %zu groups of %zu levels: at most %.2f ms, "
	    "gap at most %.3f %%\n", n, m, 1e3 * worst, 100 * gap);
	free(l);
	free(c);
}

static void
against(size_t n)
{
	enum { M = 8, T = 10 };
	double *size = calloc(n * M, sizeof(*size)), ours = 0, theirs = 0, d, g;
	double *error = calloc(n * M, sizeof(*error)), target, t0 = 0, t1 = 0, t;
	struct select_level *l = calloc(n * M, sizeof(*l));
	uint8_t *c = calloc(n, 1);
	struct select_result r;
	size_t i, k;
	int trial;

	if (size == NULL || error == NULL || l == NULL || c == NULL)
		exit(1);
	for (trial = 0; trial < T; trial++) {
		for (target = 0, i = 0; i < n; i++) {
			d = exp(5 * rnd() + 5);
			g = exp(2 * rnd());
			for (k = 0; k < M; k++) {
				size[i * M + k] = floor(d * (double)(k + 1) / 8);
				error[i * M + k] = g * sqrt(d) *
				    exp2(-(double)(k + 1)) * (0.9 + 0.2 * rnd());
			}
			target += error[i * M + 3];
		}
		t = now();
		theirs += lgreco(size, error, n, M, target);
		t1 += now() - t;
		t = now();
		for (i = 0; i < n * M; i++) {
			l[i].rate = (int64_t)ceil(error[i] / target *
			    1099511627776.0);
			l[i].dist = size[i];
		}
		if (select_budget(l, n, M, (int64_t)1 << 40, c,
		    &r, NULL) != 0)
			exit(1);
		t0 += now() - t;
		ours += r.dist;
	}
	(void)printf("L-GreCo's objective, %3zu layers: %.4f of its size, "
	    "%.2f ms (L-GreCo %.1f ms)\n", n, ours / theirs, 1e3 * t0 / T,
	    1e3 * t1 / T);
	free(size);
	free(error);
	free(l);
	free(c);
}

int
main(void)
{
	rnd_seed = 3;
	knapsack(1000, 12);
	knapsack(1000, 23);
	against(20);
	against(60);
	against(160);
	return 0;
}
