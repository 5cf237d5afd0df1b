#include <math.h>
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/fit.h"
#include "sync/once.h"

enum { GROUPS = 24, N = 4096, LEVELS = 1 + FIT_LADDER + 3, FIXED = 500 };

static float x[GROUPS][N];
static struct stat_group stat[GROUPS];
static float weight[GROUPS];
static uint8_t dense[GROUPS];
static struct codec_plan level[LEVELS];

/* Groups of scales far apart, some skewed, one all zero. */
static void
setup(void)
{
	uint32_t r[4];
	double v;
	size_t g, i;

	for (g = 0; g < GROUPS; g++) {
		for (i = 0; i < N; i++) {
			rng_block(3, 1, (uint32_t)g, (uint32_t)i, r);
			v = ((double)r[0] + r[1] + r[2]) / 4294967296.0 - 1.5;
			if (g % 3 == 1)
				v *= v * v;
			x[g][i] = g == 7 ? 0 : (float)(v *
			    exp(0.4 * (double)(g % 11) - 4));
		}
		(void)stat_group_of(x[g], N, &stat[g]);
		weight[g] = 0.2f + 0.03f * (float)(g % 20);
	}
	level[0].codec = CODEC_NONE;
	fit_ladder(level + 1);
	(void)codec_parse("q8", &level[1 + FIT_LADDER], NULL);
	(void)codec_parse("f16", &level[2 + FIT_LADDER], NULL);
	(void)codec_parse("f32", &level[3 + FIT_LADDER], NULL);
}

static int
pass(void *arg, int (*want)(const struct fit *, uint32_t),
    int (*each)(struct fit *, uint32_t, const float *, size_t, struct err *),
    struct fit *f, struct err *e)
{
	uint32_t g;
	int r = 0;

	++*(int *)arg;
	for (g = 0; g < GROUPS && r >= 0; g++)
		if (want(f, g))
			r = each(f, g, x[g], N, e);
	return r;
}

static void
ctx(void *arg, uint32_t g, struct codec_ctx *c)
{
	(void)arg;
	memset(c, 0, sizeof(*c));
	c->group = g;
	c->cols = 64;
}

static uint64_t
size(void *arg, const struct fit *f)
{
	uint64_t n = FIXED;
	uint32_t g;

	(void)arg;
	for (g = 0; g < GROUPS; g++)
		if (fit_choice(f, g).codec != CODEC_NONE)
			n += fit_body(f, g) + 5;
	return n;
}

/* What the plan really takes and loses. */
static void
truth(const struct codec_plan *plan, uint64_t *bytes, double *dist)
{
	struct measure m = MEASURE_INIT;
	struct codec_ctx c;
	double error;
	size_t len;
	uint32_t g;

	*bytes = FIXED;
	for (*dist = 0, g = 0; g < GROUPS; g++) {
		ctx(NULL, g, &c);
		if (plan[g].codec == CODEC_NONE)
			*dist += (double)weight[g] * (double)stat[g].sumsq;
		else if (measure_group(&m, &plan[g], &c, x[g], N, &len,
		    &error, NULL) == 0) {
			*bytes += len + 5;
			*dist += (double)weight[g] * error;
		}
	}
	measure_release(&m);
}

static double
two_passes(uint64_t budget)
{
	struct fit f;
	struct err e = ERR_INIT;
	uint64_t bytes;
	double dist;
	int passes = 0;

	memset(&f, 0, sizeof(f));
	f.n = GROUPS;
	f.stat = stat;
	f.weight = weight;
	f.dense = dense;
	f.budget = budget;
	f.arg = &passes;
	f.pass = pass;
	f.ctx = ctx;
	f.size = size;
	if (fit_plan(&f, level, LEVELS, 1, &e) < 0) {
		ok(0, "%s", ERR_MSG(&e));
		return HUGE_VAL;
	}
	truth(f.plan, &bytes, &dist);
	ok(bytes == f.bytes && bytes <= budget &&
	    (double)bytes >= 0.995 * (double)budget - 70,
	    "%llu of %llu bytes, %d passes", (unsigned long long)bytes,
	    (unsigned long long)budget, passes);
	ok(fabs(dist - f.res.dist) < 1e-6 * dist + 1e-30,
	    "its error is the one it says: %g", dist);
	ok(!dense[3] || f.relaxed || f.plan[3].codec == CODEC_Q8 ||
	    f.plan[3].codec == CODEC_F16 || f.plan[3].codec == CODEC_F32,
	    "a dense group, %s", f.relaxed ? "which is too dear" :
	    "if any");
	ok(f.plan[7].codec == CODEC_NONE, "nothing is sent of nothing");
	fit_release(&f);
	return dist;
}

struct budget {
	uint64_t used, all;
};

static int
fits(void *arg, const struct codec_plan *p, size_t body)
{
	const struct budget *b = arg;

	(void)p;
	return b->used + body + 5 <= b->all;
}

static void
one_pass(uint64_t budget, double two)
{
	struct once *o = NULL;
	struct once_group in;
	struct price_own own;
	struct codec_plan plan[GROUPS];
	struct budget b = { 0, budget };
	struct err e = ERR_INIT;
	uint64_t bytes;
	double dist;
	uint32_t g;
	int t, r;

	r = once_new(&o, level, LEVELS, 1, &e);
	for (t = 0; t < 4 && r == 0; t++) {
		b.used = FIXED;
		once_begin(o, (double)(budget - FIXED), GROUPS * N);
		for (g = 0; g < GROUPS && r == 0; g++) {
			in.stat = &stat[g];
			in.weight = (double)weight[g];
			in.dense = 0;
			ctx(NULL, g, &in.ctx);
			in.x = x[g];
			in.n = N;
			in.fits = fits;
			in.arg = &b;
			once_look(o, &in, &own);
			r = once_group(o, &in, &own, &e);
			plan[g] = o->plan;
			if (plan[g].codec != CODEC_NONE)
				b.used += o->body + 5;
		}
		price_end(&o->price);
	}
	truth(plan, &bytes, &dist);
	ok(r == 0 && bytes == b.used && bytes <= budget &&
	    (double)bytes > 0.96 * (double)budget,
	    "one pass: %llu of %llu bytes", (unsigned long long)bytes,
	    (unsigned long long)budget);
	ok(dist < 1.25 * two, "and %.4f of two passes' error", dist / two);
	once_free(o);
}

int
main(void)
{
	static const uint64_t budgets[] = { 6000, 15000, 40000 };
	size_t i;

	setup();
	for (i = 0; i < 3; i++)
		one_pass(budgets[i], two_passes(budgets[i]));
	dense[3] = 1;
	(void)two_passes(15000);
	(void)two_passes(2000);
	return done_testing();
}
