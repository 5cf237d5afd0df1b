/*
 * What ace-expand does: a shard becomes dense.  With a state the residual of
 * error feedback is added, g~ = g + gamma * e  (ACE-Sync, equation 7); with a
 * cache the differences to a history become values.
 */
#ifndef ACE_STAGE_EXPAND_H
#define ACE_STAGE_EXPAND_H

#include "base/cli.h"
#include "base/io.h"
#include "stage/stage.h"

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
	enum io_sync sync;	/* of the history */
	unsigned threads;
	int reader;		/* leave when this descriptor's reader has gone
				 * while we wait; -1: none */
};
#define STAGE_EXPAND_INIT { .gamma = 1, .wait = 60, \
	.sync = IO_SYNC_FULL, .threads = 1, .reader = -1 }

/* As stage_score_set and stage_score_new. */
int stage_expand_set(struct stage_expand_opts *o, int key, const char *val,
    struct err *e);
int stage_expand_new(struct stage **out, const struct stage_expand_opts *o,
    struct err *e);

#endif
