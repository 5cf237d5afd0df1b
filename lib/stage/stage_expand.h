/*
 * What ace-expand does: a shard becomes dense.  With a state the residual of
 * error feedback is added, g~ = g + gamma * e  (ACE-Sync, equation 7); with a
 * cache the differences to a history become values.
 */
#ifndef ACE_STAGE_EXPAND_H
#define ACE_STAGE_EXPAND_H

#include "base/cli.h"
#include "stage/stage_program.h"

struct err;

enum {
	STAGE_EXPAND_GAMMA = CLI_LONG + 200, STAGE_EXPAND_WAIT,
	STAGE_EXPAND_GAP, STAGE_EXPAND_CACHE
};

/* Rows for a program's option table, which has -S DIR and --sync too. */
#define STAGE_EXPAND_OPTS \
	{ STAGE_EXPAND_GAMMA, "gamma", "G", \
	    "times the residual (default 1)" }, \
	{ STAGE_EXPAND_WAIT, "wait", "TIME", \
	    "wait for the step before to be committed (default 60s)" }, \
	{ STAGE_EXPAND_GAP, "allow-gap", NULL, "steps may be missing" }, \
	{ STAGE_EXPAND_CACHE, "cache", "DIR", \
	    "undo ef21 and cache feedback with the history kept in DIR" }

struct stage_expand_opts {
	const char *dir;	/* state directory, or NULL */
	const char *cache;	/* directory of the history, or NULL */
	double gamma;
	double wait;		/* seconds for the step before */
	int gap;
	int alone;		/* the coding side is in this process, and has
				   done all shards before this one */
	const struct filter *f;	/* the program's: set by make */
};
#define STAGE_EXPAND_INIT { .gamma = 1, .wait = 60 }

extern const struct stage_kind stage_expand;

#endif
