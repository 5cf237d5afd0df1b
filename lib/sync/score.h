/*
 * How much each group matters.
 *
 * SCORE_MOMENT (ours; the default): what the trainer measured, the mean square of the
 * loss's gradient over the group, as a share of the largest, to the power of 1/4.
 * The power 1 stands for the diagonal of the Fisher information, so that the sum of
 * I D, which a plan makes least, is to second order what coding adds to the loss.  It
 * is too much for a model that is still learning; the fourth root was measured best.
 * The power 0, or no measurement, gives all groups the same weight, and the plan makes
 * the mean squared error least.
 *
 * SCORE_PAPER: two attention branches over what the groups have been like and where in
 * the model they stand.
 *
 *   A_temp   = sigmoid(W1 z1 + W2 z2 + W0)	(ACE-Sync, eq. 3)
 *   A_struct = sigmoid(u1 depth' + u2 dens' + u3 field' + u0)
 *   I        = alpha A_temp + (1 - alpha) A_struct	(ACE-Sync, eq. 4)
 *
 *   z1 = z-score over the groups of log m1, m1 = moving average of mean |g|
 *   z2 = z-score over the groups of log Var, Var = m2 - mean^2 from the moving
 *        averages of mean g^2 and mean g: over the group and over time
 *   depth' = 2 l / (L - 1) - 1; dens', field' = z-scores of log parameters and
 *        log fan-in
 *
 * The paper gives the branches and their sum; the constants and the learning rule are
 * ours.
 *
 * Groups without energy are left out of the z-scores and get the lowest;
 * z-scores stop at +-clip; the score of a constant feature is 0.  Everything kept
 * is f32, so a run that keeps its history in memory and one that saves it after
 * every shard give the same bits.
 */
#ifndef ACE_SCORE_H
#define ACE_SCORE_H

#include <stddef.h>

#include "codec/stat.h"

struct err;

enum {
	SCORE_FEATURES = 2, SCORE_TEMPORAL = SCORE_FEATURES + 1,
	SCORE_PLACE = 3, SCORE_STRUCTURAL = SCORE_PLACE + 1
};

enum score_form { SCORE_MOMENT, SCORE_PAPER };

/* Where a group stands. */
struct score_place {
	double depth;		/* of its tensor, 0 first to 1 last */
	double params;		/* values of its tensor, >= 1 */
	double field;		/* fan-in times kernel, >= 1 */
};

/* What is remembered of a group. */
struct score_group {
	float m1, m2, mean;	/* moving averages of |g|, g^2, g */
	float z[SCORE_FEATURES];	/* what it was last scored by */
	float score;		/* I, last */
	float benefit;		/* moving average of what feedback said */
};

/* What is remembered of all groups. */
struct score_all {
	float w[SCORE_TEMPORAL];	/* W1, W2, W0 */
	float u[SCORE_STRUCTURAL];	/* u1, u2, u3, u0 */
	float mean[SCORE_FEATURES], dev[SCORE_FEATURES];	/* z = (x -
					 * mean) / dev of log m1, log Var */
	float shards;			/* seen */
	float lessons;			/* taken from feedback */
	float worth[2];			/* moving averages of the correlation of
					 * I and label, before the lesson, of
					 * the first weights and the learnt */
};

struct score {
	size_t n;
	struct score_group *group;
	float (*place)[SCORE_PLACE];	/* depth', dens', field' */
	struct score_all all;
	double power;			/* SCORE_MOMENT: default 0.25 */
	double alpha;			/* default 0.5 */
	double decay;			/* of the moving averages, default 0.2 */
	double clip;			/* where z-scores stop, default 4 */
	enum score_form form;
	float *told;			/* f32[n] SCORE_MOMENT; NULL: 1 */
};

/*
 * score_new(out, form, place[n], n, e): no history.
 *
 * SCORE_MOMENT  I = 1 until score_tell
 * SCORE_PAPER   W = (1, 0.5, 0)   u = (0, -0.25, 0, 0)
 */
int score_new(struct score **out, enum score_form form,
    const struct score_place *place, size_t n, struct err *e);
void score_free(struct score *s);

/* score_observe(s, g, stat): m' = decay m + (1 - decay) x; a group without
 * history takes x whole. */
void score_observe(struct score *s, size_t g, const struct stat_group *stat);

/* score_scale(s): the means and deviations of log m1 and log Var over the
 * groups as they are now. */
void score_scale(struct score *s);

/* score_of(s, g): what a group weighs by its averages and the scale as they are;
 * remembers the features for score_learn.  In (0,1]. */
float score_of(struct score *s, size_t g);

/* score_tell(s, energy f32[n], e): I of group g := (energy[g] / the largest)^power, at
 * least 1e-6; all 1 when all are 0.  -ERR_DATA if one is negative or not finite,
 * -ERR_SYS without memory: nothing changed. */
int score_tell(struct score *s, const float *energy, struct err *e);

/*
 * score_learn(s, benefit, rate, e): a lesson on the groups as they were scored
 * last (ours; the paper trains its predictor from snapshots of gradients and
 * does not say how).  The label is where the group's benefit stands among all,
 *
 *   y_i = sigmoid(z-score of log benefit_i)
 *
 * and W and u take four steps of rate down the gradient of the mean of
 * (y_i - I_i)^2 / 2.  They are used while they have lately predicted the labels
 * better, by correlation, than the first ones would have: what lessons say by
 * chance does no harm.  Labels above and below the median, 0 and 1, with the
 * steps of a logistic regression, were tried and made the order worse.
 *
 * benefit  f32[n]  >= 0: what sending group i was worth, per bit; 0: not sent
 * Weights stop at +-8.  -ERR_DATA if a benefit is negative or not finite:
 * nothing learnt.
 */
int score_learn(struct score *s, const float *benefit, double rate, struct err *e);

/*
 * The history as arrays, for the state: score_columns names them; column c is
 * f32[n], "all" is f32[SCORE_ALL], of which the rest is zero, for later.
 * score_put_* refuse what is not finite or a negative average (-ERR_DATA,
 * "corrupt").
 */
enum { SCORE_COLUMNS = 7, SCORE_ALL = 32 };
extern const char *const score_columns[SCORE_COLUMNS];
void score_get_column(const struct score *s, unsigned c, float *x);
int score_put_column(struct score *s, unsigned c, const float *x, struct err *e);
void score_get_all(const struct score *s, float x[SCORE_ALL]);
int score_put_all(struct score *s, const float x[SCORE_ALL], struct err *e);

#endif
