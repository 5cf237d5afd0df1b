/*
 * The stage of ace-score: write the statistics and the importance of every group as
 * annotations.  The annotations precede the data, but --form paper puts the importance at the
 * end of a shard that has no history yet.  The values pass unchanged.
 */
#ifndef ACE_STAGE_SCORE_H
#define ACE_STAGE_SCORE_H

#include "stage/stage.h"
#include "sync/score.h"

struct err;

struct stage_score_opts {
	const char *dir;		/* state directory, or NULL */
	enum score_form form;
	double number;			/* POWER of moment, ALPHA of paper */
	int alone;		/* 1: no other process commits to the state meanwhile */
	const struct filter *f;		/* filter of the program; stage_new sets it */
};
extern const struct opt stage_score_rows[];	/* options of the stage */

extern const struct stage_kind stage_score;

#endif
