/*
 * How much to compress, and how many steps late to apply the averages: (delta,
 * tau) after DeCo-SGD (arXiv 2507.17346).
 *
 * delta in (0, 1] is the share of the dense bits that is sent, tau the number
 * of steps a gradient may be late.  With T the computation of a step, S the
 * dense bits, a the bandwidth and b the latency, the mean time of a step is
 *
 *   T_avg = max{ T, delta S/a, (T + b + delta S/a) / (tau + 1) }
 *
 * Only the problem is the paper's.  The time model and both rules are ours,
 * tested against a simulation and an exhaustive search; each term below says
 * whose it is.
 */
#ifndef ACE_DECO_H
#define ACE_DECO_H

struct err;

/* By how much (delta, tau) raises the number of steps to a target: three
 * forms. */
enum deco_phi {
	/* (1-d) / (d (1-d/2)^tau): derived by us from the standard argument;
	 * probably what the paper has, unconfirmed.  0 at d = 1. */
	DECO_PAPER,
	/* (1-d) / (d (1-d)^tau): as a second source has the paper's.  Without
	 * bound at d = 1 for tau > 1, where nothing is compressed. */
	DECO_S2,
	/* kc (1-d)/d + kd tau: ours; compression and delay add, neither
	 * touches the leading term. */
	DECO_ADDITIVE
};

struct deco {
	double compute;		/* T, seconds, > 0 */
	double bandwidth;	/* a, bit/s, > 0 */
	double latency;		/* b, seconds, >= 0 */
	double size;		/* S, bits, > 0 */
	double min;		/* the least delta, in (0, 1] */
	int most;		/* the largest tau, 0 to DECO_MOST */
	double kc, kd;		/* >= 0 */
};
enum { DECO_MOST = 1000 };
#define DECO_LEAST 1e-15	/* seconds of a step, at least */
/* The default kc, which is for top-k with the share delta of the values, and kd
 * were fitted by us on small problems. */
#define DECO_INIT { 0, 0, 0, 0, 1e-5, 64, 0.005, 0.3 }

struct deco_plan {
	int tau;
	double delta;
};

/* deco_check(d, e): -ERR_USAGE, and which number, when one is unknown or
 * outside 1e-15 to 1e15.  The other functions must only be called when it
 * returns 0; then they never return NaN. */
int deco_check(const struct deco *d, struct err *e);

/* deco_time(d, p): T_avg.  tau = 0 is the serial T + b + delta S/a. */
double deco_time(const struct deco *d, struct deco_plan p);

/* deco_phi(d, phi, p): the term; it may be infinite. */
double deco_phi(const struct deco *d, enum deco_phi phi, struct deco_plan p);

/* deco_steps(d, p): N = 1 + kc (1-delta)/delta + kd tau, steps to a target
 * relative to those without compression and delay (ours). */
double deco_steps(const struct deco *d, struct deco_plan p);

/* deco_best(d): the least deco_steps * deco_time, exactly: for each tau the
 * time is piecewise linear in delta and N falls, so only the joints, the ends
 * and one stationary point need be tried.  Ties: the smaller tau. */
struct deco_plan deco_best(const struct deco *d);

/* deco_bubbles(d, phi, p): the paper's kind of rule: of the two or three
 * tau around (b + T)/T with the largest delta that leaves no bubble (T_avg =
 * T), the least phi.  0: no delta >= min does, and p is deco_best's; else 1. */
int deco_bubbles(const struct deco *d, enum deco_phi phi, struct deco_plan *p);

#endif
