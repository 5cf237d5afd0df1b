/*
 * Rules against bad devices: which of a step's K contributions count, with which weight,
 * and how their values are combined.
 *
 * Contributions come in the order of the devices' ids, and values are added in this order.
 * Trims and medians sort first, so the order of contributions changes no bit.
 *
 *   norm-ratio    leave out a contribution whose norm is above max_ratio times
 *                 the median of this step's norms
 *   clip          g~ = g * min(1, X / ||g||)
 *   trim          per element, the mean without the F largest and the F
 *                 smallest (Yin et al., ICML 2018, definition 2), 2F < K
 *   median        per element (ibid., definition 1); for even K the mean of
 *                 the two middle values
 *   center        with c the average of the previous step, c + the mean of
 *                 (g - c) min(1, tau / ||g - c||): centered clipping
 *                 (Karimireddy, He and Jaggi, ICML 2021, algorithm 2, one
 *                 iteration a step); then the same clipping by the device's
 *                 distance over many steps (mean/center.h)
 *
 * Norm-ratio is ours.  So is tau, the median of ||g - c||: users need not know how far apart
 * honest devices are.  Trim and median may be limited to the devices that sent a value, as
 * DeMo and SparseLoCo limit the mean.
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
	int senders;		/* 1: trim and median use only values that are not zero */
	size_t f;		/* F of trim and center */
	double clip;		/* X of clip: the largest norm */
	double max_ratio;	/* R of norm-ratio; 0: no limit */
	int finite;		/* 1: leave out contributions with NaN or infinity */
};

/* Parse words separated by commas; return 0 or -ERR_USAGE.  At most one word says how to
 * combine values: "mean" (the default), "clip:X", "trim:F", "median" or "center:F"; trim and
 * median may end in ":senders".  The others are limits: "norm-ratio:R" and "finite".  With
 * center all have the same weight, and fewer than 2F + 1 contributions are refused. */
int robust_parse(struct robust_rule *q, const char *s, struct err *e);

/* Return 1 if the rule has to judge contributions before their values are summed. */
int robust_active(const struct robust_rule *q);
/* Return 1 for the rule center, which needs far2.  The caller then adds c (above) with the
 * weight sum of w * (1 - scale) over the contributions that count, w = weight * share. */
int robust_centered(const struct robust_rule *q);
/* Return 1 if robust_combine computes the result, not a weighted sum. */
int robust_elements(const struct robust_rule *q);

enum robust_fate {
	ROBUST_COUNTS, ROBUST_CLIPPED, ROBUST_BY_RATIO, ROBUST_NONFINITE
};

struct robust_one {
	/* in */
	double weight;		/* > 0 */
	double norm2;		/* ||g||^2 */
	double far2;		/* ||g - c||^2, for center */
	uint64_t values;	/* values of the model, without exact types (schema_exact) */
	uint64_t nonzero;	/* those of them that are not zero in this contribution */
	int nonfinite;		/* 1: leave the contribution out */
	/* in and out */
	double share;		/* factor on the shard's own weight: 0 to 1 before robust_judge;
				 * with center that makes all weights equal */
	/* out */
	enum robust_fate fate;
	double scale;		/* factor on the contribution's values, 0 to 1 */
};

/* One step of k contributions. */
struct robust_step {
	size_t k;
	struct robust_one *one;	/* [k] */
	const float **x;	/* [k] scratch: each contribution's values of a group */
	float *element;		/* [k] scratch of robust_combine */
	double *sorted;		/* [k] scratch */
	double median;		/* out: the lower median of all finite norms */
	int none;		/* out: 1 if the limits leave no contribution */
	size_t f;		/* out: the rule's F, or less if the limits leave too few
				 * contributions */
};

/* Begin a step of k contributions: set all members of t->one to 0 except share and scale,
 * which are 1.  Zero t before the first step.  Return 0 or -ERR_SYS. */
int robust_step(struct robust_step *t, size_t k, struct err *e);
void robust_release(struct robust_step *t);

/* Return 1 if this contribution is in the result. */
int robust_counts(const struct robust_one *o);

/* Set the members marked `out' of t and t->one. Return 0, or -ERR_REFUSED if no contribution
 * is left, if t->k is too small for q->f, or if the data is too sparse for the rule. */
int robust_judge(const struct robust_rule *q, struct robust_step *t, struct err *e);

/* Multiply the scale of each contribution that counts by min(1, tau / far), where far is the
 * root of far2, the distance in this step or over many steps, and tau the lower median of far;
 * beyond 2 tau its fate becomes ROBUST_CLIPPED. Outside tau, the factors are the weights of one
 * Weiszfeld step for the geometric median (Pillutla, Kakade and Harchaoui 2022); inside they
 * are 1. */
void robust_past(struct robust_step *t);

/* Return the word for a fate in reports: "counts", "clipped", "norm-ratio", "nonfinite". */
const char *robust_why(enum robust_fate fate);

/* Set y[n] to the trimmed mean (q->f: the step's f) or the median of x[k][n], over the k
 * contributions that count, or to 0 where there are too few values.  x[i] is NULL if
 * contribution i does not have the group.  tmp is f32[k]. */
void robust_combine(const struct robust_rule *q, double *y,
    const float *const *x, size_t k, size_t n, float *tmp);

/*
 * One group of a step's result.  With trim and median, robust_combine fills acc; with other
 * rules each element is computed from the values that K devices sent for it:
 *
 *   y = (sum_k f_k * x_k) / d
 *
 * summed in f64 in the order of the calls and rounded to f32 once.
 */
struct robust_sum {
	const struct kern *kern;	/* set by the caller */
	double *acc;			/* [cap] the sums */
	float *y;			/* [cap] the rounded sums */
	size_t n, cap;			/* n: values of the current group */
};

/* Allocate for groups of up to cap values; this loses the sums.  Before the first call, set all
 * of c but c->kern to zeros.  Return 0 or -ERR_SYS. */
int robust_sum_room(struct robust_sum *c, size_t cap, struct err *e);
void robust_sum_release(struct robust_sum *c);

/* begin: start a group of n values with zeros.  add: add f * x[n].  add_some: add f * x[i]
 * at pos[i] for i < k; this gives the same bits as add with zeros at all other positions,
 * since sums begin as +0 and never become -0. */
void robust_sum_begin(struct robust_sum *c, size_t n);
void robust_sum_add(struct robust_sum *c, double f, const float *x);
void robust_sum_add_some(struct robust_sum *c, double f, const uint32_t *pos,
    const float *x, size_t k);
/* Return the sums divided by d and rounded, f32[n], owned by c; NULL if one is not finite. */
const float *robust_sum_round(struct robust_sum *c, double d);

#endif
