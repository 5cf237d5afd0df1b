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
#include "base/table.h"
#include "report/advice.h"
#include "state/history.h"
#include "stream/filter.h"
#include "sync/deco.h"
#include "sync/interval.h"
#include "sync/ratio.h"

#define FILE_NAME "policy"		/* in the state directory */

enum {
	OPT_CMIN = CLI_LONG, OPT_CMAX, OPT_BETA, OPT_HALF, OPT_BANDWIDTH,
	OPT_TARGET, OPT_NORM, OPT_INTERVAL, OPT_LEAST, OPT_MOST, OPT_DIVERGENCE,
	OPT_VALUES, OPT_DT, OPT_METHOD, OPT_COMPUTE, OPT_LATENCY, OPT_PHI,
	OPT_MIN_RATIO, OPT_MAX_DELAY, OPT_KC, OPT_KD, OPT_LAMBDA, OPT_TIERS,
	OPT_GROUPS, OPT_THETA, OPT_COSINE
};

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "take the link's rate from DIR, keep the "
	    "interval there" },
	{ OPT_CMIN, "cmin", "X", "least compression factor (default 2)" },
	{ OPT_CMAX, "cmax", "X", "largest (default 300)" },
	{ OPT_BETA, "beta", "X", "how fast it falls, per bit/s" },
	{ OPT_HALF, "half", "RATE", "where it is half way (default 10Mbit)" },
	{ OPT_BANDWIDTH, "bandwidth", "RATE", "of the link, if not measured" },
	{ OPT_TARGET, "target-divergence", "X",
	    "relative drift to aim at; gives the interval" },
	{ OPT_NORM, "model-norm", "X", "the norm of the model" },
	{ OPT_INTERVAL, "interval", "STEPS", "the first interval (default 1)" },
	{ OPT_LEAST, "min-interval", "STEPS", "the least (default 1)" },
	{ OPT_MOST, "max-interval", "STEPS", "the largest (default 1000)" },
	{ OPT_DIVERGENCE, "divergence", "X", "interval: the drift there was" },
	{ OPT_VALUES, "values", "N", "ratio, deco: of the model" },
	{ OPT_DT, "dt", "TIME", "dynacomm: what each transmission costs more" },
	{ OPT_METHOD, "method", "NAME", "dynacomm: dp, greedy or dp3" },
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
	const char *dir;
	double cmin, cmax, beta, bandwidth, norm, divergence;
	uint64_t steps, values;
	struct interval interval;	/* target 0: none is asked for */
	struct advice_cuts cuts;
	struct advice_stale stale;
	struct advice_tiers tiers;
};

#define BIG 1e300

static int
set_ratio(struct opts *o, int key, const char *val, struct err *e)
{
	int r;

	switch (key) {
	case OPT_CMIN:
		return cli_f64(&o->cmin, val, 1, 1e9, "--cmin", e);
	case OPT_CMAX:
		return cli_f64(&o->cmax, val, 1, 1e9, "--cmax", e);
	case OPT_BETA:
		return cli_f64(&o->beta, val, 0, BIG, "--beta", e);
	case OPT_BANDWIDTH:
		return cli_rate(&o->bandwidth, val, "--bandwidth", e);
	default:
		if ((r = cli_rate(&o->beta, val, "--half", e)) < 0)
			return r;
		if (!(o->beta > 0))
			return err_set(e, ERR_USAGE, "--half must not be 0");
		o->beta = ratio_beta(o->beta);
		return 0;
	}
}

static int
set_deco(struct advice_stale *o, int key, const char *val, struct err *e)
{
	static const char *const phi[] = { "paper", "s2", "additive", "tta",
	    "all", NULL };
	uint64_t n;
	int r;

	switch (key) {
	case OPT_COMPUTE:
		return cli_time(&o->compute, val, "--compute", e);
	case OPT_LATENCY:
		return cli_time(&o->latency, val, "--latency", e);
	case OPT_PHI:
		if ((r = cli_choice(&o->phi, val, phi, "--phi", e)) == 0 &&
		    o->phi > ADVICE_TTA)
			o->phi = ADVICE_ALL;
		return r;
	case OPT_MIN_RATIO:
		return cli_f64(&o->min, val, 1e-9, 1, "--min-ratio", e);
	case OPT_KC:
		return cli_f64(&o->kc, val, 0, 1e6, "--kc", e);
	case OPT_KD:
		return cli_f64(&o->kd, val, 0, 1e6, "--kd", e);
	default:
		if ((r = cli_u64(&n, val, 0, DECO_MOST, "--max-delay", e)) == 0)
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
		return cli_time(&o->cuts.dt, val, "--dt", e);
	case OPT_METHOD:
		if ((r = cli_choice(&m, val, method, "--method", e)) == 0)
			o->cuts.method = (enum advice_method)m;
		return r;
	case OPT_LAMBDA:
		return cli_time(&o->tiers.lambda, val, "--lambda", e);
	case OPT_TIERS:
		return cli_u64(&o->tiers.tiers, val, 1, 64, "--tiers", e);
	case OPT_GROUPS:
		return cli_u64(&o->tiers.groups, val, 1, 2048, "--groups", e);
	case OPT_THETA:
		return cli_f64(&o->tiers.theta, val, 0, 1e9, "--theta", e);
	default:
		o->tiers.cosine = 1;
		return 0;
	}
}

static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_CMIN:
	case OPT_CMAX:
	case OPT_BETA:
	case OPT_HALF:
	case OPT_BANDWIDTH:
		return set_ratio(o, key, val, e);
	case OPT_TARGET:
		return cli_f64(&o->interval.target, val, 1e-300, BIG,
		    "--target-divergence", e);
	case OPT_NORM:
		return cli_f64(&o->norm, val, 1e-300, BIG, "--model-norm", e);
	case OPT_INTERVAL:
		return cli_u64(&o->steps, val, 1, 1000000, "--interval", e);
	case OPT_LEAST:
		return cli_u64(&o->interval.min, val, 1, 1000000,
		    "--min-interval", e);
	case OPT_MOST:
		return cli_u64(&o->interval.max, val, 1, 1000000,
		    "--max-interval", e);
	case OPT_DIVERGENCE:
		return cli_f64(&o->divergence, val, 0, BIG, "--divergence", e);
	case OPT_VALUES:
		return cli_u64(&o->values, val, 0, UINT64_MAX >> 8, "--values",
		    e);
	default:
		if (key >= OPT_COMPUTE && key <= OPT_KD)
			return set_deco(&o->stale, key, val, e);
		if (key >= OPT_DT && key <= OPT_COSINE)
			return set_table(o, key, val, e);
		r = filter_set(&o->f, key, val, e);
		return r < 0 ? r : 0;
	}
}

static int
check(const struct opts *o, struct err *e)
{
	if (o->cmin > o->cmax)
		return err_set(e, ERR_USAGE, "--cmin is above --cmax");
	if (o->interval.min > o->interval.max)
		return err_set(e, ERR_USAGE,
		    "--min-interval is above --max-interval");
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
	double c = ratio_factor(o->cmin, o->cmax, o->beta, bandwidth);

	(void)printf("%.0f\t%.6g\t%.6g", bandwidth, c, 32 / c);
	if (o->values > 0)
		(void)printf("\t%llu", (unsigned long long)
		    ratio_budget(o->values, c));
	(void)putchar('\n');
	return 0;
}

static int
text_ratio(const struct opts *o, const char *path, struct err *e)
{
	double half = o->beta > 0 ? ratio_beta(o->beta) : 1e6;
	int i;

	(void)path;
	(void)e;
	(void)printf("bandwidth\tratio\tbits%s\n",
	    o->values > 0 ? "\tbudget_bytes" : "");
	if (o->bandwidth >= 0)
		return put_ratio(o, o->bandwidth);
	for (i = -6; i <= 4; i++)
		(void)put_ratio(o, half * ldexp(1, i));
	return 0;
}

static int
text_interval(const struct opts *o, const char *path, struct err *e)
{
	struct interval v = o->interval;

	(void)path;
	if (o->divergence < 0)
		return err_set(e, ERR_USAGE, "interval: --divergence is "
		    "missing");
	if (!(v.target > 0))
		v.target = 0.01;
	(void)printf("interval=%llu\nforce=%d\n", (unsigned long long)
	    interval_next(&v, o->steps, o->divergence),
	    interval_force(&v, o->divergence));
	return 0;
}

static int
text_dynacomm(const struct opts *o, const char *path, struct err *e)
{
	struct advice_cuts cuts = o->cuts;
	struct table t;
	int r = table_read(&t, path, e);

	cuts.bandwidth = o->bandwidth;
	if (r == 0)
		r = advice_dynacomm(stdout, &t, &cuts, e);
	table_release(&t);
	return r;
}

/* Without FILE, the options are the only row. */
static int
text_deco(const struct opts *o, const char *path, struct err *e)
{
	struct advice_stale stale = o->stale;
	struct table t = TABLE_INIT;
	int r = path != NULL ? table_read(&t, path, e) : 0;

	stale.bandwidth = o->bandwidth;
	stale.values = o->values;
	if (r == 0)
		r = advice_deco(stdout, path != NULL ? &t : NULL, &stale, e);
	table_release(&t);
	return r;
}

static int
text_cluster(const struct opts *o, const char *path, struct err *e)
{
	struct table t;
	int r = table_read(&t, path, e);

	if (r == 0)
		r = advice_cluster(stdout, &t, &o->tiers, e);
	table_release(&t);
	return r;
}

/* What ace-policy can be asked as text: `ace-policy NAME [options]'. */
static const struct command {
	const char *name;
	int file;		/* takes one */
	int (*run)(const struct opts *o, const char *path, struct err *e);
} commands[] = {
	{ "cluster", 1, text_cluster },
	{ "deco", 1, text_deco },
	{ "dynacomm", 1, text_dynacomm },
	{ "interval", 0, text_interval },
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

struct run {
	struct opts *o;
	struct reader *in;
	struct writer *out;
	struct state state;
	uint64_t steps;		/* the interval that led to the next shard */
};

static int
load(struct run *x, struct err *e)
{
	struct history h = HISTORY_INIT;
	const char *v;
	int r;

	if (x->o->dir == NULL)
		return 0;
	if ((r = history_load(&h, &x->state, FILE_NAME, e)) < 0)
		return r;
	v = text_get(&h.kv, "interval");
	if (v != NULL && cli_u64(&x->steps, v, 1, 1000000, "interval",
	    NULL) < 0)
		r = err_set(e, ERR_DATA, "corrupt: interval in '%s/policy'",
		    x->o->dir);
	history_release(&h);
	return r < 0 ? r : 0;
}

static int
save(struct run *x, struct err *e)
{
	struct history h = HISTORY_INIT;
	float row = (float)x->steps;
	char v[32];
	int r;

	if (x->o->dir == NULL || !(x->o->interval.target > 0))
		return 0;
	(void)snprintf(v, sizeof(v), "%llu", (unsigned long long)x->steps);
	if ((r = text_set(&h.kv, "interval", v, e)) == 0 &&
	    (r = history_put(&h, "interval", &row, 1, e)) == 0)
		r = history_save(&h, &x->state, FILE_NAME,
		    reader_shard(x->in), x->o->f.tool, e);
	history_release(&h);
	return r;
}

/* What the link was last measured at: 1 known, 0 not.  Read for every shard,
 * since ace-meter is at work in the same pipe. */
static int
bandwidth(struct run *x, double *v, struct err *e)
{
	if (x->o->bandwidth >= 0) {
		*v = x->o->bandwidth;
		return 1;
	}
	if (x->o->dir == NULL)
		return 0;
	return history_number(&x->state, HISTORY_LINK, HISTORY_BANDWIDTH, v,
	    e);
}

static int
put_real(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.9g", v);
	return text_set(kv, key, s, e);
}

static int
put_whole(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.0f", v);
	return text_set(kv, key, s, e);
}

static int
put_policy(struct run *x, const struct text_kv *kv, struct err *e)
{
	struct buf b = BUF_INIT;
	int r = text_put_lines(kv, &b, e);

	if (r == 0)
		r = writer_note(x->out, FRAME_POLI, b.p, b.n, e);
	buf_release(&b);
	return r;
}

/* Equation (5), before the data. */
static int
on_shard(struct run *x, struct err *e)
{
	const struct opts *o = x->o;
	struct text_kv kv = TEXT_KV_INIT;
	char where[160];
	double rate = 0, c;
	uint64_t budget;
	int r, known;

	if ((r = filter_shard(x->in, x->out, NULL, e)) < 0 ||
	    (known = bandwidth(x, &rate, e)) < 0)
		return r < 0 ? r : known;
	c = ratio_factor(o->cmin, o->cmax, o->beta, rate);
	budget = ratio_budget(reader_schema(x->in)->total, c);
	cli_say(o->cli, 1, "%s: %s %.4g bit/s, factor %.4g, %llu bytes",
	    reader_where(x->in, where), known ? "link" : "link unknown,",
	    rate, c, (unsigned long long)budget);
	if ((r = put_real(&kv, "ratio", c, e)) == 0 &&
	    (r = put_whole(&kv, "budget_bytes", (double)budget, e)) == 0 &&
	    (!known || (r = put_whole(&kv, HISTORY_BANDWIDTH, rate, e)) == 0))
		r = put_policy(x, &kv, e);
	text_release(&kv);
	return r;
}

/* || theta ||, as the option or the shard says. */
static int
model_norm(const struct run *x, double *norm, struct err *e)
{
	const char *s = text_get(&reader_shard(x->in)->kv, SHARD_KEY_NORM);

	*norm = x->o->norm;
	if (*norm > 0)
		return 0;
	if (s == NULL)
		return err_set(e, ERR_USAGE, "--target-divergence needs "
		    "--model-norm, or the key " SHARD_KEY_NORM " in the shards");
	if (cli_f64(norm, s, 1e-300, BIG, SHARD_KEY_NORM, NULL) < 0)
		return err_set(e, ERR_DATA, "corrupt: key " SHARD_KEY_NORM);
	return 0;
}

/* Equation (9), when the shard's energy is known. */
static int
on_send(struct run *x, struct err *e)
{
	const struct shard_sums *sums = &reader_end_of_shard(x->in)->sums;
	const struct shard *s = reader_shard(x->in);
	const struct interval *o = &x->o->interval;
	struct text_kv kv = TEXT_KV_INIT;
	double norm, drift;
	int r;

	if (!(o->target > 0))
		return writer_send(x->out, sums, e);
	if ((r = model_norm(x, &norm, e)) < 0)
		return r;
	drift = interval_drift(sums->sumsq, norm * norm);
	if (s->kind == SHARD_SUM)
		drift /= s->weight;
	x->steps = interval_next(o, x->steps, drift);
	cli_say(x->o->cli, 1, "'%s/%llu': relative drift %.4g, interval %llu",
	    shard_device(s), (unsigned long long)s->step, drift,
	    (unsigned long long)x->steps);
	if ((r = put_real(&kv, "divergence", drift, e)) == 0 &&
	    (r = put_whole(&kv, "interval", (double)x->steps, e)) == 0 &&
	    (r = put_whole(&kv, "force", interval_force(o, drift), e)) == 0 &&
	    (r = put_policy(x, &kv, e)) == 0)
		r = save(x, e);
	text_release(&kv);
	return r < 0 ? r : writer_send(x->out, sums, e);
}

/* An older policy loses the keys that are said anew. */
static int
on_policy(struct run *x, struct err *e)
{
	static const char *const ours[] = { "ratio", "budget_bytes",
	    HISTORY_BANDWIDTH, "divergence", "interval", "force" };
	const struct chain_frame *f = reader_frame(x->in);
	struct text_kv kv = TEXT_KV_INIT;
	size_t i, n = x->o->interval.target > 0 ? 6 : 3;
	int r = text_get_lines(&kv, f->raw, f->raw_len, e);

	for (i = 0; i < n && r == 0; i++)
		r = text_set(&kv, ours[i], NULL, e);
	if (r == 0 && kv.n > 0)
		r = put_policy(x, &kv, e);
	text_release(&kv);
	return r;
}

static int
on_event(struct run *x, int event, struct err *e)
{
	switch (event) {
	case READER_SHARD:
		return on_shard(x, e);
	case READER_DATA:
		return writer_pass(x->out, x->in, e);
	case READER_SEND:
		return on_send(x, e);
	case READER_NOTE:
		if (reader_shard(x->in) == NULL)
			return 0;
		return reader_frame(x->in)->type == FRAME_POLI ?
		    on_policy(x, e) : filter_pass(x->in, x->out, 0, e);
	default:
		return 0;
	}
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct run x = { .o = o, .state = STATE_INIT, .steps = o->steps };
	int r;

	if ((o->dir != NULL && ((r = state_open(&x.state, o->dir, e)) < 0 ||
	    (r = load(&x, e)) < 0)) ||
	    (r = filter_in(&o->f, &x.in, path, e)) < 0 ||
	    (r = filter_out(&o->f, &x.out, e)) < 0)
		goto out;
	while ((r = reader_next(x.in, e)) > 0)
		if ((r = on_event(&x, r, e)) < 0)
			break;
	r = filter_end(x.out, r, e);
out:
	writer_free(x.out);
	reader_free(x.in);
	state_close(&x.state);
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
		.usage = "[ratio | interval | dynacomm | deco | cluster] "
		    "[options] [FILE]",
		.about = "Says how hard to compress and how often to "
		    "synchronise, in the stream or as text.",
		.opt = options
	};
	struct opts o = { .cli = &c, .cmin = 2, .cmax = 300,
	    .beta = ratio_beta(10e6), .bandwidth = -1, .divergence = -1,
	    .steps = 1, .interval = { 0, 1, 1000 },
	    .cuts = { -1, -1, ADVICE_DP }, .stale = { -1, -1, -1, 0, 1e-5,
	    0.005, 0.3, 64, ADVICE_ALL }, .tiers = { -1, 0, 0, -1, 0 } };
	struct err e = ERR_INIT;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	r = start(&c, argc, argv, &o, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
