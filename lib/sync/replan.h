/*
 * DeCo-SGD over time: estimate a link that changes, and decide when to adopt a new plan.
 * The paper plans again at intervals from its measurements; the estimators and the rules
 * are ours.
 *
 * The estimates of bandwidth, computation and the cost of compression are geometric
 * means; a sample's weight halves every REPLAN_HALF samples.  A sample that is off by a
 * factor of 1.5 or more is ignored, but two in a row to one side are a change: the estimate
 * jumps to the second.  The cost of compression moves only half way, in logarithms, and its
 * nominal value counts as the first sample, since one shard says little about it.
 *
 * Latency is the least of the last REPLAN_WINDOW samples, because the excess is queueing (as
 * in BBR, Cardwell et al. 2016).  Two samples in a row are taken for a new route, and replace
 * all others, if both exceed the largest of the others by half and by more than the spread of
 * the others.  Values that the user gives are used unchanged.
 *
 * A plan is computed again after REPLAN_EVERY samples, or when an estimate has moved by the
 * share REPLAN_MOVED.  The new plan is used if it is predicted to save the share REPLAN_GAIN
 * of the time, or a third of that share if only delta changes.
 */
#ifndef ACE_REPLAN_H
#define ACE_REPLAN_H

#include "sync/deco.h"

#define REPLAN_HALF 10
#define REPLAN_EVERY 50
#define REPLAN_MOVED 0.2
#define REPLAN_GAIN 0.03
/* The factor from measured contraction to the cost of compression: 0.2 fits quadratic
 * problems, 0.03 the network of tests/emulate.c; we take a value between. */
#define REPLAN_KC 0.05
enum { REPLAN_WINDOW = 16 };

struct replan_mean {
	double v;		/* the estimate; 0: no sample yet */
	double odd;		/* samples in a row far above v (> 0) or below v (< 0) */
};

/* All members are doubles, so that the state can store them as a list of numbers. */
struct replan {
	struct replan_mean bandwidth, compute, kc;
	double latency[REPLAN_WINDOW], nlatency;	/* a ring buffer; samples since its reset */
	double age;		/* samples since a plan was last computed */
	double from[4];		/* bandwidth, compute, kc and latency at that time */
	double planned, tau, delta;	/* planned: 1 if tau and delta are a plan */
};
enum { REPLAN_NUMBERS = sizeof(struct replan) / sizeof(double) };
#define REPLAN_INIT { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0 }, 0, 0, { 0 }, 0, 0, 1 }

/* The measurements of one step; < 0: not measured. */
struct replan_sample {
	double bandwidth;	/* bit/s */
	double latency;		/* seconds */
	double compute;		/* seconds */
	double alpha, share;	/* alpha: contraction; share: coded / dense bits, 0: not sent */
	unsigned given;		/* bits REPLAN_*: the values that the user gave */
};
enum { REPLAN_BANDWIDTH = 1, REPLAN_LATENCY = 2, REPLAN_COMPUTE = 4 };

/* Update the estimates from a sample.  The contraction gives the cost of compression, kc
 * (1-d)/d in deco.h: kc = REPLAN_KC (1-alpha)/alpha d/(1-d). */
void replan_see(struct replan *t, const struct replan_sample *s);

/* Return the least latency of the window in seconds, < 0 if none was measured. */
double replan_latency(const struct replan *t);

/* Compute deco_best's plan. The caller sets size, min, most and kd of d, and kc until a
 * contraction was measured; the rest comes from t. Return 1 if t has a new plan, 0 if the
 * old one stays, or -ERR_USAGE from deco_check. */
int replan_plan(struct replan *t, struct deco *d, struct err *e);

/* Return 0, or -1 if a number of t is NaN or above 1e300, or if an estimate, the number of
 * latencies, tau or delta is out of range. */
int replan_check(const struct replan *t);

#endif
