/*
 * How hard to compress a shard, by equation (5), from what the link was measured
 * at.
 */
#ifndef ACE_POLICY_RATIO_H
#define ACE_POLICY_RATIO_H

#include "stage/stage_policy.h"

struct err;
struct text_kv;

/* policy_ratio_decide(o, sh, rate, kv, e): rate bit/s, < 0 unknown.  To kv the
 * factor, the budget and what they are from; to o->pace what was seen. */
int policy_ratio_decide(struct stage_policy_opts *o,
    const struct stage_shard *sh, double rate, struct text_kv *kv,
    struct err *e);

#endif
