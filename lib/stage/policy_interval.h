/*
 * How many local steps a device takes before the next shard, by equation (9):
 * decided at the end of each shard, when the sum of its squares is known.
 */
#ifndef ACE_POLICY_INTERVAL_H
#define ACE_POLICY_INTERVAL_H

#include "stage/stage_policy.h"

struct err;
struct text_kv;

/* policy_interval_decide(o, s, sums, asked, kv, e): decides from shard s,
 * whose values have these sums, and puts the interval into o->steps and the
 * keys divergence, interval and force into kv.  *asked: the interval that a
 * diverging device asked for, or 0; it is set to 0, having been heard. */
int policy_interval_decide(struct stage_policy_opts *o, const struct shard *s,
    const struct shard_sums *sums, uint64_t *asked, struct text_kv *kv,
    struct err *e);

#endif
