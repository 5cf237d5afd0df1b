/*
 * DeCo-SGD over time: estimates of a link that changes, and when a new plan is
 * worth having.  The paper chooses again at intervals from what it measures;
 * the estimators and the three rules are ours.
 *
 * Bandwidth, computation and the price of compression are geometric means that
 * forget half in REPLAN_HALF samples; two samples in a row that are off by half
 * or more to the same side are a change, not noise, and the estimate jumps
 * there.  Latency is the least of REPLAN_WINDOW samples, since what is above it
 * is queueing (as in BBR, Cardwell et al. 2016).
 *
 * A plan is computed again after REPLAN_EVERY samples or when an estimate has
 * moved by a REPLAN_MOVED, and taken if it is predicted to gain REPLAN_GAIN;
 * with the same delay, which changes nothing but a budget, a third of that.
 */
#ifndef ACE_REPLAN_H
#define ACE_REPLAN_H

#include "sync/deco.h"

#define REPLAN_HALF 10
#define REPLAN_EVERY 50
#define REPLAN_MOVED 0.2
#define REPLAN_GAIN 0.03
/* The price of compression on measured contraction: 0.2 fitted quadratics, 0.03
 * the network of tests/emulate.c; this is between. */
#define REPLAN_KC 0.05
enum { REPLAN_WINDOW = 16 };

struct replan_mean {
	double v;		/* 0: no sample yet */
	double odd;		/* samples in a row far above (> 0), below */
};

/* Numbers only, so that it can be kept as they are. */
struct replan {
	struct replan_mean bandwidth, compute, kc;
	double latency[REPLAN_WINDOW], nlatency;	/* nlatency: ever */
	double age;		/* samples since the plan was computed */
	double from[4];		/* bandwidth, compute, kc, latency it is from */
	double planned, tau, delta;
};
enum { REPLAN_NUMBERS = sizeof(struct replan) / sizeof(double) };
#define REPLAN_INIT { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0 }, 0, 0, { 0 }, 0, 0, 1 }

/* What one step measured; < 0: nothing. */
struct replan_sample {
	double bandwidth;	/* bit/s */
	double latency;		/* seconds */
	double compute;		/* seconds */
	double alpha, share;	/* of the code: contraction, coded/dense bits */
};

/* replan_see(t, s): learns.  Contraction becomes a price on the share of bits,
 * for which deco.h has kc (1-d)/d: kc = REPLAN_KC (1-alpha)/alpha d/(1-d). */
void replan_see(struct replan *t, const struct replan_sample *s);

/* replan_latency(t): the least of the window; < 0 never measured. */
double replan_latency(const struct replan *t);

/* replan_plan(t, d, e): deco_best's plan.  d's size, min, most and kd are given,
 * its kc for as long as no contraction was seen; the rest is filled in from t.
 * 1 a new plan is in t, 0 the old one stays, -ERR_USAGE what deco_check says. */
int replan_plan(struct replan *t, struct deco *d, struct err *e);

/* replan_check(t): 0, or -1 for numbers that no history leads to. */
int replan_check(const struct replan *t);

#endif
