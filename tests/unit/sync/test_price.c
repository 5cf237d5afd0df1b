#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "sync/price.h"

static uint64_t seed = 11;

static double
rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 40) / 16777216.0;
}

enum { N = 400, M = 7 };

/* A model of groups with energies far apart; step changes them a little. */
static void
fill(struct select_level l[N][M], double energy[N], int step)
{
	double e;
	size_t g, k;

	for (g = 0; g < N; g++) {
		seed = 1000 + g;	/* the same group, whatever the step */
		e = exp(6 * rnd() + (g > 300 ? 3 : 0));
		seed = 77 * (uint64_t)step + g;
		e *= (1 + 0.2 * rnd()) * pow(0.9, step);
		energy[g] = e;
		for (k = 0; k < M; k++) {
			l[g][k].rate = (int64_t)(1000 * k * k);
			l[g][k].dist = e * exp(-0.8 * (double)k);
		}
	}
}

/* One shard in one pass: error reached, bytes in *spent. */
static double
pass(struct price *p, struct select_level l[N][M],
    double budget, double *spent)
{
	struct price_own own;
	double dist = 0, left = budget;
	size_t g, k;

	price_begin(p, budget, N * 65536.0);
	for (g = 0; g < N; g++) {
		price_look(p, l[g], M, 65536, &own);
		k = select_price(l[g], M, price_of(p));
		while ((double)l[g][k].rate > left)
			k--;
		price_paid(p, &own, (double)l[g][k].rate,
		    (double)l[g][k].rate);
		left -= (double)l[g][k].rate;
		dist += l[g][k].dist;
	}
	price_end(p);
	*spent = budget - left;
	return dist;
}

static void
a_run(double budget)
{
	static struct select_level l[N][M];
	static struct price p;
	static uint8_t choice[N];
	double energy[N], spent, dist, worst = 0, least = 1;
	struct select_result r;
	int t;

	memset(&p, 0, sizeof(p));
	for (t = 0; t < 10; t++) {
		fill(l, energy, t);
		dist = pass(&p, l, budget, &spent);
		if (select_budget(&l[0][0], N, M, (int64_t)budget, SELECT_FAST,
		    choice, &r, NULL) != 0)
			break;
		if (t < 2)
			continue;	/* the first ones learn */
		worst = fmax(worst, dist / r.dist - 1);
		least = fmin(least, spent / budget);
	}
	ok(t == 10 && least > 0.98, "budget %g: at least %.2f %% of it spent",
	    budget, 100 * least);
	ok(worst < 0.04, "and at most %.2f %% more error than two passes",
	    100 * worst);
}

static void
first_shard(void)
{
	static struct select_level l[N][M];
	static struct price p;
	double energy[N], spent;

	memset(&p, 0, sizeof(p));
	fill(l, energy, 0);
	(void)pass(&p, l, 2e6, &spent);
	ok(spent > 1.9e6 && spent <= 2e6, "without a past: %.0f of 2000000",
	    spent);
	(void)pass(&p, l, 0, &spent);
	ok(spent == 0, "no budget, nothing spent");
	(void)pass(&p, l, 1e12, &spent);
	ok(spent == N * 36000.0, "too much budget: all of the best");
}

static void
saved(void)
{
	static struct select_level l[N][M];
	static struct price a, b;
	static float x[PRICE_NUMBERS];
	double energy[N], sa, sb, da, db;
	struct err e = ERR_INIT;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	fill(l, energy, 0);
	(void)pass(&a, l, 2e6, &sa);
	price_get(&a, x);
	ok(price_put(&b, x, &e) == 0, "saved and read back");
	fill(l, energy, 1);
	da = pass(&a, l, 2e6, &sa);
	db = pass(&b, l, 2e6, &sb);
	ok(memcmp(&da, &db, sizeof(da)) == 0 && sa == sb,
	    "kept or saved: the same");
	x[5] = -1;
	ok(price_put(&b, x, &e) == -ERR_DATA, "a negative number is refused");
}

int
main(void)
{
	a_run(3e5);
	a_run(2e6);
	a_run(7e6);
	first_shard();
	saved();
	return done_testing();
}
