/*
 * DeCo-SGD in the stream: from what the shards, the link's state and the code's
 * say, how many bytes the next shard may take and how late its average may be
 * applied.
 */
#ifndef ACE_POLICY_DECO_H
#define ACE_POLICY_DECO_H

#include "device/memory.h"
#include "sync/replan.h"

struct err;
struct shard;
struct state;

struct policy_deco {
	/* given */
	int on;
	double compute, latency;	/* seconds; < 0: measured */
	/* found */
	struct replan plan;
};
#define POLICY_DECO_INIT { 0, -1, -1, REPLAN_INIT }

/*
 * policy_deco_decide(s, sh, values, bandwidth, state, kv, words, e): for shard sh of
 * a model of that many values.  bandwidth bit/s, < 0 unknown; state: where
 * ace-meter and ace-compress write, NULL none.
 *
 * 1: kv has ratio, budget_bytes, delay and what they are from, words why.
 * 0: bandwidth, computation or latency are not known yet, words which.
 */
int policy_deco_decide(struct policy_deco *s, const struct shard *sh, uint64_t values,
    double bandwidth, const struct state *state, struct text_kv *kv,
    char words[256], struct err *e);

/* Between runs: numbers in the policy's state file. */
int policy_deco_load(struct policy_deco *s, const struct memory *h, struct err *e);
int policy_deco_save(const struct policy_deco *s, struct memory *h, struct err *e);

#endif
