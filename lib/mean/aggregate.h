/*
 * The work of ace-aggregate: G = sum_k w_k * g~_k (ACE-Sync, equation 8), group by group.
 * Values are added in f64 in the order of the devices' ids, so the result does not depend
 * on the order of arrival.
 *
 * The program has many inputs, so it is not a struct stage.  It reads the shards of a step
 * from streams or from a spool, and writes one shard, and with `means' one more per cluster,
 * with its own weight, contributors and policy.
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
	struct filter *f;		/* the program: its inputs and output */
	struct contrib_opts who;	/* which shards count, with which weight */
	int sum;			/* 1: write the sum instead of the mean */
	int means;			/* 1: write each cluster's mean, too */
	const char *device;		/* name of the aggregate */
	const char *delay;		/* value of the key KEYS_DELAY, or NULL */
	int own;			/* 1: put each device's own interval into the policy */
	uint64_t expect;		/* contributions to a step; 0: not given */
	/* for a spool only */
	uint64_t quorum;		/* see spool/closing.h; 0: not given */
	double deadline;		/* seconds; -1: not given */
	const char *spool;	/* NULL: streams */
	int published, create;		/* see spool/closing.h */
	/* number of steps to aggregate, 0: no limit; of newest steps to keep, 0: all */
	uint64_t steps, keep;
	const volatile sig_atomic_t *asked;	/* see spool/waiting.h */
};

/* aggregate_run(o, paths, n, e): aggregate every step of the spool or of the n inputs (n 0:
 * standard input), and write the shards to the output of o->f.  On return 0 the output is
 * complete. */
int aggregate_run(const struct aggregate_opts *o, char **paths,
    size_t n, struct err *e);

#endif
