/* Whatever numbers a policy is given, it decides on finite numbers. */
#include <float.h>

#include "../test.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/cluster.h"
#include "sync/deco.h"
#include "sync/interval.h"
#include "sync/ratio.h"
#include "sync/replan.h"

enum { CASES = 20000 };

static uint32_t drawn;

static uint32_t
word(void)
{
	uint32_t r[4];

	rng_block(17, drawn++, 0, 0, r);
	return r[0];
}

/* Return any double, with the limits of all kinds. */
static double
any(void)
{
	static const double ends[] = { 0, -0.0, 1, -1, INFINITY, -INFINITY,
	    NAN, DBL_MIN, DBL_MAX, -DBL_MAX, 4.9e-324, -4.9e-324, DBL_EPSILON,
	    1e-300, 1e300, 1e15, 1e-15, 5e6 };
	uint32_t n = word() % 40;

	if (n < sizeof(ends) / sizeof(ends[0]))
		return ends[n];
	return ldexp(rng_unit(word()) - (n % 4 == 0), (int)(word() % 400) - 200);
}

/* The same for inputs documented as finite and not negative. */
static double
some(void)
{
	double v;

	do
		v = fabs(any());
	while (!isfinite(v));
	return v;
}

TEST(test_ratio)
{
	double cmin, cmax, c;
	int i, bad = 0;

	for (i = 0; i < CASES; i++) {
		cmin = 1 + fmin(some(), 1e9 - 1);
		cmax = cmin + fmin(some(), 1e9);
		c = ratio_factor(cmin, cmax, some(), some());
		bad += !(c >= cmin * (1 - 1e-12) && c <= cmax * (1 + 1e-12));
		bad += ratio_budget((uint64_t)word() << word() % 32, c) >
		    (uint64_t)UINT32_MAX << 34;
	}
	ok(bad == 0, "equation (5): within its limits, %d not", bad);
}

TEST(test_interval)
{
	struct interval o = INTERVAL_INIT;
	uint64_t h;
	double r;
	int i, bad = 0;

	for (i = 0; i < CASES; i++) {
		o.target = fmax(some(), 1e-300);
		o.min = 1 + word() % 100;
		o.max = o.min + word() % 1000000;
		r = interval_drift(some(), some());
		bad += isnan(r) || r < 0;
		h = interval_next(&o, 1 + word() % 1000000, r);
		bad += h < o.min || h > o.max;
		/* a NaN from elsewhere is unknown drift */
		h = interval_next(&o, 1 + word() % 1000000, any());
		bad += h < o.min || h > o.max;
		r = interval_weight(some(), some(), fmax(some(), 1e-300),
		    some(), some());
		bad += isnan(r) || r < 0;
	}
	ok(bad == 0, "equation (9): an interval within its limits, %d not",
	    bad);
}

TEST(test_pace)
{
	struct ratio_pace p = RATIO_PACE_INIT;
	double c;
	int i, bad = 0;

	for (i = 0; i < CASES; i++) {
		if (i % 50 == 0) {
			p = (struct ratio_pace)RATIO_PACE_INIT;
			p.warmup = word() % 5;
			p.rise = fmin(1, 1e-3 + rng_unit(word()));
			p.still = 0.9 * rng_unit(word());
		}
		c = ratio_acted(&p, some());
		bad += !isfinite(c) || c < 0;
		c = ratio_paced(&p, 1 + fmin(some(), 1e9), word() % 7);
		bad += !(c >= 1 && c <= 1.1e9);
		bad += !isfinite(p.rate);
	}
	ok(bad == 0, "the pace: a rate and a factor, %d not", bad);
}

TEST(test_deco)
{
	struct deco d;
	struct deco_plan p;
	int i, k, passed = 0, bad = 0;

	for (i = 0; i < CASES; i++) {
		d = (struct deco){ any(), any(), any(), any(), any(),
		    (int)(word() % 70) - 2, any(), any() };
		if (i % 2 == 0)		/* most would be refused */
			d = (struct deco){ fmin(some(), 1e15), fmin(some(),
			    1e15), fmin(some(), 1e15), fmin(some(), 1e15),
			    fmin(fmax(some(), 1e-15), 1), (int)(word() % 65),
			    fmin(some(), 1e15), fmin(some(), 1e15) };
		if (deco_check(&d, NULL) < 0)
			continue;
		passed++;
		for (k = DECO_PAPER; k <= DECO_ADDITIVE + 1; k++) {
			p = deco_best(&d);
			if (k <= DECO_ADDITIVE)
				(void)deco_bubbles(&d, (enum deco_phi)k, &p);
			bad += !(p.delta >= d.min && p.delta <= 1) ||
			    p.tau < 0 || p.tau > d.most ||
			    !isfinite(deco_time(&d, p)) ||
			    !isfinite(deco_steps(&d, p)) ||
			    isnan(deco_phi(&d, DECO_PAPER, p)) ||
			    isnan(deco_phi(&d, DECO_S2, p)) ||
			    isnan(deco_phi(&d, DECO_ADDITIVE, p));
		}
	}
	ok(passed > CASES / 20 && bad == 0,
	    "deco: a plan of all that is let through (%d), %d not", passed,
	    bad);
}

TEST(test_replan)
{
	struct replan t = REPLAN_INIT;
	struct replan_sample s;
	struct deco d;
	int i, r, planned = 0, bad = 0;

	for (i = 0; i < CASES; i++) {
		if (i % 30 == 0)
			t = (struct replan)REPLAN_INIT;
		s = (struct replan_sample){ some(), some(), some(),
		    fmin(some(), 1), fmin(some(), 1), word() % 8 };
		if (i % 3 == 0)		/* as programs pass them */
			s = (struct replan_sample){ 1e6 * (1 + word() % 200),
			    1e-3 * (word() % 300), 1e-3 * (1 + word() % 900),
			    rng_unit(word()), rng_unit(word()),
			    0 };
		if (i % 7 == 0)
			s.latency = s.alpha = s.share = -1;
		d = (struct deco)DECO_INIT;
		d.size = 32.0 * (1 + word());
		replan_see(&t, &s);
		r = replan_plan(&t, &d, NULL);
		planned += r > 0;
		bad += !(t.delta > 0 && t.delta <= 1) || t.tau < 0 ||
		    t.tau > (double)DECO_MOST || (r >= 0 && (isnan(d.kc) ||
		    isnan(d.bandwidth) || isnan(d.latency)));
	}
	ok(planned > 1000 && bad == 0, "deco over time: always a plan, or "
	    "none (%d), %d not", planned, bad);
}

TEST(test_groups)
{
	enum { N = 6, M = 3 };
	double x[N * M], dist[N * N];
	size_t g[N], k, i;
	int c, bad = 0;

	for (c = 0; c < CASES / 10; c++) {
		for (i = 0; i < N * M; i++)	/* as tables accept them */
			x[i] = copysign(fmin(some(), 1e100), any());
		(c % 2 ? cluster_zscore : cluster_cosine)(x, N, M, dist);
		for (i = 0; i < N * N; i++)
			bad += !(dist[i] >= 0 && isfinite(dist[i]));
		bad += cluster_linkage(dist, N, some(), g, &k, NULL) < 0 ||
		    k < 1 || k > N;
	}
	ok(bad == 0, "clusters: distances are numbers, %d not", bad);
}
