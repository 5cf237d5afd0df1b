#include <string.h>

#include "base/err.h"
#include "format/frame.h"
#include "format/keys.h"
#include "stage/policy_replay.h"

/* Are these the same shard, even if the values have been changed since? */
static int
policy_replay_same(const struct shard *a, const struct shard *b)
{
	return memcmp(a->run, b->run, SHARD_ID) == 0 &&
	    memcmp(a->device, b->device, SHARD_ID) == 0 &&
	    a->step == b->step;
}

/* Goes forward to shard s; shards before it are skipped. */
static int
policy_replay_find(struct policy_replay *p, const struct shard *s, struct err *e)
{
	int k;

	while ((k = reader_next(p->from, e)) > 0)
		if (k == READER_SHARD && policy_replay_same(reader_shard(p->from), s))
			return 0;
	return k < 0 ? k : err_set(e, ERR_DATA, "mismatch: the recording has "
	    "no shard '%s/%llu' here", shard_device(s),
	    (unsigned long long)s->step);
}

/* Passes an annotation on unchanged, but only if it is a policy. */
static int
policy_replay_pass(struct policy_replay *p, struct stage *to, struct err *e)
{
	const struct chain_frame *f = reader_frame(p->from);
	struct text_kv kv = TEXT_KV_INIT;
	int r = keys_add(&kv, p->from, e);

	text_release(&kv);
	return r < 0 ? r : stage_make(to, f->type, f->raw, f->raw_len, e);
}

/* What it says until its data, or until its end. */
static int
policy_replay_until(struct policy_replay *p, int event, struct stage *to,
    struct err *e)
{
	int k;

	while (!p->end && (k = reader_next(p->from, e)) != event) {
		if (k < 0)
			return k;
		if (k == READER_SEND)
			p->end = 1;
		else if (k == READER_NOTE &&
		    reader_frame(p->from)->type == FRAME_POLI &&
		    (k = policy_replay_pass(p, to, e)) < 0)
			return k;
	}
	return 0;
}

int
policy_replay_shard(struct policy_replay *p, const struct shard *s,
    struct stage *to, struct err *e)
{
	int r;

	p->end = 0;
	r = policy_replay_find(p, s, e);
	return r < 0 ? r : policy_replay_until(p, READER_DATA, to, e);
}

int
policy_replay_end(struct policy_replay *p, struct stage *to, struct err *e)
{
	return policy_replay_until(p, READER_SEND, to, e);
}
