/*
 * A plan uses one Lagrange multiplier for all groups, with few exceptions.
 */
#include "../test.h"
#include "base/rng.h"
#include "codec/estimate.h"
#include "pipe/size.h"
#include "sync/allot.h"

enum { N = 40, SIZE = 4096 };

static struct stat_group stat[N];
static float weight[N];
static uint8_t dense[N];
static uint32_t shared = CODEC_ECQ;
static struct codec_plan plan[N];
static const struct codec_plan other[] = { { CODEC_Q8, 0, 0 },
    { CODEC_F16, 0, 0 }, { CODEC_F32, 0, 0 } };

static void
no_ctx(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	(void)arg;
	*ctx = (struct codec_ctx){ 1, 1, g, 64, 0 };
}

/* Set the statistics of group g to those of n values, about normal. */
static void
group(uint32_t g, size_t n, double sigma)
{
	static float x[SIZE];
	uint32_t r[4];
	size_t i;

	for (i = 0; i < n; i++) {
		rng_block(7, 0, g, (uint32_t)i, r);
		x[i] = (float)(sigma * ((double)r[0] + r[1] + r[2] + r[3] -
		    0x1p33) / 0x1p31);
	}
	(void)stat_group_of(x, n, &stat[g]);
	weight[g] = 1;
	dense[g] = 0;
}

static void
layered(void)
{
	uint32_t g;

	for (g = 0; g < N; g++)
		group(g, SIZE, pow(10, -(double)(g * 7 % 10) / 3));
}

static struct allot
of(double budget)
{
	struct allot a = { .n = N, .stat = stat, .weight = weight,
	    .dense = dense, .shared = shared, .other = other, .m = 3, .budget = budget,
	    .cost = size_cost,
	    .ctx = no_ctx, .plan = plan };

	return a;
}

static size_t
count(uint32_t codec)
{
	size_t g, n = 0;

	for (g = 0; g < N; g++)
		n += plan[g].codec == codec;
	return n;
}

/* With budgets of 2 to 64 kB, at least half of the groups have codec `shared', all these with
 * one quantiser step. */
static void
steps(void)
{
	double budget, was = HUGE_VAL, price = HUGE_VAL;
	struct allot a;
	size_t g, odd;
	int off = 0, rise = 0;

	layered();
	for (budget = 2000; budget < 100e3; budget *= 2) {
		a = of(budget);
		if (allot_plan(&a, NULL) < 0)
			off = 1;
		for (odd = g = 0; g < N; g++)
			odd += plan[g].codec == shared &&
			    !(fabs((double)plan[g].arg / a.step - 1) < 1e-6);
		off |= odd != 0 || count(shared) < N / 2 ||
		    fabs(a.bytes / budget - 1) > 0.04;
		rise |= !(a.dist < was) || !(a.price < price);
		was = a.dist;
		price = a.price;
	}
	ok(!off, "one step of %s for all, at which the budget is estimated",
	    codec_name(shared));
	ok(!rise, "more bytes: less error, and each is worth less");
}

TEST(test_step)
{
	steps();
	shared = codec_shared(CODEC_EFFORT_MOST);
	steps();
	shared = CODEC_ECQ;
}

TEST(test_weight)
{
	struct allot a;
	size_t g;
	int off = 0;

	layered();
	for (g = 0; g < N; g++)
		weight[g] = g % 2 ? 1.0f : 0.25f;
	a = of(40e3);
	(void)allot_plan(&a, NULL);
	for (g = 0; g < N; g++)
		off |= plan[g].codec == CODEC_ECQ && !(fabs((double)plan[g].arg /
		    (a.step * (g % 2 ? 1 : 2)) - 1) < 1e-6);
	ok(!off, "a quarter of the weight: twice the step");
	weight[3] = 0;
	stat[5] = (struct stat_group){ .n = SIZE };
	a = of(40e3);
	(void)allot_plan(&a, NULL);
	ok(plan[3].codec == CODEC_NONE && plan[5].codec == CODEC_NONE,
	    "groups without weight or energy are not sent");
}

/* The multiplier is the error reduction per additional byte. */
TEST(test_price)
{
	struct allot a, b;

	layered();
	a = of(40e3);
	(void)allot_plan(&a, NULL);
	b = of(40.8e3);
	(void)allot_plan(&b, NULL);
	ok(fabs((a.dist - b.dist) / (b.bytes - a.bytes) / a.price - 1) < 0.25,
	    "the price, %.3g, is what a byte more buys, %.3g", a.price,
	    (a.dist - b.dist) / (b.bytes - a.bytes));
}

TEST(test_dense)
{
	struct allot a;
	size_t g;

	layered();
	for (g = 0; g < 4; g++) {
		group((uint32_t)g, 96, 1e-3);
		dense[g] = 1;
	}
	a = of(60e3);		/* four norms take 102 bytes each, plus entries */
	(void)allot_plan(&a, NULL);
	ok(a.floor && codec_dense(&plan[0]) && codec_dense(&plan[3]),
	    "norms stay dense if they take less than a fiftieth of the budget");
	a = of(10e3);
	(void)allot_plan(&a, NULL);
	ok(!a.floor && !codec_dense(&plan[0]), "and not if they take more");
	ok(plan[0].codec != CODEC_ECQ || fabs((double)plan[0].arg * 2 /
	    a.step - 1) < 1e-6, "then they get half the step");
	a = of(10);
	(void)allot_plan(&a, NULL);
	ok(a.sent == 0 && a.bytes == 0 && a.dist == a.energy,
	    "too little for any group");
	a = of(-100);
	(void)allot_plan(&a, NULL);
	ok(a.sent == 0, "a budget below 0");
}

/* Norms and biases that take exactly a fiftieth of the budget, coded by q8, stay dense. */
TEST(test_fiftieth)
{
	const struct codec_plan q8 = { CODEC_Q8, 0, 0 };
	struct codec_ctx ctx;
	struct allot a;
	double bytes;
	uint32_t g;

	layered();
	for (g = 0; g < 4; g++) {
		group(g, 96, 1e-3);
		dense[g] = 1;
	}
	no_ctx(NULL, 0, &ctx);
	bytes = 4 * (double)size_cost(q8.codec, codec_size(&q8, &ctx, 96), 1);
	a = of(50 * bytes);
	(void)allot_plan(&a, NULL);
	ok(a.floor, "norms that take a fiftieth stay dense");
	a = of(50 * bytes - 2);
	(void)allot_plan(&a, NULL);
	ok(!a.floor, "those that take more do not");
}

/* Return the estimated weighted error of group g with plan p; set *bytes to its record's size. */
static double
told(const struct allot *a, uint32_t g, const struct codec_plan *p,
    double *bytes)
{
	struct codec_ctx ctx;
	struct estimate m;
	double error;
	int64_t body;

	no_ctx(NULL, g, &ctx);
	estimate_init(&m, &a->stat[g], &ctx);
	estimate_coding(&m, p, &body, &error);
	*bytes = body > 0 ? (double)size_cost(p->codec, (size_t)body, 1) : 0;
	return (double)a->weight[g] * error;
}

/* With groups of few values, and groups of zeros but for one value that is just large enough
 * to be sent, an exception must gain 6 % and 8 bytes, and no group is left out. */
TEST(test_margin)
{
	static float x[SIZE];
	int better = 0, many = 0, left = 0;
	double ecq, one, bytes, other1, edge = 1, budget, step;
	struct codec_plan p = { CODEC_ECQ, 0, 0 };
	struct allot a;
	uint32_t g;
	int i;

	for (budget = 8e3; budget < 200e3; budget *= 1.2) {
		layered();
		for (g = 0; g < 10; g++)
			group(g, 6 + 3 * g, 1 + 0.1 * g);
		for (g = 30; g < N; g++)
			group(g, 200 + 40 * g, 1 + 0.3 * (g - 30));
		/* groups 10 to 29 depend on the step: find both in turn */
		for (i = 0, step = 1; i < 4; i++, step = a.step) {
			for (g = 10; g < 30; g++) {
				x[0] = (float)((0.7 + 0.1 * (g - 10)) * step);
				(void)stat_group_of(x, SIZE, &stat[g]);
			}
			a = of(budget);
			(void)allot_plan(&a, NULL);
		}
		for (g = 0; g < N; g++) {
			p.arg = (float)(a.step / sqrt((double)weight[g]));
			ecq = told(&a, g, &p, &bytes);
			one = ecq + a.price * bytes;
			left += plan[g].codec == CODEC_NONE;
			if (plan[g].codec != CODEC_NONE &&
			    plan[g].codec != CODEC_ECQ) {
				many++;
				other1 = told(&a, g, &plan[g], &bytes) +
				    a.price * bytes;
				edge = fmin(edge, (one - other1 -
				    8 * a.price) / one);
				better += !(other1 <= 0.94 * one -
				    8 * a.price + 1e-9 * one);
			}
		}
	}
	ok(better == 0 && edge < 0.1, "%d exceptions, all better by 6 per cent "
	    "and 8 bytes, one by %.3f", many, edge);
	ok(left == 0, "none of them is left out");
}

TEST(test_exceptions)
{
	struct allot a;
	size_t g;

	layered();
	for (g = 0; g < 8; g++)
		group((uint32_t)g, 12, 1);
	a = of(130e3);
	(void)allot_plan(&a, NULL);
	ok(plan[0].codec != CODEC_ECQ && count(CODEC_ECQ) > 20,
	    "a dozen values at a high rate: another codec (%u)",
	    (unsigned)plan[0].codec);
	a = of(1e9);
	(void)allot_plan(&a, NULL);
	ok(a.dist <= 1e-6 * a.energy && a.bytes <= 4.1 * (double)N * (double)SIZE,
	    "a budget for everything");
	memset(stat, 0, sizeof(stat));
	a = of(1000);
	(void)allot_plan(&a, NULL);
	ok(a.sent == 0 && a.dist == 0, "a shard of zeros");
}
