#include <string.h>

#include "base/err.h"
#include "device/last.h"

static int
last_open(struct last *l, const struct state *s, uint64_t step, struct err *e)
{
	int k;

	l->open = 1;
	if ((k = residual_open(&l->q, s, e)) < 0)
		return k;
	while ((k = residual_pending(&l->q, e)) > 0)
		if (reader_shard(l->q.d.r)->step == step)
			return 0;
	l->done = 1;
	return k;
}

/* Goes on to the next record, and sets l->done when there is none. */
static int
last_next(struct last *l, struct err *e)
{
	int k;

	while (l->i == l->n && !l->done) {
		if ((k = reader_next(l->q.d.r, e)) < 0)
			return reader_blame(l->q.d.r, k, e);
		if (k == READER_SEND || k == 0)
			l->done = 1;
		if (k != READER_DATA)
			continue;
		l->rec = reader_records(l->q.d.r, &l->n);
		l->i = 0;
	}
	return 0;
}

int
last_group(struct last *l, const struct state *s, uint64_t step, uint32_t g,
    struct codec_last *c, struct err *e)
{
	int k;

	if (!l->open && (k = last_open(l, s, step, e)) < 0)
		return k;
	for (;; l->i++) {
		if ((k = last_next(l, e)) < 0)
			return k;
		if (l->done || l->rec[l->i].group > g)
			return 0;
		if (l->rec[l->i].group == g)
			break;
	}
	c->codec = l->rec[l->i].codec;
	c->param = l->rec[l->i].param;
	c->body = l->rec[l->i].body;
	c->len = l->rec[l->i].len;
	return 1;
}

void
last_close(struct last *l)
{
	if (l->open)
		residual_close(&l->q);
	memset(l, 0, sizeof(*l));
}
