/*
 * What ace-status knows as numbers for a program that draws and warns: the text
 * that Prometheus reads (exposition format 0.0.4), as its node_exporter takes it
 * from a file.  Of each family one HELP, one TYPE and then all its samples, so what
 * is said of several directories waits here until all were looked at.  Units are
 * bytes and seconds, counters end in _total, and no sample has a time.
 *
 * OpenMetrics 1.0 names the family of a counter without that _total, which
 * node_exporter would take for another one without a type: where the two differ it
 * is node_exporter's.
 */
#ifndef ACE_METRICS_H
#define ACE_METRICS_H

#include <stdio.h>

#include "base/alloc.h"
#include "report/status.h"

struct err;

enum metric {
	METRIC_RUN_STEPS, METRIC_RUN_LAST, METRIC_RUN_OPEN, METRIC_RUN_DISK,
	METRIC_STEP, METRIC_MISSING, METRIC_SHARDS, METRIC_MISSED, METRIC_BYTES,
	METRIC_TIME, METRIC_LINK, METRIC_DISK,
	METRIC_STATE_STEP, METRIC_STATE_TIME, METRIC_STATE_RECEIPTS,
	METRIC_STATE_CONTRACTION, METRIC_STATE_RESIDUAL, METRIC_STATE_CODED,
	METRIC_STATE_GROWING, METRIC_STATE_LINK, METRIC_STATE_RTT,
	METRIC_STATE_JITTER, METRIC_STATE_DISK,
	METRIC_MODEL_STEP, METRIC_RECEIVER_STEP, METRIC_RECEIVER_BEHIND,
	METRIC_RECEIVER_BYTES,
	METRIC_N
};

struct metrics {
	struct buf text[METRIC_N];	/* the samples */
	int r;			/* the first error, which metrics_print returns */
	struct err *e;
};
#define METRICS_INIT(e) { { BUF_INIT }, 0, (e) }

/* Whose number it is; device and verdict may be NULL. */
struct metric_of {
	const char *dir, *run, *device, *verdict;
};

/* metrics_put(m, which, of, v): a sample, in the family's unit. */
void metrics_put(struct metrics *m, enum metric which,
    const struct metric_of *of, double v);
/* metrics_verdicts: one for each verdict, of v[RECEIPT_NVERDICT]. */
void metrics_verdicts(struct metrics *m, enum metric which,
    struct metric_of of, const uint64_t *v);
/* metrics_run(m, dir, r): all that is known of a run in the spool dir. */
void metrics_run(struct metrics *m, const char *dir,
    const struct status_run *r);
/* metrics_print(m, f): writes all of it; families without a sample are left out.
 * Nothing where a sample found no memory. */
int metrics_print(const struct metrics *m, FILE *f);
void metrics_release(struct metrics *m);

#endif
