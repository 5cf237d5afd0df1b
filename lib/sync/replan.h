/*
 * DeCo-SGD over time: estimates of a link that changes, and when a new plan is
 * worth having.  The paper chooses again at intervals from what it measures;
 * the estimators and the three rules are ours.
 *
 * Bandwidth, computation and the price of compression are geometric means that
 * forget half in REPLAN_HALF samples; two samples in a row that are off by half
 * or more to the same side are a change, not noise, and the estimate jumps
 * there.  The price is approached by halves instead, in logarithms, and what
 * is nominal counts as its first sample, since one shard's code says little.
 * Latency is the least of REPLAN_WINDOW samples, since what is above it is
 * queueing (as in BBR, Cardwell et al. 2016); but two samples in a row that
 * lie further above all the others than these are apart, and by half, are
 * another way through the network, and the others are forgotten.  What was
 * given by the user is no estimate: it is taken as it is.
 *
 * A plan is computed again after REPLAN_EVERY samples, or when an estimate has
 * moved by the share REPLAN_MOVED, and taken if it is predicted to gain the
 * share REPLAN_GAIN of the time; a third of that where the delay stays, so
 * that only the budget changes.
 */
#ifndef ACE_REPLAN_H
#define ACE_REPLAN_H

#include "sync/deco.h"

#define REPLAN_HALF 10
#define REPLAN_EVERY 50
#define REPLAN_MOVED 0.2
#define REPLAN_GAIN 0.03
/* The factor from measured contraction to the price of compression: 0.2 fits
 * quadratic problems, 0.03 the network of tests/emulate.c; this is between. */
#define REPLAN_KC 0.05
enum { REPLAN_WINDOW = 16 };

struct replan_mean {
	double v;		/* 0: no sample yet */
	double odd;		/* samples in a row far above (> 0), below */
};

/* Doubles only, so that it can be kept in the state as a list of numbers. */
struct replan {
	struct replan_mean bandwidth, compute, kc;
	double latency[REPLAN_WINDOW], nlatency;	/* nlatency: ever */
	double age;		/* samples since the plan was computed */
	double from[4];		/* bandwidth, compute, kc, latency it is from */
	double planned, tau, delta;
};
enum { REPLAN_NUMBERS = sizeof(struct replan) / sizeof(double) };
#define REPLAN_INIT { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0 }, 0, 0, { 0 }, 0, 0, 1 }

/* What was measured in one step; < 0: this was not. */
struct replan_sample {
	double bandwidth;	/* bit/s */
	double latency;		/* seconds */
	double compute;		/* seconds */
	double alpha, share;	/* of the code: contraction, coded/dense bits */
	unsigned given;		/* REPLAN_*: these were not measured but said */
};
enum { REPLAN_BANDWIDTH = 1, REPLAN_LATENCY = 2, REPLAN_COMPUTE = 4 };

/* replan_see(t, s): learns.  Contraction becomes a price on the share of bits,
 * for which deco.h has kc (1-d)/d: kc = REPLAN_KC (1-alpha)/alpha d/(1-d). */
void replan_see(struct replan *t, const struct replan_sample *s);

/* replan_latency(t): the least latency of the window; < 0: never measured. */
double replan_latency(const struct replan *t);

/* replan_plan(t, d, e): deco_best's plan.  d's size, min, most and kd are
 * given, its kc for as long as no contraction was seen; the rest is filled in
 * from t.  1 a new plan is in t, 0 the old one stays, -ERR_USAGE what
 * deco_check says. */
int replan_plan(struct replan *t, struct deco *d, struct err *e);

/* replan_check(t): 0, or -1 when t has numbers that replan_see and replan_plan
 * never leave there. */
int replan_check(const struct replan *t);

#endif
