/*
 * ace-policy: how hard to compress (5) and how often to synchronise (9), as an
 * annotation in every shard, or as text; and tables of advice for layers,
 * links and devices.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/state.h"
#include "base/table.h"
#include "device/memory.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "report/advise.h"
#include "report/profile.h"
#include "stage/policy.h"
#include "sync/deco.h"
#include "sync/ratio.h"

enum {
	OPT_CMIN = CLI_LONG, OPT_CMAX, OPT_BETA, OPT_HALF, OPT_BANDWIDTH,
	OPT_TARGET, OPT_NORM, OPT_INTERVAL, OPT_LEAST, OPT_MOST, OPT_DIVERGENCE,
	OPT_VALUES, OPT_DT, OPT_METHOD, OPT_COMPUTE, OPT_LATENCY, OPT_PHI,
	OPT_MIN_RATIO, OPT_MAX_DELAY, OPT_KC, OPT_KD, OPT_LAMBDA, OPT_TIERS,
	OPT_GROUPS, OPT_THETA, OPT_COSINE, OPT_DECO,
	OPT_RISE, OPT_STILL, OPT_WARMUP, OPT_ACCORDION, OPT_EASE,
	OPT_REPLAY, OPT_EXPLAIN, OPT_DEADLINE, OPT_CUTS
};

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "take the link's rate from DIR, keep the "
	    "interval there" },
	{ OPT_CMIN, "cmin", "X", "least compression factor (default 2)" },
	{ OPT_CMAX, "cmax", "X", "largest (default 300)" },
	{ OPT_BETA, "beta", "X", "how fast it falls, per bit/s" },
	{ OPT_HALF, "half", "RATE", "where it is half way (default 10Mbit)" },
	{ OPT_BANDWIDTH, "bandwidth", "RATE", "of the link, if not measured" },
	{ OPT_RISE, "rise", "X",
	    "of a faster link, taken at each shard (default 0.5)" },
	{ OPT_STILL, "hysteresis", "X",
	    "a link that changes by less has not (default 0.05)" },
	{ OPT_WARMUP, "warmup", "STEPS",
	    "reach the factor over so many (default 0)" },
	{ OPT_ACCORDION, "accordion", "STEPS",
	    "compress less after windows whose norm changes" },
	{ OPT_EASE, "ease", "X", "accordion: so much less (default 2)" },
	{ OPT_DEADLINE, "deadline", "TIME",
	    "no more than the link carries in TIME" },
	{ OPT_CUTS, "cuts", NULL, "at which layers to send, after DynaComm" },
	{ OPT_TARGET, "target-divergence", "X",
	    "relative drift to aim at; gives the interval" },
	{ OPT_NORM, "model-norm", "X", "the norm of the model" },
	{ OPT_INTERVAL, "interval", "STEPS", "the first interval (default 1)" },
	{ OPT_LEAST, "min-interval", "STEPS", "the least (default 1)" },
	{ OPT_MOST, "max-interval", "STEPS", "the largest (default 1000)" },
	{ OPT_REPLAY, "replay", "FILE", "decide as in FILE, a stream" },
	{ OPT_EXPLAIN, "explain", NULL, "say what was decided, and why" },
	{ OPT_DIVERGENCE, "divergence", "X", "interval: the drift there was" },
	{ OPT_VALUES, "values", "N", "ratio, deco: of the model" },
	{ OPT_DT, "dt", "TIME", "cuts, dynacomm: what a transmission costs more" },
	{ OPT_METHOD, "method", "NAME", "dynacomm: dp, greedy or dp3" },
	{ OPT_DECO, "deco", NULL, "the budget and the delay after DeCo-SGD" },
	{ OPT_COMPUTE, "compute", "TIME", "deco: computation of a step" },
	{ OPT_LATENCY, "latency", "TIME", "deco: of the link" },
	{ OPT_PHI, "phi", "NAME", "deco: paper, s2, additive, tta or all" },
	{ OPT_MIN_RATIO, "min-ratio", "X", "deco: least share (default 1e-5)" },
	{ OPT_MAX_DELAY, "max-delay", "STEPS", "deco: the most (default 64)" },
	{ OPT_KC, "kc", "X", "deco: price of compression (default 0.005)" },
	{ OPT_KD, "kd", "X", "deco: price of a step's delay (default 0.3)" },
	{ OPT_LAMBDA, "lambda", "TIME", "cluster: what a tier must save" },
	{ OPT_TIERS, "tiers", "N", "cluster: so many, whatever they save" },
	{ OPT_GROUPS, "groups", "N", "cluster: medoids in each tier" },
	{ OPT_THETA, "theta", "X", "cluster: join groups up to this distance" },
	{ OPT_COSINE, "cosine", NULL, "cluster: columns are sketches of updates" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const struct cli *cli;
	const char *dir, *replay;
	int explain;
	double divergence;
	int curve;			/* OPT_BETA or OPT_HALF was said */
	uint64_t values;
	struct policy policy;
	struct advise_cuts cuts;
	struct advise_stale stale;
	struct advise_tiers tiers;
};

static int
set_beta(struct opts *o, int key, const char *val, struct err *e)
{
	double *beta = &o->policy.beta;
	int r = key == OPT_BETA ?
	    num_f64(beta, val, 0, POLICY_BIG, "--beta", e) :
	    num_rate(beta, val, "--half", e);

	if (r < 0)
		return r;
	if (o->curve != 0 && o->curve != key)
		return err_set(e, ERR_USAGE, "--beta or --half, not both");
	o->curve = key;
	if (key == OPT_BETA)
		return 0;
	if (!(*beta > 0))
		return err_set(e, ERR_USAGE, "--half must not be 0");
	*beta = ratio_beta(*beta);
	return 0;
}

static int
set_pace(struct pace *o, int key, const char *val, struct err *e)
{
	switch (key) {
	case OPT_RISE:
		return num_f64(&o->rise, val, 1e-3, 1, "--rise", e);
	case OPT_STILL:
		return num_f64(&o->still, val, 0, 0.9, "--hysteresis", e);
	case OPT_WARMUP:
		return num_u64(&o->warmup, val, 0, UINT64_MAX, "--warmup", e);
	case OPT_ACCORDION:
		return num_u64(&o->window, val, 1, 1000000, "--accordion", e);
	default:
		return num_f64(&o->ease, val, 1, 1e6, "--ease", e);
	}
}

static int
set_deco(struct advise_stale *o, int key, const char *val, struct err *e)
{
	static const char *const phi[] = { "paper", "s2", "additive", "tta",
	    "all", NULL };
	uint64_t n;
	int r;

	switch (key) {
	case OPT_COMPUTE:
		return num_time(&o->compute, val, "--compute", e);
	case OPT_LATENCY:
		return num_time(&o->latency, val, "--latency", e);
	case OPT_PHI:
		if ((r = num_choice(&o->phi, val, phi, "--phi", e)) == 0 &&
		    o->phi > ADVISE_TTA)
			o->phi = ADVISE_ALL;
		return r;
	case OPT_MIN_RATIO:
		return num_f64(&o->min, val, 1e-9, 1, "--min-ratio", e);
	case OPT_KC:
		return num_f64(&o->kc, val, 0, 1e6, "--kc", e);
	case OPT_KD:
		return num_f64(&o->kd, val, 0, 1e6, "--kd", e);
	default:
		if ((r = num_u64(&n, val, 0, DECO_MOST, "--max-delay", e)) == 0)
			o->most = (int)n;
		return r;
	}
}

/* dynacomm and cluster */
static int
set_table(struct opts *o, int key, const char *val, struct err *e)
{
	static const char *const method[] = { "dp", "greedy", "dp3", NULL };
	int r, m;

	switch (key) {
	case OPT_DT:
		return num_time(&o->cuts.dt, val, "--dt", e);
	case OPT_METHOD:
		if ((r = num_choice(&m, val, method, "--method", e)) == 0)
			o->cuts.method = (enum advise_method)m;
		return r;
	case OPT_LAMBDA:
		return num_time(&o->tiers.lambda, val, "--lambda", e);
	case OPT_TIERS:
		return num_u64(&o->tiers.tiers, val, 1, 64, "--tiers", e);
	case OPT_GROUPS:
		return num_u64(&o->tiers.groups, val, 1, 2048, "--groups", e);
	case OPT_THETA:
		return num_f64(&o->tiers.theta, val, 0, 1e9, "--theta", e);
	default:
		o->tiers.cosine = 1;
		return 0;
	}
}

static int
set_flag(struct opts *o, int key)
{
	switch (key) {
	case OPT_EXPLAIN:
		return o->explain = 1;
	case OPT_CUTS:
		return o->policy.cuts.on = 1;
	case OPT_DECO:
		return o->policy.stale.on = 1;
	default:
		return 0;
	}
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	struct policy *p = &o->policy;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_CMIN:
		return num_f64(&p->cmin, val, 1, 1e9, "--cmin", e);
	case OPT_CMAX:
		return num_f64(&p->cmax, val, 1, 1e9, "--cmax", e);
	case OPT_BETA:
	case OPT_HALF:
		return set_beta(o, key, val, e);
	case OPT_BANDWIDTH:
		return num_rate(&p->bandwidth, val, "--bandwidth", e);
	case OPT_TARGET:
		return num_f64(&p->interval.target, val, 1e-300,
		    POLICY_BIG, "--target-divergence", e);
	case OPT_NORM:
		return num_f64(&p->norm, val, 1e-300, POLICY_BIG,
		    "--model-norm", e);
	case OPT_INTERVAL:
		return num_u64(&p->steps, val, 1, 1000000, "--interval", e);
	case OPT_LEAST:
		return num_u64(&p->interval.min, val, 1, 1000000,
		    "--min-interval", e);
	case OPT_MOST:
		return num_u64(&p->interval.max, val, 1, 1000000,
		    "--max-interval", e);
	case OPT_DIVERGENCE:
		return num_f64(&o->divergence, val, 0, POLICY_BIG,
		    "--divergence", e);
	case OPT_VALUES:
		return num_u64(&o->values, val, 0, UINT64_MAX >> 8, "--values",
		    e);
	case OPT_DEADLINE:
		return num_time(&p->deadline, val, "--deadline", e);
	case OPT_REPLAY:
		o->replay = val;
		return 0;
	default:
		if (set_flag(o, key))
			return 0;
		if (key >= OPT_COMPUTE && key <= OPT_KD)
			return set_deco(&o->stale, key, val, e);
		if (key >= OPT_RISE && key <= OPT_EASE)
			return set_pace(&p->pace, key, val, e);
		if (key >= OPT_DT && key <= OPT_COSINE)
			return set_table(o, key, val, e);
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
check(const struct opts *o, struct err *e)
{
	if (o->policy.cmin > o->policy.cmax)
		return err_set(e, ERR_USAGE, "--cmin is above --cmax");
	if (o->policy.interval.min > o->policy.interval.max)
		return err_set(e, ERR_USAGE,
		    "--min-interval is above --max-interval");
	if (o->replay != NULL && (o->dir != NULL || o->policy.stale.on ||
	    o->policy.interval.target > 0 || o->policy.cuts.on))
		return err_set(e, ERR_USAGE, "--replay decides nothing: it goes "
		    "with no -S, --deco, --cuts or --target-divergence");
	if (o->policy.cuts.on && !(o->cuts.dt >= 0))
		return err_set(e, ERR_USAGE, "--cuts needs --dt");
	if (o->policy.stale.on && (o->policy.pace.warmup > 0 ||
	    o->policy.pace.window > 0 || o->policy.deadline >= 0))
		return err_set(e, ERR_USAGE, "--deco has neither --warmup nor "
		    "--accordion nor --deadline");
	if (o->tiers.tiers > 0 && o->tiers.lambda >= 0)
		return err_set(e, ERR_USAGE, "--tiers or --lambda, not both");
	if (o->tiers.groups > 0 && o->tiers.theta >= 0)
		return err_set(e, ERR_USAGE, "--groups or --theta, not both");
	if (o->tiers.cosine && o->tiers.groups == 0 && o->tiers.theta < 0)
		return err_set(e, ERR_USAGE, "--cosine needs --groups or "
		    "--theta");
	return 0;
}

/* ---- as text ---- */

static int
put_ratio(const struct opts *o, double bandwidth)
{
	double c = ratio_factor(o->policy.cmin, o->policy.cmax,
	    o->policy.beta, bandwidth);

	(void)printf("%.0f\t%.6g\t%.6g", bandwidth, c, 32 / c);
	if (o->values > 0)
		(void)printf("\t%llu", (unsigned long long)
		    ratio_budget(o->values, c));
	(void)putchar('\n');
	return 0;
}

/* Today's point: what the state says of the link. */
static int
put_today(const struct opts *o, struct err *e)
{
	struct state state = STATE_INIT;
	double rate = 0;
	int r = state_open(&state, o->dir, e);

	if (r == 0)
		r = memory_number(&state, MEMORY_LINK, MEMORY_BANDWIDTH,
		    &rate, e);
	state_close(&state);
	if (r < 0)
		return r;
	(void)printf("# today's link%s\n", r == 0 ? ", never measured" : "");
	return put_ratio(o, rate);
}

static int
text_ratio(struct opts *o, const char *path, struct err *e)
{
	double half = o->policy.beta > 0 ? ratio_beta(o->policy.beta) : 1e6;
	int i;

	(void)path;
	(void)printf("bandwidth\tratio\tbits%s\n",
	    o->values > 0 ? "\tbudget_bytes" : "");
	if (o->policy.bandwidth >= 0)
		return put_ratio(o, o->policy.bandwidth);
	for (i = -6; i <= 4; i++)
		(void)put_ratio(o, half * ldexp(1, i));
	return o->dir != NULL ? put_today(o, e) : 0;
}

static int
text_interval(struct opts *o, const char *path, struct err *e)
{
	struct interval v = o->policy.interval;

	(void)path;
	if (o->divergence < 0)
		return err_set(e, ERR_USAGE, "interval: --divergence is "
		    "missing");
	if (!(v.target > 0))
		v.target = 0.01;
	(void)printf("interval=%llu\nforce=%d\n", (unsigned long long)
	    interval_next(&v, o->policy.steps, o->divergence),
	    interval_force(&v, o->divergence));
	return 0;
}

static int
text_dynacomm(struct opts *o, const char *path, struct err *e)
{
	struct advise_cuts cuts = o->cuts;
	struct table t;
	int r = table_read(&t, path, e);

	cuts.bandwidth = o->policy.bandwidth;
	if (r == 0)
		r = advise_dynacomm(stdout, &t, &cuts, e);
	table_release(&t);
	return r;
}

/* Without FILE, the options are the only row. */
static int
text_deco(struct opts *o, const char *path, struct err *e)
{
	struct advise_stale stale = o->stale;
	struct table t = TABLE_INIT;
	int r = path != NULL ? table_read(&t, path, e) : 0;

	stale.bandwidth = o->policy.bandwidth;
	stale.values = o->values;
	if (r == 0)
		r = advise_deco(stdout, path != NULL ? &t : NULL, &stale, e);
	table_release(&t);
	return r;
}

static int
text_cluster(struct opts *o, const char *path, struct err *e)
{
	struct table t;
	int r = table_read(&t, path, e);

	if (r == 0)
		r = advise_cluster(stdout, &t, &o->tiers, e);
	table_release(&t);
	return r;
}

static int
text_profile(struct opts *o, const char *path, struct err *e)
{
	struct reader *in = NULL;
	int r = filter_in(&o->f, &in, path, e);

	if (r == 0)
		r = profile_print(stdout, in, e);
	reader_free(in);
	return r;
}

/* What ace-policy can be asked as text: `ace-policy NAME [options]'. */
static const struct command {
	const char *name;
	int file;		/* takes one */
	int (*run)(struct opts *o, const char *path, struct err *e);
} commands[] = {
	{ "cluster", 1, text_cluster },
	{ "deco", 1, text_deco },
	{ "dynacomm", 1, text_dynacomm },
	{ "interval", 0, text_interval },
	{ "profile", 1, text_profile },
	{ "ratio", 0, text_ratio },
};

/* The command that word names; NULL: it names a file.  A bare word that is
 * neither is an error. */
static int
find_command(const char *word, const struct command **c, struct err *e)
{
	struct stat st;
	size_t i;

	*c = NULL;
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(word, commands[i].name) == 0) {
			*c = &commands[i];
			return 0;
		}
	if (word[0] == '\0' || word[strspn(word, "abcdefghijklmnopqrstuvwxyz")]
	    != '\0' || stat(word, &st) == 0)
		return 0;
	return err_set(e, ERR_USAGE, "'%s' is neither a file nor known", word);
}

/* ---- in the stream ---- */

/* What the policy has to say, line by line. */
static void
say(const struct opts *o, struct policy *p)
{
	const char *line = (const char *)p->said.p;
	size_t i;

	for (i = 0; i < p->said.n; i += strlen(line + i) + 1)
		cli_say(o->cli, o->explain ? 0 : 1, "%s", line + i);
	p->said.n = 0;
}

/* The options that `deco' has as text count in the stream too. */
static void
set_stale(struct policy_deco *s, const struct advise_stale *o)
{
	s->compute = o->compute;
	s->latency = o->latency;
	s->rule = o->phi == ADVISE_ALL ? REPLAN_TTA : o->phi;
	s->d = (struct deco)DECO_INIT;
	s->d.min = o->min;
	s->d.most = o->most;
	s->d.kc = o->kc;
	s->d.kd = o->kd;
	s->plan = (struct replan)REPLAN_INIT;
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct policy *p = &o->policy;
	struct state state = STATE_INIT;
	int r;

	p->tool = o->f.tool;
	p->explain = o->explain;
	p->cuts.dt = o->cuts.dt;
	set_stale(&p->stale, &o->stale);
	if (o->dir != NULL) {
		p->state = &state;
		if ((r = state_open(&state, o->dir, e)) < 0 ||
		    (r = policy_load(p, e)) < 0)
			goto out;
	}
	if ((o->replay != NULL &&
	    (r = filter_in(&o->f, &p->replay.from, o->replay, e)) < 0) ||
	    (r = filter_in(&o->f, &p->in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &p->out, e)) < 0)
		goto out;
	filter_loose(p->in, p->out, 0);
	while ((r = reader_next(p->in, e)) > 0) {
		r = policy_event(p, r, e);
		say(o, p);
		if (r < 0)
			break;
	}
	r = filter_end(p->out, r, e);
out:
	policy_release(p);
	writer_free(p->out);
	reader_free(p->in);
	state_close(&state);
	return r;
}

/* argv[1] may be a command; its options follow it. */
static int
start(struct cli *c, int argc, char **argv, struct opts *o, struct err *e)
{
	const struct command *command = NULL;
	const char *path;
	int r = argc > 1 && argv[1][0] != '-' ?
	    find_command(argv[1], &command, e) : 0;

	if (command != NULL) {
		argc--;
		argv++;
	}
	if (r < 0 || (r = cli_parse(c, argc, argv, set, o, e)) != 0 ||
	    (r = check(o, e)) < 0 ||
	    (r = filter_one(c, argc, argv, &path, e)) < 0)
		return r;
	if (command == NULL)
		return run(o, path, e);
	if (path != NULL && !command->file)
		return err_set(e, ERR_USAGE, "%s takes no FILE", command->name);
	return command->run(o, path, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-policy",
		.usage = "[ratio | interval | profile | dynacomm | deco | "
		    "cluster] [options] [FILE]",
		.about = "Says how hard to compress and how often to "
		    "synchronise, in the stream or as text.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .cli = &c, .divergence = -1,
	    .policy = { .cmin = 2, .cmax = 300, .beta = ratio_beta(10e6),
	    .bandwidth = -1, .deadline = -1, .steps = 1, .interval = { 0, 1, 1000 },
	    .cuts = POLICY_DYNACOMM_INIT, .pace = PACE_INIT },
	    .cuts = { -1, -1, ADVISE_DP }, .stale = { -1, -1, -1, 0, 1e-5,
	    0.005, 0.3, 64, ADVISE_ALL }, .tiers = { -1, 0, 0, -1, 0 } };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = start(&c, argc, argv, &o, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
