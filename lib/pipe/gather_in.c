#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "format/keys.h"
#include "pipe/gather_in.h"

void
gather_in_init(struct gather_in *in, size_t at)
{
	*in = (struct gather_in){ .v = VALUES_INIT, .at = at,
	    .policy = TEXT_KV_INIT };
	shard_init(&in->head);
}

int
gather_in_next(struct reader *r, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0)
		if (k == READER_SHARD)
			return 1;
	return reader_blame(r, k, e);
}

int
gather_in_open(struct gather_in *in, const struct reader_opts *o,
    struct err *e)
{
	struct io *io;
	uint64_t i;
	int k;

	if (in->lent)
		return 1;
	if (in->path == NULL)
		return (k = aside_get(in->aside, in->place, &in->r, o, e)) < 0 ?
		    k : 1;
	if ((k = io_open(&io, in->path, e)) < 0 ||
	    (k = reader_open(&in->r, io, o, e)) < 0)
		return k;
	for (i = 0; i <= in->skip; i++)
		if ((k = gather_in_next(in->r, e)) <= 0)
			return k;
	return 1;
}

static int
gather_in_hear(void *arg, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct gather_in *in = arg;

	if (f->type == FRAME_MEMB)
		return array_get_names(&in->members, f->raw, f->raw_len, e);
	return keys_add(&in->policy, r, e);
}

int
gather_in_values(struct gather_in *in, struct err *e)
{
	in->v.lists = 1;	/* until gather_group asks for all values */
	in->v.note = gather_in_hear;
	in->v.arg = in;
	text_release(&in->policy);
	array_release(&in->members);
	return values_begin(&in->v, in->r, e);
}

void
gather_in_shut(struct gather_in *in)
{
	values_release(&in->v);
	if (in->lent)
		return;
	reader_free(in->r);
	in->r = NULL;
}

void
gather_in_release(struct gather_in *in)
{
	gather_in_shut(in);
	text_release(&in->policy);
	array_release(&in->members);
	shard_release(&in->head);
}

const struct shard *
gather_in_head(const struct gather_in *in)
{
	return in->lent ? reader_shard(in->r) : &in->head;
}

int
gather_in_group(struct gather_in *in, uint32_t group, int lists, struct err *e)
{
	int k;

	in->v.lists = lists;
	if ((k = values_next(&in->v, e)) < 0)
		return reader_blame(in->r, k, e);
	if (k == 0 || in->v.group != group)
		return err_set(e, ERR_USAGE, "groups asked out of order");
	return 0;
}

float
gather_in_value(const struct gather_in *in, size_t at)
{
	const struct values *v = &in->v;
	size_t k;

	if (!v->sent)
		return 0;
	if (!v->is_listed)
		return v->x[at];
	for (k = 0; k < v->listed.k && v->listed.pos[k] < at; k++)
		;
	return k < v->listed.k && v->listed.pos[k] == at ? v->listed.x[k] : 0;
}

int
gather_in_names(const struct gather_in *in, struct array_names *l,
    struct err *e)
{
	const char *name = shard_device(gather_in_head(in));
	size_t k;
	int r = 0;

	if (in->members.n == 0)
		r = array_name(l, name, strlen(name), e);
	for (k = 0; k < in->members.n && r == 0; k++)
		r = array_name(l, in->members.p[k], strlen(in->members.p[k]),
		    e);
	return r;
}
