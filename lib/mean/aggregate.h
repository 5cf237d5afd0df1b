/*
 * What ace-aggregate does: G = sum_k w_k * g~_k  (ACE-Sync, equation 8), over K
 * streams in lockstep, one group of each in memory at a time.  Sums run in f64
 * in the order of the devices' ids, so the order of arrival changes nothing.
 *
 * It has many inputs, so it is no struct stage.  Its shards come from streams,
 * or from a spool, step after step; what a step's shards become is one shard,
 * with what it says of itself (weights, contributors, policy).
 */
#ifndef ACE_AGGREGATE_H
#define ACE_AGGREGATE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "mean/contrib.h"

struct err;
struct filter;

struct aggregate_opts {
	struct filter *f;		/* the program's: inputs and output */
	struct contrib_opts who;	/* whose shards count, how much */
	int sum;			/* not the mean */
	int means;			/* of each cluster, after the aggregate */
	const char *device;		/* name of the aggregate */
	const char *delay;		/* for the key KEYS_DELAY, or NULL */
	int own;			/* each device's own interval, too */
	uint64_t expect;		/* contributions to a step; 0: not said */
	/* of a spool */
	uint64_t quorum;		/* see spool/rounds.h; 0: not said */
	double deadline;
	const char *spool, *run;	/* NULL: no spool; the only run */
	int published, create;		/* see spool/rounds.h */
	uint64_t steps, keep;		/* 0: never an end; never removed */
	const volatile sig_atomic_t *asked;	/* see spool/progress.h */
};

/* aggregate_run(o, paths, n, e): aggregates every step of the spool, or
 * of the n inputs (0: standard input), and writes o->f's output to its end. */
int aggregate_run(const struct aggregate_opts *o, char **paths,
    size_t n, struct err *e);

#endif
