/*
 * ace-policy: how hard to compress (5) and how often to synchronise (9), as an
 * annotation in every shard.
 */
#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/state.h"
#include "format/keys.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "stage/policy.h"
#include "sync/ratio.h"

enum {
	OPT_CMIN = CLI_LONG, OPT_CMAX, OPT_HALF, OPT_BANDWIDTH, OPT_WARMUP,
	OPT_ACCORDION, OPT_DEADLINE, OPT_CUTS, OPT_DECO, OPT_COMPUTE,
	OPT_LATENCY, OPT_TARGET, OPT_NORM, OPT_INTERVAL, OPT_LEAST, OPT_MOST,
	OPT_REPLAY, OPT_EXPLAIN
};

static const struct cli_opt options[] = {
	{ 'S', "state", "DIR", "take the link's rate from DIR, keep the "
	    "interval there" },
	{ OPT_CMIN, "cmin", "X", "least compression factor (default 2)" },
	{ OPT_CMAX, "cmax", "X", "largest (default 300)" },
	{ OPT_HALF, "half", "RATE", "where it is half way (default 10Mbit)" },
	{ OPT_BANDWIDTH, "bandwidth", "RATE", "of the link, if not measured" },
	{ OPT_WARMUP, "warmup", "STEPS",
	    "reach the factor over so many (default 0)" },
	{ OPT_ACCORDION, "accordion", "STEPS",
	    "compress less after windows whose norm changes" },
	{ OPT_DEADLINE, "deadline", "TIME",
	    "no more than the link carries in TIME" },
	{ OPT_CUTS, "cuts", "TIME",
	    "at which layers to send; TIME: each sending costs more" },
	{ OPT_DECO, "deco", NULL, "the budget and the delay after DeCo-SGD" },
	{ OPT_COMPUTE, "compute", "TIME",
	    "deco: of a step, if the shards do not say it" },
	{ OPT_LATENCY, "latency", "TIME", "deco: of the link, if not measured" },
	{ OPT_TARGET, "target-divergence", "X",
	    "relative drift to aim at; gives the interval" },
	{ OPT_NORM, "model-norm", "X", "the norm of the model" },
	{ OPT_INTERVAL, "interval", "STEPS", "the first interval (default 1)" },
	{ OPT_LEAST, "min-interval", "STEPS", "the least (default 1)" },
	{ OPT_MOST, "max-interval", "STEPS", "the largest (default 1000)" },
	{ OPT_REPLAY, "replay", "FILE", "decide as in FILE, a stream" },
	{ OPT_EXPLAIN, "explain", NULL, "say what was decided, and why" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

struct opts {
	struct filter f;
	const struct cli *cli;
	const char *dir, *replay;
	struct policy policy;
};

static int
set_half(double *beta, const char *val, struct err *e)
{
	int r = num_rate(beta, val, "--half", e);

	if (r == 0 && !(*beta > 0))
		r = err_set(e, ERR_USAGE, "--half must not be 0");
	*beta = ratio_beta(*beta);
	return r;
}

/* Above KEYS_RATE_MOST it would not be a value of its key. */
static int
set_bandwidth(double *v, const char *val, struct err *e)
{
	int r = num_rate(v, val, "--bandwidth", e);

	if (r == 0 && *v > KEYS_RATE_MOST)
		r = err_set(e, ERR_USAGE, "--bandwidth '%s' is too large", val);
	return r;
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
	case OPT_HALF:
		return set_half(&p->beta, val, e);
	case OPT_BANDWIDTH:
		return set_bandwidth(&p->bandwidth, val, e);
	case OPT_WARMUP:
		return num_u64(&p->pace.warmup, val, 0, UINT64_MAX, "--warmup",
		    e);
	case OPT_ACCORDION:
		return num_u64(&p->pace.window, val, 1, 1000000, "--accordion",
		    e);
	case OPT_CUTS:
		p->cuts.on = 1;
		return num_time(&p->cuts.dt, val, "--cuts", e);
	case OPT_DECO:
		p->stale.on = 1;
		return 0;
	case OPT_COMPUTE:
		return num_time(&p->stale.compute, val, "--compute", e);
	case OPT_LATENCY:
		return num_time(&p->stale.latency, val, "--latency", e);
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
	case OPT_DEADLINE:
		return num_time(&p->deadline, val, "--deadline", e);
	case OPT_REPLAY:
		o->replay = val;
		return 0;
	case OPT_EXPLAIN:
		p->explain = 1;
		return 0;
	default:
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
	if (o->policy.stale.on && (o->policy.pace.warmup > 0 ||
	    o->policy.pace.window > 0 || o->policy.deadline >= 0))
		return err_set(e, ERR_USAGE, "--deco has neither --warmup nor "
		    "--accordion nor --deadline");
	return 0;
}

/* What the policy has to say, line by line. */
static void
say(const struct opts *o, struct policy *p)
{
	const char *line = (const char *)p->said.p;
	size_t i;

	for (i = 0; i < p->said.n; i += strlen(line + i) + 1)
		cli_say(o->cli, p->explain ? 0 : 1, "%s", line + i);
	p->said.n = 0;
}

static int
run(struct opts *o, const char *path, struct err *e)
{
	struct policy *p = &o->policy;
	struct state state = STATE_INIT;
	int r;

	p->tool = o->f.tool;
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

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-policy",
		.usage = "[-S DIR] [options] [FILE]",
		.about = "Says in the stream how hard to compress and how often "
		    "to synchronise.",
		.opt = options,
		.loops = kern_name
	};
	struct opts o = { .cli = &c,
	    .policy = { .cmin = 2, .cmax = 300, .beta = ratio_beta(10e6),
	    .bandwidth = -1, .deadline = -1, .steps = 1, .interval = { 0, 1, 1000 },
	    .stale = POLICY_DECO_INIT, .cuts = POLICY_DYNACOMM_INIT,
	    .pace = PACE_INIT } };
	struct err e = ERR_INIT;
	const char *path;
	int r;

	filter_init(&o.f, c.prog, argc, argv);
	if ((r = cli_parse(&c, argc, argv, set, &o, &e)) == 0 &&
	    (r = check(&o, &e)) == 0 &&
	    (r = filter_one(&c, argc, argv, &path, &e)) == 0)
		r = run(&o, path, &e);
	filter_release(&o.f);
	return cli_exit(&c, r, &e);
}
