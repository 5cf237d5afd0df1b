/*
 * The policy of a stream: how hard to compress each shard, by (5) or after
 * DeCo-SGD with a delay, and at which layers to cut it, before its data, and
 * how many local steps to take until the next (9), behind it.  What is decided
 * goes into the stream as pOLi annotations, keys and values; what it was
 * decided from, into words.
 */
#ifndef ACE_POLICY_H
#define ACE_POLICY_H

#include <stdint.h>

#include "base/alloc.h"
#include "stage/policy_deco.h"
#include "stage/policy_dynacomm.h"
#include "stage/policy_replay.h"
#include "sync/interval.h"
#include "sync/pace.h"

struct err;
struct reader;
struct state;
struct writer;

#define POLICY_BIG 1e300

struct policy {
	/* given */
	struct reader *in;
	struct writer *out;
	const struct state *state;	/* NULL: none */
	const char *tool;		/* for the state */
	double cmin, cmax, beta;	/* as ratio_factor */
	double bandwidth;		/* bit/s; < 0: the state's */
	double deadline;		/* seconds a shard may take; < 0: any */
	double norm;			/* of the model; 0: the shard's */
	struct interval interval;	/* target 0: none is asked for */
	struct policy_deco stale;
	struct policy_dynacomm cuts;
	struct pace pace;
	struct policy_replay replay;		/* instead of deciding */
	uint64_t steps;			/* local steps before the next shard */
	int explain;			/* say from which numbers, too */
	/* found */
	int waits;			/* the shard's times may still come */
	uint64_t asked;			/* interval of a device that diverges */
	struct buf said;		/* words, each line ends with a zero */
};

/* policy_load(p, e): goes on from what the state says. */
int policy_load(struct policy *p, struct err *e);
/* policy_event(p, event, e): in's event goes to out, with what is decided. */
int policy_event(struct policy *p, int event, struct err *e);
void policy_release(struct policy *p);

#endif
