#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/gather.h"
#include "spool/rounds.h"
#include "spool/waiting.h"
#include "stage/stage_aggregate.h"
#include "sync/combine.h"

struct stage_aggregate {
	const struct stage_aggregate_opts *o;
	struct contrib c;
	struct gather *g;
	struct writer *out;
	struct combine sum;
	double total;		/* sum of the weights of this step */
	struct combine all;	/* for a cluster's offset from all */
	double all_total;
};

/* Writing a cluster's offset from the aggregate. */
static int
stage_aggregate_is_offset(const struct stage_aggregate *x)
{
	return x->c.only != SKETCH_NONE && x->o->per == STAGE_AGGREGATE_OFFSET;
}

/* What the aggregate says of itself: weights and contributors add up, so an
 * aggregate of aggregates weighs right. */
static int
stage_aggregate_describe(struct stage_aggregate *x, struct shard *out,
    const char *device, struct err *e)
{
	size_t i, n = gather_count(x->g);
	const struct shard *s;
	int r;

	for (i = 0; i + 1 < n && !contrib_counts(&x->c, i); i++)
		;
	s = gather_shard(x->g, i);
	out->step = s->step;
	out->base_version = s->base_version;
	memcpy(out->base_model, s->base_model, sizeof(out->base_model));
	out->kind = x->o->sum ? SHARD_SUM :
	    stage_aggregate_is_offset(x) ? SHARD_DELTA : SHARD_MEAN;
	out->weight = 0;
	out->contributors = 0;
	x->total = 0;
	for (i = 0; i < n; i++) {
		s = gather_shard(x->g, i);
		if (!contrib_counts(&x->c, i))
			continue;
		out->weight += s->weight * contrib_share(&x->c, i);
		out->samples += s->samples;
		out->contributors += s->contributors;
		if (s->base_version < out->base_version)
			out->base_version = s->base_version;
		x->total += contrib_weight(&x->c, i);
	}
	if (!(x->total > 0))
		return err_set(e, ERR_REFUSED, "the weights of step %llu sum "
		    "to zero", (unsigned long long)out->step);
	s = gather_shard(x->g, 0);
	memcpy(out->run, s->run, SHARD_ID);
	if ((r = text_set(&out->kv, SHARD_KEY_RUN,
	    text_get(&s->kv, SHARD_KEY_RUN), e)) < 0 ||
	    (r = shard_set_device(out, device, e)) < 0)
		return r;
	return gather_norm(x->g, &out->kv, e);
}

/* ---- a step ---- */

static int
stage_aggregate_group(struct stage_aggregate *x, uint32_t g, struct err *e)
{
	const struct robust_rule *q = &x->o->who.rule;
	const int offset = stage_aggregate_is_offset(x);
	struct schema_span span;
	size_t i, in = 0, n = gather_count(x->g), sent = 0;
	const float *y;
	float *v;
	int r;

	schema_span(gather_schema(x->g), g, &span);
	combine_begin(&x->sum, span.n);
	if (offset)
		combine_begin(&x->all, span.n);
	for (i = 0; i < n; i++) {
		if ((r = gather_group(x->g, i, g, &v, e)) < 0)
			return r;
		if (!contrib_counts(&x->c, i) &&
		    !(offset && contrib_whole(&x->c, i)))
			continue;
		if (v != NULL && (r = contrib_finite(&x->c, i, g, v, span.n,
		    e)) < 0)
			return r;
		sent += v != NULL;
		if (robust_elements(q)) {
			x->c.step.x[in++] = v;
			continue;
		}
		if (v == NULL)
			continue;
		if (offset)
			combine_add(&x->all, contrib_factor(&x->c, i), v);
		if (contrib_counts(&x->c, i))
			combine_add(&x->sum, contrib_factor(&x->c, i), v);
	}
	if (sent == 0)
		return 0;		/* nobody sent it: nor do we */
	if (robust_elements(q))
		robust_combine(q, x->sum.acc, x->c.step.x, in, span.n,
		    x->c.step.element);
	if (offset)
		combine_less(&x->sum, x->total, &x->all, x->all_total);
	y = combine_round(&x->sum, x->o->sum || offset || robust_elements(q) ?
	    1 : x->total);
	if (y == NULL)
		return err_set(e, ERR_REFUSED, "the sum of tensor '%s' "
		    "overflows f32", gather_schema(x->g)->t[span.tensor].name);
	return writer_values(x->out, g, y, span.n, e);
}

/* How much later the devices apply it, all of them the same: with it, since it
 * is what they all get. */
static int
stage_aggregate_put_policy(struct stage_aggregate *x, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int r = gather_policy(x->g, &kv, e);

	if (r == 0 && x->o->delay != NULL)
		r = text_set(&kv, KEYS_DELAY, x->o->delay, e);
	if (r == 0 && kv.n != 0)
		r = keys_put(x->out, &kv, e);
	text_release(&kv);
	return r;
}

/* Whose shards are in it. */
static int
stage_aggregate_put_members(struct stage_aggregate *x, struct err *e)
{
	struct array_names l = ARRAY_NAMES_INIT;
	struct buf b = BUF_INIT;
	int r = gather_members(x->g, &l, e);

	if (r == 0 && (r = array_put_names(&l, &b, e)) == 0)
		r = writer_note(x->out, FRAME_MEMB, b.p, b.n, e);
	buf_release(&b);
	array_release(&l);
	return r;
}

/* Those that count, put together, as s. */
static int
stage_aggregate_put_step(struct stage_aggregate *x, struct shard *s,
    const char *device, struct err *e)
{
	const struct schema *sc = gather_schema(x->g);
	uint32_t g;
	int r;

	if ((r = combine_room(&x->sum, sc->group_size, e)) < 0 ||
	    (r = combine_room(&x->all, stage_aggregate_is_offset(x) ?
	    sc->group_size : 0, e)) < 0 ||
	    (r = stage_aggregate_describe(x, s, device, e)) < 0 ||
	    (r = writer_shard(x->out, s, sc, e)) < 0)
		return r;
	for (g = 0; g < sc->ngroups && r == 0; g++)
		r = stage_aggregate_group(x, g, e);
	if (r < 0 || (r = gather_finish(x->g, e)) < 0 ||
	    (r = stage_aggregate_put_members(x, e)) < 0 ||
	    (r = stage_aggregate_put_policy(x, e)) < 0)
		return r;
	if ((r = writer_send(x->out, NULL, e)) == 0)
		cli_say(x->o->cli, 1, "step %llu: '%s', %zu contributions, "
		    "weight %g", (unsigned long long)s->step, device,
		    gather_count(x->g), x->total);
	return r;
}

/* The same for the members of cluster c, after the step's own shard. */
static int
stage_aggregate_put_cluster(struct stage_aggregate *x, size_t c,
    struct err *e)
{
	char device[SHARD_NAME + 1];
	struct shard s;
	int r;

	if ((size_t)snprintf(device, sizeof(device), "%s.%zu", x->o->device,
	    c) >= sizeof(device))
		return err_set(e, ERR_USAGE, "--device is too long for the "
		    "names of its clusters");
	if ((r = contrib_cluster(&x->c, c, e)) < 0)
		return r;
	shard_init(&s);
	r = stage_aggregate_put_step(x, &s, device, e);
	shard_release(&s);
	return r;
}

/* Who is left out or cut, and who is alike. */
static void
stage_aggregate_tell(const struct stage_aggregate *x, const struct shard *s)
{
	const char *clusters = text_get(&s->kv, "clusters");
	size_t i;

	for (i = 0; i < gather_count(x->g); i++) {
		const struct robust_one *one = &x->c.step.one[i];
		const struct shard *from = gather_shard(x->g, i);

		if (one->fate != ROBUST_COUNTS)
			cli_say(x->o->cli, 1, "step %llu: '%s' %s: %s, norm %g",
			    (unsigned long long)from->step, shard_device(from),
			    one->fate == ROBUST_CLIPPED ? "cut" : "left out",
			    robust_why(one->fate), sqrt(one->norm2));
	}
	if (clusters != NULL)
		cli_say(x->o->cli, 1, "clusters: %s", clusters);
}

static int
stage_aggregate_step(struct stage_aggregate *x, struct err *e)
{
	struct shard s;
	size_t c;
	int r = 0;

	shard_init(&s);
	x->c.g = x->g;
	x->c.only = SKETCH_NONE;
	if (contrib_active(&x->o->who)) {
		r = contrib_look(&x->c, &s, e);
		if (r == 0)
			stage_aggregate_tell(x, &s);
	}
	if (r == 0)
		r = stage_aggregate_put_step(x, &s, x->o->device, e);
	shard_release(&s);
	x->all_total = x->total;
	if (x->o->per != STAGE_AGGREGATE_NOTHING)
		for (c = 0; c < x->c.like.clusters && r == 0; c++)
			r = stage_aggregate_put_cluster(x, c, e);
	return r;
}

/* ---- where the shards of a step come from ---- */

/* What is passed over costs its device a step, what is waited for costs all of
 * them: it is always said. */
static void
stage_aggregate_always(void *arg, const char *what)
{
	cli_say(arg, 0, "%s", what);
}

static struct quorum
stage_aggregate_quorum(const struct stage_aggregate_opts *o)
{
	return (struct quorum){ (size_t)o->expect,
	    o->quorum != 0 ? (size_t)o->quorum : 1, o->deadline };
}

/* A quorum or a deadline: no input is waited for alone. */
static int
stage_aggregate_open_patient(struct stage_aggregate *x, char **paths,
    size_t n, struct err *e)
{
	const struct stage_aggregate_opts *o = x->o;
	const struct intake_rule q = {
		.q = stage_aggregate_quorum(o), .out = filter_piped(o->f),
		.say = stage_aggregate_always,
		.arg = (void *)(uintptr_t)o->cli
	};

	return gather_patient(&x->g, paths, n, &q, &o->f->in, e);
}

static int
stage_aggregate_open_all(struct stage_aggregate *x, char **paths, size_t n,
    uint64_t expect, struct err *e)
{
	int r = gather_open(&x->g, paths, n, expect, filter_piped(x->o->f),
	    &x->o->f->in, e);

	if (r == 0 && contrib_active(&x->o->who))
		gather_twice(x->g);
	return r;
}

/* The shards of one step, each a file. */
static int
stage_aggregate_paths(struct stage_aggregate *x, char **paths, size_t n,
    struct err *e)
{
	int r;

	if ((r = stage_aggregate_open_all(x, paths, n, 0, e)) == 0 &&
	    (r = gather_step(x->g, e)) >= 0)
		r = stage_aggregate_step(x, e);
	gather_free(x->g);
	x->g = NULL;
	return r;
}

/* The norms of the steps before, in the spool: who is started again decides
 * the same. */
static int
stage_aggregate_remember(struct stage_aggregate *x, char *path, struct err *e)
{
	return path == NULL ? -ERR_SYS : norms_open(&x->c.norms, path,
	    x->o->f->sync, e);
}

static int
stage_aggregate_spool(struct stage_aggregate *x, struct err *e)
{
	const struct stage_aggregate_opts *o = x->o;
	struct waiting wait = { .say = stage_aggregate_always,
	    .asked = o->asked, .arg = (void *)(uintptr_t)o->cli };
	const struct rounds_opts ro = { o->spool, o->run,
	    o->f->sync, stage_aggregate_quorum(o), o->published, o->keep,
	    o->create, &wait, filter_piped(o->f) };
	struct rounds *steps;
	uint64_t i;
	char **paths;
	size_t n;
	int r;

	r = rounds_open(&steps, &ro, e);
	if (r == 0 && o->who.rule.max_running > 0)
		r = stage_aggregate_remember(x,
		    rounds_file(steps, "norms", e), e);
	for (i = 0; r == 0 && (o->steps == 0 || i < o->steps); i++)
		if ((r = rounds_next(steps, &paths, &n, e)) == 0 &&
		    (r = stage_aggregate_paths(x, paths, n, e)) == 0)
			r = rounds_done(steps, e);
	rounds_free(steps);
	return r;
}

static int
stage_aggregate_files(struct stage_aggregate *x, char **paths, size_t n,
    struct err *e)
{
	int r;

	r = x->o->quorum != 0 || x->o->deadline > 0 ?
	    stage_aggregate_open_patient(x, paths, n, e) :
	    stage_aggregate_open_all(x, paths, n, x->o->expect, e);
	if (r < 0)
		return r;
	while ((r = gather_step(x->g, e)) > 0)
		if ((r = stage_aggregate_step(x, e)) < 0)
			break;
	return r;
}

int
stage_aggregate_run(const struct stage_aggregate_opts *o, char **paths,
    size_t n, struct err *e)
{
	struct stage_aggregate x = { .o = o };
	const struct kern *kern = kern_get(e);
	int r;

	if (kern == NULL)
		return -ERR_USAGE;
	x.sum.kern = x.all.kern = kern;
	contrib_init(&x.c, &o->who, kern);
	if ((r = filter_out(o->f, &x.out, e)) == 0) {
		r = o->spool != NULL ? stage_aggregate_spool(&x, e) :
		    stage_aggregate_files(&x, paths, n, e);
		r = filter_end(x.out, r, e);
	}
	gather_free(x.g);
	writer_free(x.out);
	combine_release(&x.sum);
	combine_release(&x.all);
	contrib_release(&x.c);
	return r;
}
