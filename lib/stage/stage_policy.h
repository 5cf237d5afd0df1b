/*
 * The stage of ace-policy.  Before the data of a shard it writes the compression
 * ratio, by equation (5) or by DeCo-SGD with a delay, and the layers at which to cut.
 * After the data it writes the number of local steps until the next shard, by equation
 * (9).  These are pOLi annotations (keys and values); -v prints the reasons.
 */
#ifndef ACE_STAGE_POLICY_H
#define ACE_STAGE_POLICY_H

#include <stdint.h>

#include "stage/policy_dynacomm.h"
#include "stage/stage.h"
#include "sync/ratio.h"
#include "sync/replan.h"

struct err;

#define POLICY_BIG 1e300

/* DeCo-SGD, for --deco. */
struct policy_deco {
	/* options */
	int on;
	double compute, latency;	/* seconds; < 0: to be measured */
	/* results */
	struct replan plan;
};
#define POLICY_DECO_INIT { 0, -1, -1, REPLAN_INIT }

/* --ratio: the least and the largest compression factor, the bandwidth in bit/s at which
 * the factor is half way between them, and the steps of the warm-up. */
struct stage_policy_ratio {
	double least, most, half;
	uint64_t warmup;
};
extern const struct opt stage_policy_ratio_rows[];
/* Return the compression factor for a link of this bandwidth in bit/s. */
double stage_policy_ratio(const struct stage_policy_ratio *f, double bandwidth);

struct stage_policy_opts {
	const char *dir;	/* state directory, or NULL */
	struct stage_policy_ratio factor;
	double bandwidth;	/* bit/s; < 0: use the rate measured in the state */
	double deadline;	/* longest transmission of a shard, s; < 0: no limit */
	double norm;		/* L2 norm of the model's values; 0: take it from the shard */
	struct interval interval;	/* target 0: the interval is not decided */
	struct policy_deco stale;
	struct policy_dynacomm cuts;
	double rate;		/* rate of the last decision, bit/s; < 0: none yet */
	uint64_t steps;		/* local steps before the next shard */
	const struct filter *f;	/* filter of the program; stage_new sets it */
};
#define STAGE_POLICY_INIT { .bandwidth = -1, .deadline = -1, .rate = -1, \
	.stale = POLICY_DECO_INIT, .cuts = POLICY_DYNACOMM_INIT }
extern const struct opt stage_policy_rows[];	/* options of the stage */

extern const struct stage_kind stage_policy;

#endif
