#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "pipe/gather_impl.h"

/* Of one: what its reader takes, and the largest frame of our writers. */
enum { GATHER_READER = 80 << 10, GATHER_FRAME = 1 << 20 };

/* An error r about contribution i, if it is not the system's. */
int
gather_blame(struct gather *g, size_t i, int r)
{
	if ((r == -ERR_DATA || r == -ERR_REFUSED) && g->blame == 0)
		g->blame = g->in[i].at + 1;
	return r;
}

size_t
gather_blamed(const struct gather *g)
{
	return g != NULL ? g->blame : 0;
}

uint64_t
gather_memory(const struct gather *g)
{
	uint64_t frame = g->n != 0 ? g->bytes / g->n : 0;

	return GATHER_READER + 4 * (uint64_t)g->schema.group_size +
	    (frame < GATHER_FRAME ? frame : GATHER_FRAME);
}

/* What is lent is open, so that it makes one window. */
static size_t
gather_room(const struct gather *g)
{
	const long files = sysconf(_SC_OPEN_MAX) / 2;
	uint64_t room = GATHER_MEMORY / gather_memory(g);

	if (g->whole || (g->n != 0 && g->in[0].lent))
		return g->n;
	if (files > 0 && room > (uint64_t)files)
		room = (uint64_t)files;
	return room > GATHER_OPEN ? GATHER_OPEN :
	    room < GATHER_FEW ? GATHER_FEW : (size_t)room;
}

size_t
gather_windows(const struct gather *g)
{
	return g->n == 0 ? 1 : (g->n - 1) / gather_room(g) + 1;
}

int
gather_window(struct gather *g, size_t w, struct err *e)
{
	const size_t room = gather_room(g);
	int k = 0;

	for (; g->lo < g->hi; g->lo++)
		gather_in_shut(&g->in[g->lo]);
	g->lo = g->hi = w * room;
	while (g->hi < g->n && g->hi - g->lo < room && k == 0) {
		struct gather_in *in = &g->in[g->hi++];

		if ((k = gather_in_open(in, &g->o, e)) == 0 || (k > 0 &&
		    shard_key(reader_shard(in->r)) !=
		    shard_key(gather_in_head(in))))
			k = err_set(e, ERR_DATA, "mismatch: '%s' was changed "
			    "while it was read", in->path);
		if (k > 0)
			k = gather_in_values(in, e);
		(void)gather_blame(g, g->hi - 1, k);
	}
	return k;
}

void
gather_range(const struct gather *g, size_t *lo, size_t *hi)
{
	*lo = g->lo;
	*hi = g->hi;
}

int
gather_again(struct gather *g, struct err *e)
{
	size_t i;
	int k = 0;

	if (g->nsrc != 0 && !g->twice)
		return err_set(e, ERR_USAGE, "a step read twice that was not "
		    "set aside");
	if (g->intake != NULL)
		k = intake_again(g->intake, e);
	for (i = 0; i < g->n; i++)
		if (g->in[i].lent)
			g->in[i].r = intake_reader(g->intake, g->in[i].at);
	return k < 0 ? k : gather_window(g, 0, e);
}

static int
gather_read(struct gather *g, size_t i, uint32_t group, int lists,
    struct err *e)
{
	struct gather_in *in = &g->in[i];
	int k;

	in->v.lists = lists;
	if ((k = values_next(&in->v, e)) < 0)
		return reader_blame(in->r, k, e);
	if (k == 0 || in->v.group != group)
		return err_set(e, ERR_USAGE, "groups asked out of order");
	return 0;
}

int
gather_group(struct gather *g, size_t i, uint32_t group, float **x,
    struct err *e)
{
	int k = gather_blame(g, i, gather_read(g, i, group, 0, e));

	*x = k == 0 && g->in[i].v.sent ? g->in[i].v.x : NULL;
	return k;
}

int
gather_part(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e)
{
	const struct values *v = &g->in[i].v;
	int k = gather_read(g, i, group, 1, e);

	*x = k == 0 && v->sent && !v->is_listed ? v->x : NULL;
	*l = k == 0 && v->is_listed ? &v->listed : NULL;
	return k;
}

int
gather_finish(struct gather *g, struct err *e)
{
	size_t i, hi;
	int k;

	for (gather_range(g, &i, &hi); i < hi; i++)
		if ((k = values_next(&g->in[i].v, e)) != 0)
			return k < 0 ? gather_blame(g, i,
			    reader_blame(g->in[i].r, k, e)) :
			    err_set(e, ERR_USAGE, "groups left over");
	return 0;
}

/* ---- names ---- */

void
gather_leave(struct gather *g, size_t i, int left)
{
	g->in[i].left = left;
}

int
gather_left(const struct gather *g, size_t i)
{
	return g->in[i].left;
}

const struct text_kv *
gather_policy(const struct gather *g, size_t i)
{
	return &g->in[i].policy;
}

float
gather_last(const struct gather *g, size_t i, size_t at)
{
	const struct values *v = &g->in[i].v;
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
gather_members(const struct gather *g, struct array_names *l, struct err *e)
{
	const struct array_names *own;
	const char *name;
	size_t i, k;
	int r = 0;

	for (i = 0; i < g->n && r == 0; i++) {
		if (g->in[i].left)
			continue;
		own = &g->in[i].members;
		name = shard_device(gather_shard(g, i));
		if (own->n == 0)
			r = array_name(l, name, strlen(name), e);
		for (k = 0; k < own->n && r == 0; k++)
			r = array_name(l, own->p[k], strlen(own->p[k]), e);
	}
	return r;
}
