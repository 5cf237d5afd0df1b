/*
 * Rules against bad devices: which of a step's K contributions count, how
 * much, and how their values are put together.
 *
 * Contributions come in the order of the devices' ids; where two are equal the
 * first wins.  The other functions sort before they sum, so the order of their
 * inputs changes no bit.
 *
 *   norm-ratio    left out when its norm is over max_ratio times the median of the
 *                 norms of this step
 *   clip          g~ = g * min(1, X / ||g||)
 *   trim          per element, the mean without the F largest and the F
 *                 smallest (Yin et al., ICML 2018, definition 2), 2F < K
 *   median        per element (ibid., definition 1); of an even number the
 *                 mean of the middle two
 *   center        with c the aggregate of the step before, c + the mean of
 *                 (g - c) min(1, tau / ||g - c||): centered clipping
 *                 (Karimireddy, He and Jaggi, ICML 2021, algorithm 2, one
 *                 iteration a step); and the same cut again by how far the
 *                 device was over many steps (mean/past.h)
 *
 * Ours: tau is the median of the ||g - c||, so that nobody has to know how far
 * apart honest devices are; and the ratio to the median.  Trim and median may be taken
 * among those who sent a value, as DeMo and SparseLoCo have it for the mean.
 */
#ifndef ACE_ROBUST_H
#define ACE_ROBUST_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"

struct err;

enum robust_kind {
	ROBUST_MEAN, ROBUST_CLIP, ROBUST_TRIM, ROBUST_MEDIAN, ROBUST_CENTER
};

struct robust_rule {
	enum robust_kind kind;
	int senders;		/* trim and median among those whose value is not zero */
	size_t f;
	double clip;
	double max_ratio;	/* 0: no limit */
	int finite;		/* leave out who sent what is not finite */
	int even;		/* of center: all weigh the same */
};

/* robust_parse(q, s, e): words by commas.  At most one says how values are put
 * together, "mean" (where none does), "clip:X", "trim:F", "median", "center" or
 * "center:F", trim and median with ":senders"; the others are limits,
 * "norm-ratio:R" and "finite".  With center:F all weigh the same, and of fewer
 * than 2F + 1 nothing is made.  -ERR_USAGE. */
int robust_parse(struct robust_rule *q, const char *s, struct err *e);

/* robust_active(q): there is something to decide before values are summed. */
int robust_active(const struct robust_rule *q);
/* robust_centered(q): it needs the distances from the step before, and of this,
 * (W - sum of w * scale) / W, is a part of the result; W: of weights w. */
int robust_centered(const struct robust_rule *q);
/* robust_elements(q): values are put together by robust_combine. */
int robust_elements(const struct robust_rule *q);

enum robust_fate {
	ROBUST_COUNTS, ROBUST_CLIPPED, ROBUST_BY_RATIO,
	ROBUST_WEIGHTLESS, ROBUST_NONFINITE, ROBUST_REPEATS
};

struct robust_one {
	/* in */
	double weight;		/* >= 0 */
	double norm2;		/* ||g||^2 */
	double far2;		/* ||g - c||^2, for center */
	uint64_t values;	/* of the model */
	uint64_t nonzero;	/* of those */
	int nonfinite, repeats;	/* leave it out */
	/* in and out */
	double share;		/* of the weight that the shard states, 0 to 1: what
				 * the caller left, less where weights are made even */
	/* out */
	enum robust_fate fate;
	double scale;		/* of its values */
};

/* What is known of a step, for k contributions. */
struct robust_step {
	size_t k;
	struct robust_one *one;
	const float **x;	/* for values of a group */
	float *element;		/* scratch of robust_combine */
	double median;		/* out: of this one, bad devices' among them */
	int none;		/* out: limits leave no contribution */
	size_t f;		/* out: that of the rule, or less where limits left
				 * too few for it */
};

/* robust_step(t, k, e): begin a step of k contributions, all of them zeros but for a share
 * of 1; t is zeros before the first. */
int robust_step(struct robust_step *t, size_t k, struct err *e);
void robust_release(struct robust_step *t);

/* robust_counts(o): 1 when this contribution is in the result. */
int robust_counts(const struct robust_one *o);

/* robust_judge(q, t, e): set the members marked `out' of t and t->one.  -ERR_REFUSED: no
 * contribution is left, all K are too few for F, or the data is too sparse for the rule. */
int robust_judge(const struct robust_rule *q, struct robust_step *t, struct err *e);

/* robust_past(t, tmp): center once more, where far2 now has squared distances over many
 * steps: scale *= min(1, tau / far), tau their median; tmp is f64[k].  One step of
 * Weiszfeld's for the geometric median has these weights (Pillutla, Kakade and
 * Harchaoui 2022), for devices nearer than tau all alike. */
void robust_past(struct robust_step *t, double *tmp);

/* "norm", "repeats", ...: why it is left out. */
const char *robust_why(enum robust_fate fate);

/* robust_combine(q, y, x, k, n, tmp): y[n] by trim or median of x[k][n], NULL
 * is not sent; tmp is f32[k].  k: those that count. */
void robust_combine(const struct robust_rule *q, double *y,
    const float *const *x, size_t k, size_t n, float *tmp);

/*
 * Where values are not put together one by one: one group of a step's result,
 * from the K values that devices sent for each of its elements:
 *
 *   y = (sum_k f_k * x_k) / d
 *
 * summed in f64 in the order of the calls and rounded to f32 once.
 */
struct robust_sum {
	const struct kern *kern;
	double *acc;
	float *y;
	size_t n, cap;
};

/* robust_sum_room(c, cap, e): makes room for groups of up to cap values.  Before
 * the first call all of c is zero but for c->kern. */
int robust_sum_room(struct robust_sum *c, size_t cap, struct err *e);
void robust_sum_release(struct robust_sum *c);

/* robust_sum_begin(c, n): begins a group of n values with zeros.  robust_sum_add(c,
 * f, x): adds f * x[n].  robust_sum_add_some: adds f * x[i] at pos[i] only, k of
 * them, which for zeros elsewhere is the same to the bit: the sums begin as +0,
 * so that none is ever -0. */
void robust_sum_begin(struct robust_sum *c, size_t n);
void robust_sum_add(struct robust_sum *c, double f, const float *x);
void robust_sum_add_some(struct robust_sum *c, double f, const uint32_t *pos,
    const float *x, size_t k);
/* robust_sum_round(c, d): the sums divided by d, rounded to f32[n]; NULL when one
 * of them is not finite then. */
const float *robust_sum_round(struct robust_sum *c, double d);

#endif
