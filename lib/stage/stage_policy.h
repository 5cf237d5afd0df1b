/*
 * What ace-policy does.  Before a shard's data it says how hard to compress
 * it, by equation (5) or, with a delay, after DeCo-SGD, and at which layers to
 * cut; after the data, by equation (9), how many local steps to take until the
 * next shard.  It says so in pOLi annotations (keys and values), and with -v
 * why.
 */
#ifndef ACE_STAGE_POLICY_H
#define ACE_STAGE_POLICY_H

#include <stdint.h>

#include "base/cli.h"
#include "stage/policy_deco.h"
#include "stage/policy_dynacomm.h"
#include "stage/stage_program.h"
#include "sync/interval.h"
#include "sync/pace.h"

struct err;

#define POLICY_BIG 1e300

enum {
	STAGE_POLICY_CMIN = CLI_LONG + 500, STAGE_POLICY_CMAX,
	STAGE_POLICY_HALF, STAGE_POLICY_BANDWIDTH, STAGE_POLICY_WARMUP,
	STAGE_POLICY_ACCORDION, STAGE_POLICY_DEADLINE, STAGE_POLICY_CUTS,
	STAGE_POLICY_DECO, STAGE_POLICY_COMPUTE, STAGE_POLICY_LATENCY,
	STAGE_POLICY_TARGET, STAGE_POLICY_NORM, STAGE_POLICY_INTERVAL,
	STAGE_POLICY_REPLAY
};

/* Rows for a program's option table. */
#define STAGE_POLICY_OPTS \
	{ STAGE_POLICY_CMIN, "cmin", "X", "least compression factor (default 2)" }, \
	{ STAGE_POLICY_CMAX, "cmax", "X", "largest (default 300)" }, \
	{ STAGE_POLICY_HALF, "half", "RATE", "where it is half way (default 10Mbit)" }, \
	{ STAGE_POLICY_BANDWIDTH, "bandwidth", "RATE", "of the link, if not measured" }, \
	{ STAGE_POLICY_WARMUP, "warmup", "STEPS", \
	    "reach the factor over so many (default 0)" }, \
	{ STAGE_POLICY_ACCORDION, "accordion", "STEPS", \
	    "compress less after windows whose norm changes" }, \
	{ STAGE_POLICY_DEADLINE, "deadline", "TIME", \
	    "no more than the link carries in TIME" }, \
	{ STAGE_POLICY_CUTS, "cuts", "TIME", \
	    "at which layers to send; TIME: each sending costs more" }, \
	{ STAGE_POLICY_DECO, "deco", NULL, "the budget and the delay after DeCo-SGD" }, \
	{ STAGE_POLICY_COMPUTE, "compute", "TIME", \
	    "deco: of a step, if the shards do not say it" }, \
	{ STAGE_POLICY_LATENCY, "latency", "TIME", "deco: of the link, if not measured" }, \
	{ STAGE_POLICY_TARGET, "target-divergence", "X", \
	    "relative drift to aim at; gives the interval" }, \
	{ STAGE_POLICY_NORM, "model-norm", "X", "the norm of the model" }, \
	{ STAGE_POLICY_INTERVAL, "interval", "FIRST[,MIN,MAX]", \
	    "the first interval, and its limits (default 1,1,1000)" }, \
	{ STAGE_POLICY_REPLAY, "replay", "FILE", "decide as in FILE, a stream" }

struct stage_policy_opts {
	const char *dir;	/* state directory, or NULL */
	const char *replay;	/* a recording to decide as, or NULL */
	double cmin, cmax, half;	/* as ratio_factor; half: bit/s */
	double bandwidth;	/* bit/s; < 0: the state's */
	double deadline;	/* seconds a shard may take; < 0: any */
	double norm;		/* of the model; 0: the shard's */
	struct interval interval;	/* target 0: none is asked for */
	struct policy_deco stale;
	struct policy_dynacomm cuts;
	struct pace pace;
	uint64_t steps;		/* local steps before the next shard */
	const struct filter *f;	/* the program's: set by make */
};
#define STAGE_POLICY_INIT { .cmin = 2, .cmax = 300, .half = 10e6, \
	.bandwidth = -1, .deadline = -1, .interval = { 0, 1, 1000 }, \
	.stale = POLICY_DECO_INIT, .cuts = POLICY_DYNACOMM_INIT, \
	.pace = PACE_INIT, .steps = 1 }

extern const struct stage_kind stage_policy;

#endif
