#include "../../rnd.h"
#include "../starve.h"
#include "../tap.h"
#include "base/err.h"
#include "codec/stat.h"
#include "sync/select.h"

/* Return the least distortion, by trying all choices; HUGE_VAL if none fits. */
static double
brute(const struct select_level *l, size_t n, size_t m, int64_t budget)
{
	double best = HUGE_VAL, v;
	size_t k;

	if (n == 0)
		return budget >= 0 ? 0 : HUGE_VAL;
	for (k = 0; k < m; k++) {
		if (l[k].bytes < 0 || !(l[k].dist <= SELECT_DIST))
			continue;
		v = l[k].dist + brute(l + m, n - 1, m, budget - l[k].bytes);
		best = v < best ? v : best;
	}
	return best;
}

/* ---- 120,000 small problems ---- */

enum { SMALL_N = 7, SMALL_M = 4 };

/* Kinds of distortions: small whole numbers with exact sums; points on lines of one
 * slope, where the bound is often optimal; real numbers; sizes far apart; some
 * unusable; few distinct values. */
enum { KIND_WHOLE, KIND_LINE, KIND_REAL, KIND_APART, KIND_HUGE, KIND_TIES,
    KINDS };

static double
small_dist(int kind)
{
	switch (kind) {
	case KIND_WHOLE:
		return floor(12 * rnd());
	case KIND_REAL:
		return 100 * rnd();
	case KIND_APART:
		return floor(9 * rnd()) * exp2(floor(4 * rnd()) * 17);
	case KIND_HUGE:
		return rnd() * exp2(floor(8 * rnd()) * 145);
	default:
		return floor(3 * rnd()) * 0.1;
	}
}

static void
small_fill(struct select_level *l, size_t n, size_t m, int kind)
{
	static const double most[] = { 4, 10, 30, 1e12 };
	double top = most[(size_t)(rnd() * (kind == KIND_HUGE ? 4 : 3))];
	double run = 1 + floor(rnd() * 99), rise = 1 + floor(rnd() * 99), at;
	size_t i;

	for (i = 0; i < n * m; i++) {
		l[i].bytes = (int64_t)(rnd() * top);
		l[i].dist = small_dist(kind);
		if (kind == KIND_LINE) {
			at = floor(rnd() * 9);
			l[i].bytes = (int64_t)(run * at);
			l[i].dist = rise * (8 - at);
		}
		if (rnd() < 0.06)
			l[i].bytes = -1 - (int64_t)(rnd() * 3);
		if (rnd() < 0.06)
			l[i].dist = rnd() < 0.5 ? HUGE_VAL : NAN;
		if (rnd() < 0.1 && i > 0)
			l[i] = l[i - 1];
	}
}

/* Sum the bytes and distortion of choice c; return 0, or -1 if it has an unusable level. */
static int
small_sums(const struct select_level *l, size_t n, size_t m, const uint8_t *c,
    int64_t *rate, double *dist)
{
	size_t i;

	*rate = 0;
	*dist = 0;
	for (i = 0; i < n; i++) {
		const struct select_level *v = l + i * m + c[i];

		if (c[i] >= m || v->bytes < 0 || !(v->dist <= SELECT_DIST))
			return -1;
		*rate += v->bytes;
		*dist += v->dist;
	}
	return 0;
}

/* Return what is wrong with select_budget's answer, or NULL. round: 1 plus the relative
 * rounding error of sums. */
static const char *
small_wrong(const struct select_level *l, size_t n, size_t m, int64_t budget,
    double best, double round)
{
	struct select_result r;
	uint8_t c[SMALL_N];
	int64_t rate;
	double dist;
	int s = select_budget(l, n, m, budget, c, &r, NULL);

	if (s < 0 || small_sums(l, n, m, c, &rate, &dist) < 0)
		return s == -ERR_USAGE ? "refused" : "no choice";
	if (rate != r.bytes || dist != r.dist)
		return "its sums are not its choice's";
	if (s == 1)
		return best != HUGE_VAL ? "something would have fitted" : NULL;
	if (best == HUGE_VAL)
		return "nothing fits";
	if (rate > budget)
		return "over the budget";
	if (dist * round < best)
		return "below the optimum";
	if (dist > best * round)
		return "so small a problem is not solved";
	return NULL;
}

TEST(small_problems)
{
	static const char *const name[] = { "whole", "on a line", "real",
	    "far apart", "huge", "tied" };
	struct select_level l[SMALL_N * SMALL_M];
	const char *wrong, *first;
	int kind, trial, bad;
	size_t n, m, i;

	rnd_seed = 11;
	for (kind = 0; kind < KINDS; kind++) {
		double round = kind <= KIND_LINE ? 1 : 1 + 1e-14;

		for (trial = bad = 0, first = ""; trial < 20000; trial++) {
			int64_t budget, sum = 0;
			double best;

			n = 1 + (size_t)(rnd() * (trial % 50 ? 5 : SMALL_N));
			m = 1 + (size_t)(rnd() * (double)SMALL_M);
			small_fill(l, n, m, kind);
			for (i = 0; i < n * m; i++)
				sum += l[i].bytes > 0 ? l[i].bytes : 0;
			budget = (int64_t)(rnd() * (double)(sum + 1) /
			    (double)m) - (trial % 100 == 0);
			for (i = 0; i < n; i++)	/* give each group a usable level */
				l[i * m].bytes = llabs(l[i * m].bytes);
			for (i = 0; i < n; i++)
				if (!(l[i * m].dist <= SELECT_DIST))
					l[i * m].dist = 1;
			best = brute(l, n, m, budget);
			wrong = small_wrong(l, n, m, budget, best, round);
			if (wrong != NULL && bad++ == 0)
				first = wrong;
		}
		ok(bad == 0, "20000 small problems, %s: %d wrong %s", name[kind],
		    bad, first);
	}
}

/* Return the least distortion, by dynamic programming over all budgets up to this one. */
static double
table(const struct select_level *l, size_t n, size_t m, size_t budget)
{
	double *was = calloc(budget + 1, sizeof(*was));
	double *now = calloc(budget + 1, sizeof(*now)), *t, v;
	size_t i, k, b;

	for (i = 0; i < n; i++, t = was, was = now, now = t) {
		for (b = 0; b <= budget; b++)
			now[b] = HUGE_VAL;
		for (k = 0; k < m; k++)
			for (b = (size_t)l[i * m + k].bytes; b <= budget; b++) {
				v = was[b - (size_t)l[i * m + k].bytes] +
				    l[i * m + k].dist;
				now[b] = v < now[b] ? v : now[b];
			}
	}
	v = was[budget];
	free(was);
	free(now);
	return v;
}

#define NEAR 5e-4	/* relative distance to the best at which the search may end */

/* Solve problems that the search may not finish: the answer must be near the best. Distortions
 * are nearly a function of the rates, which is the hardest case. */
TEST(larger_problems)
{
	enum { N = 90, M = 4, TRIALS = 150 };
	static struct select_level l[N * M];
	static uint8_t c[N];
	struct select_result r;
	int trial, wrong = 0, open = 0;

	rnd_seed = 13;
	for (trial = 0; trial < TRIALS; trial++) {
		size_t n = 20 + (size_t)(rnd() * (N - 20)), i;
		double noise = trial % 3 == 0 ? 0 : exp2(floor(rnd() * 12));
		double top = trial % 2 ? 25 : 400;
		size_t budget = (size_t)(rnd() * top * (double)n / 2);
		double best;

		for (i = 0; i < n * M; i++) {
			l[i].bytes = (int64_t)((double)(i % M) * top / 4 +
			    rnd() * top / 4);
			l[i].dist = floor(16 * (2 * top - (double)l[i].bytes) +
			    noise * rnd());
		}
		best = table(l, n, M, budget);
		if (select_budget(l, n, M, (int64_t)budget, c, &r, NULL) != 0) {
			wrong += best != HUGE_VAL;
			continue;
		}
		wrong += r.dist < best || r.dist > best * (1 + NEAR) ||
		    r.bytes > (int64_t)budget;
		open += r.dist > best;
	}
	ok(wrong == 0, "%d of 20 to %d groups: %d wrong", TRIALS, N, wrong);
	ok(open > 0 && open < TRIALS / 5, "not the best in %d of them", open);
}

static const struct stat_group quiet[SMALL_N];	/* all 0: no statistics */

/* Test the definition of equation (2): no smaller set reaches the share. */
TEST(small_shares)
{
	float s[SMALL_N];
	uint8_t c[SMALL_N];
	int trial, bad = 0;

	rnd_seed = 12;
	for (trial = 0; trial < 20000; trial++) {
		size_t n = 1 + (size_t)(rnd() * (double)SMALL_N), i, j, size = 0;
		size_t set, least = n, some = 0;
		double p = floor(rnd() * 17) / 16, total = 0, sum = 0, v;
		int wrong = 0;

		for (i = 0; i < n; i++) {
			s[i] = (float)(trial % 4 ? floor(5 * rnd()) :
			    floor(2 * rnd()) * exp2(floor(9 * rnd()) * 12));
			total += (double)s[i];
			some += s[i] > 0;
		}
		if (select_share(s, quiet, NULL, n, p, c, NULL) < 0)
			wrong = 1;
		for (i = 0; i < n; i++) {
			size += c[i];
			sum += c[i] ? (double)s[i] : 0;
			for (j = 0; j < n; j++)	/* higher importance first, then lower number */
				wrong |= c[j] && !c[i] && (s[i] > s[j] ||
				    (s[i] == s[j] && i < j));
		}
		for (set = 0; set < (size_t)1 << n; set++) {
			for (i = j = 0, v = 0; i < n; i++)
				if (set >> i & 1) {
					v += (double)s[i];
					j++;
				}
			if (v >= p * total && j < least)
				least = j;
		}
		if (p == 1)
			least = some;
		bad += wrong || size != least || sum < p * total;
	}
	ok(bad == 0, "20000 shares: the smallest set, %d wrong", bad);
}

TEST(share)
{
	static const float s[5] = { 1, 4, 2, 2, 1 };
	static const float third[3] = { 0.1f, 0.1f, 0.1f };
	static const struct stat_group loud[5] = { { 0 }, { 0 },
	    { .n = 9, .sumsq = 18 }, { .n = 2, .sumsq = 5 }, { .n = 1, .sumsq = 99 } };
	uint8_t c[5];

	ok(select_share(s, quiet, NULL, 5, 0.4, c, NULL) == 0 &&
	    memcmp(c, "\0\1\0\0\0", 5) == 0, "p = 0.4: the one with 40 %%");
	ok(select_share(s, quiet, NULL, 5, 0.5, c, NULL) == 0 &&
	    memcmp(c, "\0\1\1\0\0", 5) == 0, "of equal scores the lower group is chosen");
	ok(select_share(s, quiet, (uint32_t[]){ 1, 1, 1, 1, 1 }, 5, 0.5, c, NULL) == 0 &&
	    c[0] + c[1] + c[2] + c[3] + c[4] == 3,
	    "of the values: half of five groups alike are three");
	ok(select_share(s, loud, NULL, 5, 0.5, c, NULL) == 0 &&
	    memcmp(c, "\0\1\0\1\0", 5) == 0, "of equal scores the larger mean square first");
	ok(select_share(s, quiet, NULL, 5, 0, c, NULL) == 0 &&
	    memcmp(c, "\0\0\0\0\0", 5) == 0, "p = 0: none");
	ok(select_share(third, quiet, NULL, 3, 1, c, NULL) == 0 &&
	    memcmp(c, "\1\1\1", 3) == 0, "p = 1: all, whatever the rounding");
	ok(select_share(s, quiet, NULL, 0, 0.5, c, NULL) == 0, "no groups: nothing to do");
}

TEST(odd)
{
	static const struct select_level l[4] = {
		{ 5, 1 }, { 9, 0 }, { -1, 0 }, { 3, NAN }
	};
	struct select_result r;
	struct err e = ERR_INIT;
	uint8_t c[2] = { 9, 9 };

	ok(select_budget(l, 2, 2, 8, c, &r, &e) == -ERR_USAGE,
	    "a group without a valid level is refused");
	ok(select_budget(l, 1, SELECT_LEVELS + 1, 4, c, &r, &e) ==
	    -ERR_USAGE, "too many levels are refused");
	ok(select_budget(l, 1, 2, 4, c, &r, &e) == 1 &&
	    r.bytes == 5 && c[0] == 0, "budget too small: 1, and the least bytes");
	ok(select_budget(l, 0, 2, 4, c, &r, &e) == 0 &&
	    r.dist == 0, "no groups");
	ok(select_price(l + 2, 2, 1) == 2, "no valid level: none for any price");
}

/* Ties go to the lower group, then the lower level. */
TEST(ties)
{
	enum { N = 11, M = 4 };
	struct select_level l[N * M];
	struct select_result r;
	uint8_t c[N];
	int trial, wrong = 0;
	size_t n, k, i;

	for (n = 1; n <= N; n++)
		for (k = 0; k <= n; k++) {
			for (i = 0; i < n; i++) {
				l[2 * i] = (struct select_level){ 0, 10 };
				l[2 * i + 1] = (struct select_level){ 4, 4 };
			}
			(void)select_budget(l, n, 2, (int64_t)(4 * k), c, &r, NULL);
			for (i = 0; i < n; i++)
				wrong += c[i] != (i < k);
		}
	ok(wrong == 0, "of groups alike the first ones get what there is, %d do "
	    "not", wrong);
	rnd_seed = 15;
	for (trial = wrong = 0; trial < 2000; trial++) {
		for (i = 0; i < 4 * M; i++)
			l[i] = i % M == M - 1 ? l[i - 1] : (struct select_level){
			    i % M == 0 ? 0 : 1 + (int64_t)(rnd() * 6),
			    floor(rnd() * 5) + (i % M == 0 ? 5 : 0) };
		(void)select_budget(l, 4, M, (int64_t)(rnd() * 15), c, &r, NULL);
		for (i = 0; i < 4; i++)
			wrong += c[i] == M - 1;
	}
	ok(wrong == 0, "of two levels alike the lower one is chosen, %d times not",
	    wrong);
}

/* Run a search with many partial answers, for starve. */
static enum starved
search(void)
{
	enum { N = 40, M = 6 };
	static struct select_level l[N * M];
	struct select_result r;
	struct err e = ERR_INIT;
	uint8_t c[N];
	int k;

	rnd_seed = 5;
	for (k = 0; k < N * M; k++) {
		l[k].bytes = 1000 * (k % M) + (int64_t)(rnd() * 1000);
		l[k].dist = 1e4 - (double)l[k].bytes + 100 * rnd();
	}
	k = select_budget(l, N, M, 90000, c, &r, &e);
	return k == 0 ? STARVED_NOT : k == -ERR_SYS &&
	    strstr(ERR_MSG(&e), "out of memory") != NULL ? STARVED_SAID :
	    STARVED_WRONG;
}

int
main(void)
{
	const int n = starve(search);

	ok(n >= 10, "whichever of %d allocations fails: said", n);
	run_tests();
	return done_testing();
}
