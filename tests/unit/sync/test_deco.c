
#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/deco.h"

/* Plans for 350 million f32 values; the numbers follow from the formulas in sync/deco.h. */
static const struct {
	double compute, mbit, ms, serial;
	struct deco_plan bubbles, best;
} example[] = {
	{ 0.5, 5, 300, 2240.80, { 2, 0.000223 }, { 2, 0.000223 } },
	{ 0.5, 50, 100, 224.60, { 2, 0.002232 }, { 2, 0.002232 } },
	{ 0.5, 200, 10, 56.51, { 2, 0.008929 }, { 1, 0.009107 } },
	{ 1, 100, 200, 113.20, { 2, 0.008929 }, { 2, 0.008929 } },
	{ 2, 1000, 100, 13.30, { 1, 0.169643 }, { 1, 0.169643 } },
	{ 0.25, 200, 300, 56.55, { 3, 0.004464 }, { 2, 0.004911 } },
};

static int
near(double a, double b, double tol)
{
	return fabs(a - b) <= tol;
}

static struct deco
link_of(double compute, double mbit, double ms)
{
	struct deco d = DECO_INIT;

	d.compute = compute;
	d.bandwidth = mbit * 1e6;
	d.latency = ms * 1e-3;
	d.size = 11.2e9;
	return d;
}

TEST(test_examples)
{
	struct deco_plan p;
	struct deco d;
	size_t i;

	for (i = 0; i < sizeof(example) / sizeof(*example); i++) {
		d = link_of(example[i].compute, example[i].mbit, example[i].ms);
		ok(near(deco_time(&d, (struct deco_plan){ 0, 1 }),
		    example[i].serial, 0.005), "%zu: synchronous", i);
		ok(deco_bubbles(&d, DECO_PAPER, &p) == 1 &&
		    p.tau == example[i].bubbles.tau &&
		    near(p.delta, example[i].bubbles.delta, 6e-7),
		    "%zu: without bubbles: %d %.6f", i, p.tau, p.delta);
		ok(near(deco_time(&d, p), d.compute, 1e-9), "%zu: none", i);
		d.kc = 0.02;
		d.kd = 0.2;
		p = deco_best(&d);
		ok(p.tau == example[i].best.tau &&
		    near(p.delta, example[i].best.delta, 6e-7),
		    "%zu: least time to the target: %d %.6f", i, p.tau,
		    p.delta);
	}
	d = link_of(0.5, 200, 10);
	ok(near(deco_time(&d, example[2].best), 0.510, 5e-4), "T_avg 0.510");
	d = link_of(0.25, 200, 300);
	ok(near(deco_time(&d, example[5].best), 0.275, 5e-4), "T_avg 0.275");
}

TEST(test_phi)
{
	struct deco d = DECO_INIT;
	struct deco_plan p = { 2, 0.5 };
	double s2, one;

	d.kc = 0.2;
	ok(deco_phi(&d, DECO_PAPER, p) == 0.5 / (0.5 * 0.75 * 0.75), "paper");
	ok(deco_phi(&d, DECO_S2, p) == 0.5 / (0.5 * 0.25), "s2");
	ok(near(deco_phi(&d, DECO_ADDITIVE, p), 0.8, 1e-12), "additive");
	ok(near(deco_steps(&d, p), 1.8, 1e-12), "steps");
	s2 = deco_phi(&d, DECO_S2, (struct deco_plan){ 4, 0.25 });
	ok(s2 < deco_phi(&d, DECO_S2, (struct deco_plan){ 4, 0.24 }) &&
	    s2 < deco_phi(&d, DECO_S2, (struct deco_plan){ 4, 0.26 }),
	    "s2 is least at delta = 1/tau");
	one = deco_phi(&d, DECO_S2, (struct deco_plan){ 4, 1 });
	ok(isinf(one) && deco_phi(&d, DECO_S2, (struct deco_plan){ 1, 1 }) == 1
	    && deco_phi(&d, DECO_S2, (struct deco_plan){ 0, 1 }) == 0,
	    "s2 at delta 1: no NaN");
	ok(deco_phi(&d, DECO_PAPER, (struct deco_plan){ 64, 1 }) == 0,
	    "paper at delta 1: 0");
}

static double
drawn(uint32_t u, double lo, double hi)
{
	return lo * pow(hi / lo, rng_unit(u));
}

/* Return the least deco_steps * deco_time over a logarithmic grid of delta and every tau. */
static double
grid(const struct deco *d)
{
	double least = INFINITY, v;
	struct deco_plan p;
	int i;

	for (p.tau = 0; p.tau <= d->most; p.tau++)
		for (i = 0; i <= 400; i++) {
			p.delta = d->min * pow(1 / d->min, i / 400.0);
			v = deco_steps(d, p) * deco_time(d, p);
			least = v < least ? v : least;
		}
	return least;
}

TEST(test_grid)
{
	int worse = 0, late = 0, nan = 0, phi;
	struct deco d = DECO_INIT;
	struct deco_plan p;
	uint32_t c, r[8];
	double v, g;

	for (c = 0; c < 200; c++) {
		rng_block(11, c, 0, 0, r);
		rng_block(11, c, 1, 0, r + 4);
		d.compute = drawn(r[0], 1e-3, 10);
		d.bandwidth = drawn(r[1], 1e5, 1e10);
		d.latency = c % 10 == 0 ? 0 : drawn(r[2], 1e-4, 2);
		d.size = drawn(r[3], 1e5, 1e11);
		d.kc = c % 11 == 0 ? 0 : drawn(r[4], 1e-3, 2);
		d.kd = c % 13 == 0 ? 0 : drawn(r[5], 1e-2, 1);
		d.min = drawn(r[6], 1e-5, 1e-2);
		if (deco_check(&d, NULL) < 0)
			nan++;
		p = deco_best(&d);
		v = deco_steps(&d, p) * deco_time(&d, p);
		g = grid(&d);
		worse += !(v <= g * (1 + 1e-12));
		late += p.tau < 0 || p.tau > d.most;
		for (phi = DECO_PAPER; phi <= DECO_ADDITIVE; phi++) {
			if (deco_bubbles(&d, (enum deco_phi)phi, &p) == 1)
				late += !(deco_time(&d, p) <=
				    d.compute * (1 + 1e-9));
			nan += isnan(p.delta) ||
			    isnan(deco_phi(&d, (enum deco_phi)phi, p));
		}
	}
	ok(worse == 0, "never worse than the grid");
	ok(late == 0, "no bubbles where none were promised");
	ok(nan == 0, "no NaN");
}

/* The first link is valid; each of the others has one invalid number. */
TEST(test_limits)
{
	static const struct {
		struct deco d;	/* compute, bandwidth, latency, size, min, most, kc, kd */
		int good;
		const char *what;
	} t[] = {
		{ { 1, 5e6, 0, 1e9, 1, DECO_MOST, 0, 0 }, 1, "all numbers at their limits" },
		{ { 0, 5e6, 0, 1e9, 1, 64, 0, 0 }, 0, "no computation" },
		{ { 1, 0, 0, 1e9, 1, 64, 0, 0 }, 0, "no bandwidth" },
		{ { 1, NAN, 0, 1e9, 1, 64, 0, 0 }, 0, "an unknown bandwidth" },
		{ { 1, 5e6, -1, 1e9, 1, 64, 0, 0 }, 0, "a negative latency" },
		{ { 1, 5e6, 0, 0, 1, 64, 0, 0 }, 0, "no values" },
		{ { 1, 5e6, 0, 1e9, 0, 64, 0, 0 }, 0, "a least delta of 0" },
		{ { 1, 5e6, 0, 1e9, 1.001, 64, 0, 0 }, 0, "a least delta above 1" },
		{ { 1, 5e6, 0, 1e9, 1, DECO_MOST + 1, 0, 0 }, 0, "a tau beyond the largest" },
		{ { 1, 5e6, 0, 1e9, 1, -1, 0, 0 }, 0, "a largest tau below 0" },
		{ { 1, 5e6, 0, 1e9, 1, 64, -1e-9, 0 }, 0, "a negative kc" },
		{ { 1, 5e6, 0, 1e9, 1, 64, 0, -1e-9 }, 0, "a negative kd" },
		{ { 1, 5e6, 0, 1e9, 1, 64, 0, 1.1e15 }, 0, "a kd beyond the largest" }
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct err e = ERR_INIT;

		ok(deco_check(&t[i].d, &e) == (t[i].good ? 0 : -ERR_USAGE), "%s: %s",
		    t[i].what, ERR_MSG(&e));
	}
}

TEST(test_edges)
{
	struct deco d = link_of(0.5, 50, 100);
	struct deco_plan p, q;

	d.min = 0.5;
	q = deco_best(&d);
	ok(deco_bubbles(&d, DECO_PAPER, &p) == 0 && p.tau == q.tau &&
	    p.delta == q.delta, "a link too slow for the least delta");
	d = link_of(1e-9, 1e9, 1e18);
	ok(deco_bubbles(&d, DECO_PAPER, &p) == 0, "a tau beyond the largest");
	d = link_of(10, 1e9, 0);
	p = deco_best(&d);
	ok(p.tau == 0 && p.delta == 1, "nothing to win: nothing is done");
}
