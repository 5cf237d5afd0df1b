/*
 * What ace-score does: the statistics and the importance of every group, as
 * annotations behind the data they speak of.  The values pass unchanged.
 */
#ifndef ACE_STAGE_SCORE_H
#define ACE_STAGE_SCORE_H

#include "base/cli.h"
#include "stage/stage.h"
#include "sync/score.h"

struct err;

enum {
	STAGE_SCORE_ALPHA = CLI_LONG + 100, STAGE_SCORE_FORM,
	STAGE_SCORE_FEEDBACK
};

/* Rows for a program's option table, which has -S DIR too. */
#define STAGE_SCORE_OPTS \
	{ STAGE_SCORE_ALPHA, "alpha", "A", \
	    "share of the temporal branch (default 0.5)" }, \
	{ STAGE_SCORE_FORM, "form", "NAME", "level (default) or paper" }, \
	{ STAGE_SCORE_FEEDBACK, "feedback", "FILE", \
	    "learn from the aggregates in FILE first" }

struct stage_score_opts {
	const char *dir;		/* state directory, or NULL */
	const char *feedback;		/* aggregates to learn from, or NULL */
	double alpha;
	enum score_form form;
	const struct reader_opts *in;	/* for the file of aggregates */
	const struct cli *cli;		/* whom to speak for */
};
#define STAGE_SCORE_INIT { NULL, NULL, 0.5, SCORE_LEVEL, NULL, NULL }

/* stage_score_set(o, key, val, e): 1 the option was one of these, 0 it was
 * not, < 0 an error. */
int stage_score_set(struct stage_score_opts *o, int key, const char *val,
    struct err *e);

/* stage_score_new(out, o, e): o stays the caller's, and must stay. */
int stage_score_new(struct stage **out, const struct stage_score_opts *o,
    struct err *e);

#endif
