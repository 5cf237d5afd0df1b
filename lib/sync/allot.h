/*
 * From statistics to a plan that keeps its budget: every level of every group
 * is foretold first; what the knapsack then chooses and only coding can tell
 * is measured, and the knapsack solved again.  Ours.
 *
 *   allot_new; allot_group for each group
 *   while (allot_wants(...) of some group)    measure, allot_measured
 *       allot_solve
 */
#ifndef ACE_ALLOT_H
#define ACE_ALLOT_H

#include <stddef.h>
#include <stdint.h>

#include "codec/codec.h"
#include "codec/stat.h"
#include "sync/select.h"

struct err;

enum allot_known {
	ALLOT_FORETOLD, ALLOT_EXACT,
	ALLOT_BLIND,		/* to be measured before anything is solved */
	ALLOT_BARRED		/* not for this group */
};

struct allot {
	size_t n, m;
	const struct codec_plan *plan;	/* [m], the levels; plan[0] is none */
	size_t scaled, scaled_end;	/* levels from .. to before: their arg,
					 * a step, is times scale[g] */
	double *scale;			/* [n] */
	struct select_level *level;	/* [n][m]; body and directory entry */
	uint8_t *known;			/* [n][m], enum allot_known */
	double *weight;			/* [n] */
	double (*told)[2], (*was)[2];	/* [m]: sums of rates and errors, as
					 * measured and as foretold */
	double (*own)[2];		/* [n]: of a group's ladder, the same
					 * of its last step measured */
	uint8_t *choice;		/* [n], by allot_solve */
	struct select_result res;
	size_t unknown;			/* groups whose choice is not known */
	int solved;
};

/* allot_new(out, plan, m, n, e): plan stays the caller's, and may change
 * before allot_reset.  scaled levels: none, until the caller says. */
int allot_new(struct allot **out, const struct codec_plan *plan, size_t m,
    size_t n, struct err *e);
void allot_free(struct allot *a);

/*
 * allot_group(a, g, stat, weight, scale, dense, ctx): the row of group g.  A
 * group without energy is not sent.  dense: the tensor is not to be sparsified: only levels
 * that code every value in 8 bits or more, where there is one.
 */
void allot_group(struct allot *a, size_t g, const struct stat_group *stat,
    double weight, double scale, int dense,
    const struct codec_ctx *ctx);

/*
 * allot_step(stat, weight, n, budget): the one step at which the groups, coded
 * with ECQ at step / sqrt(weight), are foretold to take the budget: reverse
 * water-filling.  Looks at 256 groups at most, evenly spread.
 */
double allot_step(const struct stat_group *stat, const float *weight, size_t n,
    double budget);

/* allot_plan(a, g, l): level l as it is for group g. */
struct codec_plan allot_plan(const struct allot *a, size_t g, size_t l);

/* allot_cost(body): bytes of a body and its directory entry, about. */
int64_t allot_cost(size_t body);

/* allot_body(a, g): bytes of the body of group g as chosen. */
size_t allot_body(const struct allot *a, size_t g);

/* allot_solve(a, budget, effort, e): the knapsack.  0, 1 when the least of all
 * levels does not fit, < 0.  Fills choice, res, unknown. */
int allot_solve(struct allot *a, int64_t budget, enum select_effort effort,
    struct err *e);

/* allot_wants(a, g): the level of group g to measure next, -1 when nothing is
 * wanted.  Before the first allot_solve: the levels nothing foretells, and
 * of eight groups, evenly spread, all levels, and of 64 every sixth step of a
 * ladder. */
int allot_wants(const struct allot *a, size_t g);
/* allot_measured(a, g, l, body, error): what coding told; error as the sum of
 * squares, not weighted.  After the first allot_solve the other levels of the
 * group that have the same codec are scaled by the same factors. */
void allot_measured(struct allot *a, size_t g, size_t l, size_t body,
    double error);

/* allot_learn(a): what is only foretold is scaled, level by level (a ladder as
 * one), by what was measured before the first allot_solve. */
void allot_learn(struct allot *a);

/* allot_reset(a): the next shard of the same model; nothing is kept, so that a
 * plan depends on its shard alone. */
void allot_reset(struct allot *a);

/* allot_settle(a): from now on only levels whose rate is known can be
 * chosen. */
void allot_settle(struct allot *a);

#endif
