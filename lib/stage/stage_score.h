/*
 * What ace-score does: the statistics and the importance of every group, as
 * annotations behind the data they speak of.  The values pass unchanged.
 */
#ifndef ACE_STAGE_SCORE_H
#define ACE_STAGE_SCORE_H

#include "base/cli.h"
#include "stage/stage_program.h"
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
	{ STAGE_SCORE_FORM, "form", "NAME", "level (default), paper, sensitivity or even" }, \
	{ STAGE_SCORE_FEEDBACK, "feedback", "FILE", \
	    "learn from the aggregates in FILE first" }

struct stage_score_opts {
	const char *dir;		/* state directory, or NULL */
	int once;			/* a step counts once, however often it
					   comes (ace-step) */
	const char *feedback;		/* aggregates to learn from, or NULL */
	double alpha;
	enum score_form form;
	const struct filter *f;		/* the program's: set by make */
};
#define STAGE_SCORE_INIT { .alpha = 0.5, .form = SCORE_LEVEL }

extern const struct stage_kind stage_score;

#endif
