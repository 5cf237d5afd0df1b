/*
 * DeCo-SGD over time: estimates of a link that changes, and when a new plan is
 * worth having.  The paper chooses again at intervals from what it measures;
 * the estimators and the three rules are ours.
 *
 * Bandwidth, computation and the price of compression are geometric means that
 * forget half in TRACK_HALF samples; two samples in a row that are off by half
 * or more to the same side are a change, not noise, and the estimate jumps
 * there.  Latency is the least of TRACK_WINDOW samples, since what is above it
 * is queueing (as in BBR, Cardwell et al. 2016).
 *
 * A plan is computed again after TRACK_EVERY samples or when an estimate has
 * moved by a TRACK_MOVED, and taken if it is predicted to gain TRACK_GAIN.
 */
#ifndef ACE_TRACK_H
#define ACE_TRACK_H

#include "sync/deco.h"

#define TRACK_HALF 10
#define TRACK_EVERY 50
#define TRACK_MOVED 0.2
#define TRACK_GAIN 0.03
#define TRACK_KC 0.2	/* the price of compression on measured contraction */
enum { TRACK_WINDOW = 16, TRACK_TTA = 3 };	/* beside enum deco_phi */

struct track_mean {
	double v;		/* 0: no sample yet */
	double odd;		/* samples in a row far above (> 0), below */
};

/* Numbers only, so that it can be kept as they are. */
struct track {
	struct track_mean bandwidth, compute, kc;
	double latency[TRACK_WINDOW], nlatency;	/* nlatency: ever */
	double age;		/* samples since the plan was computed */
	double from[4];		/* bandwidth, compute, kc, latency it is from */
	double planned, tau, delta;
};
enum { TRACK_NUMBERS = sizeof(struct track) / sizeof(double) };
#define TRACK_INIT { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0 }, 0, 0, { 0 }, 0, 0, 1 }

/* What one step measured; < 0: nothing. */
struct track_sample {
	double bandwidth;	/* bit/s */
	double latency;		/* seconds */
	double compute;		/* seconds */
	double alpha, share;	/* of the code: contraction, coded/dense bits */
};

/* track_see(t, s): learns.  Contraction becomes a price on the share of bits,
 * for which deco.h has kc (1-d)/d: kc = TRACK_KC (1-alpha)/alpha d/(1-d). */
void track_see(struct track *t, const struct track_sample *s);

/* track_latency(t): the least of the window; < 0 never measured. */
double track_latency(const struct track *t);

/* track_plan(t, d, rule, e): d's size, min, most and kd are given, its kc for
 * as long as no contraction was seen; the rest is filled in from t.  rule: enum
 * deco_phi (deco_bubbles) or TRACK_TTA (deco_best).  1 a new plan is in t, 0
 * the old one stays, -ERR_USAGE what deco_check says. */
int track_plan(struct track *t, struct deco *d, int rule, struct err *e);

/* track_check(t): 0, or -1 for numbers that no history leads to. */
int track_check(const struct track *t);

#endif
