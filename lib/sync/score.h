/*
 * Score the importance I of each group.
 *
 * SCORE_MOMENT (ours; the default): the mean square of the loss's gradient over the
 * group, which the trainer measures, divided by the largest, to the power of 1/4.  With
 * the power 1, I is the diagonal of the Fisher information, and the sum of I D, which a
 * plan minimises, is to second order what coding adds to the loss.  For a model that is
 * still learning this power is too large; 1/4 was best in our measurements.  The power 0,
 * or no measurement, gives all groups the same weight, and the plan minimises the mean
 * squared error.
 *
 * SCORE_PAPER: two attention branches, one over the groups' history and one over their
 * place in the model.
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
 * z-scores are clipped to +-4.  Groups without energy do not count in means and
 * deviations and get -4; the z-score of a constant feature is 0.  Everything kept is
 * f32, so a run that keeps its history in memory and one that saves it after every shard
 * give the same bits.
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

struct score_place {
	double depth;		/* place of the group's tensor, from 0 (first) to 1 (last) */
	double params;		/* number of values of the group's tensor, >= 1 */
	double field;		/* fan-in times kernel size, >= 1 */
};

/* The history of one group. */
struct score_group {
	float m1, m2, mean;	/* moving averages of mean |g|, mean g^2, mean g */
	float z[SCORE_FEATURES];	/* z1 and z2 when score_of was last called */
	float score;		/* the I that score_of last returned with SCORE_PAPER */
	float benefit;		/* moving average of the benefits of score_learn */
};

/* The history of all groups together. */
struct score_all {
	float w[SCORE_TEMPORAL];	/* W1, W2, W0 */
	float u[SCORE_STRUCTURAL];	/* u1, u2, u3, u0 */
	/* mean and deviation of log m1 and log Var over the groups: z = (x - mean) / dev */
	float mean[SCORE_FEATURES], dev[SCORE_FEATURES];
	float shards;			/* calls of score_scale, at most 2^24 - 1 */
	float lessons;			/* calls of score_learn, at most 2^24 - 1 */
	float worth[2];			/* moving averages of the correlation of the labels with
					 * I, by the first weights and by the learnt ones */
};

struct score {
	size_t n;			/* groups */
	struct score_group *group;	/* [n] */
	float (*place)[SCORE_PLACE];	/* [n]: depth', dens', field' */
	struct score_all all;
	double power;			/* exponent of SCORE_MOMENT, 0.25 unless set */
	double alpha;			/* weight of A_temp, 0.5 unless set */
	enum score_form form;
	float *told;			/* f32[n] each group's I with SCORE_MOMENT; NULL: all 1 */
};

/*
 * Create a score of n groups, at place[n], without history.  Return 0 or -ERR_SYS.  At first
 *
 * SCORE_MOMENT  I = 1 until score_tell
 * SCORE_PAPER   W = (1, 0.5, 0)   u = (0, -0.25, 0, 0)
 */
int score_new(struct score **out, enum score_form form,
    const struct score_place *place, size_t n, struct err *e);
void score_free(struct score *s);

/* Update the moving averages of group g: m' = 0.2 m + 0.8 x, or m' = x while the group's m2
 * is 0. */
void score_observe(struct score *s, size_t g, const struct stat_group *stat);

/* At the end of a shard, set the means and deviations of log m1 and log Var from the groups'
 * averages, and count the shard. */
void score_scale(struct score *s);

/* Return the importance of group g, in (0,1].  Form SCORE_PAPER takes it from the group's
 * averages and the current scale, and keeps the features for score_learn. */
float score_of(struct score *s, size_t g);

/* Set I of each group g to (energy[g] / the largest energy + 1e-30)^power, at least 1e-6; all
 * are 1 when every energy is 0.  energy is f32[n].  On an error nothing changes:
 * -ERR_DATA if an energy is negative or not finite, -ERR_SYS without memory. */
int score_tell(struct score *s, const float *energy, struct err *e);

/*
 * Learn from the benefit that each group had when it was last scored (ours; the paper
 * trains its predictor from snapshots of gradients and does not say how).  A group's
 * label compares its benefit with the others':
 *
 *   y_i = sigmoid(z-score of log benefit_i)
 *
 * W and u take four steps, of size `rate', down the gradient of the mean of (y_i - I_i)^2
 * / 2. The learnt weights are used only while their I has lately correlated better with
 * the labels than the I of the first weights, so random lessons do no harm. We also tried
 * logistic regression on labels 0 and 1, below and above the median; it was worse.
 *
 * benefit  f32[n]  >= 0: the mean square of group i in the average
 * Weights stop at +-8.  -ERR_DATA if a benefit is negative or not finite: then nothing is
 * learnt.
 */
int score_learn(struct score *s, const float *benefit, double rate, struct err *e);

/*
 * Get or put the history as arrays, for the state.  Column c is f32[n] and named
 * score_columns[c].  struct score_all is f32[SCORE_ALL], padded with zeros.  score_put_*
 * return -ERR_DATA ("corrupt") if a value is not finite, or if a moving average of |g|, g^2 or
 * the benefits, a score, a deviation or a count is negative; the history is then partly
 * replaced.
 */
enum { SCORE_COLUMNS = 7, SCORE_ALL = 32 };
extern const char *const score_columns[SCORE_COLUMNS];
void score_get_column(const struct score *s, unsigned c, float *x);
int score_put_column(struct score *s, unsigned c, const float *x, struct err *e);
void score_get_all(const struct score *s, float x[SCORE_ALL]);
int score_put_all(struct score *s, const float x[SCORE_ALL], struct err *e);

#endif
