/*
 * ace-aggregate: the weighted mean or sum of the shards of a step, from streams
 * or from a spool.
 */
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "pipe/program.h"
#include "stage/stage_aggregate.h"

enum {
	OPT_MEAN = CLI_LONG, OPT_SUM, OPT_WEIGHT, OPT_EXPECT, OPT_SPOOL,
	OPT_QUORUM, OPT_DEADLINE, OPT_RUN, OPT_STEPS, OPT_KEEP, OPT_RULE,
	OPT_PUBLISHED, OPT_CLUSTER, OPT_DELAY, OPT_CREATE
};

static const struct cli_opt options[] = {
	{ OPT_MEAN, "mean", NULL, "weighted mean (default)" },
	{ OPT_SUM, "sum", NULL, "weighted sum" },
	{ OPT_WEIGHT, "weight-by", "WHAT",
	    "weight (default), samples or equal; less by ,staleness:N ,drift:X" },
	{ OPT_EXPECT, "expect", "N", "so many contributions, no fewer" },
	{ OPT_RULE, "rule", "RULE", "mean (default), clip:X, trim:F, median, "
	    "krum:F, multikrum:F:M, and limits" },
	{ OPT_DELAY, "delay", "STEPS", "say that it is applied so much later "
	    "(default: the most that a device asks for)" },
	{ OPT_CLUSTER, "cluster", "THETA",
	    "name clusters, merged up to 1 - cos THETA; :mean, :offset writes "
	    "them" },
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
	FILTER_OPT_THREADS,
	{ 'd', "device", "NAME", "name of the aggregate (default aggregate)" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, NULL, NULL, NULL }
};

/* Where shards come from, and when a step is over. */
static int
set_step(struct stage_aggregate_opts *o, int key, const char *val,
    struct err *e)
{
	uint64_t n;

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
		return 0;
	}
}

/* "0.7", "0.7:mean" or "0.7:offset" */
static int
set_cluster(struct stage_aggregate_opts *o, const char *val, struct err *e)
{
	static const char *const pers[] = { "nothing", "mean", "offset", NULL };
	const char *per = strchr(val, ':');
	char theta[32];
	size_t n = per != NULL ? (size_t)(per - val) : strlen(val);
	int r;

	if (n >= sizeof(theta))		/* all of it, or no number */
		return num_f64(&o->who.theta, val, 0, 2, "--cluster", e);
	memcpy(theta, val, n);
	theta[n] = '\0';
	r = num_f64(&o->who.theta, theta, 0, 2, "--cluster", e);
	return r < 0 || per == NULL ? r :
	    num_choice(&o->per, per + 1, pers, "--cluster", e);
}

/* How shards are combined into one. */
static int
set(void *arg, int key, const char *val, struct err *e)
{
	struct stage_aggregate_opts *o = arg;

	switch (key) {
	case OPT_MEAN:
	case OPT_SUM:
		o->sum = key == OPT_SUM;
		return 0;
	case 'd':
		o->device = val;
		return 0;
	case OPT_WEIGHT:
		return contrib_weight_by(&o->who, val, e);
	case OPT_RULE:
		o->who.rule_text = val;
		return robust_parse(&o->who.rule, val, e);
	case OPT_CLUSTER:
		return set_cluster(o, val, e);
	default:
		return set_step(o, key, val, e);
	}
}

/* Checks that the options given may be used together. */
static int
check(const struct stage_aggregate_opts *o, size_t n, char **paths,
    struct err *e)
{
	const struct robust_rule *q = &o->who.rule;
	const int whole = robust_elements(q) || robust_pairs(q);

	if (o->sum && whole)
		return err_set(e, ERR_USAGE, "--rule %s makes no --sum",
		    o->who.rule_text);
	if (o->expect != 0 && o->quorum > o->expect)
		return err_set(e, ERR_USAGE, "--quorum is more than "
		    "--expect");
	if (o->per != STAGE_AGGREGATE_NOTHING && (o->sum || whole))
		return err_set(e, ERR_USAGE, "--cluster writes means of means");
	if (o->spool != NULL && n != 0)
		return err_set(e, ERR_USAGE, "--spool and FILE '%s'", paths[0]);
	return 0;
}

static volatile sig_atomic_t asked;

static void
on_asked(int sig)
{
	(void)sig;
	asked++;
}

static int
run(void *arg, char **paths, size_t n, struct err *e)
{
	const struct stage_aggregate_opts *o = arg;
	const struct sigaction ask = { .sa_handler = on_asked,
	    .sa_flags = SA_RESTART };
	int r = check(o, n, paths, e);

	if (r < 0)
		return r;
	if (o->spool != NULL)
		(void)sigaction(SIGUSR1, &ask, NULL);
	return stage_aggregate_run(o, paths, n, e);
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-aggregate",
			.usage = "[--mean | --sum] [--weight-by WHAT] [--rule RULE] "
			    "[--expect N]\n    [--quorum N] [--deadline TIME] "
			    "[--spool DIR | FILE...]",
			.about = "Weighted mean or sum of the shards of a step, one "
			    "from each FILE, or all from one.",
			.examples = "ace-aggregate edge1.aceg edge2.aceg >mean.aceg\n"
			    "ace-aggregate --spool spool --expect 2 --steps "
			    "1 >mean.aceg\n",
			.opt = options
		},
		.set = set,
		.run = run
	};
	struct stage_aggregate_opts o = { .f = &p.f, .device = "aggregate",
	    .asked = &asked, .who = { .rule_text = "mean", .theta = -1 } };

	return program_main(&p, argc, argv, &o);
}
