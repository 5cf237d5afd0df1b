/*
 * What ace-score does: the statistics and the importance of every group, as
 * annotations behind the data they speak of.  The values pass unchanged.
 */
#ifndef ACE_STAGE_SCORE_H
#define ACE_STAGE_SCORE_H

#include "stage/stage.h"
#include "sync/score.h"

struct err;

struct stage_score_opts {
	const char *dir;		/* state directory, or NULL */
	enum score_form form;
	double power;			/* of moment */
	double alpha, decay, clip;	/* of paper: of the averages, and where
					 * z-scores stop; negative: the default */
	const struct filter *f;		/* the program's: set by make */
};
extern const struct opt stage_score_rows[];	/* its options */

extern const struct stage_kind stage_score;

#endif
