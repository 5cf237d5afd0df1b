/*
 * The stage of ace-expand: make a shard dense. With a state, add the residual of error
 * feedback, g~ = g + gamma * e (ACE-Sync, equation 7). With a cache, set groups that were
 * not sent to rho h (sync/compensate.h), h the history. With `feedback', save the mean
 * square of each group, from which ace-score learns.
 */
#ifndef ACE_STAGE_EXPAND_H
#define ACE_STAGE_EXPAND_H

#include "stage/stage.h"

struct err;

struct stage_expand_opts {
	const char *dir;	/* state directory, or NULL */
	const char *cache;	/* directory of the history, or NULL */
	const char *feedback;	/* state that receives the mean squares, or NULL */
	double gamma;
	double wait;		/* longest wait for the previous step, in seconds */
	int gap;		/* 1: steps may be missing */
	int alone;		/* 1: the coding side is in this process, and has
				   coded all shards before this one */
	const struct filter *f;	/* filter of the program; stage_new sets it */
};
/* Options of the stage; a program adds FILTER_OPT_SYNC and FILTER_OPT_THREADS. */
extern const struct opt stage_expand_rows[];

extern const struct stage_kind stage_expand;

#endif
