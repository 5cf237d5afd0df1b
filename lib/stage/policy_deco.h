/*
 * DeCo-SGD for ace-policy --deco: decides for each shard how many bytes it may
 * take and after how many steps its average is applied, from the times in the
 * shards and what ace-meter and ace-compress wrote into the state.
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
 * policy_deco_decide(s, sh, values, bandwidth, state, kv, words, e): decides
 * for shard sh of a model of so many values.  bandwidth in bit/s, < 0 unknown;
 * state: where ace-meter and ace-compress write, or NULL.
 *
 * 1: kv has the keys ratio, budget_bytes and delay and the numbers they are
 * from;
 *    words says why.
 * 0: bandwidth, computation or latency is not known yet; words says which.
 */
int policy_deco_decide(struct policy_deco *s, const struct shard *sh, uint64_t values,
    double bandwidth, const struct state *state, struct text_kv *kv,
    char words[256], struct err *e);

/* What has been learnt, from and to the policy's file in the state. */
int policy_deco_load(struct policy_deco *s, const struct memory *h, struct err *e);
int policy_deco_save(const struct policy_deco *s, struct memory *h, struct err *e);

#endif
