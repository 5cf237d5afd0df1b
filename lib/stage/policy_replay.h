/*
 * A policy that was recorded, decided again: the pOLi frames of a stream's
 * shards, given to the same shards of another stream.  The recording may be
 * coded, or stand after other programs; only its frames pOLi count.
 */
#ifndef ACE_POLICY_REPLAY_H
#define ACE_POLICY_REPLAY_H

#include "stage/stage.h"

struct err;

struct policy_replay {
	struct reader *from;	/* the recording; NULL: there is none */
	int end;		/* it stands at the end of the shard */
};

/* policy_replay_shard(p, s, to, e): what the recording says of the shard s
 * before its data; policy_replay_end: and behind it.  "mismatch: ..." when the
 * recording has no such shard, in that order. */
int policy_replay_shard(struct policy_replay *p, const struct shard *s,
    struct stage *to, struct err *e);
int policy_replay_end(struct policy_replay *p, struct stage *to,
    struct err *e);

#endif
