/*
 * How many local steps to take until the next shard, by equation (9), when the
 * energy of this one is known.
 */
#ifndef ACE_POLICY_INTERVAL_H
#define ACE_POLICY_INTERVAL_H

#include "stage/stage_policy.h"

struct err;
struct text_kv;

/* policy_interval_decide(o, s, sums, asked, kv, e): to o->steps and kv.  *asked:
 * steps that a device that diverges asks for, 0 none; then 0. */
int policy_interval_decide(struct stage_policy_opts *o, const struct shard *s,
    const struct shard_sums *sums, uint64_t *asked, struct text_kv *kv,
    struct err *e);

#endif
