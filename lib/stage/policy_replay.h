/*
 * A policy that was recorded, decided again: the pOLi frames of a stream's
 * shards, given to the same shards of another stream.  The recording may be
 * coded, or stand after other programs; only its frames pOLi count.
 */
#ifndef ACE_POLICY_REPLAY_H
#define ACE_POLICY_REPLAY_H

struct err;
struct reader;
struct writer;

struct policy_replay {
	struct reader *from;	/* the recording; NULL: there is none */
	int end;		/* it stands at the end of the shard */
};

/* policy_replay_event(p, event, in, out, e): in's event goes to out; what the
 * recording says of the shard stands where it stood, before the data or behind
 * it, and what in says is left out.  "mismatch: ..." when the recording has no
 * such shard, in that order. */
int policy_replay_event(struct policy_replay *p, int event, struct reader *in,
    struct writer *out, struct err *e);

#endif
