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
#include "spool/mirror.h"
#include "sync/robust.h"

enum { GATHER_OPEN = 256 };	/* contributions that are open at a time */

struct gather_spill {
	int fd;			/* -1: nothing was set aside yet */
};

/* One contribution to a step: where its shard lies, opened and shut as often as
 * need be, and what is known of it in between. */
struct gather_in {
	size_t at;		/* its place among the inputs */
	struct reader *r;	/* while it is open: stands at the shard */
	int lent;		/* r is somebody else's and always open; else it
				 * is opened from one of these: */
	const char *path;	/* a file, NULL: none */
	uint64_t skip;		/* in which so many shards come before it */
	const struct gather_spill *aside;	/* what was set aside, */
	uint64_t place;		/* and where in it */
	struct shard head;	/* of one that is not lent */
	size_t files;		/* open when it and all that came before it are */
	int left;		/* left out of the names */
	struct values v;
	struct dense made;	/* what a spool reconstructed of a difference;
				 * its r is NULL where there is none */
	struct text_kv policy;	/* of this step's shard */
	struct array_names members;
};

struct gather {
	struct reader_opts o;
	uint64_t expect;
	int whole;		/* all contributions are open at a time */
	uint64_t bytes;		/* of them all, coded */
	int twice;		/* the steps of `src' are set aside */
	struct reader *one;	/* the single input, */
	int ahead;		/* which stands at a shard of the next step; */
	unsigned char run[SHARD_ID];	/* of what its step before was, */
	uint64_t step;		/* (of gather_many this one) */
	int was;		/* if there was one; */
	struct reader **src;	/* or several, each with a shard for a step; */
	size_t nsrc;
	char **path;		/* or files that are opened for each step; */
	size_t npath;
	uint64_t done;		/* so many steps of which are over */
	int once;		/* they have one shard each */
	struct gather_spill aside;	/* what was set aside of this step */
	struct schema schema;	/* of all contributions of this step */
	int have_schema;
	size_t blame;		/* whose fault an error is, its place + 1; 0 */
	struct gather_in *in;	/* one per contribution of this step, sorted */
	size_t n, cap;
	size_t files;		/* open when all of them are */
	size_t lo, hi;		/* those that are open */
};

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

/* ---- shards that were set aside ---- */

/* Their frames are copied into one unnamed temporary file, each shard as a stream
 * of its own, so that they can be read later, more than once, and any number of
 * them with one open file. */

/* Writes r's shard as a whole stream; of its annotations only the policy and
 * the names are kept. */
static int
gather_spill_copy(struct reader *r, struct writer *w, struct err *e)
{
	int k = writer_shard(w, reader_shard(r), reader_schema(r), e);

	if (k < 0)
		return k;
	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_SEND) {
			k = writer_send(w, &reader_end_of_shard(r)->sums, e);
			return k < 0 ? k : writer_finish(w, e);
		}
		if ((k == READER_DATA || (k == READER_NOTE &&
		    (reader_frame(r)->type == FRAME_POLI ||
		    reader_frame(r)->type == FRAME_MEMB))) &&
		    (k = writer_pass(w, r, e)) < 0)
			return k;
	}
	return reader_blame(r, k, e);
}

/* Open a writer of one more shard; *at is its place in the file. */
static int
gather_spill_begin(struct gather_spill *a, struct writer **w, uint64_t *at,
    struct err *e)
{
	off_t end;
	int k;

	*w = NULL;
	if (a->fd < 0 && (k = temp_open(&a->fd, e)) < 0) {
		a->fd = -1;
		return k;
	}
	if ((end = lseek(a->fd, 0, SEEK_END)) < 0)
		return err_sys(e, "<temporary>");
	*at = (uint64_t)end;
	return writer_fd(w, a->fd, "ace-aggregate", e);
}

/* Sets aside the shard that `from' stands at, which is read to its verified end;
 * *at is its place in the file. */
static int
gather_spill_put(struct gather_spill *a, struct reader *from, uint64_t *at, struct err *e)
{
	struct writer *w;
	int k = gather_spill_begin(a, &w, at, e);

	if (k == 0)
		k = gather_spill_copy(from, w, e);
	writer_free(w);
	return k;
}

/* *out becomes a reader that stands at the shard at that place. */
static int
gather_spill_get(const struct gather_spill *a, uint64_t at, struct reader **out,
    const struct reader_opts *o, struct err *e)
{
	struct io *io;
	int k;

	*out = NULL;
	if ((k = io_open_at(&io, a->fd, at, "<temporary>", e)) < 0 ||
	    (k = reader_open(out, io, o, e)) < 0)
		return k;
	k = reader_to_shard(*out, e);
	return k < 0 ? reader_blame(*out, k, e) : 0;
}

static int
gather_spill_empty(struct gather_spill *a, struct err *e)
{
	if (a->fd >= 0 && (ftruncate(a->fd, 0) < 0 ||
	    lseek(a->fd, 0, SEEK_SET) < 0))
		return err_sys(e, "<temporary>");
	return 0;
}

static void
gather_spill_close(struct gather_spill *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
}

/* ---- a contribution ---- */

/* To the next shard of a stream: 1, or 0 at the end. */
static int
gather_in_next(struct reader *r, struct err *e)
{
	return reader_blame(r, reader_to_shard(r, e), e);
}

/* Opens it, if it is not lent: 1, or 0 where the file has no further shard. */
static int
gather_in_open(struct gather_in *in, const struct reader_opts *o, struct err *e)
{
	uint64_t i;
	int k;

	if (in->lent)
		return 1;
	if (in->path == NULL)
		return (k = gather_spill_get(in->aside, in->place, &in->r, o, e)) < 0 ?
		    k : 1;
	if ((k = reader_file(&in->r, in->path, o, e)) < 0)
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

/* The values from the first group on; what is noted between them goes to policy
 * and members.  spool: of a difference there is what was reconstructed of it. */
static int
gather_in_values(struct gather_in *in, int spool, struct err *e)
{
	const struct shard *sh = reader_shard(in->r);
	int k;

	in->v.differences = spool && (sh->flags & SHARD_PREDICTED) != 0;
	if (in->v.differences && (k = mirror_open(&in->made, in->path, sh,
	    reader_schema(in->r), e)) < 0)
		return k;
	in->v.lists = 1;	/* until gather_group asks for all values */
	in->v.note = gather_in_hear;
	in->v.arg = in;
	text_release(&in->policy);
	array_release(&in->members);
	return values_begin(&in->v, in->r, e);
}

/* The opposite of both. */
static void
gather_in_shut(struct gather_in *in)
{
	values_release(&in->v);
	dense_close(&in->made);
	if (in->lent)
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

static const struct shard *
gather_in_head(const struct gather_in *in)
{
	return in->lent ? reader_shard(in->r) : &in->head;
}

/* The next group, into in->v. */
static int
gather_in_group(struct gather_in *in, uint32_t group, int lists, struct err *e)
{
	int k;

	in->v.lists = lists;
	if ((k = values_next(&in->v, e)) < 0)
		return reader_blame(in->r, k, e);
	if (k == 0 || in->v.group != group)
		return err_set(e, ERR_USAGE, "groups asked out of order");
	if (in->made.r == NULL)
		return 0;
	in->v.is_listed = 0;
	if ((k = dense_group(&in->made, group, &in->v.x, e)) == 0)
		in->v.sent = in->v.x != NULL;
	return k;
}

/* ---- those that are open ---- */

/* Of contributions that are open at a time, up to GATHER_OPEN: fewer where they
 * would take more memory, but for a few. */
enum { GATHER_FEW = 16, GATHER_MEMORY = 32 << 20 };
/* Of one: what its reader takes, and the largest frame of our writers. */
enum { GATHER_READER = 80 << 10, GATHER_FRAME = 1 << 20 };

uint64_t
gather_window_memory(const struct gather *g)
{
	uint64_t frame = g->n != 0 ? g->bytes / g->n : 0;

	return GATHER_READER + 4 * (uint64_t)g->schema.group_size +
	    (frame < GATHER_FRAME ? frame : GATHER_FRAME);
}

/* How many files are open at a time: at most half of what the system allows. */
static size_t
gather_window_files(void)
{
	const long files = sysconf(_SC_OPEN_MAX) / 2;

	return files > 0 && files < GATHER_OPEN ? (size_t)files : GATHER_OPEN;
}

/* How many files are open at a time, in little memory.  Where some contributions are
 * two files, all count as two. */
static size_t
gather_room_some(const struct gather *g)
{
	const size_t files = gather_window_files();
	uint64_t room = memlimit_of(GATHER_MEMORY) / gather_window_memory(g);

	if (room < GATHER_FEW)
		room = GATHER_FEW;
	if (room > files)
		room = files;
	if (g->files > g->n)
		room /= 2;
	return room != 0 ? (size_t)room : 1;
}

/* What is lent is open, so that it makes one window. */
static size_t
gather_room(const struct gather *g)
{
	return g->whole || (g->n != 0 && g->in[0].lent) ? g->n :
	    gather_room_some(g);
}

size_t
gather_opens(const struct gather *g)
{
	return g->files;
}

size_t
gather_fits(const struct gather *g, size_t files)
{
	size_t i, n = 0;

	for (i = 0; i < g->n; i++)	/* sorted, but each knows its place */
		n += g->in[i].files <= files;
	return n;
}

size_t
gather_windows(const struct gather *g)
{
	return g->n == 0 ? 1 : (g->n - 1) / gather_room(g) + 1;
}

/* Open one more. */
static int
gather_window_next(struct gather *g, struct err *e)
{
	struct gather_in *in = &g->in[g->hi++];
	int k = gather_in_open(in, &g->o, e);

	if (k == 0 || (k > 0 && shard_key(reader_shard(in->r)) !=
	    shard_key(gather_in_head(in))))
		k = err_set(e, ERR_DATA, "mismatch: '%s' was changed while it was "
		    "read", in->path);
	if (k > 0)
		k = gather_in_values(in, g->once, e);
	return gather_blame(g, g->hi - 1, k);
}

int
gather_window(struct gather *g, size_t w, struct err *e)
{
	const size_t room = gather_room(g);
	int k = 0;

	for (; g->lo < g->hi; g->lo++)
		gather_in_shut(&g->in[g->lo]);
	g->lo = g->hi = w * room;
	while (g->hi < g->n && g->hi - g->lo < room && k == 0)
		k = gather_window_next(g, e);
	return k;
}

void
gather_window_range(const struct gather *g, size_t *lo, size_t *hi)
{
	*lo = g->lo;
	*hi = g->hi;
}

/* ---- opening ---- */

static int
gather_new(struct gather **g, int whole, const struct reader_opts *o,
    struct err *e)
{
	if ((*g = alloc_get(1, sizeof(**g), e)) == NULL)
		return -ERR_SYS;
	(*g)->o = *o;
	(*g)->whole = whole;
	(*g)->aside = (struct gather_spill){ -1 };
	(*g)->schema = (struct schema)SCHEMA_INIT;
	return 0;
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
	struct gather *g;
	int r = gather_new(out, whole, o, e);

	if (r < 0)
		return r;
	g = *out;
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
gather_many(struct gather **out, uint64_t step, char **paths, size_t n, int whole,
    const struct reader_opts *o, struct err *e)
{
	int r = gather_new(out, whole, o, e);

	if (r < 0)
		return r;
	(*out)->step = step;
	(*out)->path = paths;
	(*out)->npath = n;
	(*out)->once = 1;
	return 0;
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
	g->files = 0;
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
	gather_spill_close(&g->aside);
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
	**in = (struct gather_in){ .v = VALUES_INIT, .at = g->n++,
	    .policy = TEXT_KV_INIT };
	shard_init(&(*in)->head);
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
 * one schema.  Of a difference in a spool, what was reconstructed is open beside it. */
static int
gather_head(struct gather *g, const struct reader *r, struct err *e)
{
	struct gather_in *in = &g->in[g->n - 1];
	const struct shard *first = gather_in_head(&g->in[0]);
	char why[256];
	int k = in->lent ? 0 : shard_copy(&in->head, reader_shard(r), e);

	if (k < 0)
		return k;
	if ((reader_shard(r)->flags & SHARD_RECOVERED) != 0)
		return gather_blame(g, g->n - 1, err_set(e, ERR_REFUSED, "step "
		    "%llu of '%s' was recovered from a damaged file",
		    (unsigned long long)reader_shard(r)->step,
		    shard_device(reader_shard(r))));
	g->files += g->once && (reader_shard(r)->flags & SHARD_PREDICTED) != 0 ?
	    2 : 1;
	in->files = g->files;
	if (!g->have_schema) {
		g->have_schema = 1;
		return schema_copy(&g->schema, reader_schema(r), e);
	}
	if (schema_diff(&g->schema, reader_schema(r), why) == 0)
		return 0;
	if (g->once || (k = gather_same(first, reader_shard(r), e)) == 0)
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
	k = gather_spill_put(&g->aside, from, &in->place, e);
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

/* A shard that the step before has no more room for would be a second aggregate of that
 * step. */
static int
gather_surplus(struct gather *g, const struct shard *s, struct err *e)
{
	if (g->was && g->step == s->step && memcmp(g->run, s->run, SHARD_ID) == 0)
		return err_set(e, ERR_REFUSED, "'%.80s' is one more contribution to "
		    "step %llu, expected %llu", shard_device(s),
		    (unsigned long long)s->step, (unsigned long long)g->expect);
	g->was = 1;
	g->step = s->step;
	memcpy(g->run, s->run, SHARD_ID);
	return 0;
}

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
	if ((k = gather_surplus(g, reader_shard(g->one), e)) < 0)
		return k;
	step = g->step;
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

/* ---- shards of steps before this one ---- */

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

/* The device's shards together, the newest first. */
static int
gather_join_order(const void *a, const void *b)
{
	const struct gather_in *x = a, *y = b;
	const int k = gather_order(x, y);

	return k != 0 ? k : x->head.step > y->head.step ? -1 :
	    x->head.step < y->head.step;
}

/* Write the sum of one group of the open contributions, or nothing where none of
 * them has it. */
static int
gather_join_group(struct gather *g, uint32_t group, struct robust_sum *sum,
    struct writer *w, struct err *e)
{
	const int exact = schema_exact_group(&g->schema, group);
	struct schema_span span;
	const float *x;
	int k, sent = 0;
	size_t i;

	schema_span(&g->schema, group, &span);
	robust_sum_begin(sum, span.n);
	for (i = g->lo; i < g->hi; i++) {
		if ((k = gather_group(g, i, group, &x, e)) < 0)
			return k;
		/* of values that mean only themselves the newest */
		if (x != NULL && !(exact && sent))
			robust_sum_add(sum, 1, x);
		sent |= x != NULL;
	}
	if (!sent)
		return 0;
	if ((x = robust_sum_round(sum, 1)) == NULL)
		return gather_blame(g, g->lo, err_set(e, ERR_REFUSED, "the sum of "
		    "tensor '%s' of '%s' overflows f32",
		    g->schema.t[span.tensor].name,
		    shard_device(&g->in[g->lo].head)));
	return writer_values(w, group, x, span.n, e);
}

/* Write the sum of the open contributions, as a shard of this step with the
 * annotations of the first one. */
static int
gather_join_write(struct gather *g, struct robust_sum *sum, struct writer *w,
    struct err *e)
{
	struct gather_in *in = &g->in[g->lo];
	struct buf b = BUF_INIT;
	uint32_t group;
	int k = writer_shard(w, &in->head, &g->schema, e);

	for (group = 0; group < g->schema.ngroups && k == 0; group++)
		k = gather_join_group(g, group, sum, w, e);
	if (k == 0)
		k = gather_finish(g, e);
	if (k == 0 && in->policy.n != 0)
		k = keys_put(w, &in->policy, e);
	if (k == 0 && in->members.n != 0 &&
	    (k = array_put_names(&in->members, &b, e)) == 0)
		k = writer_note(w, FRAME_MEMB, b.p, b.n, e);
	buf_release(&b);
	if (k == 0 && (k = writer_send(w, NULL, e)) == 0)
		k = writer_finish(w, e);
	return k;
}

/* Add contributions lo to hi up; the last one becomes the sum, which is set aside. */
static int
gather_join_some(struct gather *g, size_t lo, size_t hi, struct robust_sum *sum,
    struct err *e)
{
	struct writer *w = NULL;
	struct gather_in first;
	uint64_t at = 0;
	int k = 0;

	for (g->lo = g->hi = lo; g->hi < hi && k == 0;)
		k = gather_window_next(g, e);
	/* which model it had in a step before says nothing of this one */
	if (k == 0 && g->in[lo].head.step != g->step)
		k = text_set(&g->in[lo].head.kv, SHARD_KEY_MODEL, NULL, e);
	g->in[lo].head.step = g->step;
	g->in[lo].head.flags &= ~SHARD_PREDICTED;
	if (k == 0 && (k = gather_spill_begin(&g->aside, &w, &at, e)) == 0)
		k = gather_join_write(g, sum, w, e);
	writer_free(w);
	for (; g->lo < g->hi; g->lo++)
		gather_in_shut(&g->in[g->lo]);
	if (k < 0)
		return k;
	first = g->in[lo];
	g->in[lo] = g->in[hi - 1];
	g->in[hi - 1] = first;
	g->in[hi - 1].path = NULL;
	g->in[hi - 1].aside = &g->aside;
	g->in[hi - 1].place = at;
	return 0;
}

/* Add up contributions lo to hi, which are of one device. */
static int
gather_join(struct gather *g, size_t lo, size_t hi, struct robust_sum *sum,
    struct err *e)
{
	const size_t room = gather_room_some(g);
	size_t i, to = lo;
	int k = robust_sum_room(sum, g->schema.group_size, e);

	for (i = lo + 1; i < hi && k == 0; i++)
		if (g->in[i].head.step == g->in[i - 1].head.step ||
		    memcmp(g->in[i].head.run, g->in[lo].head.run, SHARD_ID) != 0)
			k = gather_blame(g, i, gather_agree(&g->in[i - 1],
			    &g->in[i], e));
	while (k == 0) {
		i = hi - to <= room ? hi : to + (room > 2 ? room : 2);
		if ((k = gather_join_some(g, to, i, sum, e)) < 0 || i == hi)
			return k;
		to = i - 1;
	}
	return k;
}

/* Make one contribution to this step of all shards that a device has here. */
static int
gather_join_all(struct gather *g, struct err *e)
{
	struct robust_sum sum = { .kern = kern_get(e) };
	size_t i, hi, m = 0;
	int k = sum.kern != NULL ? 0 : -ERR_USAGE;

	qsort(g->in, g->n, sizeof(*g->in), gather_join_order);
	for (i = 0, g->files = 0; i < g->n && k == 0; i = hi) {
		for (hi = i + 1; hi < g->n && gather_order(&g->in[i],
		    &g->in[hi]) == 0; hi++)
			;
		if ((hi - i > 1 || g->in[i].head.step != g->step) &&
		    (k = gather_join(g, i, hi, &sum, e)) < 0)
			break;
		while (i + 1 < hi)
			gather_in_release(&g->in[i++]);
		g->in[m] = g->in[i];
		g->files += (g->in[m].head.flags & SHARD_PREDICTED) != 0 ? 2 : 1;
		g->in[m++].files = g->files;
	}
	memmove(&g->in[m], &g->in[i], (g->n - i) * sizeof(*g->in));
	g->n -= i - m;
	robust_sum_release(&sum);
	return k;
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
	return g->once && (k = gather_join_all(g, e)) < 0 ? k : 1;
}

int
gather_again(struct gather *g, struct err *e)
{
	if (g->nsrc != 0 && !g->twice)
		return err_set(e, ERR_USAGE, "a step read twice that was not "
		    "set aside");
	return gather_window(g, 0, e);
}

/* ---- a step ---- */

/* The contributions of the next step, in any order: 1, or 0 at the end. */
static int
gather_come(struct gather *g, struct err *e)
{
	int k;

	gather_drop(g);
	if ((k = gather_spill_empty(&g->aside, e)) < 0)
		return k;
	return g->one != NULL ? gather_collect(g, e) :
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

/* Does contribution i, or one that is in it, have this name? */
static int
gather_has(const struct gather *g, size_t i, const char *name)
{
	const struct array_names *m = &g->in[i].members;
	size_t k;

	if (g->in[i].left)
		return 0;
	if (m->n == 0)
		return strcmp(shard_device(gather_shard(g, i)), name) == 0;
	for (k = 0; k < m->n && strcmp(m->p[k], name) != 0; k++)
		;
	return k < m->n;
}

/* Of the names that are there twice: how many a contribution has, and how many of
 * these are those of other contributions' own devices. */
struct gather_shared {
	size_t all, others;
};

/* The contribution whose own device has that name, and which says so; g->n: none. */
static size_t
gather_owner(const struct gather *g, const char *name)
{
	size_t k = 0;

	while (k < g->n && strcmp(shard_device(gather_shard(g, k)), name) != 0)
		k++;
	return k < g->n && gather_has(g, k, name) ? k : g->n;
}

/* Returns how many names are there twice. */
static size_t
gather_share(const struct gather *g, const struct array_names *l,
    struct gather_shared *of)
{
	size_t i, k, owner, n = 0;

	for (i = 1; i < l->n; i++) {
		if (strcmp(l->p[i - 1], l->p[i]) != 0 ||
		    (i > 1 && strcmp(l->p[i - 2], l->p[i]) == 0))
			continue;
		n++;
		owner = gather_owner(g, l->p[i]);
		for (k = 0; k < g->n; k++) {
			if (!gather_has(g, k, l->p[i]))
				continue;
			of[k].all++;
			of[k].others += owner < g->n && owner != k;
		}
	}
	return n;
}

/* Is contribution i to blame rather than k, which comes before it?  First is who names
 * the device of a shard that is here, since that speaks for itself; then who has most
 * of the names that others have, since anybody may say that he speaks for all of them;
 * then who speaks for fewer; then the later one. */
static int
gather_worse(const struct gather *g, const struct gather_shared *of, size_t i, size_t k)
{
	if ((of[i].others != 0) != (of[k].others != 0))
		return of[i].others != 0;
	if (of[i].all != of[k].all)
		return of[i].all > of[k].all;
	return g->in[i].members.n <= g->in[k].members.n;
}

/* Who is in two contributions would count twice. */
static int
gather_once(struct gather *g, const struct array_names *l, struct err *e)
{
	struct gather_shared *of = alloc_get(g->n + 1, sizeof(*of), e);
	size_t i, worst = 0, other = 0, at = 0;
	int r = 0;

	if (of == NULL)
		return -ERR_SYS;
	if (gather_share(g, l, of) != 0) {
		for (i = 1; i < g->n; i++)
			if (gather_worse(g, of, i, worst))
				worst = i;
		for (at = 1; at + 1 < l->n && (strcmp(l->p[at - 1], l->p[at]) != 0 ||
		    !gather_has(g, worst, l->p[at])); at++)
			;
		while (other + 1 < g->n && (other == worst ||
		    !gather_has(g, other, l->p[at])))
			other++;
		r = gather_blame(g, worst, err_set(e, ERR_REFUSED, "'%.80s' is "
		    "in '%.80s' and in '%.80s', and would count twice",
		    l->p[at], shard_device(gather_shard(g, other)),
		    shard_device(gather_shard(g, worst))));
	}
	alloc_free(of);
	return r;
}

int
gather_members(struct gather *g, struct array_names *l, struct err *e)
{
	const struct array_names *m;
	const char *name;
	size_t i, k;
	int r = 0;

	for (i = 0; i < g->n && r == 0; i++) {
		if (g->in[i].left)
			continue;
		m = &g->in[i].members;
		name = shard_device(gather_shard(g, i));
		if (m->n == 0)
			r = array_name(l, name, strlen(name), e);
		for (k = 0; k < m->n && r == 0; k++)
			r = array_name(l, m->p[k], strlen(m->p[k]), e);
	}
	array_sort(l);
	return r < 0 ? r : gather_once(g, l, e);
}
