#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/memlimit.h"
#include "base/pool.h"
#include "base/temp.h"
#include "codec/codec.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/receipt.h"
#include "format/writer.h"
#include "kern/kern.h"
#include "mean/aggregate.h"
#include "mean/contrib.h"
#include "mean/gather.h"
#include "mean/policy_merge.h"
#include "mean/same_model.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "spool/closing.h"
#include "spool/spool.h"
#include "spool/waiting.h"
#include "sync/robust.h"

enum { AGGREGATE_NAMES = 1 << 20 };	/* begin a new frame of names after this many bytes */
enum { AGGREGATE_SENT = 1, AGGREGATE_LACKED = 2 };	/* bits of `sent' */

struct aggregate {
	const struct aggregate_opts *o;
	struct contrib c;
	struct gather *g;	/* the shards of the step */
	struct writer *out;
	struct pool *pool;
	struct gather_part *part_of;	/* the current group in several contributions */
	size_t many, part_cap;	/* length of part_of, and for how many it has room */
	/* the group that is being added */
	uint32_t group;
	const struct schema_span *span;
	const struct schema_tensor *tensor;
	size_t first;		/* index of the contribution in part_of[0] */
	size_t in;		/* length of c.step.x, for a rule that works by element */
	struct robust_sum sum;
	double total;		/* sum of the weights of this step */
	double pull;		/* the part of `total' that is the center's weight */
	unsigned sent;		/* bits: a contribution sent the group, or lacked it */
	uint32_t differs;	/* index + 1 of the last tensor of this step that has no
				 * mean and differs between contributions */
	int said;		/* 1: such a tensor was reported before, in any step */
	struct buf body;	/* coded form of a group that is mostly zeros */
	uint64_t step;		/* for a spool: the current step */
};

/* ---- the head of the aggregate ---- */

/* Set the head of the aggregate.  Its weight and number of contributors are sums, so that
 * an aggregate of aggregates has the right weight. */
static int
aggregate_describe(struct aggregate *x, struct shard *out,
    const char *device, struct err *e)
{
	size_t i, n = x->g->n;
	const struct shard *s;
	int r;

	for (i = 0; i + 1 < n && x->g->in[i].left; i++)
		;
	s = &x->g->in[i].s->head;
	out->step = s->step;
	out->base_version = s->base_version;
	out->kind = x->o->sum ? SHARD_SUM : SHARD_MEAN;
	out->weight = 0;
	out->contributors = 0;
	x->total = 0;
	for (i = 0; i < n; i++) {
		s = &x->g->in[i].s->head;
		if (x->g->in[i].left)
			continue;
		out->weight += s->weight * x->c.step.one[i].share;
		if (out->samples + s->samples < s->samples ||
		    out->contributors + s->contributors < s->contributors)
			return gather_blame(x->g, i, err_set(e, ERR_DATA, "limit: '%s' "
			    "has samples=%llu, contributors=%lu, the shards before it "
			    "%llu and %lu: expected fewer than 2^64 samples and 2^32 "
			    "contributors in all shards of a step together",
			    shard_device(s), (unsigned long long)s->samples,
			    (unsigned long)s->contributors,
			    (unsigned long long)out->samples,
			    (unsigned long)out->contributors));
		out->samples += s->samples;
		out->contributors += s->contributors;
		if (s->base_version < out->base_version)
			out->base_version = s->base_version;
		x->total += contrib_weight(&x->c, i);
		if (!isfinite(x->total) || !isfinite(out->weight))
			return gather_blame(x->g, i, err_set(e, ERR_DATA,
			    "limit: weight %g of '%s' makes the sum of weights infinite",
			    s->weight, shard_device(s)));
	}
	x->pull = contrib_pull(&x->c);
	s = &x->g->in[0].s->head;
	memcpy(out->run, s->run, SHARD_ID);
	if ((r = text_set(&out->kv, SHARD_KEY_RUN,
	    text_get(&s->kv, SHARD_KEY_RUN), e)) < 0 ||
	    (r = shard_set_device(out, device, e)) < 0)
		return r;
	if ((r = same_model_put(x->g, &out->kv, e)) < 0)
		return r;
	return policy_merge_norm(x->g, &out->kv, e);
}

/* ---- a step ---- */

/* Read the current group of contribution x->first + i: a job of the pool. */
static int
aggregate_read(void *arg, unsigned who, size_t i, struct err *e)
{
	const struct aggregate *x = arg;
	const int lists = !robust_elements(&x->o->who.rule) &&
	    !schema_exact(x->tensor->dtype);

	return gather_group(x->g, x->first + i, x->group, lists, &x->part_of[i], e);
}

/* Report that contribution i differs in a tensor without a mean; each tensor once per step. */
static void
aggregate_tell_differs(struct aggregate *x, size_t i)
{
	const struct shard *s = &x->g->in[i].s->head;

	if (x->differs == x->span->tensor + 1)
		return;
	cli_say(x->o->f->cli, x->said, "step %llu: tensor '%s' is %s, which cannot "
	    "be averaged, and differs in the shard of '%s': keeping the values of "
	    "the first shard that sent any", (unsigned long long)s->step, x->tensor->name,
	    schema_dtype_name(x->tensor->dtype), shard_device(s));
	x->differs = x->span->tensor + 1;
	x->said = 1;
}

/* For a type without a mean, such as an integer: keep the values v of the first contribution i
 * that sent the group.  Report the tensor if a later v (NULL: not sent, zeros) differs from
 * these, or if a contribution before the first sender lacked the group. */
static void
aggregate_first_of(struct aggregate *x, size_t i, const float *v)
{
	int odd = v != NULL && x->sent == AGGREGATE_LACKED;
	size_t k;

	if ((x->sent & AGGREGATE_SENT) == 0) {
		if (v != NULL)
			robust_sum_add(&x->sum, 1, v);
	} else {
		for (k = 0; k < x->sum.n && x->sum.acc[k] ==
		    (v != NULL ? (double)v[k] : 0); k++)
			continue;
		odd = k < x->sum.n;
	}
	if (odd)
		aggregate_tell_differs(x, i);
}

/* Add contribution i's part of the current group to the sums: all values, or a list of
 * those that are not zero.  For a rule that works by element, keep a pointer to the
 * values. */
static int
aggregate_take(struct aggregate *x, size_t i, const struct gather_part *p,
    struct err *e)
{
	const double f = contrib_factor(&x->c, i);
	int r;

	if (x->g->in[i].left)
		return 0;
	/* lists need no check: their values are finite */
	if (p->x != NULL && (r = contrib_finite(&x->c, i, x->span, p->x, e)) < 0)
		return r;
	if (schema_exact(x->tensor->dtype))
		aggregate_first_of(x, i, p->x);
	else if (robust_elements(&x->o->who.rule))
		x->c.step.x[x->in++] = p->x;
	else if (p->x != NULL)
		robust_sum_add(&x->sum, f, p->x);
	else if (p->l != NULL)
		robust_sum_add_some(&x->sum, f, p->l->pos, p->l->x, p->l->k);
	x->sent |= p->x != NULL || p->l != NULL ? AGGREGATE_SENT :
	    AGGREGATE_LACKED;
	return 0;
}

/* Add the current group of all contributions.  Threads read several of them at the same
 * time; the values are added in the order of the contributions. */
static int
aggregate_add(struct aggregate *x, struct err *e)
{
	size_t i, k;
	int r = 0;

	for (x->first = 0; x->first < x->g->n; x->first += k) {
		k = x->g->n - x->first < x->many ? x->g->n - x->first : x->many;
		for (i = 0; i < k; i++)
			x->part_of[i].r = 0;
		r = pool_run(x->pool, k, k * x->sum.n, aggregate_read, x, e);
		for (i = 0; r < 0 && i < k; i++)
			if (x->part_of[i].r < 0)
				return gather_blame(x->g, x->first + i, r);
		for (i = 0; i < k; i++)
			if ((r = aggregate_take(x, x->first + i, &x->part_of[i], e)) < 0)
				return r;
	}
	return r;
}

/* Write the current group with the values y, or, if at most a quarter of the values is not
 * zero, with only these and their positions.  Both are exact. */
static int
aggregate_write(struct aggregate *x, const float *y, struct err *e)
{
	static const struct codec_plan plan = { CODEC_NONZERO, 0, 0 };
	static const struct codec_ctx ctx = { .cols = 1 };
	const size_t n = x->span->n;
	size_t i, k = 0;
	uint8_t param;
	int r;

	for (i = 0; i < n; i++)
		k += bytes_u32(y[i]) != 0;
	if (k > n / 4)
		return writer_values(x->out, x->group, y, n, e);
	x->body.n = 0;
	if ((r = codec_encode(&plan, &ctx, y, n, &x->body, &param, e)) < 0)
		return r;
	return writer_record(x->out, x->group, CODEC_NONZERO, param, x->body.p,
	    x->body.n, y, n, e);
}

static int
aggregate_put_group(struct aggregate *x, struct err *e)
{
	struct robust_rule rule = x->o->who.rule, *q = &rule;
	const int exact = schema_exact(x->tensor->dtype);
	const float *y;

	y = robust_centered(q) && !exact ? center_of(&x->c.center, x->span->first) : NULL;
	/* all contributions in the aggregate lack the group, and no center is added */
	if ((x->sent & AGGREGATE_SENT) == 0 && (y == NULL || !(x->pull > 0)))
		return 0;
	if (exact)
		return aggregate_write(x, robust_sum_round(&x->sum, 1), e);
	if (y != NULL)
		robust_sum_add(&x->sum, x->pull, y);
	q->f = x->c.step.f;
	if (robust_elements(q))
		robust_combine(q, x->sum.acc, x->c.step.x, x->in, x->span->n,
		    x->c.step.element);
	y = robust_sum_round(&x->sum, x->o->sum || robust_elements(q) ? 1 :
	    x->total);
	/* a spool admits no shards with such values (LIMITS_WEIGHT_MOST, spool/limits.h) */
	if (y == NULL)
		return err_set(e, ERR_DATA, "limit: the %s of tensor '%s' exceeds the range "
		    "of f32, 3.4e38", x->o->sum ? "sum" : "average", x->tensor->name);
	if (robust_centered(q))
		center_make(&x->c.center, x->span->first, y, x->span->n);
	return aggregate_write(x, y, e);
}

static int
aggregate_group(void *arg, uint32_t group, const struct schema_span *span, struct err *e)
{
	struct aggregate *x = arg;
	int r;

	x->group = group;
	x->span = span;
	x->tensor = &x->g->schema.t[span->tensor];
	x->in = 0;
	x->sent = 0;
	robust_sum_begin(&x->sum, span->n);
	return (r = aggregate_add(x, e)) < 0 ? r : aggregate_put_group(x, e);
}

/* Merge the policies that the contributions ask for, replace the delay if --delay gives one,
 * and write the result. */
static int
aggregate_put_policy(struct aggregate *x, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int r = policy_merge_write(x->g, x->o->own, &kv, e);

	if (r == 0 && x->o->delay != NULL)
		r = text_set(&kv, KEYS_DELAY, x->o->delay, e);
	if (r == 0 && kv.n != 0)
		r = keys_put(x->out, &kv, e);
	text_release(&kv);
	return r;
}

/* Write the names of the devices whose shards are in the aggregate, in frames of limited
 * size. */
static int
aggregate_put_members(struct aggregate *x, struct err *e)
{
	struct array_names l = ARRAY_NAMES_INIT, part;
	struct buf b = BUF_INIT;
	size_t i = 0, bytes;
	int r = gather_members(x->g, &l, e);

	do {
		part = (struct array_names){ .p = l.p + i };
		for (bytes = 0; i < l.n && bytes < AGGREGATE_NAMES; i++)
			bytes += strlen(part.p[part.n++]);
		b.n = 0;
		if (r == 0 && (r = array_put_names(&part, &b, e)) == 0)
			r = writer_note(x->out, FRAME_MEMB, b.p, b.n, e);
	} while (r == 0 && i < l.n);
	buf_release(&b);
	array_release(&l);
	return r;
}

/* Write the aggregate of the contributions that count, as shard s. */
static int
aggregate_put_step(struct aggregate *x, struct shard *s,
    const char *device, struct err *e)
{
	const struct schema *sc = &x->g->schema;
	uint64_t out = 0;
	size_t i;
	int r;

	if ((r = robust_sum_room(&x->sum, sc->group_size, e)) < 0 ||
	    (r = aggregate_describe(x, s, device, e)) < 0 ||
	    (r = writer_shard(x->out, s, sc, e)) < 0 ||
	    (r = gather_read(x->g, aggregate_group, x, e)) < 0 ||
	    (r = aggregate_put_members(x, e)) < 0 ||
	    (r = aggregate_put_policy(x, e)) < 0 ||
	    (r = writer_send(x->out, NULL, e)) < 0)
		return r;
	for (i = 0; i < x->g->n; i++)
		out += x->g->in[i].left != 0;
	cli_say(x->o->f->cli, 1, "step %llu: '%s', %zu contribution%s, weight %g",
	    (unsigned long long)s->step, device, x->g->n - (size_t)out,
	    x->g->n - (size_t)out == 1 ? "" : "s", x->total);
	event_say(x->o->f, EVENT_CLOSED, s->step,
	    (uint64_t)x->g->n - out, out, x->total);
	return 0;
}

static int
aggregate_put_cluster(struct aggregate *x, size_t c, struct err *e)
{
	char device[SHARD_NAME + 1];
	struct shard s;
	int r;

	if ((size_t)snprintf(device, sizeof(device), "%s.%zu", x->o->device,
	    c) >= sizeof(device))
		return err_set(e, ERR_USAGE, "--device has %zu bytes: with the cluster's "
		    "suffix '.%zu' the name has more than %d bytes", strlen(x->o->device), c,
		    SHARD_NAME);
	contrib_cluster(&x->c, c);
	shard_init(&s);
	r = aggregate_put_step(x, &s, device, e);
	shard_release(&s);
	return r;
}

/* Report which contributions are left out or clipped, and the clusters. */
static void
aggregate_tell(const struct aggregate *x, const struct shard *s)
{
	const char *clusters = text_get(&s->kv, "clusters");
	const struct robust_rule *q = &x->o->who.rule;
	const struct robust_step *t = &x->c.step;
	const unsigned long long step = x->g->in[0].s->head.step;
	size_t i;

	if (t->f != q->f)
		cli_say(x->o->f->cli, 0, "step %llu: rule '%s' needs %zu shards, but its filters "
		    "left fewer (of %zu): the step is averaged with F = %zu", step,
		    x->o->who.rule_text, 2 * q->f + 1, x->g->n, t->f);

	for (i = 0; i < x->g->n; i++) {
		const struct robust_one *one = &x->c.step.one[i];

		if (one->fate == ROBUST_CLIPPED && robust_centered(q))
			cli_say(x->o->f->cli, 1, "step %llu: '%s' is clipped by rule '%s': more "
			    "than twice the median distance from the center, in this step or "
			    "over many", step,
			    shard_device(&x->g->in[i].s->head), x->o->who.rule_text);
		else if (one->fate != ROBUST_COUNTS)
			cli_say(x->o->f->cli, 1, "step %llu: '%s' is %s by rule '%s' (%s): "
			    "norm %g, median norm %g", step,
			    shard_device(&x->g->in[i].s->head),
			    one->fate == ROBUST_CLIPPED ? "clipped" : "left out",
			    x->o->who.rule_text, robust_why(one->fate), sqrt(one->norm2),
			    t->median);
	}
	if (clusters != NULL)
		cli_say(x->o->f->cli, 1, "step %llu: clusters %s", step, clusters);
}

static int
aggregate_step(struct aggregate *x, struct err *e)
{
	struct shard s;
	size_t c;
	int r;

	shard_init(&s);
	x->c.g = x->g;
	x->differs = 0;
	if ((r = contrib_look(&x->c, &s, e)) == 0) {
		aggregate_tell(x, &s);
		r = aggregate_put_step(x, &s, x->o->device, e);
	}
	shard_release(&s);
	/* the step is final: all shards to exclude were found above */
	if (r == 0 && robust_centered(&x->o->who.rule))
		r = center_commit(&x->c.center, &x->g->in[0].s->head,
		    &x->g->schema, e);
	if (x->o->means)
		for (c = 0; c < x->c.like.clusters && r == 0; c++)
			r = aggregate_put_cluster(x, c, e);
	return r;
}

static void
aggregate_release(struct aggregate *x)
{
	while (x->many != 0)
		gather_part_release(&x->part_of[--x->many]);
	alloc_free(x->part_of);
	pool_free(x->pool);
	robust_sum_release(&x->sum);
	contrib_release(&x->c);
	buf_release(&x->body);
}

/* Make room for the parts of a group that are read together.  For a rule that needs all
 * values of a group, check that they fit into memory. */
static int
aggregate_parts(struct aggregate *x, struct err *e)
{
	const size_t n = x->g->n, threads = pool_size(x->pool);
	const int whole = robust_elements(&x->o->who.rule);
	/* the values of a part, and their coded form */
	const uint64_t bytes = 2 * sizeof(float) * (uint64_t)n * x->g->schema.group_size;
	/* a single thread reads one part at a time, to add it while it is in the cache */
	const size_t want = whole ? n : threads == 1 ? 1 : 4 * threads;
	int r;

	if (whole && bytes > memlimit_limit() / 2)
		return err_set(e, ERR_REFUSED, "limit: rule '%s' needs a group of each "
		    "shard in memory: %zu groups take %llu MiB, expected at most %llu "
		    "MiB, half of the memory limit (ulimit, memory.max, memory): "
		    "import with smaller --group",
		    x->o->who.rule_text, n, (unsigned long long)(bytes >> 20),
		    (unsigned long long)(memlimit_limit() >> 21));
	if ((r = alloc_grow(&x->part_of, &x->part_cap, want, sizeof(*x->part_of), e)) < 0)
		return r;
	while (x->many < want)
		x->part_of[x->many++] = (struct gather_part){ .x = NULL };
	return 0;
}

/* Aggregate the next step of x->g.  Return 1, or 0 at the end. */
static int
aggregate_next(struct aggregate *x, struct err *e)
{
	int r = gather_step(x->g, e);

	if (r <= 0)
		return r;
	if ((r = same_model_check(x->g, x->o->quorum != 0, e)) == 0 &&
	    (r = aggregate_parts(x, e)) == 0 && (r = aggregate_step(x, e)) == 0)
		return 1;
	/* aggregate_round names the step of a spool */
	return x->o->spool != NULL || (r != -ERR_DATA && r != -ERR_REFUSED) ? r :
	    err_before(e, r, "step %llu: ", (unsigned long long)x->g->in[0].s->head.step);
}

/* ---- a spool ---- */

static void
aggregate_shut(struct aggregate *x)
{
	gather_free(x->g);
	x->g = NULL;
}

/* Aggregate the shards of one step, each in a file of its own.  The output is a temporary
 * file first, so that a failure leaves no partial shard in the real output. */
static int
aggregate_try(struct aggregate *x, char **paths, size_t n, struct err *e)
{
	struct writer *out = x->out;
	int fd, r;

	aggregate_shut(x);
	x->out = NULL;
	if ((r = temp_open(NULL, &fd, e)) == 0) {
		if ((r = writer_fd(&x->out, fd, x->o->f->tool, e)) == 0 &&
		    (r = gather_many(&x->g, x->step, paths, n, &x->o->f->in, e)) == 0 &&
		    (r = aggregate_next(x, e)) > 0 && (r = writer_finish(x->out, e)) == 0)
			r = filter_copy_fd(fd, &x->o->f->in, out, e);
		(void)close(fd);
	}
	writer_free(x->out);
	x->out = out;
	return r;
}

/* Fail if the program's options refuse the model of the run: then no shard is at fault. */
static int
aggregate_suits(const struct aggregate *x, struct err *e)
{
	char path[PATH_MAX + 32];
	struct reader *r = NULL;
	int k;

	(void)snprintf(path, sizeof(path), "%s/" SPOOL_SCHEMA, x->o->spool);
	if ((k = reader_kept(&r, path, &x->o->f->in, e)) > 0)
		k = reader_to_shard(r, e);
	reader_free(r);
	return k < 0 ? k : 0;
}

/* Wait until a step of the spool closes, and aggregate it without the shards that cannot be
 * used.  Since a closed step stays closed, such a shard would otherwise stop the run. */
static int
aggregate_round(struct aggregate *x, struct closing *steps, struct err *e)
{
	enum receipt_verdict verdict;
	struct err bad = ERR_INIT;
	const struct array_names *paths;
	size_t n, at, count, blame;
	int k, r = closing_next(steps, &x->step, &paths, e);

	while (r == 0 && (n = paths->n) != 0 &&
	    (r = aggregate_try(x, paths->p, n, &bad)) != 0) {
		if ((r != -ERR_DATA && r != -ERR_REFUSED) || x->c.center.bad)
			return err_move(e, &bad);
		if ((k = aggregate_suits(x, e)) < 0)
			return k;
		blame = x->g->blame;
		at = blame != 0 ? blame - 1 : 0;
		count = blame != 0 ? 1 : n;
		verdict = blame == 0 && r == -ERR_REFUSED && !x->c.step.none ?
		    RECEIPT_DUPLICATE : RECEIPT_INVALID;
		/* the reader found damage, which happened after the shard was accepted */
		if (blame != 0 && bad.has_byte) {
			verdict = RECEIPT_LATE;
			(void)err_file(&bad, r, paths->p[at]);
		}
		cli_say(x->o->f->cli, 0, "step %llu: %zu of %zu shards %s: %s",
		    (unsigned long long)x->step, count, n, verdict == RECEIPT_DUPLICATE ?
		    count == 1 ? "waits for the next average" : "wait for the next average" :
		    count == 1 ? "is excluded" : "are excluded", ERR_MSG(&bad));
		r = closing_exclude(steps, at, count, verdict, ERR_MSG(&bad), e);
		err_clear(&bad);
	}
	aggregate_shut(x);
	if (r == 0 && paths->n == 0)
		cli_say(x->o->f->cli, 0, "step %llu has no average: each of its shards is "
		    "excluded or waits for the next average", (unsigned long long)x->step);
	return r < 0 ? r : closing_done(steps, e);
}

static int
aggregate_spool(struct aggregate *x, struct err *e)
{
	const struct aggregate_opts *o = x->o;
	struct waiting wait = { .f = o->f, .asked = o->asked };
	const struct closing_opts ro = { o->spool,
	    o->f->sync, (size_t)o->expect,
	    o->quorum != 0 ? (size_t)o->quorum : 1, o->deadline,
	    o->published, o->keep,
	    o->create, &wait, filter_piped(o->f) };
	struct closing *steps;
	uint64_t i = 0;
	int r;

	r = closing_open(&steps, &ro, e);
	/* after a restart, make only the averages that the run still lacks */
	if (r == 0 && o->published)
		r = closing_made(steps, &i, e);
	if (r == 0 && robust_centered(&o->who.rule))
		r = center_keep(&x->c.center, o->spool, o->f->sync, e);
	for (; r == 0 && (o->steps == 0 || i < o->steps); i++)
		r = aggregate_round(x, steps, e);
	closing_free(steps);
	return r;
}

static int
aggregate_files(struct aggregate *x, char **paths, size_t n, struct err *e)
{
	int r = gather_open(&x->g, paths, n, x->o->expect,
	    filter_piped(x->o->f), &x->o->f->in, e);

	if (r == 0)
		while ((r = aggregate_next(x, e)) > 0)
			;
	return r;
}

int
aggregate_run(const struct aggregate_opts *o, char **paths,
    size_t n, struct err *e)
{
	const struct kern *kern = kern_get(e);
	struct aggregate x = { .o = o, .sum = { .kern = kern },
	    .c = { .o = &o->who, .kern = kern, .center = CENTER_INIT } };
	int r;

	if (kern == NULL)
		return -ERR_USAGE;
	if ((r = pool_new(&x.pool, o->f->threads, e)) == 0 &&
	    (r = filter_out(o->f, &x.out, e)) == 0) {
		r = o->spool != NULL ? aggregate_spool(&x, e) :
		    aggregate_files(&x, paths, n, e);
		r = filter_end(x.out, r, e);
	}
	aggregate_shut(&x);
	writer_free(x.out);
	aggregate_release(&x);
	return r;
}
