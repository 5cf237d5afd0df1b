
#include "../test.h"
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
	return (struct replan_sample){ mbit * 1e6, ms * 1e-3, compute, -1, -1, 0 };
}

/* See sample s n times, with a plan after each; return how many plans were new, -1000: an error. */
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

TEST(test_plans)
{
	/* the examples of test_deco.c */
	struct replan t = REPLAN_INIT;

	ok(steps(&t, sample(5, 300, 0.5), 1) == 1 && t.tau == 2 &&
	    fabs(t.delta - 0.000223) < 6e-7, "the first sample gives a plan");
	ok(steps(&t, sample(5, 300, 0.5), 500) == 0,
	    "without changes there is no new plan");
	t = (struct replan)REPLAN_INIT;
	ok(steps(&t, sample(200, 300, 0.25), 1) == 1 &&
	    t.tau == 2 && fabs(t.delta - 0.004911) < 6e-7, "the other rule");
}

TEST(test_change)
{
	struct replan t = REPLAN_INIT;
	int n;

	(void)steps(&t, sample(200, 100, 0.5), 60);
	n = steps(&t, sample(5, 100, 0.5), 1);
	ok(n == 0 && t.bandwidth.v == 200e6, "one sample far off changes nothing");
	(void)steps(&t, sample(200, 100, 0.5), 1);
	ok(fabs(t.bandwidth.v - 200e6) < 1, "the next sample forgets it");
	n = steps(&t, sample(5, 100, 0.5), 2);
	ok(n == 1 && fabs(t.bandwidth.v - 5e6) < 1 && t.delta * 11.2e9 / 5e6 <=
	    0.5001, "two are a change: 200 to 5 Mbit/s within two shards");
	n = steps(&t, sample(200, 100, 0.5), 2);
	ok(n == 1 && t.bandwidth.v > 199e6, "two samples back are a change, too");
}

/* The latency is the least of the last 16 samples; the 17th replaces the first. */
TEST(least)
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
	ok(fabs(replan_latency(&t) - 0.2) < 1e-12, "after sixteen it is forgotten");
}

/* Another route is accepted after two consecutive samples. */
TEST(another_way)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 10, 0.5);
	int i;

	for (i = 0; i < 12; i++) {
		s.latency = 0.010 + 0.001 * (i % 3);
		replan_see(&t, &s);
	}
	s.latency = 0.3;
	replan_see(&t, &s);
	ok(replan_latency(&t) == 0.010, "one long round trip is a queue");
	replan_see(&t, &s);
	ok(replan_latency(&t) == 0.3, "two far beyond all others are a new route");
	s.latency = 0.010;
	replan_see(&t, &s);
	ok(replan_latency(&t) == 0.010, "a shorter one counts immediately");

	t = (struct replan)REPLAN_INIT;
	for (i = 0; i < 12; i++) {
		s.latency = i % 4 == 0 ? 0.010 : 0.2;
		replan_see(&t, &s);
	}
	s.latency = 0.35;
	replan_see(&t, &s);
	replan_see(&t, &s);
	ok(replan_latency(&t) == 0.010, "two within the spread of the others are no route");
}

/* Values given by the user are not samples. */
TEST(given)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 10, 0.5);

	s.given = REPLAN_BANDWIDTH | REPLAN_LATENCY | REPLAN_COMPUTE;
	(void)steps(&t, s, 30);
	s.bandwidth = 80e6;
	s.latency = 0.3;
	s.compute = 0.4;
	(void)steps(&t, s, 1);
	ok(t.bandwidth.v == 80e6 && t.compute.v == 0.4 &&
	    replan_latency(&t) == 0.3, "values of the user are used immediately");
}

TEST(test_smooth)
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
	replan_see(&t, &(struct replan_sample){ 100, 1, 1, -1, -1, 0 });
	for (i = 0; i < REPLAN_HALF; i++)
		replan_see(&t, &(struct replan_sample){ 144, 1, 1, -1, -1, 0 });
	ok(fabs(t.bandwidth.v - 120) < 1e-9, "half of a value is forgotten in ten samples");
}

TEST(test_price)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s = sample(100, 50, 0.5);
	struct err e = ERR_INIT;
	struct deco d = model();
	double want;
	int i;

	replan_see(&t, &s);
	ok(replan_plan(&t, &d, &e) == 1 && d.kc == 0.02,
	    "the nominal price while none is measured");
	s.alpha = 0.5;
	s.share = 0.01;
	replan_see(&t, &s);
	ok(t.kc.v == 0.02, "and while a single shard has another price");
	replan_see(&t, &s);
	want = REPLAN_KC * 0.01 / 0.99;		/* a hundredth of the bits keeps half */
	ok(fabs(t.kc.v / sqrt(0.02 * want) - 1) < 1e-12, "a second shard moves it half-way");
	for (i = 0; i < 30; i++)
		replan_see(&t, &s);
	ok(fabs(t.kc.v / want - 1) < 0.2, "after many shards it is the measured price");
	d = model();
	ok(replan_plan(&t, &d, &e) >= 0 && d.kc == t.kc.v,
	    "the plan uses the measured price");
	s.alpha = 0;
	for (i = 0; i < 60; i++)
		replan_see(&t, &s);
	ok(fabs(t.kc.v / (REPLAN_KC * 99 * 0.01 / 0.99) - 1) < 0.05,
	    "a code that keeps nothing has the price of contraction 0.01");
	s.share = 0;
	for (i = 0; i < 60; i++)
		replan_see(&t, &s);
	ok(t.planned == 1 && fabs(t.kc.v / (REPLAN_KC * 99 * t.delta /
	    (1 - t.delta)) - 1) < 0.05, "nothing sent: the price of the planned share");
	t.kc.v = 0;
	t.kc.odd = 0;
	t.from[2] = REPLAN_KC / 5;
	s.share = 0.5;
	s.alpha = 0.8;
	replan_see(&t, &s);
	want = exp2(-0.1) * log(REPLAN_KC / 5) + (1 - exp2(-0.1)) * log(REPLAN_KC / 4);
	ok(fabs(log(t.kc.v) - want) < 1e-12, "a near sample is weighted like any other");
	s.alpha = 1;
	s.share = 1;
	d.kc = t.kc.v;
	replan_see(&t, &s);
	ok(t.kc.v == d.kc, "values sent uncoded have no price");
}

/* Return the delta, below the best plan's, at which training with p's tau takes `more' times as
 * long as with the best plan. */
static double
worse(const struct deco *d, struct deco_plan p, double more)
{
	const struct deco_plan best = deco_best(d);
	const double want = more * deco_time(d, best) * deco_steps(d, best);
	double lo = 1e-9, hi = best.delta;
	int i;

	for (i = 0; i < 100; i++) {
		p.delta = sqrt(lo * hi);
		if (deco_time(d, p) * deco_steps(d, p) > want)
			lo = p.delta;
		else
			hi = p.delta;
	}
	return hi;
}

/* Test when a plan is computed again, and when it is used. */
TEST(test_taken)
{
	static const struct { double more; int other, taken; } gain[] = {
		{ 1.005, 0, 0 }, { 1.015, 0, 1 }, { 1.025, 1, 0 }, { 1.04, 1, 1 } };
	struct replan t = REPLAN_INIT, from;
	struct deco_plan p;
	struct err e = ERR_INIT;
	struct deco d;
	size_t i;
	int moved = 0, stayed = 0, r;

	(void)steps(&t, sample(5, 300, 0.5), 1);
	from = t;
	for (i = 0; i < sizeof(gain) / sizeof(*gain); i++) {
		d = model();
		t = from;
		t.age = REPLAN_EVERY;
		d.kd = 0.001;		/* one more step of delay costs little */
		(void)replan_plan(&t, &d, &e);
		p = deco_best(&d);
		p.tau += gain[i].other;
		t.tau = p.tau;
		t.delta = worse(&d, p, gain[i].more);
		t.age = REPLAN_EVERY;
		r = replan_plan(&t, &d, &e);
		ok(r == gain[i].taken, "%.3f times as long, %s delay: %s",
		    gain[i].more, gain[i].other ? "another" : "the same",
		    gain[i].taken ? "taken" : "not worth it");
	}
	for (i = 0; i < 4; i++) {	/* bandwidth, compute, kc, latency */
		double *was = &t.from[i], now = from.from[i];

		t = from;
		t.age = 1;
		*was = now / 1.25;
		d = model();
		(void)replan_plan(&t, &d, &e);
		moved += *was >= now * 0.999 && t.age == 0;
		*was = now / 1.15;
		t.age = 1;
		d = model();
		(void)replan_plan(&t, &d, &e);
		stayed += *was < now && t.age == 1;
	}
	ok(moved == 4 && stayed == 4, "an estimate that moved by a fifth has a "
	    "plan computed, one that moved by less has not: %d, %d", moved, stayed);
	t = from;
	t.from[0] = from.from[0] / 1.15;
	t.age = 49;
	d = model();
	(void)replan_plan(&t, &d, &e);
	r = t.age == 49;
	t.age = 50;
	(void)replan_plan(&t, &d, &e);
	ok(r && t.age == 0, "and so does every fiftieth shard");
	replan_see(&t, &(struct replan_sample){ -1, -1, -1, -1, -1, 0 });
	ok(t.age > 0 && t.age < 2, "also a shard without measurements");
}

TEST(test_bad)
{
	struct replan t = REPLAN_INIT;
	struct deco d = model();
	struct err e = ERR_INIT;
	double *v = (double *)&t;
	int i, bad = 0;

	replan_see(&t, &(struct replan_sample){ 0, -1, 0, -1, -1, 0 });
	ok(t.bandwidth.v == 0 && t.compute.v == 0 && replan_latency(&t) < 0,
	    "without measurements nothing is known");
	ok(replan_plan(&t, &d, &e) == -ERR_USAGE, "and there is no plan: %s",
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
	t.tau = DECO_MOST + 1;
	ok(replan_check(&t) < 0, "a delay beyond the largest");
	t.tau = -1;
	ok(replan_check(&t) < 0, "a delay below 0");
	t.tau = 1;
	t.delta = 0;
	ok(replan_check(&t) < 0, "a plan with 0 bits");
	t.delta = 1.001;
	ok(replan_check(&t) < 0, "a plan with more bits than the values have");
	t.delta = 1;
	ok(replan_check(&t) == 0, "a plan with all bits");
	for (i = 0; i < 5; i++) {
		double *v1[] = { &t.bandwidth.v, &t.compute.v, &t.kc.v,
		    &t.nlatency, &t.nlatency }, was = *v1[i];

		*v1[i] = i < 4 ? -1 : 1.5;
		bad += replan_check(&t) < 0;
		*v1[i] = was;
	}
	ok(bad == 2 * REPLAN_NUMBERS + REPLAN_WINDOW + 5,
	    "estimates and counts below 0, half a count: refused");
}
