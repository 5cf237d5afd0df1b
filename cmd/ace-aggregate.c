/*
 * ace-aggregate: G = sum_k w_k * g~_k  (ACE-Sync, equation 8), over K streams
 * in lockstep, one group of each in memory at a time.  Sums run in f64 in the
 * order of the devices' ids, so the order of arrival changes nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"
#include "state/rounds.h"
#include "stream/filter.h"
#include "stream/gather.h"
#include "stream/keys.h"
#include "stream/values.h"
#include "sync/combine.h"
#include "sync/robust.h"

enum {
	OPT_MEAN = CLI_LONG, OPT_SUM, OPT_WEIGHT, OPT_EXPECT, OPT_NONFINITE,
	OPT_SPOOL, OPT_QUORUM, OPT_DEADLINE, OPT_RUN, OPT_STEPS, OPT_KEEP,
	OPT_SYNC, OPT_RULE, OPT_AMONG, OPT_NORM, OPT_RATIO, OPT_SHARE,
	OPT_PUBLISHED, OPT_DELAY
};
enum { NONFINITE_REFUSE, NONFINITE_ZERO, NONFINITE_DROP };
enum weight_by { BY_WEIGHT, BY_SAMPLES, BY_EQUAL };

static const struct cli_opt options[] = {
	{ OPT_MEAN, "mean", NULL, "weighted mean (default)" },
	{ OPT_SUM, "sum", NULL, "weighted sum" },
	{ OPT_WEIGHT, "weight-by", "WHAT",
	    "weight (default), samples or equal" },
	{ OPT_EXPECT, "expect", "N", "so many contributions, no fewer" },
	{ OPT_NONFINITE, "nonfinite", "HOW",
	    "refuse (default), zero or drop (the device)" },
	{ OPT_RULE, "rule", "RULE", "mean (default), clip:X, trim:F, "
	    "median, krum:F, multikrum:F:M" },
	{ OPT_AMONG, "among", "WHOM",
	    "of trim and median: all (default), reporters or nonzero" },
	{ OPT_NORM, "max-norm", "X", "leave out what has a larger norm" },
	{ OPT_RATIO, "max-norm-ratio", "R",
	    "and what has R times the step's median norm" },
	{ OPT_SHARE, "max-weight-share", "S",
	    "cut weights to a share of the step's" },
	{ OPT_DELAY, "delay", "STEPS", "say that it is applied so much later "
	    "(default: the most that a device asks for)" },
	{ OPT_SPOOL, "spool", "DIR",
	    "aggregate what ace-recv puts there, step after step" },
	{ OPT_QUORUM, "quorum", "N",
	    "of a spool: enough at the deadline (default 1)" },
	{ OPT_DEADLINE, "deadline", "TIME",
	    "of a spool: after a step's first shard (default none)" },
	{ OPT_RUN, "run", "NAME", "of a spool with several runs" },
	{ OPT_STEPS, "steps", "N", "of a spool: end after N (default never)" },
	{ OPT_KEEP, "keep", "N",
	    "of a spool: remove shards N steps after (default never)" },
	{ OPT_PUBLISHED, "published", NULL,
	    "of a spool: go on when the aggregate is in it (ace-recv --publish)" },
	{ OPT_SYNC, "sync", "WHEN",
	    "of a spool: full, rename or none (default full)" },
	{ 'd', "device", "NAME", "name of the aggregate (default aggregate)" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct robust_rule rule;
	const char *rule_text;
	int sum, by, nonfinite, published;
	uint64_t expect, quorum, steps, keep;
	double deadline;
	const char *device, *spool, *run, *delay;
	int sync;
};

static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const bys[] = { "weight", "samples", "equal", NULL };
	static const char *const how[] = { "refuse", "zero", "drop",
	    NULL };
	static const char *const whom[] = { "all", "reporters", "nonzero",
	    NULL };
	static const char *const syncs[] = { "none", "rename", "full", NULL };
	struct opts *o = arg;
	uint64_t n;
	int r;

	switch (key) {
	case OPT_SPOOL:
		o->spool = val;
		return 0;
	case OPT_QUORUM:
		return cli_u64(&o->quorum, val, 1, 1 << 20, "--quorum", e);
	case OPT_DELAY:
		o->delay = val;
		return cli_u64(&n, val, 0, KEYS_DELAY_MOST, "--delay", e);
	case OPT_DEADLINE:
		return cli_time(&o->deadline, val, "--deadline", e);
	case OPT_RUN:
		o->run = val;
		return 0;
	case OPT_STEPS:
		return cli_u64(&o->steps, val, 1, UINT64_MAX, "--steps", e);
	case OPT_KEEP:
		return cli_u64(&o->keep, val, 1, UINT64_MAX, "--keep", e);
	case OPT_PUBLISHED:
		o->published = 1;
		return 0;
	case OPT_SYNC:
		return cli_choice(&o->sync, val, syncs, "--sync", e);
	case OPT_MEAN:
	case OPT_SUM:
		o->sum = key == OPT_SUM;
		return 0;
	case OPT_WEIGHT:
		return cli_choice(&o->by, val, bys, "--weight-by", e);
	case OPT_EXPECT:
		return cli_u64(&o->expect, val, 1, 1 << 20, "--expect", e);
	case OPT_NONFINITE:
		return cli_choice(&o->nonfinite, val, how, "--nonfinite", e);
	case OPT_RULE:
		o->rule_text = val;
		return robust_parse(&o->rule, val, e);
	case OPT_AMONG:
		return cli_choice(&o->rule.among, val, whom, "--among", e);
	case OPT_NORM:
		return cli_f64(&o->rule.max_norm, val, 1e-300, 1e300,
		    "--max-norm", e);
	case OPT_RATIO:
		return cli_f64(&o->rule.max_ratio, val, 1, 1e300,
		    "--max-norm-ratio", e);
	case OPT_SHARE:
		return cli_f64(&o->rule.max_share, val, 1e-6, 1,
		    "--max-weight-share", e);
	case 'd':
		o->device = val;
		return 0;
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

struct run {
	const struct opts *o;
	const struct cli *c;
	const struct kern *kern;
	struct gather *g;
	struct writer *out;
	struct combine sum;
	int active;		/* the rules have something to decide */
	struct robust_step step;
	double total;		/* sum of the weights of this step */
	uint64_t dropped;
};

static double
weight(const struct run *x, const struct shard *s)
{
	switch (x->o->by) {
	case BY_SAMPLES:
		return (double)s->samples;
	case BY_EQUAL:
		return (double)s->contributors;
	default:
		return s->weight;
	}
}

/* Is contribution i in the result? */
static int
counts(const struct run *x, size_t i)
{
	return !x->active || robust_counts(&x->step.one[i]);
}

static double
share(const struct run *x, size_t i)
{
	return x->active ? x->step.one[i].share : 1;
}

/* The factor of a contribution: a sum has its weights in it already. */
static double
factor(const struct run *x, size_t i)
{
	const struct shard *s = gather_shard(x->g, i);

	if (x->active)
		return weight(x, s) * x->step.one[i].share * x->step.one[i].scale;
	return s->kind == SHARD_SUM ? 1 : weight(x, s);
}

/* What the aggregate says of itself: weights and contributors add up, so an
 * aggregate of aggregates weighs right. */
static int
describe(struct run *x, struct shard *out, struct err *e)
{
	size_t i, n = gather_count(x->g);
	const struct shard *s;
	int r;

	for (i = 0; i + 1 < n && !counts(x, i); i++)
		;
	s = gather_shard(x->g, i);
	out->step = s->step;
	out->base_version = s->base_version;
	memcpy(out->base_model, s->base_model, sizeof(out->base_model));
	out->kind = x->o->sum ? SHARD_SUM : SHARD_MEAN;
	out->weight = 0;
	out->contributors = 0;
	x->total = 0;
	for (i = 0; i < n; i++) {
		s = gather_shard(x->g, i);
		if (!counts(x, i))
			continue;
		out->weight += s->weight * share(x, i);
		out->samples += s->samples;
		out->contributors += s->contributors;
		if (s->base_version < out->base_version)
			out->base_version = s->base_version;
		x->total += weight(x, s) * share(x, i);
	}
	if (!(x->total > 0))
		return err_set(e, ERR_REFUSED, "the weights of step %llu sum "
		    "to zero", (unsigned long long)out->step);
	s = gather_shard(x->g, 0);
	memcpy(out->run, s->run, SHARD_ID);
	if ((r = text_set(&out->kv, SHARD_KEY_RUN,
	    text_get(&s->kv, SHARD_KEY_RUN), e)) < 0 ||
	    (r = shard_set_device(out, x->o->device, e)) < 0)
		return r;
	if ((r = gather_members(x->g, &out->kv, e)) < 0)
		return r;
	return gather_norm(x->g, &out->kv, e);
}

static int
check_finite(struct run *x, size_t i, uint32_t g, float *v, size_t n,
    struct err *e)
{
	const struct schema *sc = gather_schema(x->g);
	struct schema_span span;
	size_t at = x->kern->first_nonfinite(v, n);

	if (at == n)
		return 0;
	schema_span(sc, g, &span);
	if (x->o->nonfinite == NONFINITE_DROP) {
		x->step.one[i].nonfinite = 1;
		return 0;
	}
	if (x->o->nonfinite != NONFINITE_ZERO)
		return err_set(e, ERR_REFUSED, "non-finite value in tensor "
		    "'%s' at index %llu from '%s'", sc->t[span.tensor].name,
		    (unsigned long long)(span.offset + at),
		    shard_device(gather_shard(x->g, i)));
	for (; at < n; at += 1 + x->kern->first_nonfinite(v + at + 1,
	    n - at - 1)) {
		v[at] = 0;
		x->dropped++;
	}
	return 0;
}

/* ---- rules: a first look at all values ---- */

static int
look_group(struct run *x, uint32_t g, struct err *e)
{
	struct schema_span span;
	struct kern_stat st;
	size_t i, n = gather_count(x->g);
	float *v;
	int r;

	schema_span(gather_schema(x->g), g, &span);
	for (i = 0; i < n; i++) {
		struct robust_one *one = &x->step.one[i];

		if ((r = gather_group(x->g, i, g, &v, e)) < 0)
			return r;
		x->step.x[i] = v;
		one->values += span.n;
		if (v == NULL)
			continue;
		if ((r = check_finite(x, i, g, v, span.n, e)) < 0)
			return r;
		x->kern->stat(v, span.n, &st);
		one->norm2 += st.sumsq;
		one->sent += span.n;
		one->nonzero += st.nonzero;
	}
	if (robust_pairs(&x->o->rule))
		robust_distances(x->step.dist, x->step.x, n, span.n);
	return 0;
}

/* Names who is left out or cut, to the user and in key of out. */
static int
name_those(struct run *x, enum robust_fate lo, enum robust_fate hi,
    const char *key, struct shard *out, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i;
	int r = 0;

	for (i = 0; i < gather_count(x->g) && r == 0; i++) {
		const struct robust_one *one = &x->step.one[i];
		const struct shard *s = gather_shard(x->g, i);
		const char *name = shard_device(s);
		const char *why = robust_why(one->fate);

		if (one->fate < lo || one->fate > hi)
			continue;
		cli_say(x->c, 1, "step %llu: '%s' %s: %s, norm %g",
		    (unsigned long long)s->step, name,
		    one->fate == ROBUST_CLIPPED ? "cut" : "left out", why,
		    sqrt(one->norm2));
		if (!robust_counts(one))
			gather_leave(x->g, i);
		if ((b.n == 0 || (r = buf_put(&b, ",", 1, e)) == 0) &&
		    (r = buf_put(&b, name, strlen(name), e)) == 0 &&
		    (r = buf_put(&b, ":", 1, e)) == 0)
			r = buf_put(&b, why, strlen(why), e);
	}
	/* as with the contributors: a list too long is left out */
	if (r == 0 && b.n != 0 && b.n < TEXT_MAX_KV / 4 &&
	    (r = buf_put(&b, "", 1, e)) == 0)
		r = text_set(&out->kv, key, (const char *)b.p, e);
	buf_release(&b);
	return r;
}

static int
look(struct run *x, struct shard *out, struct err *e)
{
	size_t i, n = gather_count(x->g);
	uint32_t g, ngroups = gather_schema(x->g)->ngroups;
	int r = robust_step(&x->step, &x->o->rule, n, e);

	for (i = 0; i < n && r == 0; i++) {
		const struct shard *s = gather_shard(x->g, i);

		x->step.one[i].weight = weight(x, s);
		if (s->kind == SHARD_SUM)
			r = err_set(e, ERR_REFUSED, "'%s' is a sum: rules "
			    "compare means and gradients", shard_device(s));
	}
	for (g = 0; g < ngroups && r == 0; g++)
		r = look_group(x, g, e);
	if (r < 0 || (r = gather_finish(x->g, e)) < 0 ||
	    (r = robust_judge(&x->o->rule, &x->step, e)) < 0 ||
	    (r = name_those(x, ROBUST_BY_NORM, ROBUST_NONFINITE, "left-out",
	    out, e)) < 0 ||
	    (r = name_those(x, ROBUST_CLIPPED, ROBUST_CLIPPED, "clipped",
	    out, e)) < 0 ||
	    (r = text_set(&out->kv, "rule", x->o->rule_text, e)) < 0)
		return r;
	x->dropped = 0;		/* the second look counts them again */
	return gather_again(x->g, e);
}

/* ---- a step ---- */

static int
do_group(struct run *x, uint32_t g, struct err *e)
{
	const struct robust_rule *q = &x->o->rule;
	struct schema_span span;
	size_t i, in = 0, n = gather_count(x->g), sent = 0;
	const float *y;
	float *v;
	int r;

	schema_span(gather_schema(x->g), g, &span);
	combine_begin(&x->sum, span.n);
	for (i = 0; i < n; i++) {
		if ((r = gather_group(x->g, i, g, &v, e)) < 0)
			return r;
		if (!counts(x, i))
			continue;
		if (v != NULL && (r = check_finite(x, i, g, v, span.n, e)) < 0)
			return r;
		sent += v != NULL;
		if (robust_elements(q))
			x->step.x[in++] = v;
		else if (v != NULL)
			combine_add(&x->sum, factor(x, i), v);
	}
	if (sent == 0)
		return 0;		/* nobody sent it: nor do we */
	if (robust_elements(q))
		robust_combine(q, x->sum.acc, x->step.x, in, span.n,
		    x->step.element);
	y = combine_round(&x->sum, x->o->sum || robust_elements(q) ? 1 :
	    x->total);
	if (y == NULL)
		return err_set(e, ERR_REFUSED, "the sum of tensor '%s' "
		    "overflows f32", gather_schema(x->g)->t[span.tensor].name);
	return writer_values(x->out, g, y, span.n, e);
}

/* How much later the devices apply it, all of them the same: with it, since it
 * is what they all get. */
static int
put_delay(struct run *x, struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int r = x->o->delay != NULL ?
	    text_set(&kv, KEYS_DELAY, x->o->delay, e) :
	    gather_delay(x->g, &kv, e);

	if (r == 0 && kv.n != 0)
		r = keys_put(x->out, &kv, e);
	text_release(&kv);
	return r;
}

static int
do_step(struct run *x, struct err *e)
{
	const struct schema *sc;
	struct shard s;
	uint32_t g;
	int r;

	shard_init(&s);
	x->dropped = 0;
	if (x->active && (r = look(x, &s, e)) < 0)
		goto out;
	sc = gather_schema(x->g);
	if ((r = combine_room(&x->sum, sc->group_size, e)) < 0 ||
	    (r = describe(x, &s, e)) < 0 ||
	    (r = writer_shard(x->out, &s, sc, e)) < 0)
		goto out;
	for (g = 0; g < sc->ngroups && r == 0; g++)
		r = do_group(x, g, e);
	if (r < 0 || (r = gather_finish(x->g, e)) < 0 ||
	    (r = put_delay(x, e)) < 0)
		goto out;
	writer_dropped(x->out, x->dropped);
	r = writer_send(x->out, NULL, e);
	cli_say(x->c, 1, "step %llu: %zu contributions, weight %g",
	    (unsigned long long)s.step, gather_count(x->g), x->total);
out:
	shard_release(&s);
	return r;
}

static int
open_all(struct run *x, char **paths, size_t n, uint64_t expect, struct err *e)
{
	int r = gather_open(&x->g, paths, n, expect, &x->o->f.in, e);

	if (r == 0 && x->active)
		gather_twice(x->g);
	return r;
}

/* The shards of one step, each a file. */
static int
do_paths(struct run *x, char **paths, size_t n, struct err *e)
{
	int r;

	if ((r = open_all(x, paths, n, 0, e)) == 0 &&
	    (r = gather_step(x->g, e)) >= 0)
		r = do_step(x, e);
	gather_free(x->g);
	x->g = NULL;
	return r;
}

static int
do_spool(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	const struct rounds_opts ro = { o->spool, o->run,
	    (enum io_sync)o->sync, { (size_t)o->expect, (size_t)o->quorum,
	    o->deadline }, o->published, o->keep };
	struct rounds *steps;
	uint64_t i;
	char **paths;
	size_t n;
	int r = rounds_open(&steps, &ro, e);

	for (i = 0; r == 0 && (o->steps == 0 || i < o->steps); i++)
		if ((r = rounds_next(steps, &paths, &n, e)) == 0 &&
		    (r = do_paths(x, paths, n, e)) == 0)
			r = rounds_done(steps, e);
	rounds_free(steps);
	return r;
}

static int
do_files(struct run *x, char **paths, size_t n, struct err *e)
{
	int r;

	if ((r = open_all(x, paths, n, x->o->expect, e)) < 0)
		return r;
	while ((r = gather_step(x->g, e)) > 0)
		if ((r = do_step(x, e)) < 0)
			break;
	return r;
}

static int
run(struct opts *o, const struct cli *c, char **paths, size_t n, struct err *e)
{
	struct run x = { .o = o, .c = c, .active = robust_active(&o->rule) ||
	    o->nonfinite == NONFINITE_DROP };
	int r;

	if (o->sum && (robust_elements(&o->rule) || robust_pairs(&o->rule)))
		return err_set(e, ERR_USAGE, "--rule %s makes no --sum",
		    o->rule_text);
	if (o->rule.among != ROBUST_ALL && !robust_elements(&o->rule))
		return err_set(e, ERR_USAGE, "--among is of trim and median");
	if (o->spool != NULL && n != 0)
		return err_set(e, ERR_USAGE, "--spool and FILE '%s'", paths[0]);
	if ((x.kern = x.sum.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	if ((r = filter_out(&o->f, &x.out, e)) == 0) {
		r = o->spool != NULL ? do_spool(&x, e) :
		    do_files(&x, paths, n, e);
		r = filter_end(x.out, r, e);
	}
	gather_free(x.g);
	writer_free(x.out);
	combine_release(&x.sum);
	robust_release(&x.step);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-aggregate",
		.usage = "[--mean | --sum] [--weight-by WHAT] [--expect N] "
		    "[--rule RULE] [--spool DIR [--quorum N] [--deadline TIME] | FILE...]",
		.about = "Weighted mean or sum of the shards of a step, one "
		    "from each FILE, or all from one.",
		.opt = options
	};
	struct opts o = { .device = "aggregate", .quorum = 1,
	    .rule_text = "mean",
	    .sync = IO_SYNC_FULL };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = run(&o, &c, argv + c.first, (size_t)(argc - c.first), &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
