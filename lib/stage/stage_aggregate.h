/*
 * What ace-aggregate does: G = sum_k w_k * g~_k  (ACE-Sync, equation 8), over K
 * streams in lockstep, one group of each in memory at a time.  Sums run in f64
 * in the order of the devices' ids, so the order of arrival changes nothing.
 *
 * It has many inputs, so it is no struct stage.  Its shards come from streams,
 * or from a spool, step after step.
 */
#ifndef ACE_STAGE_AGGREGATE_H
#define ACE_STAGE_AGGREGATE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "stage/contrib.h"

struct err;
struct filter;

/* Which shard for each cluster of devices is written after the aggregate. */
enum stage_aggregate_per {
	STAGE_AGGREGATE_NOTHING, STAGE_AGGREGATE_MEAN, STAGE_AGGREGATE_OFFSET
};

struct stage_aggregate_opts {
	struct filter *f;		/* the program's: inputs and output */
	struct contrib_opts who;	/* whose shards count, how much */
	int sum;			/* not the mean */
	int per;			/* enum stage_aggregate_per */
	const char *device;		/* name of the aggregate */
	const char *delay;		/* for the key KEYS_DELAY, or NULL */
	/* when a step is complete; 0: not said */
	uint64_t expect, quorum;
	double deadline;		/* seconds after its first shard */
	/* of a spool */
	const char *spool, *run;	/* NULL: no spool; the only run */
	int published, create;		/* see spool/rounds.h */
	uint64_t steps, keep;		/* 0: never an end; never removed */
	const volatile sig_atomic_t *asked;	/* see spool/waiting.h */
};

/* stage_aggregate_run(o, paths, n, e): aggregates every step of the spool, or
 * of the n inputs (0: standard input), and writes o->f's output to its end. */
int stage_aggregate_run(const struct stage_aggregate_opts *o, char **paths,
    size_t n, struct err *e);

#endif
