/*
 * The plan of a shard that is read twice or more: it stands before the data,
 * and the coded size was measured.
 */
#ifndef ACE_TWICE_H
#define ACE_TWICE_H

#include "codec/codec.h"

struct chooser;
struct err;
struct plan_text;

/* What a share of all importance is coded as	(ACE-Sync, eq. 2). */
struct twice_share {
	double share, rest_share;	/* rest_share: where rest ends */
	struct codec_plan keep, rest;
};

/* Each writes the whole shard, after chooser_begin. */
int twice_budget(struct chooser *c, struct err *e);	/* the knapsack */
int twice_share(struct chooser *c, const struct twice_share *s,
    struct err *e);
/* twice_given: the plan is there, so one pass is enough. */
int twice_given(struct chooser *c, const struct plan_text *t, struct err *e);

#endif
