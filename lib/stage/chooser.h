/*
 * A codec for every group of a shard: what both ways to choose need, in two
 * passes (twice.h) where the shard can be read again, in one (flow.h)
 * otherwise.
 */
#ifndef ACE_CHOOSER_H
#define ACE_CHOOSER_H

#include <stddef.h>
#include <stdint.h>

#include "pipe/planned.h"
#include "pipe/size.h"
#include "pipe/survey.h"
#include "stage/budget.h"
#include "sync/select.h"

struct err;
struct state;

/* What there is to say of a shard. */
struct chooser_found {
	uint64_t bytes, budget;		/* of the coded shard */
	double dist, energy;		/* weighted squared error, of all */
	size_t sent;			/* groups */
	int relaxed;			/* too little for the dense groups */
	struct select_result res;	/* of two passes */
};

struct chooser {
	/* given */
	struct planned to;		/* with the reader */
	const struct state *state;	/* NULL: none */
	struct budget want;
	struct codec_plan level[SELECT_LEVELS];
	size_t m, ladder;		/* ladder: where its steps begin */
	uint64_t memory;		/* bytes of a shard that is held */
	int no_roles;			/* norms and biases are like all */
	/* of the shard */
	struct survey survey;
	uint8_t *dense;			/* [groups] */
	struct codec_plan *plan;	/* [groups] or fewer */
	float *x;			/* [cap] one group */
	size_t cap;
	uint64_t budget;
	struct size size;		/* of the coded shard so far */
	struct chooser_found found;
	/* private */
	size_t dense_cap, plan_cap;
};
#define CHOOSER_INIT { .to = PLANNED_INIT, .survey = SURVEY_INIT }

/* chooser_begin(c, e): the shard the reader stands at. */
int chooser_begin(struct chooser *c, struct err *e);
/* chooser_room(c, n, e): plan[n]. */
int chooser_room(struct chooser *c, size_t n, struct err *e);
/* chooser_held(c): 1 when the shard can be read again: from a file, or dense
 * with the annotations of ace-score no longer than `memory'. */
int chooser_held(const struct chooser *c);
/* chooser_budget(c, e): budget and size, once the survey may know it. */
int chooser_budget(struct chooser *c, struct err *e);
/* chooser_stat(c, g, x, n, e): a group's statistics from its values. */
int chooser_stat(struct chooser *c, uint32_t g, const float *x, size_t n,
    struct err *e);
/* chooser_add(z, g, p, len): a body of len bytes.  A codec whose parameter only
 * coding tells is taken to differ from the record before. */
void chooser_add(struct size *z, uint32_t g, const struct codec_plan *p,
    size_t len);
void chooser_release(struct chooser *c);

#endif
