#include <math.h>
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/measure.h"
#include "sync/allot.h"

enum { GROUPS = 6, N = 4096, LEVELS = 6 };

static float x[GROUPS][N];
static struct stat_group stat[GROUPS];
static struct codec_plan plan[LEVELS];

static void
setup(void)
{
	static const char *const names[LEVELS] = { "none", "topk:0.01",
	    "topk:0.1", "q4", "q8", "f32" };
	uint32_t r[4];
	size_t g, i;

	for (i = 0; i < LEVELS; i++)
		(void)codec_parse(names[i], &plan[i], NULL);
	for (g = 0; g < GROUPS; g++) {
		for (i = 0; i < N; i++) {
			rng_block(1, 2, (uint32_t)g, (uint32_t)i, r);
			x[g][i] = g == 5 ? 0 : (float)(pow(4, (double)g) *
			    ((double)r[0] / 4294967296.0 - 0.5));
		}
		(void)stat_group_of(x[g], N, &stat[g]);
	}
}

static void
rows(struct allot *a, int dense)
{
	struct codec_ctx ctx = { 1, 1, 0, 64, 0 };
	size_t g;

	for (g = 0; g < GROUPS; g++)
		allot_group(a, g, &stat[g], 1, 1, dense && g == 0, &ctx);
}

static int
measure_wanted(struct allot *a, struct measure *m)
{
	struct codec_ctx ctx = { 1, 1, 0, 64, 0 };
	size_t g, len;
	double error;
	int l, n = 0;

	for (g = 0; g < GROUPS; g++)
		while ((l = allot_wants(a, g)) >= 0) {
			if (measure_group(m, &plan[l], &ctx, x[g], N, &len,
			    &error, NULL) < 0)
				return -1;
			allot_measured(a, g, (size_t)l, len, error);
			n++;
		}
	return n;
}

int
main(void)
{
	struct allot *a = NULL;
	struct measure m = MEASURE_INIT;
	struct err e = ERR_INIT;
	int rounds, r;

	setup();
	ok(allot_new(&a, plan + 1, 2, 1, &e) == -ERR_USAGE,
	    "the first level is none");
	if (allot_new(&a, plan, LEVELS, GROUPS, &e) < 0)
		return 1;
	rows(a, 0);
	ok(measure_wanted(a, &m) > 0, "a few groups are measured first");
	allot_learn(a);
	for (rounds = 0; rounds < 6; rounds++) {
		r = allot_solve(a, 6000, SELECT_AUTO, &e);
		if (r != 0 || a->unknown == 0)
			break;
		(void)measure_wanted(a, &m);
		allot_learn(a);
	}
	ok(r == 0 && a->unknown == 0 && rounds < 4,
	    "known after %d rounds", rounds);
	ok(a->res.rate <= 6000 && a->res.rate > 3000, "%ld of 6000 bytes",
	    (long)a->res.rate);
	ok(a->choice[5] == 0, "nothing of a group that is all zero");
	ok(a->choice[4] > a->choice[1], "more for the group with more");
	ok(allot_cost(allot_body(a, 4)) ==
	    a->level[4 * LEVELS + a->choice[4]].rate, "the body's length back");

	allot_reset(a);
	rows(a, 1);
	(void)measure_wanted(a, &m);
	r = allot_solve(a, 6000, SELECT_AUTO, &e);
	ok(r == 0 && codec_dense(&plan[a->choice[0]]),
	    "a dense group has 8 bits a value");
	ok(allot_solve(a, 100, SELECT_AUTO, &e) == 1, "or the budget is too small: said");
	allot_settle(a);
	r = allot_solve(a, 20000, SELECT_AUTO, &e);
	ok(r == 0 && a->unknown == 0, "settled: only what is known");
	ok(allot_solve(a, 1 << 30, SELECT_AUTO, &e) == 0 && a->res.dist == 0,
	    "all the bytes in the world: no error");
	allot_free(a);
	measure_release(&m);
	return done_testing();
}
