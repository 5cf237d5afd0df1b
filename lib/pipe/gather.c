#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "format/keys.h"
#include "format/array.h"
#include "format/values.h"
#include "format/writer.h"
#include "pipe/aside.h"
#include "pipe/gather.h"

struct gather_in {
	struct reader *r;
	char *path;		/* of gather_many, the caller's */
	size_t at;		/* its place among the inputs */
	struct shard head;	/* of gather_many: r comes and goes */
	struct reader *from;	/* what r was set aside from; NULL: see one */
	int fd;			/* of what was set aside, or -1 */
	size_t lent;		/* r is the intake's, its number + 1 */
	int left;		/* left out of the names */
	struct values v;
	struct text_kv policy;	/* of this step's shard */
	struct array_names members;
};

struct gather {
	struct reader_opts o;
	uint64_t expect;
	int twice;		/* all shards are set aside */
	struct reader *one;	/* the single input, NULL with several */
	struct intake *intake;	/* or all inputs */
	size_t room;		/* of gather_many: so many are open at a time */
	size_t lo, hi;		/* those that are */
	struct schema schema;	/* of all of them */
	size_t blame;		/* whose fault an error is, its place + 1; 0 */
	int ahead;		/* `one' stands at a shard of the next step */
	struct gather_in *in;	/* one per contribution of this step, sorted */
	size_t n, cap;
};

/* A new one, with nothing in it. */
static struct gather_in *
gather_in(struct gather *g)
{
	struct gather_in *in = &g->in[g->n];

	*in = (struct gather_in){ .v = VALUES_INIT, .fd = -1, .at = g->n,
	    .policy = TEXT_KV_INIT };
	shard_init(&in->head);
	g->n++;
	return in;
}

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

static int
gather_input(struct reader **r, const char *path, int to,
    const struct reader_opts *o, struct err *e)
{
	struct io *io;
	int k = io_open(&io, path, e);

	if (k < 0)
		return k;
	io_watch(io, to);
	return reader_open(r, io, o, e);
}

int
gather_open(struct gather **out, char **paths, size_t n, uint64_t expect,
    int to, const struct reader_opts *o, struct err *e)
{
	struct gather *g = alloc_get(1, sizeof(*g), e);
	int r;

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	g->o = *o;
	g->expect = expect;
	if (n <= 1)
		return gather_input(&g->one, n == 1 ? paths[0] : NULL, to, o,
		    e);
	if (expect != 0 && expect != n)
		return err_set(e, ERR_REFUSED, "%zu inputs, expected %llu", n,
		    (unsigned long long)expect);
	if ((r = alloc_grow(&g->in, &g->cap, n, sizeof(*g->in), e)) < 0)
		return r;
	while (g->n < n) {
		struct gather_in *in = gather_in(g);

		if ((r = gather_input(&in->r, paths[in->at], to, o, e)) < 0)
			return r;
	}
	return 0;
}

int
gather_many(struct gather **out, char **paths, size_t n, size_t room,
    const struct reader_opts *o, struct err *e)
{
	struct gather *g = alloc_get(1, sizeof(*g), e);
	int r;

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	g->o = *o;
	g->room = room;
	g->schema = (struct schema)SCHEMA_INIT;
	if ((r = alloc_grow(&g->in, &g->cap, n, sizeof(*g->in), e)) < 0)
		return r;
	while (g->n < n) {
		struct gather_in *in = gather_in(g);

		in->path = paths[in->at];
	}
	return 0;
}

int
gather_patient(struct gather **out, char **paths, size_t n,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e)
{
	struct gather *g = alloc_get(1, sizeof(*g), e);

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	g->o = *o;
	return intake_open(&g->intake, paths, n, q, &g->o, e);
}

void
gather_twice(struct gather *g)
{
	g->twice = 1;
}

/* What was set aside is no longer needed. */
static void
gather_unset(struct gather_in *in)
{
	if (in->fd < 0 && in->from == NULL)
		return;
	values_release(&in->v);
	reader_free(in->r);
	if (in->fd >= 0)
		(void)close(in->fd);
	in->fd = -1;
	in->r = in->from;
	in->from = NULL;
}

static void
gather_drop(struct gather *g)
{
	while (g->n != 0) {
		struct gather_in *in = &g->in[--g->n];

		gather_unset(in);
		values_release(&in->v);
		text_release(&in->policy);
		array_release(&in->members);
		shard_release(&in->head);
		if (!in->lent)
			reader_free(in->r);
	}
}

void
gather_free(struct gather *g)
{
	if (g == NULL)
		return;
	gather_drop(g);
	intake_free(g->intake);
	reader_free(g->one);
	schema_release(&g->schema);
	alloc_free(g->in);
	alloc_free(g);
}

/* To the next shard: 1, or 0 at the end. */
static int
gather_next(struct reader *r, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0)
		if (k == READER_SHARD)
			return 1;
	return reader_blame(r, k, e);
}

/* ---- the single input: shards set aside ---- */

/* One more contribution, from the single input. */
static int
gather_more(struct gather *g, struct err *e)
{
	struct gather_in *in;
	int k = alloc_grow(&g->in, &g->cap, g->n + 1, sizeof(*in), e);

	if (k < 0)
		return k;
	in = gather_in(g);
	return aside_shard(&in->r, &in->fd, g->one, &g->o, e);
}

static int
gather_hear(void *arg, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct gather_in *in = arg;

	if (f->type == FRAME_MEMB)
		return array_get_names(&in->members, f->raw, f->raw_len, e);
	return keys_add(&in->policy, r, e);
}

/* The values from the first group on. */
static int
gather_values(struct gather_in *in, struct err *e)
{
	in->v.lists = 1;	/* until gather_group asks for all values */
	in->v.note = gather_hear;
	in->v.arg = in;
	text_release(&in->policy);
	array_release(&in->members);
	return values_begin(&in->v, in->r, e);
}

int
gather_again(struct gather *g, struct err *e)
{
	size_t i;
	int k = g->intake != NULL ? intake_again(g->intake, e) : 0;

	if (g->room != 0)
		return gather_window(g, 0, e);
	for (i = 0; i < g->n && k == 0; i++) {
		struct gather_in *in = &g->in[i];

		if (in->fd < 0 && !in->lent)
			return err_set(e, ERR_USAGE, "a step read twice that "
			    "was not set aside");
		values_release(&in->v);
		if (in->lent)
			in->r = intake_reader(g->intake, in->lent - 1);
		else
			k = aside_again(&in->r, in->fd, &g->o, e);
		if (k == 0)
			k = gather_values(in, e);
	}
	return k;
}

/* Shards of one step from the single input.  With a number to expect the step
 * is over when they are here, otherwise when another step or the end comes. */
static int
gather_collect(struct gather *g, struct err *e)
{
	uint64_t step;
	int k;

	gather_drop(g);
	if (!g->ahead && (k = gather_next(g->one, e)) <= 0)
		return k;
	g->ahead = 0;
	step = reader_shard(g->one)->step;
	for (;;) {
		if ((k = gather_more(g, e)) < 0)
			return k;
		if (g->expect != 0 && g->n == g->expect)
			return 1;
		if ((k = gather_next(g->one, e)) < 0)
			return k;
		if (k == 0)
			break;
		if (reader_shard(g->one)->step != step) {
			g->ahead = 1;
			break;
		}
	}
	if (g->expect != 0)
		return err_set(e, ERR_REFUSED, "%zu contributions to step %llu, "
		    "expected %llu", g->n, (unsigned long long)step,
		    (unsigned long long)g->expect);
	return 1;
}

/* ---- several inputs ---- */

static int
gather_advance(struct gather *g, struct err *e)
{
	size_t i, ended = 0, first = 0;
	int k;

	for (i = 0; i < g->n; i++) {
		gather_unset(&g->in[i]);
		g->in[i].left = 0;
		if ((k = gather_next(g->in[i].r, e)) < 0)
			return k;
		if (k == 0 && ended++ == 0)
			first = i;
	}
	for (i = 0; i < g->n && ended == 0 && g->twice; i++) {
		g->in[i].from = g->in[i].r;
		if ((k = aside_shard(&g->in[i].r, &g->in[i].fd,
		    g->in[i].from, &g->o, e)) < 0)
			return k;
	}
	if (ended == 0)
		return 1;
	if (ended == g->n)
		return 0;
	return err_set(e, ERR_REFUSED, "'%s' ended, %zu of %zu inputs go on",
	    reader_name(g->in[first].r), g->n - ended, g->n);
}

/* ---- many that are not waited for ---- */

static int
gather_await(struct gather *g, struct err *e)
{
	size_t i, n;
	int k;

	gather_drop(g);
	if ((k = intake_step(g->intake, e)) <= 0)
		return k;
	n = intake_count(g->intake);
	if ((k = alloc_grow(&g->in, &g->cap, n, sizeof(*g->in), e)) < 0)
		return k;
	for (i = 0; i < n; i++) {
		struct gather_in *in = gather_in(g);

		in->lent = i + 1;
		in->r = intake_reader(g->intake, i);
	}
	return 1;
}

/* ---- many, of which some are open ---- */

static void
gather_shut(struct gather *g)
{
	for (; g->lo < g->hi; g->lo++) {
		struct gather_in *in = &g->in[g->lo];

		values_release(&in->v);
		reader_free(in->r);
		in->r = NULL;
	}
}

/* To the shard in the file. */
static int
gather_enter(const struct gather *g, struct gather_in *in, struct err *e)
{
	int k = gather_input(&in->r, in->path, -1, &g->o, e);

	if (k < 0 || (k = gather_next(in->r, e)) != 0)
		return k < 0 ? k : 0;
	return err_set(e, ERR_DATA, "truncated: no shard in '%s'", in->path);
}

/* The heads of all, one file after another. */
static int
gather_heads(struct gather *g, struct err *e)
{
	char why[256];
	size_t i;
	int k = 0;

	for (i = 0; i < g->n && k == 0; i++) {
		struct gather_in *in = &g->in[i];

		if ((k = gather_enter(g, in, e)) == 0)
			k = shard_copy(&in->head, reader_shard(in->r), e);
		if (k == 0 && g->schema.n == 0)
			k = schema_copy(&g->schema, reader_schema(in->r), e);
		else if (k == 0 && schema_diff(&g->schema,
		    reader_schema(in->r), why) != 0)
			k = err_set(e, ERR_DATA, "mismatch: the schema of "
			    "'%s': %s", shard_device(&in->head), why);
		(void)gather_blame(g, i, k);
		reader_free(in->r);
		in->r = NULL;
	}
	return k;
}

size_t
gather_windows(const struct gather *g)
{
	return g->room == 0 || g->n == 0 ? 1 : (g->n - 1) / g->room + 1;
}

int
gather_window(struct gather *g, size_t w, struct err *e)
{
	int k = 0;

	if (g->room == 0)
		return 0;
	gather_shut(g);
	g->lo = g->hi = w * g->room;
	while (g->hi < g->n && g->hi < g->lo + g->room && k == 0) {
		struct gather_in *in = &g->in[g->hi++];

		if ((k = gather_enter(g, in, e)) == 0)
			k = gather_values(in, e);
		(void)gather_blame(g, g->hi - 1, k);
	}
	return k;
}

void
gather_range(const struct gather *g, size_t *lo, size_t *hi)
{
	*lo = g->lo;
	*hi = g->room != 0 ? g->hi : g->n;
}

/* ---- a step ---- */

static const struct shard *
gather_head(const struct gather_in *in)
{
	return in->path != NULL ? &in->head : reader_shard(in->r);
}

static int
gather_order(const void *a, const void *b)
{
	return memcmp(gather_head(a)->device, gather_head(b)->device, SHARD_ID);
}

static int
gather_agree(const struct gather_in *x, const struct gather_in *y,
    struct err *e)
{
	const struct shard *s = gather_head(x), *t = gather_head(y);
	char why[256];

	if (memcmp(s->run, t->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: run '%s' of '%s' and "
		    "run '%s' of '%s'", shard_run(s), shard_device(s),
		    shard_run(t), shard_device(t));
	if (s->step != t->step)
		return err_set(e, ERR_DATA, "mismatch: step %llu of '%s' and "
		    "step %llu of '%s'", (unsigned long long)s->step,
		    shard_device(s), (unsigned long long)t->step,
		    shard_device(t));
	if (x->path == NULL &&
	    schema_diff(reader_schema(x->r), reader_schema(y->r), why) != 0)
		return err_set(e, ERR_DATA, "mismatch: schemas of '%s' and "
		    "'%s': %s", shard_device(s), shard_device(t), why);
	if (gather_order(x, y) == 0)
		return err_set(e, ERR_REFUSED, "two shards of '%s' for step "
		    "%llu", shard_device(s), (unsigned long long)s->step);
	return 0;
}

int
gather_step(struct gather *g, struct err *e)
{
	size_t i;
	int k = g->intake != NULL ? gather_await(g, e) :
	    g->one != NULL ? gather_collect(g, e) :
	    g->room == 0 ? gather_advance(g, e) :
	    (k = gather_heads(g, e)) < 0 ? k : 1;

	if (k <= 0)
		return k;
	qsort(g->in, g->n, sizeof(*g->in), gather_order);
	for (i = 1; i < g->n; i++)
		if ((k = gather_agree(&g->in[i - 1], &g->in[i], e)) < 0)
			return gather_blame(g, i, k);
	for (i = 0; i < g->n; i++) {
		const struct shard *s = gather_shard(g, i);

		if ((s->flags & SHARD_RECOVERED) != 0)
			return gather_blame(g, i, err_set(e, ERR_REFUSED, "step "
			    "%llu of '%s' was recovered from a damaged file",
			    (unsigned long long)s->step, shard_device(s)));
		if (g->room == 0 && (k = gather_values(&g->in[i], e)) < 0)
			return k;
	}
	return (k = gather_window(g, 0, e)) < 0 ? k : 1;
}

size_t
gather_count(const struct gather *g)
{
	return g->n;
}

const struct shard *
gather_shard(const struct gather *g, size_t i)
{
	return gather_head(&g->in[i]);
}

const struct schema *
gather_schema(const struct gather *g)
{
	return g->room != 0 ? &g->schema : reader_schema(g->in[0].r);
}

static int
gather_read(struct gather *g, size_t i, uint32_t group, int lists,
    struct err *e)
{
	struct gather_in *in = &g->in[i];
	int k;

	in->v.lists = lists;
	if ((k = values_next(&in->v, e)) < 0)
		return gather_blame(g, i, reader_blame(in->r, k, e));
	if (k == 0 || in->v.group != group)
		return err_set(e, ERR_USAGE, "groups asked out of order");
	return 0;
}

int
gather_group(struct gather *g, size_t i, uint32_t group, float **x,
    struct err *e)
{
	int k = gather_read(g, i, group, 0, e);

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
