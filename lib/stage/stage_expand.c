#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/wait.h"
#include "device/error_feedback.h"
#include "device/learned.h"
#include "format/values.h"
#include "kern/kern.h"
#include "stage/stage_expand.h"

const struct opt stage_expand_rows[] = {
	{ 'S', "state", "DIR", "add the residual kept in DIR",
	    OPT_PATH(struct stage_expand_opts, dir, OPT_DIR) },
	{ 0, "gamma", "G", "factor of the residual that is added",
	    OPT_F64(struct stage_expand_opts, gamma, 0, 1), .def = "1",
	    .with = "state" },
	{ 0, "wait", "TIME", "wait for the step before to be committed",
	    OPT_TIME(struct stage_expand_opts, wait), .def = "60s", .with = "state" },
	{ 0, "allow-gap", NULL, "accept a shard even if steps before it are "
	    "missing", OPT_FLAG(struct stage_expand_opts, gap), .with = "state" },
	{ 0, "cache", "DIR",
	    "undo cache feedback with the history kept in DIR",
	    OPT_PATH(struct stage_expand_opts, cache, OPT_DIR) },
	OPT_END
};

struct stage_expand {
	struct stage s;
	const struct stage_expand_opts *o;
	const struct kern *kern;
	struct stage_shard sh;		/* the shard as it was read */
	struct shard made;		/* header of the expanded shard */
	struct statedir state;
	struct residual res;
	struct feedback_cache *cache;	/* NULL: no cache */
	struct statedir back;		/* state of the option `feedback' */
	float *worth;			/* f32[groups]: mean squares for feedback */
	size_t worth_cap;
	struct shard_sums sums;		/* sums of the expanded shard */
	float *x;			/* values of one group */
	size_t cap;
	struct pool *pool;
	struct stage_expand_one {	/* [many] groups that are decoded together */
		float *x;
		size_t cap;
		struct stage_seen v;
	} *one;
	size_t many;
	uint32_t next;			/* the next group to pass on */
	int first;			/* 1: no shard was seen yet */
	uint64_t last;			/* step of the previous shard, or 0 */
};

/* Return 1 if the residual, which ace-compress writes, is recent enough: of the previous step
 * or, if steps may be missing, of the last shard that was expanded here, or later. Before
 * the first shard, there need not be a residual. */
static int
stage_expand_ready(const struct stage_expand *x, const struct shard *sh)
{
	const struct residual *q = &x->res;

	if (q->d.r == NULL)
		return x->first;
	/* if alone, do not wait: no other process commits, and the coding stage checks for gaps */
	return sh->step <= q->step || sh->step - q->step == 1 ||
	    (x->o->gap && q->step >= x->last) || x->o->alone;
}

static int
stage_expand_wait(struct stage_expand *x, const struct shard *sh, struct err *e)
{
	const struct stage_expand_opts *o = x->o;
	const struct statedir *s = &x->state;
	struct residual *q = &x->res;
	struct wait w = wait_begin(o->wait, filter_piped(o->f));
	int r;

	while ((r = residual_open(q, s, e)) == 0 && !stage_expand_ready(x, sh)) {
		if ((r = wait_more(&w, e)) == WAIT_OVER)
			break;
		residual_close(q);
		if (r < 0)
			return r;
	}
	if (r < 0 || stage_expand_ready(x, sh))
		return r;
	if (q->d.r != NULL && shard_is_abreast(sh))
		return 0;	/* no step before this one will be committed */
	if (q->d.r == NULL)
		return err_set(e, ERR_REFUSED, "state '%s': ace-compress committed "
		    "no step before step %llu within %g s: check that it runs on the same "
		    "state", s->dir, (unsigned long long)sh->step, o->wait);
	return err_set(e, ERR_REFUSED, "state '%s' is still at step %llu after %g s, but "
	    "the shard is of step %llu: check that ace-compress runs on the same state; if it "
	    "is slow, pass a longer --wait%s", s->dir, (unsigned long long)q->step, o->wait,
	    (unsigned long long)sh->step, !o->gap && (x->first || q->step >= x->last) ?
	    "; if steps are missing, --allow-gap" : "");
}

/* ---- feedback ---- */

static int
stage_expand_worth_begin(struct stage_expand *x, struct err *e)
{
	const struct shard *s = x->sh.shard;

	if (x->o->feedback == NULL)
		return 0;
	if (!shard_is_average(s))
		return reader_place(x->sh.in, err_set(e, ERR_DATA, "mismatch: the shard has kind "
		    "%s, but --feedback expects an average: kind mean, sum or delta",
		    shard_kind_name(s->kind)), e);
	return alloc_grow(&x->worth, &x->worth_cap, x->sh.schema->ngroups, sizeof(*x->worth), e);
}

static void
stage_expand_worth(struct stage_expand *x, uint32_t g, size_t n,
    const struct kern_stat *t)
{
	if (x->o->feedback != NULL)
		x->worth[g] = (float)fmin(t->sumsq / (double)n, FLT_MAX);
}

static int
stage_expand_tell(struct stage_expand *x, struct err *e)
{
	const size_t n = x->sh.schema->ngroups;
	struct learned h = LEARNED_INIT;
	char id[33];
	int r;

	if (x->o->feedback == NULL || n == 0)
		return 0;
	shard_hex(x->sh.schema->id, id);
	if ((r = text_set(&h.kv, LEARNED_MODEL, id, e)) == 0 &&
	    (r = learned_put(&h, LEARNED_ENERGY, x->worth, n, e)) == 0)
		r = learned_save(&h, &x->back, LEARNED_FEEDBACK, x->sh.shard,
		    IO_SYNC_RENAME, e);
	learned_release(&h);
	return r;
}

/* Set the flags and keys of the expanded shard s; with a state, wait for its residual. */
static int
stage_expand_describe(struct stage_expand *x, struct shard *s, struct err *e)
{
	int r;

	s->flags &= ~SHARD_PREDICTED;
	if ((r = text_set(&s->kv, SHARD_KEY_PREDICT, NULL, e)) < 0 ||
	    (r = text_set(&s->kv, SHARD_KEY_HISTORY, NULL, e)) < 0)
		return r;
	if (x->o->dir == NULL)
		return 0;
	if (text_get(&s->kv, SHARD_KEY_STAMP) != NULL)
		return err_set(e, ERR_REFUSED, "%s has the residual already: give the shard of the "
		    "trainer, and use ace-expand -S once (ace-step includes ace-expand)",
		    STAGE_NAME(&x->sh));
	if ((r = stage_expand_wait(x, x->sh.shard, e)) < 0 ||
	    (r = dense_check(&x->res.d, x->sh.shard, x->sh.schema, e)) < 0)
		return r;
	s->flags |= SHARD_ERROR_FEEDBACK;
	return text_set(&s->kv, SHARD_KEY_STAMP, x->res.d.stamp, e);
}

static int
stage_expand_begin(struct stage *st, const struct stage_shard *sh, struct err *e)
{
	struct stage_expand *x = (struct stage_expand *)st;
	struct stage_shard to = *sh;
	size_t i;
	int r;

	x->sh = *sh;
	x->next = 0;
	x->sums = (struct shard_sums){ 0, 0, 0, 0, 0 };
	for (i = 0; i < x->many; i++)
		if ((r = alloc_grow(&x->one[i].x, &x->one[i].cap,
		    sh->schema->group_size, sizeof(float), e)) < 0)
			return r;
	if ((r = stage_expand_worth_begin(x, e)) < 0 ||
	    (r = alloc_grow(&x->x, &x->cap, sh->schema->group_size,
	    sizeof(*x->x), e)) < 0 || (r = x->cache != NULL ?
	    feedback_cache_begin(x->cache, sh->shard, sh->schema, NULL, e) :
	    values_whole(sh->shard, e)) < 0)
		return r;
	to.shard = &x->made;
	if ((r = shard_copy(&x->made, sh->shard, e)) == 0 &&
	    (r = stage_expand_describe(x, &x->made, e)) == 0)
		r = stage_begin(st->next, &to, e);
	x->first = 0;
	x->last = sh->shard->step;
	return r;
}

/* Refuse values of an average that ace-recv would refuse from a device, since they go into
 * the model and the device's state.  With -S and without --feedback, the shard is the device's
 * own: accept them. */
static int
stage_expand_bounded(const struct stage_expand *x, uint32_t g, const float *v,
    size_t n, struct err *e)
{
	const struct schema *sc = x->sh.schema;
	struct schema_span span;
	int r;

	if ((x->o->dir != NULL && x->o->feedback == NULL) || !shard_is_average(x->sh.shard))
		return 0;
	schema_span(sc, g, &span);
	r = values_bounded(x->kern, &sc->t[span.tensor], span.offset, v, n, e);
	return r < 0 ? reader_place(x->sh.in, r, e) : 0;
}

/* Expand group x->next and pass it on.  v has the received values, or zeros in x->x if
 * none were sent.  Received values are copied only with a cache or if a residual is added.
 * cut: a segment ends with this group. */
static int
stage_expand_group(struct stage_expand *x, int sent,
    const struct stage_seen *v, int cut, struct err *e)
{
	struct stage_seen to = *v;
	const float *res = NULL;
	const size_t n = v->n;
	uint32_t g = x->next++;
	int r;

	if (x->cache != NULL) {
		if (to.x != x->x)
			memcpy(x->x, to.x, n * sizeof(*x->x));
		to.x = x->x;
		if ((r = feedback_cache_group(x->cache, g, sent, x->x, n,
		    e)) < 0)
			return r;
	}
	if (x->o->dir != NULL && !schema_exact_group(x->sh.schema, g) &&
	    (r = dense_group(&x->res.d, g, &res, e)) < 0)
		return r;
	if ((r = stage_expand_bounded(x, g, to.x, n, e)) < 0)
		return r;
	if (res != NULL) {
		x->kern->add_scaled(x->x, to.x, (float)x->o->gamma, res, n);
		to.x = x->x;
	}
	if (to.x == x->x)
		x->kern->stat(to.x, n, &to.stat);
	if (res != NULL && to.stat.nonfinite > v->stat.nonfinite)
		return reader_place(x->sh.in, values_overflow(x->sh.schema, g,
		    kern_first_nonfinite(to.x, n), e), e);
	stage_expand_worth(x, g, n, &to.stat);
	shard_sums_put(&x->sums, &to.stat);
	return stage_values(x->s.next, g, to.x, n, &to.stat, cut, e);
}

/* Pass on the groups before g that were not sent. */
static int
stage_expand_upto(struct stage_expand *x, uint32_t g, struct err *e)
{
	struct stage_seen v = { .x = x->x };
	struct schema_span span;
	int r = 0;

	while (x->next < g && r == 0) {
		schema_span(x->sh.schema, x->next, &span);
		v.n = span.n;
		memset(x->x, 0, v.n * sizeof(*x->x));
		r = stage_expand_group(x, 0, &v, 0, e);
	}
	return r;
}

struct stage_expand_job {
	struct stage_expand *x;
	const struct stage_data *d;
	size_t first;
};

static int
stage_expand_read(void *arg, unsigned who, size_t i, struct err *e)
{
	const struct stage_expand_job *j = arg;
	struct stage_expand_one *one = &j->x->one[i];

	return stage_read(j->d, j->first + i, j->x->sh.in, one->x, one->cap,
	    &one->v, e);
}

/* Decode a frame in batches of records, each batch in parallel. */
static int
stage_expand_data(struct stage *st, const struct stage_data *d, struct err *e)
{
	struct stage_expand *x = (struct stage_expand *)st;
	struct stage_expand_job j = { x, d, 0 };
	const struct stage_seen *v;
	size_t i, k;
	int r;

	for (; j.first < d->n; j.first += k) {
		k = d->n - j.first < x->many ? d->n - j.first : x->many;
		if ((r = pool_run(x->pool, k, k *
		    x->sh.schema->group_size, stage_expand_read, &j, e)) < 0)
			return r;
		for (i = 0; i < k; i++) {
			v = &x->one[i].v;
			if ((r = stage_expand_upto(x,
			    d->rec[j.first + i].group, e)) < 0)
				return r;
			if ((r = stage_expand_group(x, 1, v, d->cut &&
			    j.first + i + 1 == d->n, e)) < 0)
				return r;
		}
	}
	return 0;
}

/* Pass on annotations except those about the values or their codes, which are no longer true. */
static int
stage_expand_note(struct stage *st, const struct stage_note *n, struct err *e)
{
	return frame_safe_to_copy(n->type) ? stage_note(st->next, n, e) : 0;
}

static int
stage_expand_end(struct stage *st, const struct shard_sums *sums, struct err *e)
{
	struct stage_expand *x = (struct stage_expand *)st;
	int r = stage_expand_upto(x, x->sh.schema->ngroups, e);

	residual_close(&x->res);
	if (r == 0 && x->cache != NULL)
		r = feedback_cache_commit(x->cache, x->o->f->sync, e);
	/* write feedback before the shard's end, because ace-score reads it after the end */
	if (r == 0)
		r = stage_expand_tell(x, e);
	x->sums.dropped = sums->dropped;
	return r < 0 ? r : stage_end(st->next, &x->sums, e);
}

static void
stage_expand_free(struct stage *st)
{
	struct stage_expand *x = (struct stage_expand *)st;
	size_t i;

	for (i = 0; x->one != NULL && i < x->many; i++)
		alloc_free(x->one[i].x);
	alloc_free(x->one);
	pool_free(x->pool);
	residual_close(&x->res);
	shard_release(&x->made);
	feedback_cache_free(x->cache);
	statedir_close(&x->state);
	statedir_close(&x->back);
	alloc_free(x->worth);
	alloc_free(x->x);
}

static int
stage_expand_make(struct stage *s, void *opts, const struct filter *f, struct err *e)
{
	struct stage_expand_opts *o = opts;
	struct stage_expand *x = (struct stage_expand *)s;
	int r;

	o->f = f;
	x->o = o;
	x->first = 1;
	shard_init(&x->made);
	x->state = x->back = (struct statedir)STATE_INIT;
	if ((x->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((r = pool_new(&x->pool, f->threads, e)) < 0)
		return r;
	x->many = pool_size(x->pool) == 1 ? 1 : 4 * pool_size(x->pool);
	if ((x->one = alloc_get(x->many, sizeof(*x->one), e)) == NULL)
		return -ERR_SYS;
	if (o->cache != NULL)
		r = feedback_cache_open(&x->cache, o->cache, 1, e);
	if (r == 0 && o->dir != NULL)
		r = statedir_open(&x->state, o->dir, e);
	if (r == 0 && o->feedback != NULL)
		r = statedir_open(&x->back, o->feedback, e);
	return r;
}

const struct stage_kind stage_expand = {
	.size = sizeof(struct stage_expand),
	.values = STAGE_CHANGES,
	.make = stage_expand_make,
	.begin = stage_expand_begin,
	.data = stage_expand_data,
	.note = stage_expand_note,
	.end = stage_expand_end,
	.free = stage_expand_free
};
