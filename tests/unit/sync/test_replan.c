#include <math.h>
#include <string.h>

#include "../tap.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/replan.h"

static struct deco
model(void)
{
	struct deco d = DECO_INIT;

	d.size = 11.2e9;
	d.kc = 0.02;
	d.kd = 0.2;
	return d;
}

static struct replan_sample
sample(double mbit, double ms, double compute)
{
	return (struct replan_sample){ mbit * 1e6, ms * 1e-3, compute, -1, -1 };
}

/* n samples of one link, a plan asked for after each; how many were new. */
static int
steps(struct replan *t, struct replan_sample s, int n)
{
	struct err e = ERR_INIT;
	struct deco d;
	int i, r, changed = 0;

	for (i = 0; i < n; i++) {
		d = model();
		replan_see(t, &s);
		if ((r = replan_plan(t, &d, &e)) < 0)
			return -1000;
		changed += r;
	}
	return changed;
}

static void
test_plans(void)
{
	/* the examples of test_deco.c */
	struct replan t = REPLAN_INIT;

	ok(steps(&t, sample(5, 300, 0.5), 1) == 1 && t.tau == 2 &&
	    fabs(t.delta - 0.000223) < 6e-7, "the first sample gives a plan");
	ok(steps(&t, sample(5, 300, 0.5), 500) == 0,
	    "nothing changes, nothing new");
	t = (struct replan)REPLAN_INIT;
	ok(steps(&t, sample(200, 300, 0.25), 1) == 1 &&
	    t.tau == 2 && fabs(t.delta - 0.004911) < 6e-7, "the other rule");
}

static void
test_change(void)
{
	struct replan t = REPLAN_INIT;
	int n;

	(void)steps(&t, sample(200, 100, 0.5), 60);
	n = steps(&t, sample(5, 100, 0.5), 1);
	ok(n == 0 && t.bandwidth.v == 200e6, "one sample far off is nothing");
	(void)steps(&t, sample(200, 100, 0.5), 1);
	ok(fabs(t.bandwidth.v - 200e6) < 1, "forgotten by the next");
	n = steps(&t, sample(5, 100, 0.5), 2);
	ok(n == 1 && fabs(t.bandwidth.v - 5e6) < 1 && t.delta * 11.2e9 / 5e6 <=
	    0.5001, "two are a change: 200 to 5 Mbit/s within two shards");
	n = steps(&t, sample(200, 100, 0.5), 2);
	ok(n == 1 && t.bandwidth.v > 199e6, "and back");
}

/* The least latency of 16 counts, and the 17th forgets it. */
static void
least(void)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 50, 0.5);
	int i, good = 1;

	replan_see(&t, &s);
	s.latency = 0.2;
	for (i = 1; i < 16; i++) {
		replan_see(&t, &s);
		good &= fabs(replan_latency(&t) - 0.05) < 1e-12;
	}
	ok(good, "the least latency, behind fifteen longer ones");
	replan_see(&t, &s);
	ok(fabs(replan_latency(&t) - 0.2) < 1e-12, "and no more behind sixteen");
}

static void
test_smooth(void)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 50, 0.5);
	double off, worst = 0;
	uint32_t u[4];
	int i, changed = 0;

	for (i = 0; i < 400; i++) {
		rng_block(1, 2, 3, (uint32_t)i, u);
		s.bandwidth = 100e6 * exp2(0.3 * (rng_unit(u[0]) - 0.5));
		s.latency = 0.05 + 0.1 * rng_unit(u[1]) * (i % 7 != 0);
		changed += steps(&t, s, 1);
		off = fabs(t.bandwidth.v / 100e6 - 1);
		worst = i > 20 && off > worst ? off : worst;
	}
	ok(worst < 0.06, "ten per cent of noise become %.1f", 100 * worst);
	ok(replan_latency(&t) == 0.05, "latency without the queue");
	ok(changed <= 8, "plans changed %d times in 400", changed);
	t = (struct replan)REPLAN_INIT;
	replan_see(&t, &(struct replan_sample){ 100, 1, 1, -1, -1 });
	for (i = 0; i < REPLAN_HALF; i++)
		replan_see(&t, &(struct replan_sample){ 144, 1, 1, -1, -1 });
	ok(fabs(t.bandwidth.v - 120) < 1e-9, "half is forgotten in ten");
}

static void
test_price(void)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 50, 0.5);
	struct err e = ERR_INIT;
	struct deco d = model();

	replan_see(&t, &s);
	ok(replan_plan(&t, &d, &e) == 1 && d.kc == 0.02,
	    "the nominal price while none is measured");
	s.alpha = 0.5;
	s.share = 0.01;
	replan_see(&t, &s);
	ok(fabs(t.kc.v - REPLAN_KC * 0.01 / 0.99) < 1e-12,
	    "half is kept by a hundredth of the bits");
	d = model();
	ok(replan_plan(&t, &d, &e) >= 0 && d.kc == t.kc.v,
	    "the measured price");
	s.alpha = 0;
	replan_see(&t, &s);
	replan_see(&t, &s);
	ok(fabs(t.kc.v - REPLAN_KC * 99 * 0.01 / 0.99) < 1e-9,
	    "a code that keeps nothing has the price of a hundredth");
	s.share = 0;
	replan_see(&t, &s);
	replan_see(&t, &s);
	ok(t.planned == 1 && fabs(t.kc.v - REPLAN_KC * 99 * t.delta / (1 - t.delta)) <
	    1e-9, "nothing sent: the plan was too little");
	s.alpha = 1;
	s.share = 1;
	d.kc = t.kc.v;
	replan_see(&t, &s);
	ok(t.kc.v == d.kc, "what is not coded has no price");
}

static void
test_bad(void)
{
	struct replan t = REPLAN_INIT;
	struct deco d = model();
	struct err e = ERR_INIT;
	double *v = (double *)&t;
	int i, bad = 0;

	replan_see(&t, &(struct replan_sample){ 0, -1, 0, -1, -1 });
	ok(t.bandwidth.v == 0 && t.compute.v == 0 && replan_latency(&t) < 0,
	    "nothing measured is nothing known");
	ok(replan_plan(&t, &d, &e) == -ERR_USAGE, "and no plan: %s",
	    ERR_MSG(&e));
	(void)steps(&t, sample(5, 300, 0.5), 3);
	ok(replan_check(&t) == 0, "what it leaves is good");
	for (i = 0; i < REPLAN_NUMBERS; i++) {
		double was = v[i];

		v[i] = NAN;
		bad += replan_check(&t) < 0;
		v[i] = INFINITY;
		bad += replan_check(&t) < 0;
		v[i] = was;
	}
	ok(bad == 2 * REPLAN_NUMBERS, "not a number: refused");
	for (i = 0; i < REPLAN_WINDOW; i++) {
		double was = t.latency[i];

		t.latency[i] = -1e-9;
		bad += replan_check(&t) < 0;
		t.latency[i] = was;
	}
	ok(bad == 2 * REPLAN_NUMBERS + REPLAN_WINDOW && replan_check(&t) == 0,
	    "a latency below 0: refused");
	t.tau = 1.5;
	ok(replan_check(&t) < 0, "half a step");
	t.tau = 1;
	t.delta = 0;
	ok(replan_check(&t) < 0, "no bits");
}

int
main(void)
{
	test_plans();
	test_change();
	least();
	test_smooth();
	test_price();
	test_bad();
	return done_testing();
}
