#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../lgreco.h"
#include "../tap.h"
#include "base/err.h"
#include "sync/select.h"

static uint64_t seed;

static double
rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 40) / 16777216.0;
}

static void
known(void)
{
	/* three groups, every budget: by hand and by brute force */
	static const struct select_level l[9] = {
		{ 0, 10 }, { 4, 4 }, { 9, 1 },
		{ 0, 6 }, { 3, 2.5 }, { 8, 0.5 },
		{ 0, 3 }, { 2, 2 }, { 6, 0.2 }
	};
	static const struct {
		int64_t budget;
		double dist;
		uint8_t choice[3];
	} want[] = {
		{ 0, 19, { 0, 0, 0 } }, { 5, 13, { 1, 0, 0 } },
		{ 9, 8.5, { 1, 1, 1 } }, { 12, 6.5, { 2, 1, 0 } },
		{ 16, 5.5, { 2, 1, 1 } }, { 23, 1.7, { 2, 2, 2 } }
	};
	struct select_result r;
	uint8_t c[3];
	size_t i;

	for (i = 0; i < 6; i++) {
		if (select_budget(l, 3, 3, want[i].budget, SELECT_AUTO, c, &r,
		    NULL) != 0)
			r.dist = -1;
		ok(fabs(r.dist - want[i].dist) < 1e-12 &&
		    memcmp(c, want[i].choice, 3) == 0 && r.exact &&
		    r.rate <= want[i].budget,
		    "B=%d: %g (%d,%d,%d)", (int)want[i].budget, r.dist, c[0],
		    c[1], c[2]);
	}
	ok(select_budget(l, 3, 3, 9, SELECT_FAST, c, &r, NULL) == 0 &&
	    r.bound <= 8.5 && r.dist >= 8.5, "the bound is below, the greedy above");
}

/* least distortion by trying all; HUGE_VAL when nothing fits */
static double
brute(const struct select_level *l, size_t n, size_t m, int64_t budget)
{
	double best = HUGE_VAL, v;
	size_t k;

	if (n == 0)
		return budget >= 0 ? 0 : HUGE_VAL;
	for (k = 0; k < m; k++) {
		if (l[k].rate < 0 || !isfinite(l[k].dist))
			continue;
		v = l[k].dist + brute(l + m, n - 1, m, budget - l[k].rate);
		best = v < best ? v : best;
	}
	return best;
}

static void
fill(struct select_level *l, size_t n, size_t m, int wild)
{
	size_t i, k;
	double scale;

	for (i = 0; i < n; i++) {
		scale = exp(6 * rnd());
		for (k = 0; k < m; k++) {
			l[i * m + k].rate = (int64_t)(rnd() * 40 * (double)(k + 1));
			l[i * m + k].dist = wild ? scale * rnd() :
			    scale * exp(-1.2 * (double)k) * (0.7 + 0.3 * rnd());
			if (k > 0 && rnd() < 0.05)
				l[i * m + k].rate = -1;
			if (k > 0 && rnd() < 0.05)
				l[i * m + k].dist = HUGE_VAL;
		}
	}
}

static void
against_brute(void)
{
	struct select_level l[8 * 4];
	struct select_result r;
	uint8_t c[8];
	int trial, optimal = 0, sound = 1, small = 0;

	seed = 1;
	for (trial = 0; trial < 600; trial++) {
		size_t n = 1 + (size_t)(rnd() * 8), m = 1 + (size_t)(rnd() * 4);
		int64_t budget = (int64_t)(rnd() * 80 * (double)n);
		double best;
		int s;

		fill(l, n, m, trial % 2);
		best = brute(l, n, m, budget);
		s = select_budget(l, n, m, budget, SELECT_AUTO, c, &r, NULL);
		if (s == 1) {
			small += best == HUGE_VAL;
			optimal += best == HUGE_VAL;
			continue;
		}
		sound &= s == 0 && r.rate <= budget &&
		    r.bound <= best * (1 + 1e-12) && r.exact;
		optimal += fabs(r.dist - best) <= 1e-9 * best;
	}
	ok(sound, "within the budget, the bound below the best, proved");
	ok(optimal == 600, "optimal in %d of 600 against all choices", optimal);
	ok(small > 10, "%d of them too small for anything, told so", small);
}

static void
against_lgreco(size_t n)
{
	enum { M = 8, T = 12 };
	double *size = malloc(n * M * sizeof(*size));
	double *error = malloc(n * M * sizeof(*error));
	struct select_level *l = malloc(n * M * sizeof(*l));
	uint8_t *c = malloc(n);
	struct select_result r;
	int trial, never = 1;
	size_t i, k;
	double ours = 0, theirs = 0;

	seed = 7 + n;
	for (trial = 0; trial < T; trial++) {
		double target = 0, dp;

		for (i = 0; i < n; i++) {
			double d = exp(5 * rnd() + 5), g = exp(2 * rnd());

			for (k = 0; k < M; k++) {
				size[i * M + k] = floor(d * (double)(k + 1) / 8);
				error[i * M + k] = g * sqrt(d) *
				    exp2(-(double)(k + 1)) * (0.9 + 0.2 * rnd());
			}
			target += error[i * M + 3];	/* uniform 4 bits */
		}
		/* the same problem, the roles exchanged: error is what there
		 * is a budget of, in 2^40ths */
		for (i = 0; i < n * M; i++) {
			l[i].rate = (int64_t)ceil(error[i] / target * 1099511627776.0);
			l[i].dist = size[i];
		}
		dp = lgreco(size, error, n, M, target);
		if (select_budget(l, n, M, (int64_t)1 << 40, SELECT_EXACT, c,
		    &r, NULL) != 0)
			r.dist = HUGE_VAL;
		never &= r.dist <= dp;
		ours += r.dist;
		theirs += dp;
	}
	ok(never, "%zu layers: never larger than L-GreCo's DP (mean %.4f of it)",
	    n, ours / theirs);
	free(size);
	free(error);
	free(l);
	free(c);
}

static void
large(void)
{
	enum { N = 1000, M = 12 };
	static struct select_level l[N * M], was[N * M];
	static uint8_t c[N], d[N];
	struct select_result r, q;
	size_t i, k;
	int s;

	seed = 3;
	for (i = 0; i < N; i++) {
		double n = 16384 * (1 + floor(4 * rnd()));
		double e = n * exp(8 * rnd());

		for (k = 0; k < M; k++) {
			l[i * M + k].rate = (int64_t)(n * (double)k * (double)k / 36);
			l[i * M + k].dist = e * exp(-0.15 * (double)(k * k));
		}
	}
	memcpy(was, l, sizeof(l));
	s = select_budget(l, N, M, 20000000, SELECT_AUTO, c, &r, NULL);
	ok(s == 0 && r.rate <= 20000000 && select_gap(&r) < 1e-3,
	    "1000 groups of 12 levels: gap %.4f %%", 100 * select_gap(&r));
	ok(select_budget(l, N, M, 20000000, SELECT_AUTO, d, &q, NULL) == 0 &&
	    memcmp(c, d, N) == 0 && memcmp(l, was, sizeof(l)) == 0,
	    "the same again");
	for (i = 0; i < N; i++)
		d[i] = (uint8_t)select_price(l + i * M, M, r.lambda);
	for (i = k = 0; i < N; i++)
		k += c[i] != d[i];
	ok(k < 12, "the price alone chooses the same in all but %zu", k);
}

static void
share(void)
{
	static const float s[5] = { 1, 4, 2, 2, 1 };
	static const float third[3] = { 0.1f, 0.1f, 0.1f };
	uint8_t c[5];

	ok(select_share(s, 5, 0.4, c, NULL) == 0 &&
	    memcmp(c, "\0\1\0\0\0", 5) == 0, "p = 0.4: the one with 40 %%");
	ok(select_share(s, 5, 0.5, c, NULL) == 0 &&
	    memcmp(c, "\0\1\1\0\0", 5) == 0, "a tie goes to the lower group");
	ok(select_share(s, 5, 0, c, NULL) == 0 &&
	    memcmp(c, "\0\0\0\0\0", 5) == 0, "p = 0: none");
	ok(select_share(third, 3, 1, c, NULL) == 0 &&
	    memcmp(c, "\1\1\1", 3) == 0, "p = 1: all, whatever the rounding");
	ok(select_share(s, 0, 0.5, c, NULL) == 0, "no groups: nothing to do");
}

static void
odd(void)
{
	static const struct select_level l[4] = {
		{ 5, 1 }, { 9, 0 }, { -1, 0 }, { 3, NAN }
	};
	struct select_result r;
	struct err e = ERR_INIT;
	uint8_t c[2] = { 9, 9 };

	ok(select_budget(l, 2, 2, 8, SELECT_AUTO, c, &r, &e) == -ERR_USAGE,
	    "a group with nothing to choose is refused");
	ok(select_budget(l, 1, 2, 4, SELECT_AUTO, c, &r, &e) == 1 &&
	    r.rate == 5 && c[0] == 0, "a budget for nothing: 1, and what it needs");
	ok(select_budget(l, 0, 2, 4, SELECT_AUTO, c, &r, &e) == 0 &&
	    r.dist == 0, "no groups");
	ok(select_price(l + 2, 2, 1) == 2, "no level at any price");
}

int
main(void)
{
	known();
	against_brute();
	against_lgreco(20);
	against_lgreco(60);
	against_lgreco(160);
	large();
	share();
	odd();
	return done_testing();
}
