#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "pipe/gather_impl.h"
#include "pipe/source.h"

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

/* ---- opening ---- */

static struct gather *
gather_new(int whole, const struct reader_opts *o, struct err *e)
{
	struct gather *g = alloc_get(1, sizeof(*g), e);

	if (g == NULL)
		return NULL;
	g->o = *o;
	g->whole = whole;
	g->aside = (struct aside)ASIDE_INIT;
	g->schema = (struct schema)SCHEMA_INIT;
	return g;
}

static int
gather_input(struct reader **r, const char *path, int to,
    const struct reader_opts *o, struct err *e)
{
	struct io *io;
	int k = source_io(&io, path, e);

	if (k < 0)
		return k;
	io_watch(io, to);
	return reader_open(r, io, o, e);
}

/* 1 when all inputs are files, which can be opened as often as one likes. */
static int
gather_files(char **paths, size_t n)
{
	struct stat st;
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(paths[i], "-") == 0 || stat(paths[i], &st) < 0 ||
		    !S_ISREG(st.st_mode))
			return 0;
	return 1;
}

int
gather_open(struct gather **out, char **paths, size_t n, int whole,
    uint64_t expect, int to, const struct reader_opts *o, struct err *e)
{
	struct gather *g = gather_new(whole, o, e);
	int r;

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	g->expect = expect;
	if (n <= 1)
		return gather_input(&g->one, n == 1 ? paths[0] : NULL, to, o,
		    e);
	if (expect != 0 && expect != n)
		return err_set(e, ERR_REFUSED, "%zu inputs, expected %llu", n,
		    (unsigned long long)expect);
	if (n > gather_window_files() && gather_files(paths, n)) {
		g->path = paths;
		g->npath = n;
		return 0;
	}
	if ((g->src = alloc_get(n, sizeof(*g->src), e)) == NULL)
		return -ERR_SYS;
	for (; g->nsrc < n; g->nsrc++)
		if ((r = gather_input(&g->src[g->nsrc], paths[g->nsrc], to, o,
		    e)) < 0)
			return r;
	return 0;
}

int
gather_many(struct gather **out, char **paths, size_t n, int whole,
    const struct reader_opts *o, struct err *e)
{
	struct gather *g = gather_new(whole, o, e);

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	g->path = paths;
	g->npath = n;
	g->once = 1;
	return 0;
}

int
gather_patient(struct gather **out, char **paths, size_t n, int whole,
    const struct intake_rule *q, const struct reader_opts *o, struct err *e)
{
	struct gather *g = gather_new(whole, o, e);

	*out = g;
	if (g == NULL)
		return -ERR_SYS;
	return intake_open(&g->intake, paths, n, q, &g->o, e);
}

void
gather_twice(struct gather *g)
{
	g->twice = 1;
}

/* Forgets the contributions of the step before. */
static void
gather_drop(struct gather *g)
{
	while (g->n != 0)
		gather_in_release(&g->in[--g->n]);
	g->lo = g->hi = 0;
	g->bytes = 0;
	schema_release(&g->schema);
	g->schema = (struct schema)SCHEMA_INIT;
	g->have_schema = 0;
}

void
gather_free(struct gather *g)
{
	size_t i;

	if (g == NULL)
		return;
	gather_drop(g);
	aside_close(&g->aside);
	intake_free(g->intake);
	reader_free(g->one);
	for (i = 0; i < g->nsrc; i++)
		reader_free(g->src[i]);
	alloc_free(g->src);
	alloc_free(g->in);
	alloc_free(g);
}

/* ---- the contributions of a step ---- */

/* Room for one more, with nothing in it. */
static int
gather_grow(struct gather *g, struct gather_in **in, struct err *e)
{
	int k = alloc_grow(&g->in, &g->cap, g->n + 1, sizeof(**in), e);

	if (k < 0)
		return k;
	*in = &g->in[g->n];
	gather_in_init(*in, g->n++);
	return 0;
}

/* Do two shards belong to one step of one run? */
static int
gather_same(const struct shard *s, const struct shard *t, struct err *e)
{
	if (memcmp(s->run, t->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: run '%s' of '%s' and "
		    "run '%s' of '%s'", shard_run(s), shard_device(s),
		    shard_run(t), shard_device(t));
	if (s->step != t->step)
		return err_set(e, ERR_DATA, "mismatch: step %llu of '%s' and "
		    "step %llu of '%s'", (unsigned long long)s->step,
		    shard_device(s), (unsigned long long)t->step,
		    shard_device(t));
	return 0;
}

/* The last contribution is the one whose shard r stands at.  All of them have
 * one schema. */
static int
gather_head(struct gather *g, const struct reader *r, struct err *e)
{
	struct gather_in *in = &g->in[g->n - 1];
	const struct shard *first = gather_in_head(&g->in[0]);
	char why[256];
	int k = in->lent ? 0 : shard_copy(&in->head, reader_shard(r), e);

	if (k < 0)
		return k;
	if (!g->have_schema) {
		g->have_schema = 1;
		return schema_copy(&g->schema, reader_schema(r), e);
	}
	if (schema_diff(&g->schema, reader_schema(r), why) == 0)
		return 0;
	if ((k = gather_same(first, reader_shard(r), e)) == 0)
		k = err_set(e, ERR_DATA, "mismatch: schemas of '%s' and "
		    "'%s': %s", shard_device(first),
		    shard_device(reader_shard(r)), why);
	return gather_blame(g, g->n - 1, k);
}

/* One more, which is set aside. */
static int
gather_aside(struct gather *g, struct reader *from, struct err *e)
{
	struct gather_in *in;
	int k = gather_grow(g, &in, e);

	if (k < 0)
		return k;
	in->aside = &g->aside;
	if ((k = gather_head(g, from, e)) < 0)
		return k;
	k = aside_put(&g->aside, from, &in->place, e);
	g->bytes = in->place;
	return k;
}

/* One more, at whose shard r stays. */
static int
gather_lend(struct gather *g, struct reader *r, struct err *e)
{
	struct gather_in *in;
	int k = gather_grow(g, &in, e);

	if (k < 0)
		return k;
	in->lent = 1;
	in->r = r;
	return gather_head(g, r, e);
}

/* ---- the single input: shards set aside ---- */

/* Shards of one step from the single input.  With a number to expect the step
 * is over when they are here, otherwise when another step or the end comes. */
static int
gather_collect(struct gather *g, struct err *e)
{
	uint64_t step;
	int k;

	if (!g->ahead && (k = gather_in_next(g->one, e)) <= 0)
		return k;
	g->ahead = 0;
	step = reader_shard(g->one)->step;
	for (;;) {
		if ((k = gather_aside(g, g->one, e)) < 0)
			return k;
		if (g->expect != 0 && g->n == g->expect)
			return 1;
		if ((k = gather_in_next(g->one, e)) < 0)
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

/* Some have no further shard: all of them, 0, or it is an error. */
static int
gather_end(const char *first, size_t ended, size_t n, struct err *e)
{
	return ended == n ? 0 : err_set(e, ERR_REFUSED,
	    "'%s' ended, %zu of %zu inputs go on", first, n - ended, n);
}

static int
gather_advance(struct gather *g, struct err *e)
{
	size_t i, ended = 0, first = 0;
	int k;

	for (i = 0; i < g->nsrc; i++) {
		if ((k = gather_in_next(g->src[i], e)) < 0)
			return k;
		if (k == 0 && ended++ == 0)
			first = i;
	}
	if (ended != 0)
		return gather_end(reader_name(g->src[first]), ended, g->nsrc,
		    e);
	for (i = 0; i < g->nsrc; i++)
		if ((k = g->twice ? gather_aside(g, g->src[i], e) :
		    gather_lend(g, g->src[i], e)) < 0)
			return k;
	return 1;
}

/* ---- many that are not waited for ---- */

static int
gather_await(struct gather *g, struct err *e)
{
	struct gather_in *in;
	struct reader *r;
	size_t i;
	int k = intake_step(g->intake, e);

	if (k <= 0)
		return k;
	for (i = 0; i < intake_count(g->intake); i++) {
		r = intake_reader(g->intake, i);
		if (r != NULL && (k = gather_lend(g, r, e)) < 0)
			return k;
		if (r != NULL)
			continue;
		if ((k = gather_grow(g, &in, e)) < 0)
			return k;
		in->aside = intake_aside(g->intake, i, &in->place);
		g->bytes = in->place;
		if ((k = gather_in_open(in, &g->o, e)) < 0 ||
		    (k = gather_head(g, in->r, e)) < 0)
			return k;
		gather_in_shut(in);
	}
	return 1;
}

/* ---- files, of which some are open ---- */

/* The heads of all, one file after another. */
static int
gather_heads(struct gather *g, struct err *e)
{
	size_t i, ended = 0, first = 0;
	struct gather_in *in;
	struct stat st;
	int k;

	for (i = 0; i < g->npath; i++) {
		if ((k = gather_grow(g, &in, e)) < 0)
			return k;
		in->path = g->path[i];
		in->skip = g->done;
		g->bytes += stat(in->path, &st) == 0 ? (uint64_t)st.st_size : 0;
		k = gather_in_open(in, &g->o, e);
		if (k == 0 && g->once)
			k = err_set(e, ERR_DATA, "truncated: no shard in '%s'",
			    in->path);
		else if (k == 0 && ended++ == 0)
			first = i;
		if (k > 0)
			k = gather_head(g, in->r, e);
		gather_in_shut(in);
		if (k < 0)
			return gather_blame(g, i, k);
	}
	if (ended != 0)
		return gather_end(g->path[first], ended, g->npath, e);
	g->done++;
	return 1;
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

/* ---- a step ---- */

static int
gather_order(const void *a, const void *b)
{
	return memcmp(gather_in_head(a)->device, gather_in_head(b)->device,
	    SHARD_ID);
}

static int
gather_agree(const struct gather_in *x, const struct gather_in *y,
    struct err *e)
{
	const struct shard *s = gather_in_head(x), *t = gather_in_head(y);
	int k = gather_same(s, t, e);

	if (k < 0)
		return k;
	if (gather_order(x, y) == 0)
		return err_set(e, ERR_REFUSED, "two shards of '%s' for step "
		    "%llu", shard_device(s), (unsigned long long)s->step);
	return 0;
}

/* The contributions of the next step, in any order: 1, or 0 at the end. */
static int
gather_come(struct gather *g, struct err *e)
{
	int k;

	gather_drop(g);
	if ((k = aside_empty(&g->aside, e)) < 0)
		return k;
	return g->intake != NULL ? gather_await(g, e) :
	    g->one != NULL ? gather_collect(g, e) :
	    g->path != NULL ? gather_heads(g, e) : gather_advance(g, e);
}

int
gather_step(struct gather *g, struct err *e)
{
	size_t i;
	int k = gather_come(g, e);

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
	}
	return 1;
}

size_t
gather_count(const struct gather *g)
{
	return g->n;
}

const struct shard *
gather_shard(const struct gather *g, size_t i)
{
	return gather_in_head(&g->in[i]);
}

const struct schema *
gather_schema(const struct gather *g)
{
	return &g->schema;
}

int
gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    struct err *e)
{
	int k = gather_blame(g, i, gather_in_group(&g->in[i], group, 0, e));

	*x = k == 0 && g->in[i].v.sent ? g->in[i].v.x : NULL;
	return k;
}

int
gather_part(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e)
{
	const struct values *v = &g->in[i].v;
	int k = gather_in_group(&g->in[i], group, 1, e);

	*x = k == 0 && v->sent && !v->is_listed ? v->x : NULL;
	*l = k == 0 && v->is_listed ? &v->listed : NULL;
	return k;
}

float
gather_last(const struct gather *g, size_t i, size_t at)
{
	return gather_in_value(&g->in[i], at);
}

int
gather_finish(struct gather *g, struct err *e)
{
	size_t i, hi;
	int k;

	for (gather_window_range(g, &i, &hi); i < hi; i++)
		if ((k = values_next(&g->in[i].v, e)) != 0)
			return k < 0 ? gather_blame(g, i,
			    reader_blame(g->in[i].r, k, e)) :
			    err_set(e, ERR_USAGE, "groups left over");
	return 0;
}

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

int
gather_members(const struct gather *g, struct array_names *l, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < g->n && r == 0; i++)
		if (!g->in[i].left)
			r = gather_in_names(&g->in[i], l, e);
	return r;
}
