/*
 * What ace-expand does: a shard becomes dense.  With a state the residual of
 * error feedback is added, g~ = g + gamma * e  (ACE-Sync, equation 7); with a
 * cache the differences to a history become values.  What the groups of an aggregate
 * are worth is left for ace-score to learn from.
 */
#ifndef ACE_STAGE_EXPAND_H
#define ACE_STAGE_EXPAND_H

#include "stage/stage.h"

struct err;

struct stage_expand_opts {
	const char *dir;	/* state directory, or NULL */
	const char *cache;	/* directory of the history, or NULL */
	const char *feedback;	/* state to leave it in, or NULL */
	double gamma;
	double wait;		/* seconds for the step before */
	int gap;
	int alone;		/* the coding side is in this process, and has
				   done all shards before this one */
	const struct filter *f;	/* the program's: set by make */
};
/* Its options; a program has those of FILTER_OPT_SYNC and _THREADS, too. */
extern const struct opt stage_expand_rows[];

extern const struct stage_kind stage_expand;

#endif
