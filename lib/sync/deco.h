/*
 * Plan how much to compress (delta) and how many steps late to apply the averages
 * (tau), after DeCo-SGD (arXiv 2507.17346).
 *
 * delta in (0, 1] is the share of the dense bits that is sent, tau the number of steps
 * that a gradient may be late.  With T the computing time of a step, S the dense bits, a
 * the bandwidth and b the latency, the mean time of a step is
 *
 *   T_avg = max{ T, delta S/a, (T + b + delta S/a) / (tau + 1) }
 *
 * Only the problem is the paper's.  The time model and both rules are ours, tested
 * against a simulation and an exhaustive search.  Each form below states its source.
 */
#ifndef ACE_DECO_H
#define ACE_DECO_H

struct err;

/* Three estimates of how much d (delta) and tau raise the number of steps to a target. */
enum deco_phi {
	/* (1-d) / (d (1-d/2)^tau): derived by us from the standard argument;
	 * probably the paper's form, but unconfirmed.  0 at d = 1. */
	DECO_PAPER,
	/* (1-d) / (d (1-d)^tau): the paper's form as another source gives it.
	 * Infinite at d = 1 (no compression) for tau > 1. */
	DECO_S2,
	/* kc (1-d)/d + kd tau: ours; the terms of compression and of delay add
	 * up, and neither changes the leading term. */
	DECO_ADDITIVE
};

struct deco {
	double compute;		/* T in seconds, > 0 */
	double bandwidth;	/* a in bit/s, > 0 */
	double latency;		/* b in seconds, >= 0 */
	double size;		/* S in bits, > 0 */
	double min;		/* the least delta, in (0, 1] */
	int most;		/* the largest tau, 0 to DECO_MOST */
	double kc, kd;		/* for DECO_ADDITIVE and deco_steps, >= 0 */
};
enum { DECO_MOST = 1000 };
#define DECO_LEAST 1e-15	/* shortest time of a step, in seconds */
/* We fitted the default kc and kd on small problems.  kc is for top-k with the share
 * delta of the values. */
#define DECO_INIT { 0, 0, 0, 0, 1e-5, 64, 0.005, 0.3 }

struct deco_plan {
	int tau;
	double delta;
};

/* Return 0, or -ERR_USAGE with a message that names a number that is unknown or out
 * of range.  Call the other functions only after this one returned 0; then they never
 * return NaN. */
int deco_check(const struct deco *d, struct err *e);

/* Return T_avg in seconds.  For tau = 0 it is the serial T + b + delta S/a. */
double deco_time(const struct deco *d, struct deco_plan p);

/* Return the estimate phi (enum deco_phi) for the plan p; it may be infinite. */
double deco_phi(const struct deco *d, enum deco_phi phi, struct deco_plan p);

/* Return N = 1 + kc (1-delta)/delta + kd tau: the number of steps to a target,
 * relative to the number without compression and delay (ours). */
double deco_steps(const struct deco *d, struct deco_plan p);

/* Return the plan with the least deco_steps * deco_time, exactly.  For each tau the time
 * is piecewise linear in delta and N falls with delta, so it is enough to try the joints,
 * the ends and one stationary point.  Ties go to the smaller tau. */
struct deco_plan deco_best(const struct deco *d);

/* Plan by a rule of the paper's kind.  Each of the one or two tau just above b / T gets
 * the largest delta without a bubble (T_avg = T); p is the pair with the least phi.
 * Return 1, or 0 with deco_best's plan if no tau <= most and delta >= min avoid a bubble. */
int deco_bubbles(const struct deco *d, enum deco_phi phi, struct deco_plan *p);

#endif
