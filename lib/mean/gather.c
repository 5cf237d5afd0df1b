#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/memlimit.h"
#include "base/temp.h"
#include "device/dense.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"
#include "kern/kern.h"
#include "mean/gather.h"
#include "pipe/source.h"
#include "spool/history.h"
#include "sync/robust.h"

/* A window opens at most GATHER_OPEN files; fewer if its contributions would take more than
 * GATHER_MEMORY bytes, but at least GATHER_FEW if the system allows that many. */
enum { GATHER_OPEN = 256, GATHER_FEW = 16, GATHER_MEMORY = 32 << 20 };
/* Bytes of memory for an open contribution: its reader, and the largest frame that we write. */
enum { GATHER_READER = 80 << 10, GATHER_FRAME = 1 << 20 };

int
gather_blame(struct gather *g, size_t i, int r)
{
	if ((r == -ERR_DATA || r == -ERR_REFUSED) && g->blame == 0)
		g->blame = g->in[i].at + 1;
	return r;
}

/* ---- shards that are copied ---- */

/* Copies go into one unnamed temporary file.  So any number of shards can be read several
 * times while only one file is open. */

/* Begin a copy, and set *at to its place in the file. */
static int
gather_copy_begin(struct gather *g, struct writer **w, uint64_t *at, struct err *e)
{
	off_t end;
	int k;

	*w = NULL;
	if (g->fd < 0 && (k = temp_open(&g->fd, e)) < 0) {
		g->fd = -1;
		return k;
	}
	if ((end = lseek(g->fd, 0, SEEK_END)) < 0)
		return err_sys(e, TEMP_UNNAMED);
	*at = (uint64_t)end;
	return writer_fd(w, g->fd, "ace-aggregate", e);
}

/* Copy the shard at which r stands.  Its annotations are dropped, except the policy and
 * the names of contributors. */
static int
gather_copy(struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_shard(w, reader_shard(r), reader_schema(r), e);

	while (k == 0 && (k = reader_next(r, e)) != READER_SEND && k > 0)
		k = k == READER_DATA || (k == READER_NOTE &&
		    (reader_frame(r)->type == FRAME_POLI ||
		    reader_frame(r)->type == FRAME_MEMB)) ?
		    writer_pass(w, r, e) : 0;
	if (k < 0)
		return reader_blame(r, k, e);
	k = writer_send(w, &reader_end_of_shard(r)->sums, e);
	return k < 0 ? k : writer_finish(w, e);
}

/* ---- a contribution ---- */

/* Open the contribution `in' at its shard.  Return 1, or 0 if the file has no further shard. */
static int
gather_in_open(const struct gather *g, struct gather_in *in, struct err *e)
{
	uint64_t i, skip = in->path != NULL ? in->place : 0;
	struct io *io;
	int k;

	if (in->stays)
		return 1;
	if ((k = in->path != NULL ? io_open(&io, in->path, e) :
	    io_open_at(&io, g->fd, in->place, TEMP_UNNAMED, e)) < 0 ||
	    (k = reader_open(&in->r, io, &g->o, e)) < 0)
		return k;
	for (i = 0, k = 1; i <= skip && k > 0; i++)
		k = reader_blame(in->r, reader_to_shard(in->r, e), e);
	return k;
}

/* Keep the names or the policy in the annotation at which r stands. */
static int
gather_in_hear(void *arg, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct gather_in *in = arg;

	if (f->type == FRAME_MEMB)
		return array_get_names(&in->members, f->raw, f->raw_len, e);
	return keys_add(&in->policy, r, e);
}

/* Open `in' at its first group; its annotations go to in->policy and in->members.  For a
 * difference in a spool also open its reconstruction. */
static int
gather_in_begin(const struct gather *g, struct gather_in *in, struct err *e)
{
	const struct shard *sh;
	int k = gather_in_open(g, in, e);

	if (k < 0)
		return k;
	sh = reader_shard(in->r);
	if (k == 0 || shard_key(sh) != shard_key(&in->head))
		return err_set(e, ERR_DATA, "mismatch: '%s' changed while it was "
		    "read: try again when nothing writes it", in->path);
	in->v.differences = g->once && (sh->flags & SHARD_PREDICTED) != 0;
	if (in->v.differences && (k = history_open(&in->made, in->path, sh,
	    reader_schema(in->r), e)) < 0)
		return k;
	in->v.lists = 1;	/* gather_group sets it for each group */
	if (!in->summed) {
		in->v.note = gather_in_hear;
		in->v.arg = in;
		text_release(&in->policy);
		array_release(&in->members);
	}
	return values_begin(&in->v, in->r, e);
}

static void
gather_in_shut(struct gather_in *in)
{
	values_release(&in->v);
	dense_close(&in->made);
	if (in->stays)
		return;
	reader_free(in->r);
	in->r = NULL;
}

static void
gather_in_release(struct gather_in *in)
{
	gather_in_shut(in);
	text_release(&in->policy);
	array_release(&in->members);
	shard_release(&in->head);
}

/* ---- open contributions ---- */

/* Return the approximate memory of an open contribution, in bytes. */
static uint64_t
gather_each(const struct gather *g)
{
	const uint64_t frame = g->n != 0 ? g->bytes / g->n : 0;

	return GATHER_READER + 4 * (uint64_t)g->schema.group_size +
	    (frame < GATHER_FRAME ? frame : GATHER_FRAME);
}

uint64_t
gather_memory(const struct gather *g)
{
	return g->n * g->opens * gather_each(g);
}

/* Return how many files may be open: GATHER_OPEN, or half of what the system allows. */
static size_t
gather_most(void)
{
	const long files = sysconf(_SC_OPEN_MAX) / 2;

	return files > 0 && files < GATHER_OPEN ? (size_t)files : GATHER_OPEN;
}

/* Return how many contributions may be open together without taking much memory. */
static size_t
gather_room(const struct gather *g)
{
	const size_t files = gather_most();
	uint64_t room = memlimit_of(GATHER_MEMORY) / gather_each(g);

	if (room < GATHER_FEW)
		room = GATHER_FEW;
	if (room > files)
		room = files;
	return room > g->opens ? (size_t)room / g->opens : 1;
}

/* Open contributions lo to hi, and no others. */
static int
gather_open_these(struct gather *g, size_t lo, size_t hi, struct err *e)
{
	int k = 0;

	while (g->lo < g->hi)
		gather_in_shut(&g->in[g->lo++]);
	for (g->lo = g->hi = lo; g->hi < hi && k == 0; g->hi++)
		k = gather_blame(g, g->hi, gather_in_begin(g, &g->in[g->hi], e));
	return k;
}

/* Open a window of contributions, from contribution lo on. */
static int
gather_window(struct gather *g, size_t lo, struct err *e)
{
	return gather_open_these(g, lo, g->n - lo < g->room ? g->n : lo + g->room, e);
}

int
gather_rewind(struct gather *g, struct err *e)
{
	return gather_window(g, 0, e);
}

/* ---- values ---- */

int
gather_group(struct gather *g, size_t i, uint32_t group, const float **x,
    const struct codec_list **l, struct err *e)
{
	struct gather_in *in = &g->in[i];
	struct values *v = &in->v;
	int k;

	v->lists = l != NULL;
	if ((k = values_next(v, e)) < 0)
		return reader_blame(in->r, k, e);
	if (k == 0 || v->group != group)
		return err_set(e, ERR_USAGE, "groups are requested out of order");
	if (in->made.r != NULL) {
		v->is_listed = 0;
		if ((k = dense_group(&in->made, group, &v->x, e)) < 0)
			return k;
		v->sent = v->x != NULL;
	}
	*x = v->sent && !v->is_listed ? v->x : NULL;
	if (l != NULL)
		*l = v->is_listed ? &v->listed : NULL;
	return 0;
}

/* Call `each' for all groups of the open contributions, and verify that these are whole. */
static int
gather_read_open(struct gather *g, gather_fn *each, void *arg, struct err *e)
{
	struct schema_span span;
	uint32_t group;
	size_t i;
	int k;

	for (group = 0; group < g->schema.ngroups; group++) {
		schema_span(&g->schema, group, &span);
		if ((k = each(arg, group, &span, e)) < 0)
			return k;
	}
	for (i = g->lo; i < g->hi; i++)
		if ((k = values_next(&g->in[i].v, e)) != 0)
			return k < 0 ? gather_blame(g, i,
			    reader_blame(g->in[i].r, k, e)) :
			    err_set(e, ERR_USAGE, "groups are left over");
	return 0;
}

int
gather_read(struct gather *g, gather_fn *each, void *arg, struct err *e)
{
	int k = gather_read_open(g, each, arg, e);

	while (k == 0 && g->hi < g->n && (k = gather_window(g, g->hi, e)) == 0)
		k = gather_read_open(g, each, arg, e);
	return k;
}

/* ---- opening ---- */

int
gather_many(struct gather **g, uint64_t step, char **paths, size_t n, int how,
    const struct reader_opts *o, struct err *e)
{
	if ((*g = alloc_get(1, sizeof(**g), e)) == NULL)
		return -ERR_SYS;
	(*g)->o = *o;
	(*g)->how = how;
	(*g)->path = paths;
	(*g)->nsrc = n;
	(*g)->step = step;
	(*g)->once = 1;
	(*g)->fd = -1;
	(*g)->schema = (struct schema)SCHEMA_INIT;
	return 0;
}

/* Return 1 if all inputs are regular files, which can be opened several times. */
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
gather_open(struct gather **out, char **paths, size_t n, int how,
    uint64_t expect, int to, const struct reader_opts *o, struct err *e)
{
	int r = gather_many(out, 0, paths, n != 0 ? n : 1, how, o, e);
	struct gather *g = *out;
	struct io *io;
	size_t i;

	if (r < 0)
		return r;
	g->once = 0;
	g->expect = expect;
	if (n > 1 && expect != 0 && expect != n)
		return err_set(e, ERR_REFUSED, "found %zu inputs, expected %llu "
		    "(--devices)", n, (unsigned long long)expect);
	if (n > gather_most() && gather_files(paths, n))
		return 0;
	if ((g->src = alloc_get(g->nsrc, sizeof(*g->src), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < g->nsrc; i++) {
		if ((r = source_io(&io, n != 0 ? paths[i] : NULL, e)) < 0)
			return r;
		io_watch(io, to);
		if ((r = reader_open(&g->src[i], io, o, e)) < 0)
			return r;
	}
	return 0;
}

/* Forget the contributions of the step before. */
static int
gather_drop(struct gather *g, struct err *e)
{
	while (g->n != 0)
		gather_in_release(&g->in[--g->n]);
	g->lo = g->hi = 0;
	g->bytes = 0;
	g->opens = 1;
	schema_release(&g->schema);
	g->schema = (struct schema)SCHEMA_INIT;
	if (g->fd >= 0 && (ftruncate(g->fd, 0) < 0 || lseek(g->fd, 0, SEEK_SET) < 0))
		return err_sys(e, TEMP_UNNAMED);
	return 0;
}

void
gather_free(struct gather *g)
{
	size_t i;

	if (g == NULL)
		return;
	(void)gather_drop(g, NULL);
	if (g->fd >= 0)
		(void)close(g->fd);
	for (i = 0; g->src != NULL && i < g->nsrc; i++)
		reader_free(g->src[i]);
	alloc_free(g->src);
	alloc_free(g->in);
	alloc_free(g);
}

/* ---- the contributions of a step ---- */

/* Append an empty contribution. */
static int
gather_grow(struct gather *g, struct gather_in **in, struct err *e)
{
	int k = alloc_grow(&g->in, &g->cap, g->n + 1, sizeof(**in), e);

	if (k < 0)
		return k;
	*in = &g->in[g->n];
	**in = (struct gather_in){ .v = VALUES_INIT, .at = g->n++,
	    .policy = TEXT_KV_INIT };
	shard_init(&(*in)->head);
	return 0;
}

/* Set the head of the last contribution from the shard at r, and check that its
 * schema is that of the first contribution. */
static int
gather_head(struct gather *g, const struct reader *r, struct err *e)
{
	struct gather_in *in = &g->in[g->n - 1];
	const struct shard *sh = reader_shard(r);
	char why[256];
	int k = shard_copy(&in->head, sh, e);

	if (k < 0)
		return k;
	if (g->once && (sh->flags & SHARD_PREDICTED) != 0)
		g->opens = 2;
	if (g->n == 1)
		return schema_copy(&g->schema, reader_schema(r), e);
	return schema_diff(&g->schema, reader_schema(r), why) == 0 ? 0 :
	    err_set(e, ERR_DATA, "mismatch: '%s' and '%s' have different tensors: %s",
	    shard_device(&g->in[0].head), shard_device(sh), why);
}

/* Copy the shard of the last contribution, at which r stands. */
static int
gather_defer(struct gather *g, struct reader *r, struct err *e)
{
	struct gather_in *in = &g->in[g->n - 1];
	struct writer *w;
	int k = gather_copy_begin(g, &w, &in->place, e);

	if (k == 0)
		k = gather_copy(r, w, e);
	writer_free(w);
	in->path = NULL;
	g->bytes = in->place;
	return k;
}

/* ---- one input ---- */

/* Copy the shards of one step.  The step is over when the expected number of shards was
 * read or, if no number is expected, at a shard of another step or the end of the input. */
static int
gather_collect(struct gather *g, struct err *e)
{
	struct reader *r = g->src[0];
	const struct shard *s;
	struct gather_in *in;
	int k = g->ahead ? 1 : reader_blame(r, reader_to_shard(r, e), e);

	if (k <= 0)
		return k;
	s = reader_shard(r);
	/* a surplus contribution would become a second aggregate of the same step */
	if (g->was && g->step == s->step && memcmp(g->run, s->run, SHARD_ID) == 0)
		return err_set(e, ERR_REFUSED, "'%.80s' is one contribution too "
		    "many for step %llu, expected %llu (--devices)", shard_device(s),
		    (unsigned long long)s->step, (unsigned long long)g->expect);
	g->was = 1;
	g->step = s->step;
	memcpy(g->run, s->run, SHARD_ID);
	do {
		g->ahead = 0;
		if ((k = gather_grow(g, &in, e)) < 0 ||
		    (k = gather_head(g, r, e)) < 0 ||
		    (k = gather_defer(g, r, e)) < 0)
			return k;
		if (g->n == g->expect)
			return 1;
		if ((k = reader_blame(r, reader_to_shard(r, e), e)) < 0)
			return k;
		g->ahead = k > 0 && reader_shard(r)->step != g->step;
	} while (k > 0 && !g->ahead);
	return g->expect == 0 ? 1 : err_set(e, ERR_REFUSED, "found %zu contributions to "
	    "step %llu, expected %llu (--devices)", g->n, (unsigned long long)g->step,
	    (unsigned long long)g->expect);
}

/* ---- several inputs ---- */

/* Make the next shard of input i the contribution `in'.  Return 1, or 0 if the input ended. */
static int
gather_next(struct gather *g, struct gather_in *in, size_t i, struct err *e)
{
	struct stat st;
	int k;

	if (g->src != NULL) {
		in->r = g->src[i];
		in->stays = 1;
		k = reader_blame(in->r, reader_to_shard(in->r, e), e);
	} else {
		in->path = g->path[i];
		in->place = g->done;
		g->bytes += stat(in->path, &st) == 0 ? (uint64_t)st.st_size : 0;
		k = gather_in_open(g, in, e);
	}
	if (k <= 0 || (k = gather_head(g, in->r, e)) < 0)
		return k;
	if (in->stays && (g->how & GATHER_TWICE) != 0) {
		if ((k = gather_defer(g, in->r, e)) < 0)
			return k;
		in->stays = 0;
		in->r = NULL;
	}
	return 1;
}

/* Take one shard from each input.  Return 1, or 0 if all have ended. */
static int
gather_advance(struct gather *g, struct err *e)
{
	size_t i, ended = 0, first = 0;
	struct gather_in *in;
	int k;

	for (i = 0; i < g->nsrc; i++) {
		if ((k = gather_grow(g, &in, e)) < 0)
			return k;
		k = gather_next(g, in, i, e);
		if (k == 0 && g->once)
			k = err_set(e, ERR_DATA, "truncated: '%s' has no shard",
			    in->path);
		gather_in_shut(in);
		if (k < 0)
			return gather_blame(g, i, k);
		if (k == 0 && ended++ == 0)
			first = i;
		g->n -= k == 0;
	}
	g->done++;
	return ended == 0 ? 1 : ended == g->nsrc ? 0 : err_set(e, ERR_REFUSED,
	    "'%s' has fewer steps than %zu of the %zu inputs", g->path[first],
	    g->nsrc - ended, g->nsrc);
}

/* ---- a spool's shards of steps before this one ---- */

/* Sort by device, and the shards of one device from the newest to the oldest. */
static int
gather_order(const void *a, const void *b)
{
	const struct shard *x = &((const struct gather_in *)a)->head;
	const struct shard *y = &((const struct gather_in *)b)->head;
	const int k = memcmp(x->device, y->device, SHARD_ID);

	return k != 0 ? k : x->step > y->step ? -1 : x->step < y->step;
}

struct gather_sum {
	struct gather *g;
	struct robust_sum sum;
	struct writer *w;
};

/* Write the sum of one group of the open shards, or nothing if no shard has it. */
static int
gather_sum_group(void *arg, uint32_t group, const struct schema_span *span, struct err *e)
{
	struct gather_sum *s = arg;
	struct gather *g = s->g;
	const struct schema_tensor *t = &g->schema.t[span->tensor];
	const float *x;
	int k, sent = 0;
	size_t i;

	robust_sum_begin(&s->sum, span->n);
	for (i = g->lo; i < g->hi; i++) {
		if ((k = gather_group(g, i, group, &x, NULL, e)) < 0)
			return gather_blame(g, i, k);
		/* for types without a mean, keep the newest values */
		if (x != NULL && !(sent && schema_exact(t->dtype)))
			robust_sum_add(&s->sum, 1, x);
		sent |= x != NULL;
	}
	if (!sent)
		return 0;
	if ((x = robust_sum_round(&s->sum, 1)) == NULL)
		return gather_blame(g, g->lo, err_set(e, ERR_REFUSED, "the sum of "
		    "tensor '%s' of '%s' exceeds the range of f32", t->name,
		    shard_device(&g->in[g->lo].head)));
	return writer_values(s->w, group, x, span->n, e);
}

/* Replace shard lo by the sum of its device's shards [lo, hi).  The sum is a shard of
 * this step with the annotations of shard lo. */
static int
gather_sum(struct gather_sum *s, size_t lo, size_t hi, struct err *e)
{
	struct gather *g = s->g;
	struct gather_in *in = &g->in[lo];
	int k = robust_sum_room(&s->sum, g->schema.group_size, e);

	if (k == 0)
		k = gather_open_these(g, lo, hi, e);
	/* the model digest of an earlier step does not apply to this one */
	if (k == 0 && in->head.step != g->step)
		k = text_set(&in->head.kv, SHARD_KEY_MODEL, NULL, e);
	in->head.step = g->step;
	in->head.flags &= ~SHARD_PREDICTED;
	if (k == 0 && (k = gather_copy_begin(g, &s->w, &in->place, e)) == 0 &&
	    (k = writer_shard(s->w, &in->head, &g->schema, e)) == 0 &&
	    (k = gather_read_open(g, gather_sum_group, s, e)) == 0 &&
	    (k = writer_send(s->w, NULL, e)) == 0)
		k = writer_finish(s->w, e);
	writer_free(s->w);
	s->w = NULL;
	if (k < 0)
		return k;
	in->path = NULL;
	in->summed = 1;
	return gather_open_these(g, lo, lo, e);
}

/* Add up the shards of each device to one contribution, the oldest first, as many
 * together as may be open. */
static int
gather_join(struct gather *g, struct err *e)
{
	struct gather_sum s = { .g = g, .sum = { .kern = kern_get(e) } };
	const size_t room = gather_room(g) > 2 ? gather_room(g) : 2;
	size_t i, hi, to, n = 0;
	int k = 0;

	for (i = 0; i < g->n; i = hi) {
		for (hi = i + 1; hi < g->n && memcmp(g->in[hi].head.device,
		    g->in[i].head.device, SHARD_ID) == 0; hi++)
			;
		for (to = hi; k == 0 && to - i > room; to -= room - 1)
			k = gather_sum(&s, to - room, to, e);
		if (k == 0 && (hi - i > 1 || g->in[i].head.step != g->step))
			k = gather_sum(&s, i, to, e);
		g->in[n++] = g->in[i];
		while (++i < hi)
			gather_in_release(&g->in[i]);
	}
	g->n = n;
	robust_sum_release(&s.sum);
	return k;
}

/* ---- a step ---- */

/* Check that contribution i and the one before are of one run, not both of one device and
 * step, and, except in a spool, of one step. */
static int
gather_agree(struct gather *g, size_t i, struct err *e)
{
	const struct shard *s = &g->in[i - 1].head, *t = &g->in[i].head;
	const unsigned long long step = s->step;
	int k = 0;

	if (memcmp(s->run, t->run, SHARD_ID) != 0)
		k = err_set(e, ERR_DATA, "mismatch: the shards are of different "
		    "runs: '%s' of '%s' and '%s' of '%s'", shard_run(s),
		    shard_device(s), shard_run(t), shard_device(t));
	else if (!g->once && s->step != t->step)
		k = err_set(e, ERR_DATA, "mismatch: the shards are of different "
		    "steps: %llu of '%s' and %llu of '%s'", step, shard_device(s),
		    (unsigned long long)t->step, shard_device(t));
	else if (s->step == t->step && memcmp(s->device, t->device, SHARD_ID) == 0)
		k = err_set(e, ERR_REFUSED, "found two shards of '%s' for step %llu, "
		    "expected one", shard_device(s), step);
	return gather_blame(g, i, k);
}

int
gather_step(struct gather *g, struct err *e)
{
	size_t i;
	int k = gather_drop(g, e);

	if (k == 0)
		k = g->nsrc == 1 && !g->once ? gather_collect(g, e) :
		    gather_advance(g, e);
	if (k <= 0)
		return k;
	qsort(g->in, g->n, sizeof(*g->in), gather_order);
	for (i = 1; i < g->n; i++)
		if ((k = gather_agree(g, i, e)) < 0)
			return k;
	if (g->once && (k = gather_join(g, e)) < 0)
		return k;
	g->room = (g->how & GATHER_WHOLE) != 0 || g->in[0].stays ? g->n :
	    gather_room(g);
	return 1;
}

/* ---- names ---- */

/* A name, and the contribution that lists it. */
struct gather_name {
	const char *name;
	size_t i;
};

static int
gather_by_name(const void *a, const void *b)
{
	const struct gather_name *x = a, *y = b;
	const int k = strcmp(x->name, y->name);

	return k != 0 ? k : x->i < y->i ? -1 : x->i > y->i;
}

/* Names that a contribution shares with others. */
struct gather_shared {
	size_t all;		/* number of shared names */
	size_t others;		/* number of names that are another contribution's device */
	const char *name;	/* the first shared name */
};

/* Set s for each contribution, from the sorted names p[n]. */
static void
gather_share(const struct gather *g, const struct gather_name *p, size_t n,
    struct gather_shared *s)
{
	size_t from, to, k, i, owner;

	for (from = 0; from < n; from = to) {
		owner = g->n;
		for (to = from; to < n && strcmp(p[to].name, p[from].name) == 0; to++)
			if (strcmp(shard_device(&g->in[p[to].i].head), p[to].name) == 0)
				owner = p[to].i;
		for (k = from; k < to && to - from > 1; k++) {
			i = p[k].i;
			if (s[i].all++ == 0)
				s[i].name = p[k].name;
			s[i].others += owner != g->n && owner != i;
		}
	}
}

/* Return 1 if contribution a is to blame rather than b, an earlier one.  To blame is the
 * one that lists the device of another shard in this step; else the one that shares more
 * names, since any device could claim to speak for all others; else the one with fewer
 * names; else the later one. */
static int
gather_worse(const struct gather *g, const struct gather_shared *s, size_t a, size_t b)
{
	if ((s[a].others != 0) != (s[b].others != 0))
		return s[a].others != 0;
	if (s[a].all != s[b].all)
		return s[a].all > s[b].all;
	return s[a].all != 0 && g->in[a].members.n <= g->in[b].members.n;
}

/* Set the error for a name that is in two contributions and would count twice.  p[n] are
 * the sorted names. */
static int
gather_twice_in(struct gather *g, const struct gather_name *p, size_t n, struct err *e)
{
	struct gather_shared *s = alloc_get(g->n, sizeof(*s), e);
	size_t i, worst = 0;
	int k;

	if (s == NULL)
		return -ERR_SYS;
	gather_share(g, p, n, s);
	for (i = 1; i < g->n; i++)
		if (gather_worse(g, s, i, worst))
			worst = i;
	while (p->i == worst || strcmp(p->name, s[worst].name) != 0)
		p++;
	k = gather_blame(g, worst, err_set(e, ERR_REFUSED, "'%.80s' would count "
	    "twice: it contributed to '%.80s' and to '%.80s'", p->name,
	    shard_device(&g->in[p->i].head), shard_device(&g->in[worst].head)));
	alloc_free(s);
	return k;
}

int
gather_members(struct gather *g, struct array_names *l, struct err *e)
{
	struct gather_name *p = NULL;
	const struct gather_in *in;
	size_t i, k, n = 0, cap = 0;
	int r = 0;

	for (i = 0; i < g->n && r == 0; i++) {
		in = &g->in[i];
		k = 0;
		do {
			if (in->left ||
			    (r = alloc_grow(&p, &cap, n + 1, sizeof(*p), e)) < 0)
				break;
			p[n++] = (struct gather_name){ in->members.n != 0 ?
			    in->members.p[k] : shard_device(&in->head), i };
		} while (++k < in->members.n);
	}
	if (r == 0 && n > 1)
		qsort(p, n, sizeof(*p), gather_by_name);
	for (k = 0; k < n && r == 0; k++)
		r = k > 0 && strcmp(p[k - 1].name, p[k].name) == 0 ?
		    gather_twice_in(g, p, n, e) :
		    array_name(l, p[k].name, strlen(p[k].name), e);
	alloc_free(p);
	return r;
}
