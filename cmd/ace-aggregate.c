/*
 * ace-aggregate: G = sum_k w_k * g~_k  (ACE-Sync, equation 8), over K streams
 * in lockstep, one group of each in memory at a time.  Sums run in f64 in the
 * order of the devices' ids, so the order of arrival changes nothing.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "format/array.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/gather.h"
#include "spool/rounds.h"
#include "spool/waiting.h"
#include "stage/contrib.h"
#include "sync/combine.h"

enum {
	OPT_MEAN = CLI_LONG, OPT_SUM, OPT_WEIGHT, OPT_EXPECT, OPT_NONFINITE,
	OPT_SPOOL, OPT_QUORUM, OPT_DEADLINE, OPT_RUN, OPT_STEPS, OPT_KEEP,
	OPT_RULE, OPT_AMONG, OPT_NORM, OPT_RATIO, OPT_SHARE,
	OPT_RUNNING,
	OPT_PUBLISHED, OPT_STALE, OPT_RHO, OPT_CLUSTER, OPT_PER, OPT_DELAY,
	OPT_CREATE
};
enum { PER_NOTHING, PER_MEAN, PER_OFFSET };

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
	{ OPT_RUNNING, "max-norm-running", "R",
	    "and what has R times that of the steps before" },
	{ OPT_SHARE, "max-weight-share", "S",
	    "cut weights to a share of the step's" },
	{ OPT_DELAY, "delay", "STEPS", "say that it is applied so much later "
	    "(default: the most that a device asks for)" },
	{ OPT_STALE, "staleness", "N",
	    "what is N model versions behind weighs 1/e (default as much)" },
	{ OPT_RHO, "rho", "X",
	    "what drifts by r weighs 1 / (1 + X r) (default 0)" },
	{ OPT_CLUSTER, "cluster", "THETA",
	    "name the clusters of devices, merged up to 1 - cos THETA" },
	{ OPT_PER, "per-cluster", "WHAT",
	    "and write each one's mean, or its offset from the aggregate" },
	{ OPT_SPOOL, "spool", "DIR",
	    "aggregate what ace-recv puts there, step after step" },
	{ OPT_CREATE, "create", NULL,
	    "of a spool: make it if it is not there" },
	{ OPT_QUORUM, "quorum", "N",
	    "so many are enough at the deadline (default 1)" },
	{ OPT_DEADLINE, "deadline", "TIME",
	    "so long after a step's first shard (default none)" },
	{ OPT_RUN, "run", "NAME", "of a spool with several runs" },
	{ OPT_STEPS, "steps", "N", "of a spool: end after N (default never)" },
	{ OPT_KEEP, "keep", "N",
	    "of a spool: remove shards N steps after (default never)" },
	{ OPT_PUBLISHED, "published", NULL,
	    "of a spool: go on when the aggregate is in it (ace-recv --publish)" },
	FILTER_OPT_SYNC,
	{ 'd', "device", "NAME", "name of the aggregate (default aggregate)" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	struct contrib_opts who;
	int sum, published, per, create;
	uint64_t expect, quorum, steps, keep;
	double deadline;
	const char *device, *spool, *run, *delay;
};

/* Where shards come from, and when a step is over. */
static int
set_step(struct opts *o, int key, const char *val, struct err *e)
{
	uint64_t n;
	int r;

	switch (key) {
	case OPT_SPOOL:
		o->spool = val;
		return 0;
	case OPT_RUN:
		o->run = val;
		return 0;
	case OPT_PUBLISHED:
		o->published = 1;
		return 0;
	case OPT_CREATE:
		o->create = 1;
		return 0;
	case OPT_EXPECT:
		return num_u64(&o->expect, val, 1, 1 << 20, "--expect", e);
	case OPT_QUORUM:
		return num_u64(&o->quorum, val, 1, 1 << 20, "--quorum", e);
	case OPT_DEADLINE:
		return num_time(&o->deadline, val, "--deadline", e);
	case OPT_DELAY:
		o->delay = val;
		return num_u64(&n, val, 0, KEYS_DELAY_MOST, "--delay", e);
	case OPT_STEPS:
		return num_u64(&o->steps, val, 1, UINT64_MAX, "--steps", e);
	case OPT_KEEP:
		return num_u64(&o->keep, val, 1, UINT64_MAX, "--keep", e);
	default:
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

/* How they become one. */
static int
set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const bys[] = { "weight", "samples", "equal", NULL };
	static const char *const how[] = { "refuse", "zero", "drop", NULL };
	static const char *const pers[] = { "nothing", "mean", "offset", NULL };
	static const char *const whom[] = { "all", "reporters", "nonzero",
	    NULL };
	struct opts *o = arg;
	struct robust_rule *q = &o->who.rule;

	switch (key) {
	case OPT_MEAN:
	case OPT_SUM:
		o->sum = key == OPT_SUM;
		return 0;
	case 'd':
		o->device = val;
		return 0;
	case OPT_WEIGHT:
		return num_choice(&o->who.by, val, bys, "--weight-by", e);
	case OPT_NONFINITE:
		return num_choice(&o->who.nonfinite, val, how, "--nonfinite",
		    e);
	case OPT_RULE:
		o->who.rule_text = val;
		return robust_parse(q, val, e);
	case OPT_AMONG:
		return num_choice(&q->among, val, whom, "--among", e);
	case OPT_NORM:
		return num_f64(&q->max_norm, val, 1e-300, 1e300, "--max-norm",
		    e);
	case OPT_RATIO:
		return num_f64(&q->max_ratio, val, 1, 1e300,
		    "--max-norm-ratio", e);
	case OPT_RUNNING:
		return num_f64(&q->max_running, val, 1, 1e300,
		    "--max-norm-running", e);
	case OPT_SHARE:
		return num_f64(&q->max_share, val, 1e-6, 1,
		    "--max-weight-share", e);
	case OPT_STALE:
		return num_f64(&o->who.age, val, 1e-3, 1e9, "--staleness", e);
	case OPT_RHO:
		return num_f64(&o->who.rho, val, 0, 1e9, "--rho", e);
	case OPT_CLUSTER:
		return num_f64(&o->who.theta, val, 0, 2, "--cluster", e);
	case OPT_PER:
		return num_choice(&o->per, val, pers, "--per-cluster", e);
	default:
		return set_step(o, key, val, e);
	}
}

struct run {
	const struct opts *o;
	const struct cli *cli;
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
is_offset(const struct run *x)
{
	return x->c.only != SKETCH_NONE && x->o->per == PER_OFFSET;
}

/* What the aggregate says of itself: weights and contributors add up, so an
 * aggregate of aggregates weighs right. */
static int
describe(struct run *x, struct shard *out, const char *device, struct err *e)
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
	    is_offset(x) ? SHARD_DELTA : SHARD_MEAN;
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
do_group(struct run *x, uint32_t g, struct err *e)
{
	const struct robust_rule *q = &x->o->who.rule;
	const int offset = is_offset(x);
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
put_policy(struct run *x, struct err *e)
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
put_members(struct run *x, struct err *e)
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
put_step(struct run *x, struct shard *s, const char *device, struct err *e)
{
	const struct schema *sc = gather_schema(x->g);
	uint32_t g;
	int r;

	if ((r = combine_room(&x->sum, sc->group_size, e)) < 0 ||
	    (r = combine_room(&x->all, is_offset(x) ? sc->group_size : 0,
	    e)) < 0 || (r = describe(x, s, device, e)) < 0 ||
	    (r = writer_shard(x->out, s, sc, e)) < 0)
		return r;
	for (g = 0; g < sc->ngroups && r == 0; g++)
		r = do_group(x, g, e);
	if (r < 0 || (r = gather_finish(x->g, e)) < 0 ||
	    (r = put_members(x, e)) < 0 || (r = put_policy(x, e)) < 0)
		return r;
	writer_dropped(x->out, x->c.dropped);
	if ((r = writer_send(x->out, NULL, e)) == 0)
		cli_say(x->cli, 1, "step %llu: '%s', %zu contributions, weight %g",
		    (unsigned long long)s->step, device, gather_count(x->g),
		    x->total);
	return r;
}

/* The same for the members of cluster c, after the step's own shard. */
static int
put_cluster(struct run *x, size_t c, struct err *e)
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
	r = put_step(x, &s, device, e);
	shard_release(&s);
	return r;
}

/* Who is left out or cut, and who is alike. */
static void
tell(const struct run *x, const struct shard *s)
{
	const char *clusters = text_get(&s->kv, "clusters");
	size_t i;

	for (i = 0; i < gather_count(x->g); i++) {
		const struct robust_one *one = &x->c.step.one[i];
		const struct shard *from = gather_shard(x->g, i);

		if (one->fate != ROBUST_COUNTS)
			cli_say(x->cli, 1, "step %llu: '%s' %s: %s, norm %g",
			    (unsigned long long)from->step, shard_device(from),
			    one->fate == ROBUST_CLIPPED ? "cut" : "left out",
			    robust_why(one->fate), sqrt(one->norm2));
	}
	if (clusters != NULL)
		cli_say(x->cli, 1, "clusters: %s", clusters);
}

static int
do_step(struct run *x, struct err *e)
{
	struct shard s;
	size_t c;
	int r = 0;

	shard_init(&s);
	x->c.g = x->g;
	x->c.only = SKETCH_NONE;
	x->c.dropped = 0;
	if (contrib_active(&x->o->who)) {
		r = contrib_look(&x->c, &s, e);
		if (r == 0)
			tell(x, &s);
	}
	if (r == 0)
		r = put_step(x, &s, x->o->device, e);
	shard_release(&s);
	x->all_total = x->total;
	if (x->o->per != PER_NOTHING)
		for (c = 0; c < x->c.like.clusters && r == 0; c++)
			r = put_cluster(x, c, e);
	return r;
}

/* What is passed over costs its device a step, what is waited for costs all of
 * them: it is always said. */
static void
always(void *arg, const char *what)
{
	cli_say(arg, 0, "%s", what);
}

static struct quorum
quorum(const struct opts *o)
{
	return (struct quorum){ (size_t)o->expect,
	    o->quorum != 0 ? (size_t)o->quorum : 1, o->deadline };
}

/* A quorum or a deadline: no input is waited for alone. */
static int
open_patient(struct run *x, char **paths, size_t n, struct err *e)
{
	const struct opts *o = x->o;
	const struct intake_rule q = {
		.q = quorum(o), .out = filter_piped(&o->f),
		.say = always, .arg = (void *)(uintptr_t)x->cli
	};

	return gather_patient(&x->g, paths, n, &q, &o->f.in, e);
}

static int
open_all(struct run *x, char **paths, size_t n, uint64_t expect, struct err *e)
{
	int r = gather_open(&x->g, paths, n, expect, filter_piped(&x->o->f),
	    &x->o->f.in, e);

	if (r == 0 && contrib_active(&x->o->who))
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

/* The norms of the steps before, in the spool: who is started again decides
 * the same. */
static int
remember(struct run *x, char *path, struct err *e)
{
	return path == NULL ? -ERR_SYS : norms_open(&x->c.norms, path,
	    x->o->f.sync, e);
}

static volatile sig_atomic_t asked;

static void
on_asked(int sig)
{
	(void)sig;
	asked++;
}

static int
do_spool(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	struct waiting wait = { .say = always, .asked = &asked,
	    .arg = (void *)(uintptr_t)x->cli };
	const struct sigaction ask = { .sa_handler = on_asked,
	    .sa_flags = SA_RESTART };
	const struct rounds_opts ro = { o->spool, o->run,
	    o->f.sync, quorum(o), o->published, o->keep, o->create, &wait,
	    filter_piped(&o->f) };
	struct rounds *steps;
	uint64_t i;
	char **paths;
	size_t n;
	int r;

	(void)sigaction(SIGUSR1, &ask, NULL);
	r = rounds_open(&steps, &ro, e);
	if (r == 0 && o->who.rule.max_running > 0)
		r = remember(x, rounds_file(steps, "norms", e), e);
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

	r = x->o->quorum != 0 || x->o->deadline > 0 ?
	    open_patient(x, paths, n, e) :
	    open_all(x, paths, n, x->o->expect, e);
	if (r < 0)
		return r;
	while ((r = gather_step(x->g, e)) > 0)
		if ((r = do_step(x, e)) < 0)
			break;
	return r;
}

static int
run(struct opts *o, const struct cli *c, char **paths, size_t n, struct err *e)
{
	struct run x = { .o = o, .cli = c };
	const struct kern *kern = kern_get(e);
	int r;

	if (kern == NULL)
		return -ERR_USAGE;
	if (o->sum && (robust_elements(&o->who.rule) || robust_pairs(&o->who.rule)))
		return err_set(e, ERR_USAGE, "--rule %s makes no --sum",
		    o->who.rule_text);
	if (o->expect != 0 && o->quorum > o->expect)
		return err_set(e, ERR_USAGE, "--quorum is more than "
		    "--expect");
	if (o->per != PER_NOTHING && o->who.theta < 0)
		return err_set(e, ERR_USAGE, "--per-cluster is of --cluster");
	if (o->per != PER_NOTHING && (o->sum || robust_elements(&o->who.rule) ||
	    robust_pairs(&o->who.rule)))
		return err_set(e, ERR_USAGE, "--per-cluster is of means");
	if (o->who.rule.among != ROBUST_ALL && !robust_elements(&o->who.rule))
		return err_set(e, ERR_USAGE, "--among is of trim and median");
	if (o->spool != NULL && n != 0)
		return err_set(e, ERR_USAGE, "--spool and FILE '%s'", paths[0]);
	x.sum.kern = x.all.kern = kern;
	contrib_init(&x.c, &o->who, kern);
	if ((r = filter_out(&o->f, &x.out, e)) == 0) {
		r = o->spool != NULL ? do_spool(&x, e) :
		    do_files(&x, paths, n, e);
		r = filter_end(x.out, r, e);
	}
	gather_free(x.g);
	writer_free(x.out);
	combine_release(&x.sum);
	combine_release(&x.all);
	contrib_release(&x.c);
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-aggregate",
		.usage = "[--mean | --sum] [--weight-by WHAT] [--expect N] "
		    "[--quorum N] [--deadline TIME] [--rule RULE] "
		    "[--spool DIR | FILE...]",
		.about = "Weighted mean or sum of the shards of a step, one "
		    "from each FILE, or all from one.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .device = "aggregate",
	    .who = { .rule_text = "mean", .theta = -1 } };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = cli_parse(&c, argc, argv, set, &o, &e);
	if (r == 0)
		r = run(&o, &c, argv + c.first, (size_t)(argc - c.first), &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
