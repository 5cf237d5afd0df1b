#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/pool.h"
#include "base/temp.h"
#include "base/wait.h"
#include "device/dense.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/reader.h"
#include "format/values.h"
#include "kern/kern.h"
#include "mean/gather.h"
#include "pipe/source.h"
#include "spool/history.h"
#include "sync/robust.h"

/* Limit on the files that stay open for their values, and on those that stay open for their
 * next step; or a quarter of this process's limit on open files, if that is less. */
enum { GATHER_OPEN = 256 };

struct gather_input {
	const char *path;	/* NULL: standard input */
	int file;		/* 1: a regular file, which can be opened again */
	int pipe;		/* 1: a pipe; threads read several pipes (gather_pipes) */
	struct reader *r;	/* NULL: not open */
	int ahead;		/* 1: r stands at the next shard */
	int ended;		/* 1: there is no further shard */
	uint64_t done;		/* shards that were read */
	int fd;			/* file to read groups from; -1: groups are copied from r */
};

static int
gather_blame_input(struct gather *g, size_t input, int r)
{
	if ((r == -ERR_DATA || r == -ERR_REFUSED) && g->blame == 0)
		g->blame = input + 1;
	return r;
}

int
gather_blame(struct gather *g, size_t i, int r)
{
	return gather_blame_input(g, g->in[i].s[g->in[i].bad].input, r);
}

/* ---- where the values of a shard are ---- */

/* Open a second descriptor of r's file, for its values, unless g->most are open. */
static void
gather_hold(struct gather *g, struct gather_input *in, const struct reader *r)
{
	struct stat st;

	if (in->fd < 0 && in->file && io_can_seek(reader_io(r)) && g->held < g->most &&
	    fd_open(reader_name(r), FD_FILE, &in->fd, &st, NULL) == 0)
		g->held++;
}

/* Append n bytes to the temporary file, and set *at to their position in it. */
static int
gather_copy(struct gather *g, const unsigned char *p, size_t n, uint64_t *at,
    struct err *e)
{
	int k = 0;

	if (g->pool != NULL)
		pool_lock(g->pool);
	if (g->fd < 0 && (k = temp_open(NULL, &g->fd, e)) < 0)
		g->fd = -1;
	*at = g->end;
	g->end += n;
	if (g->pool != NULL)
		pool_unlock(g->pool);
	if (k == 0 && (k = fd_write_at(g->fd, (off_t)*at, p, n, TEMP_UNNAMED, e)) < 0)
		(void)err_after(e, k, " (TMPDIR sets the folder of temporary files)");
	return k;
}

/* Append the records of r's DATA frame to the table of s. */
static int
gather_data(struct gather *g, struct gather_shard *s, const struct reader *r,
    struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	size_t i, n;
	const struct record *rec = reader_records(r, &n);
	const unsigned char *const from = rec[0].body;
	const int copied = g->input[s->input].fd < 0 || f->raw != f->wire;
	uint64_t at = reader_offset(r) + FRAME_HEAD_SIZE + (uint64_t)(from - f->raw);
	int k = alloc_grow(&s->rec, &s->cap, s->n + n, sizeof(*s->rec), e);

	if (k == 0 && copied)
		k = gather_copy(g, from, (size_t)(f->raw + f->raw_len - from), &at, e);
	for (i = 0; i < n && k == 0; i++)
		s->rec[s->n++] = (struct gather_record){
			.at = at + (uint64_t)(rec[i].body - from),
			.hash = hash_64(rec[i].body, rec[i].len),
			.group = rec[i].group, .len = (uint32_t)rec[i].len,
			.codec = rec[i].codec, .param = rec[i].param,
			.copied = (uint8_t)copied
		};
	return k;
}

/* Keep the names or the policy in the annotation at which r stands. */
static int
gather_hear(struct gather_shard *s, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);

	if (f->type == FRAME_MEMB)
		return array_get_names(&s->members, f->raw, f->raw_len, e);
	return keys_add(&s->policy, r, e);
}

/* Read the shard at which r stands, and verify it.  data 1: make the table of s; notes 1:
 * keep the annotations. */
static int
gather_index(struct gather *g, struct gather_shard *s, struct reader *r, int data,
    int notes, struct err *e)
{
	int k;

	if (data)
		gather_hold(g, &g->input[s->input], r);
	while ((k = reader_next(r, e)) > 0 && k != READER_SEND)
		if ((k = k == READER_DATA ? (data ? gather_data(g, s, r, e) : 0) :
		    notes ? gather_hear(s, r, e) : 0) < 0)
			break;
	if (k < 0)
		return reader_blame(r, k, e);
	s->nonzero = reader_end_of_shard(r)->sums.nonzero;
	return 0;
}

/* Index a difference in a spool: use the values of its reconstruction instead of its own. */
static int
gather_history(struct gather *g, struct gather_shard *s, struct err *e)
{
	struct dense d;
	int k = history_open(&d, g->input[s->input].path, &s->head, &g->schema, e);

	if (k == 0)
		k = gather_index(g, s, d.r, 1, 0, e);
	dense_close(&d);
	return k;
}

/* ---- inputs ---- */

static int
gather_input_open(struct gather *g, struct gather_input *in, struct err *e)
{
	struct io *io;
	uint64_t i;
	int k = g->once ? io_open(&io, in->path, e) : source_io(&io, in->path, e);

	if (k < 0)
		return k;
	io_watch(io, g->to);
	k = reader_open(&in->r, io, &g->o, e);
	for (i = 0; i < in->done && k >= 0; i++)
		k = reader_blame(in->r, reader_to_shard(in->r, e), e);
	return k < 0 ? k : 0;
}

static void
gather_input_shut(struct gather_input *in)
{
	reader_free(in->r);
	in->r = NULL;
	in->ahead = 0;
}

/* Go to the next shard of an input.  Return 1, or 0 if the input ended. */
static int
gather_seek(struct gather *g, struct gather_input *in, struct err *e)
{
	int k;

	if (in->ahead || in->ended)
		return in->ahead;
	if (in->r == NULL && (k = gather_input_open(g, in, e)) < 0)
		return k;
	k = reader_blame(in->r, reader_to_shard(in->r, e), e);
	in->ahead = k > 0;
	in->ended = k == 0;
	return k;
}

/* Close the reader of a file that is in a spool, has no further shard, or is beyond the
 * limit g->most.  gather_seek opens a file again if its next shard is needed. */
static void
gather_rest(struct gather *g, struct gather_input *in)
{
	if (in->file && (g->once || (size_t)(in - g->input) >= g->most ||
	    gather_seek(g, in, NULL) <= 0))
		gather_input_shut(in);
}

static int
gather_is_file(const char *path)
{
	struct stat st;

	return path != NULL && strcmp(path, "-") != 0 && stat(path, &st) == 0 &&
	    S_ISREG(st.st_mode);
}

int
gather_many(struct gather **out, uint64_t step, char **paths, size_t n,
    const struct reader_opts *o, struct err *e)
{
	const long files = sysconf(_SC_OPEN_MAX) / 4;
	struct gather *g = *out = alloc_get(1, sizeof(*g), e);
	size_t i;

	if (g == NULL)
		return -ERR_SYS;
	g->to = g->fd = -1;
	if ((g->input = alloc_get(n, sizeof(*g->input), e)) == NULL)
		return -ERR_SYS;
	g->o = *o;
	g->step = step;
	g->once = 1;
	g->schema = (struct schema)SCHEMA_INIT;
	g->most = files > 0 && files < GATHER_OPEN ? (size_t)files : GATHER_OPEN;
	g->ninput = n;
	for (i = 0; i < n; i++)
		g->input[i] = (struct gather_input){ .path = paths[i], .file = 1,
		    .fd = -1 };
	return 0;
}

int
gather_open(struct gather **out, char **paths, size_t n, uint64_t expect, int to,
    const struct reader_opts *o, struct err *e)
{
	char *standard = NULL;
	int k = gather_many(out, 0, n != 0 ? paths : &standard, n != 0 ? n : 1, o, e);
	struct gather *g = *out;
	unsigned pipes = 0;
	struct gather_input *in;

	if (k < 0)
		return k;
	g->once = 0;
	g->expect = expect;
	g->to = to;
	if (n > 1 && expect != 0 && expect != n)
		return err_set(e, ERR_REFUSED, "found %zu inputs, expected %llu "
		    "(--devices)", n, (unsigned long long)expect);
	/* files are opened one after another, when they are read */
	for (in = g->input; in < g->input + g->ninput && k == 0; in++) {
		in->file = gather_is_file(in->path);
		if (!in->file && (k = gather_input_open(g, in, e)) == 0) {
			in->pipe = io_is_pipe(reader_io(in->r));
			pipes += in->pipe != 0;
		}
	}
	/* with several pipes, one thread for each */
	return k == 0 && pipes > 1 ? pool_new(&g->pool, pipes, e) : k;
}

static void
gather_drop(struct gather *g)
{
	struct gather_shard *s;

	while (g->nshard != 0) {
		s = &g->shard[--g->nshard];
		text_release(&s->policy);
		array_release(&s->members);
		shard_release(&s->head);
		alloc_free(s->rec);
	}
	alloc_free(g->in);
	g->in = NULL;
	g->n = 0;
	g->end = 0;
	schema_release(&g->schema);
	g->schema = (struct schema)SCHEMA_INIT;
}

void
gather_free(struct gather *g)
{
	size_t i;

	if (g == NULL)
		return;
	gather_drop(g);
	if (g->fd >= 0)
		(void)close(g->fd);
	for (i = 0; i < g->ninput; i++) {
		gather_input_shut(&g->input[i]);
		if (g->input[i].fd >= 0)
			(void)close(g->input[i].fd);
	}
	pool_free(g->pool);
	alloc_free(g->input);
	alloc_free(g->shard);
	alloc_free(g);
}

/* ---- the shards of a step ---- */

/* Set the head of s from the shard at which r stands, and check that its schema is equal to
 * the first shard's. */
static int
gather_head(struct gather *g, struct gather_shard *s, const struct reader *r,
    struct err *e)
{
	const struct shard *sh = reader_shard(r);
	char why[256];
	int k = shard_copy(&s->head, sh, e);

	if (k < 0)
		return k;
	s->step = sh->step;
	if (!g->once && (k = values_whole(sh, e)) < 0)
		return k;
	if (s == g->shard)
		return schema_copy(&g->schema, reader_schema(r), e);
	return schema_diff(&g->schema, reader_schema(r), why) == 0 ? 0 :
	    err_set(e, ERR_DATA, "mismatch: shards '%s/%llu' and '%s/%llu' have different "
	    "tensors: %s", shard_device(&g->shard[0].head),
	    (unsigned long long)g->shard[0].head.step, shard_device(sh),
	    (unsigned long long)sh->step, why);
}

/* Make room in the step for a shard of an input. */
static int
gather_add(struct gather *g, size_t input, struct err *e)
{
	int k = alloc_grow(&g->shard, &g->cap, g->nshard + 1, sizeof(*g->shard), e);
	struct gather_shard *s;

	if (k < 0)
		return k;
	s = &g->shard[g->nshard++];
	*s = (struct gather_shard){ .policy = TEXT_KV_INIT, .input = input };
	shard_init(&s->head);
	return 0;
}

/* Set s to the shard at which the reader of its input stands.  Read the shard to its end,
 * unless a thread has read it (gather_pipes). */
static int
gather_take(struct gather *g, struct gather_shard *s, struct err *e)
{
	struct gather_input *in = &g->input[s->input];
	int k, differs;

	in->ahead = 0;
	in->done++;
	if ((k = gather_head(g, s, in->r, e)) < 0 || (g->pool != NULL && in->pipe))
		return reader_blame(in->r, k, e);
	differs = (s->head.flags & SHARD_PREDICTED) != 0;
	k = gather_index(g, s, in->r, !differs, 1, e);
	return k == 0 && differs ? gather_history(g, s, e) : k;
}

/* Take the shards of one step from the only input.  The step is over when the expected
 * number of shards was read or, if no number is expected, at a shard of another step or the
 * end of the input. */
static int
gather_collect(struct gather *g, struct err *e)
{
	struct gather_input *in = &g->input[0];
	const struct shard *s;
	int k = gather_seek(g, in, e);

	if (k <= 0)
		return k;
	s = reader_shard(in->r);
	/* a surplus contribution would become a second aggregate of the same step */
	if (g->was && g->step == s->step && memcmp(g->run, s->run, SHARD_ID) == 0)
		return err_set(e, ERR_REFUSED, "'%.80s' is one contribution too "
		    "many for step %llu, expected %llu (--devices)", shard_device(s),
		    (unsigned long long)s->step, (unsigned long long)g->expect);
	g->was = 1;
	g->step = s->step;
	memcpy(g->run, s->run, SHARD_ID);
	do {
		if ((k = gather_add(g, 0, e)) < 0 ||
		    (k = gather_take(g, &g->shard[g->nshard - 1], e)) < 0)
			return k;
		if (g->nshard == g->expect)
			return 1;
		if ((k = gather_seek(g, in, e)) < 0)
			return k;
	} while (k > 0 && reader_shard(in->r)->step == g->step);
	return g->expect == 0 ? 1 : err_set(e, ERR_REFUSED, "contributions to step "
	    "%llu: found %zu, expected %llu (--devices)%s", (unsigned long long)g->step,
	    g->nshard, (unsigned long long)g->expect, k == 0 ? "" : ": if the input has "
	    "one device's stream after another's, give each as a FILE of its own");
}

/* Read a shard of input i, if that is a pipe: a job of the pool. */
static int
gather_pipe(void *arg, unsigned who, size_t i, struct err *e)
{
	struct gather *g = arg;
	struct gather_input *in = &g->input[i];
	int k = in->pipe ? gather_seek(g, in, e) : 0;

	return k > 0 ? gather_index(g, &g->shard[i], in->r, 1, 1, e) : k;
}

/* Read one shard of each pipe, all at the same time.  If they were read one after another, the
 * pipe being read could stay empty because its writer waits at another pipe, which is full. */
static int
gather_pipes(struct gather *g, struct err *e)
{
	const int k = pool_run(g->pool, g->ninput, POOL_LITTLE, gather_pipe, g, e);

	/* SIGPIPE is blocked in the threads: raise it here if the output has no reader */
	if (k < 0)
		(void)wait_orphan(g->to, 0, NULL);
	return k;
}

/* Take one shard from each input.  Return 1, or 0 if all have ended. */
static int
gather_advance(struct gather *g, struct err *e)
{
	size_t i, ended = 0, first = 0;
	struct gather_input *in;
	int k = 0;

	for (i = 0; i < g->ninput && k == 0; i++)
		k = gather_add(g, i, e);
	if (k < 0 || (g->pool != NULL && (k = gather_pipes(g, e)) < 0))
		return k;
	for (i = 0; i < g->ninput; i++) {
		in = &g->input[i];
		if ((k = gather_seek(g, in, e)) > 0)
			k = ended == 0 ? gather_take(g, &g->shard[i], e) : 0;
		else if (k == 0 && g->once)
			k = err_set(e, ERR_DATA, "truncated: '%s' has no shard",
			    in->path);
		else if (k == 0 && ended++ == 0)
			first = i;
		gather_rest(g, in);
		if (k < 0)
			return gather_blame_input(g, i, k);
	}
	return ended == 0 ? 1 : ended == g->ninput ? 0 : err_set(e, ERR_REFUSED,
	    "'%s' has fewer shards than others: found %llu, inputs with more: %zu of %zu",
	    g->input[first].path, (unsigned long long)g->input[first].done,
	    g->ninput - ended, g->ninput);
}

/* ---- the contributions to a step ---- */

/* Sort by device, and the shards of one device from the newest to the oldest. */
static int
gather_order(const void *a, const void *b)
{
	const struct shard *x = &((const struct gather_shard *)a)->head;
	const struct shard *y = &((const struct gather_shard *)b)->head;
	const int k = memcmp(x->device, y->device, SHARD_ID);

	return k != 0 ? k : x->step > y->step ? -1 : x->step < y->step;
}

/* Return the name of the input of a shard, for messages. */
static const char *
gather_name(const struct gather *g, const struct gather_shard *s)
{
	const char *path = g->input[s->input].path;

	return path != NULL ? path : "<stdin>";
}

/* Check that a shard and the one before it have the same run and differ in device or step.
 * Except in a spool, check that they have the same step. */
static int
gather_agree(const struct gather *g, const struct gather_shard *one, struct err *e)
{
	const struct shard *s = &one[-1].head, *t = &one->head;
	const char *from = gather_name(g, &one[-1]), *to = gather_name(g, one);
	const unsigned long long step = s->step;

	if (memcmp(s->run, t->run, SHARD_ID) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shards are of different "
		    "runs: '%s' of '%s' and '%s' of '%s', in '%.80s' and '%.80s': give "
		    "shards of one run", shard_run(s), shard_device(s), shard_run(t),
		    shard_device(t), from, to);
	if (!g->once && s->step != t->step)
		return err_set(e, ERR_DATA, "mismatch: the shards are of different "
		    "steps: %llu of '%s' and %llu of '%s', in '%.80s' and '%.80s': give "
		    "inputs with the same steps", step, shard_device(s),
		    (unsigned long long)t->step, shard_device(t), from, to);
	if (s->step == t->step && memcmp(s->device, t->device, SHARD_ID) == 0)
		return err_set(e, ERR_REFUSED, "found two shards of '%s' for step %llu, "
		    "in '%.80s' and '%.80s': leave out one or, if they are of two "
		    "devices or averages, make each with a name of its own (--device)",
		    shard_device(s), step, from, to);
	return 0;
}

/* Make one contribution of the shards of each device.  In a spool, set its step to the step
 * that is being made, even if all its shards are of earlier steps. */
static int
gather_join(struct gather *g, struct err *e)
{
	struct gather_shard *s = g->shard;
	struct gather_in *in;
	size_t i;
	int k = 0;

	if ((g->in = alloc_get(g->nshard, sizeof(*g->in), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < g->nshard && k == 0; i++, s++) {
		if (i != 0 && memcmp(s->head.device, s[-1].head.device, SHARD_ID) == 0) {
			g->in[g->n - 1].n++;
			continue;
		}
		in = &g->in[g->n++];
		in->s = s;
		in->n = 1;
		/* the model digest of an earlier step does not apply to this one */
		if (g->once && s->step != g->step)
			k = text_set(&s->head.kv, SHARD_KEY_MODEL, NULL, e);
		if (g->once)
			s->head.step = g->step;
	}
	return k;
}

int
gather_step(struct gather *g, struct err *e)
{
	size_t i;
	int k;

	gather_drop(g);
	if ((k = g->ninput == 1 && !g->once ? gather_collect(g, e) :
	    gather_advance(g, e)) <= 0)
		return k;
	qsort(g->shard, g->nshard, sizeof(*g->shard), gather_order);
	for (i = 1; i < g->nshard; i++)
		if ((k = gather_agree(g, &g->shard[i], e)) < 0)
			return gather_blame_input(g, g->shard[i].input, k);
	return (k = gather_join(g, e)) < 0 ? k : 1;
}

uint64_t
gather_came(const struct gather *g, size_t i)
{
	struct stat st;

	if (fstatat(AT(g->input[g->in[i].s->input].path), &st, 0) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

/* ---- values ---- */

void
gather_part_release(struct gather_part *p)
{
	buf_release(&p->body);
	alloc_free(p->room);
	codec_list_release(&p->list);
	robust_sum_release(&p->sum);
}

/* Return the record of a group, or NULL if the shard does not have it. */
static const struct gather_record *
gather_find(struct gather_shard *s, uint32_t group)
{
	while (s->at < s->n && s->rec[s->at].group < group)
		s->at++;
	return s->at < s->n && s->rec[s->at].group == group ? &s->rec[s->at] : NULL;
}

/* Set p to the group of one shard.  lists 1: to a list of values if the codec has one. */
static int
gather_one(const struct gather *g, struct gather_shard *s, uint32_t group, int lists,
    struct gather_part *p, struct err *e)
{
	const struct gather_input *in = &g->input[s->input];
	const struct gather_record *rec = gather_find(s, group);
	struct schema_span span;
	struct codec_ctx ctx;
	struct kern_stat st = { .nonzero = 0 };
	struct record own;
	int k;

	p->x = NULL;
	p->l = NULL;
	if (rec == NULL)
		return 0;
	if ((k = buf_room(&p->body, rec->len, e)) < 0 || (k = fd_read_all(rec->copied ?
	    g->fd : in->fd, (off_t)rec->at, p->body.p, rec->len, rec->copied ?
	    TEMP_UNNAMED : in->path, e)) < 0)
		return k;
	if (hash_64(p->body.p, rec->len) != rec->hash)
		return err_set(e, ERR_DATA, rec->copied ? "corrupt: '%s' no longer has the "
		    "bytes written to it (TMPDIR sets the folder of temporary files)" : "mismatch: "
		    "'%s' changed while it was read: try again when nothing writes it",
		    rec->copied ? TEMP_UNNAMED : gather_name(g, s));
	own = (struct record){ rec->group, rec->codec, rec->param, p->body.p, rec->len };
	schema_span(&g->schema, group, &span);
	values_ctx(&g->schema, &s->head, group, &ctx);
	ctx.step = s->step;
	if (lists && codec_lists(rec->codec))
		p->l = &p->list;
	else if ((k = alloc_grow(&p->room, &p->cap, g->schema.group_size,
	    sizeof(*p->room), e)) < 0)
		return k;
	k = values_record(&own, &ctx, span.n, p->room, p->l != NULL ? &p->list : NULL,
	    &p->x, &st, e);
	s->decoded++;
	s->found += st.nonzero;
	if (k != -ERR_DATA)
		return k;
	return err_file(e, err_after(e, k, ", in group %lu of tensor '%.80s' of '%.80s'",
	    (unsigned long)group, g->schema.t[span.tensor].name,
	    shard_device(&s->head)), in->path);
}

/* Set p to the sum of the group over the shards of a contribution. */
static int
gather_sum(const struct gather *g, struct gather_in *in, uint32_t group,
    struct gather_part *p, struct err *e)
{
	const struct schema_tensor *t;
	struct schema_span span;
	size_t i;
	int k, sent = 0;

	schema_span(&g->schema, group, &span);
	t = &g->schema.t[span.tensor];
	p->sum.kern = kern_get(e);
	if ((k = robust_sum_room(&p->sum, g->schema.group_size, e)) < 0)
		return k;
	robust_sum_begin(&p->sum, span.n);
	for (i = 0; i < in->n; i++) {
		if ((k = gather_one(g, &in->s[i], group, 0, p, e)) < 0) {
			in->bad = i;
			return k;
		}
		/* for types without a mean, keep the newest values */
		if (p->x != NULL && !(sent && schema_exact(t->dtype)))
			robust_sum_add(&p->sum, 1, p->x);
		sent |= p->x != NULL;
	}
	p->x = sent ? robust_sum_round(&p->sum, 1) : NULL;
	return !sent || p->x != NULL ? 0 : err_set(e, ERR_REFUSED, "the sum of the %zu "
	    "shards of '%s' exceeds the range of f32, 3.4e38, in tensor '%s'", in->n,
	    shard_device(&in->s->head), t->name);
}

int
gather_group(struct gather *g, size_t i, uint32_t group, int lists,
    struct gather_part *p, struct err *e)
{
	struct gather_in *in = &g->in[i];

	p->r = in->n == 1 ? gather_one(g, in->s, group, lists, p, e) :
	    gather_sum(g, in, group, p, e);
	return p->r;
}

int
gather_read(struct gather *g, gather_fn *each, void *arg, struct err *e)
{
	struct schema_span span;
	struct gather_shard *s;
	uint32_t group;
	int k;

	for (s = g->shard; s < g->shard + g->nshard; s++)
		s->at = s->decoded = s->found = 0;
	for (group = 0; group < g->schema.ngroups; group++) {
		schema_span(&g->schema, group, &span);
		if ((k = each(arg, group, &span, e)) < 0)
			return k;
	}
	for (s = g->shard; s < g->shard + g->nshard; s++)
		if (s->decoded == s->n && s->found != s->nonzero)
			return gather_blame_input(g, s->input, err_file(e, err_set(e, ERR_DATA,
			    "corrupt: number of nonzero values in the shard of '%s': found %llu, "
			    "stated %llu", shard_device(&s->head), (unsigned long long)s->found,
			    (unsigned long long)s->nonzero), g->input[s->input].path));
	return 0;
}

/* ---- names ---- */

/* A name, and the index of the contribution that lists it.  own is 1 if it is the name of that
 * contribution's device, else 0. */
struct gather_name {
	const char *name;
	size_t i;
	int own;
};

/* Sort by name; of equal names the one of the contribution's own device comes first. */
static int
gather_by_name(const void *a, const void *b)
{
	const struct gather_name *x = a, *y = b;
	const int k = strcmp(x->name, y->name);

	return k != 0 ? k : x->own != y->own ? y->own - x->own :
	    x->i < y->i ? -1 : x->i > y->i;
}

/* Set the error for a name that is in two contributions and would count twice.  p[n] are
 * the sorted names.  Blame the contribution that lists the device of another shard in this
 * step; otherwise the one that shares more names, since any device could list all others;
 * otherwise the one that lists fewer names; otherwise the later one. */
static int
gather_twice_in(struct gather *g, const struct gather_name *p, size_t n, struct err *e)
{
	const uint64_t foreign = (uint64_t)1 << 63;	/* it lists another's device */
	uint64_t *shared = alloc_get(g->n, sizeof(*shared), e);
	size_t from, to, i, worst = 0;
	int k;

	if (shared == NULL)
		return -ERR_SYS;
	for (from = 0; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(p[to].name, p[from].name) == 0; to++)
			shared[p[to].i] = (shared[p[to].i] + 1) | (p[from].own ? foreign : 0);
		shared[p[from].i] += to - from > 1;
	}
	for (i = 1; i < g->n; i++)
		if (shared[i] > shared[worst] || (shared[i] == shared[worst] &&
		    shared[i] != 0 && g->in[i].s->members.n <= g->in[worst].s->members.n))
			worst = i;
	while (strcmp(p[0].name, p[1].name) != 0 || (p[0].i != worst && p[1].i != worst))
		p++;
	i = p[0].i == worst ? p[1].i : p[0].i;
	k = gather_blame(g, worst, err_set(e, ERR_REFUSED, "'%.80s' would count "
	    "twice, in the shards of '%.80s' and of '%.80s': leave one out; a device sends to one "
	    "cloud or relay only", p->name, shard_device(&g->in[i].s->head),
	    shard_device(&g->in[worst].s->head)));
	alloc_free(shared);
	return k;
}

int
gather_members(struct gather *g, struct array_names *l, struct err *e)
{
	struct gather_name *p = NULL;
	const struct gather_in *in;
	const char *device, *name;
	size_t i, k, n = 0, cap = 0;
	int r = 0;

	for (i = 0; i < g->n && r == 0; i++) {
		in = &g->in[i];
		device = shard_device(&in->s->head);
		k = 0;
		do {
			if (in->left ||
			    (r = alloc_grow(&p, &cap, n + 1, sizeof(*p), e)) < 0)
				break;
			name = in->s->members.n != 0 ? in->s->members.p[k] : device;
			p[n++] = (struct gather_name){ name, i, strcmp(name, device) == 0 };
		} while (++k < in->s->members.n);
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
