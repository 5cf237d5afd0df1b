#include <string.h>

#include "base/err.h"
#include "format/frame.h"
#include "pipe/filter.h"
#include "stage/policy_replay.h"

/* The same shard, whatever became of its values. */
static int
policy_replay_same(const struct shard *a, const struct shard *b)
{
	return memcmp(a->run, b->run, SHARD_ID) == 0 &&
	    memcmp(a->device, b->device, SHARD_ID) == 0 &&
	    a->step == b->step;
}

/* Up to the shard s: others are passed over. */
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

/* What it says until its data, or until its end. */
static int
policy_replay_until(struct policy_replay *p, int event, struct writer *out, struct err *e)
{
	int k;

	while (!p->end && (k = reader_next(p->from, e)) != event) {
		if (k < 0)
			return k;
		if (k == READER_SEND)
			p->end = 1;
		else if (k == READER_NOTE &&
		    reader_frame(p->from)->type == FRAME_POLI &&
		    (k = writer_pass(out, p->from, e)) < 0)
			return k;
	}
	return 0;
}

int
policy_replay_event(struct policy_replay *p, int event, struct reader *in,
    struct writer *out, struct err *e)
{
	int r;

	switch (event) {
	case READER_SHARD:
		p->end = 0;
		if ((r = filter_shard(in, out, NULL, e)) < 0 ||
		    (r = policy_replay_find(p, reader_shard(in), e)) < 0)
			return r;
		return policy_replay_until(p, READER_DATA, out, e);
	case READER_DATA:
		return writer_pass(out, in, e);
	case READER_SEND:
		if ((r = policy_replay_until(p, READER_SEND, out, e)) < 0)
			return r;
		return writer_send(out, &reader_end_of_shard(in)->sums, e);
	case READER_NOTE:
		if (reader_shard(in) == NULL ||
		    reader_frame(in)->type == FRAME_POLI)
			return 0;
		return filter_pass(in, out, 0, e);
	default:
		return 0;
	}
}
