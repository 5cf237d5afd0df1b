/*
 * How hard to compress a shard, by equation (5), from the measured bandwidth.
 */
#ifndef ACE_POLICY_RATIO_H
#define ACE_POLICY_RATIO_H

#include "stage/stage_policy.h"

struct err;
struct text_kv;

/* policy_ratio_decide(o, sh, rate, kv, e): rate in bit/s, < 0 unknown.  Puts
 * the keys ratio, budget_bytes and the numbers they are from into kv, and what
 * it learnt of the link into o->pace. */
int policy_ratio_decide(struct stage_policy_opts *o,
    const struct stage_shard *sh, double rate, struct text_kv *kv,
    struct err *e);

#endif
