/*
 * A recorded policy instead of decisions: the pOLi frames of a stream's shards
 * are given to the same shards of another stream.  Only these frames of the
 * recording count; how its values are coded does not matter.
 */
#ifndef ACE_POLICY_REPLAY_H
#define ACE_POLICY_REPLAY_H

#include "stage/stage.h"

struct err;

struct policy_replay {
	struct reader *from;	/* the recording; NULL: there is none */
	int end;		/* it stands at the end of the shard */
};

/* policy_replay_shard(p, s, to, e): gives the stage `to' the policy frames that
 * the recording has before the data of shard s; policy_replay_end: those behind
 * it.  -ERR_DATA "mismatch: ..." when the recording has no such shard after the
 * one before. */
int policy_replay_shard(struct policy_replay *p, const struct shard *s,
    struct stage *to, struct err *e);
int policy_replay_end(struct policy_replay *p, struct stage *to,
    struct err *e);

#endif
