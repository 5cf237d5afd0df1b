/*
 * ace-aggregate: write the weighted mean or sum of the shards of each step, from
 * streams or from a spool.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "format/keys.h"
#include "pipe/event.h"
#include "pipe/program.h"
#include "mean/aggregate.h"

/* Check the delay, whose text is written into the stream unchanged. */
static int
set_delay(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct aggregate_opts *o = arg;
	uint64_t n;

	o->delay = val;
	return num_u64(&n, val, 0, KEYS_DELAY_MOST, "--delay", e);
}

/* Parse "0.7" or "0.7:mean". */
static int
set_cluster(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct aggregate_opts *o = arg;
	const size_t n = strlen(val);
	char theta[32];

	o->means = n > 5 && strcmp(val + n - 5, ":mean") == 0;
	/* if the text is too long for a number, parse all of it, to refuse it */
	if (snprintf(theta, sizeof(theta), "%.*s", (int)(o->means ? n - 5 : n),
	    val) < (int)sizeof(theta))
		val = theta;
	return num_f64(&o->who.theta, val, 0, 2, "--cluster", e);
}

static int
set_rule(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct aggregate_opts *o = arg;

	if (o->sum || (o->who.rule_text != NULL &&
	    strcmp(o->who.rule_text, "mean") != 0))
		return err_set(e, ERR_USAGE, "--rule and --tolerate set the same "
		    "rule: give only one of these options, once; several rules are "
		    "one list, such as --rule norm-ratio:3,median");
	o->sum = strcmp(val, "sum") == 0;
	o->who.rule_text = o->sum ? "mean" : val;
	return robust_parse(&o->who.rule, o->who.rule_text, e);
}

/* Set the rule that tolerates F bad devices: it excludes shards with large norms or with
 * values that are not finite, and limits how far any other shard moves the result. */
static int
set_tolerate(void *arg, const struct opt *row, const char *val, struct err *e)
{
	static char rule[64];
	uint64_t n;
	int r = num_u64(&n, val, 1, 1 << 19, "--tolerate", e);

	if (r < 0)
		return r;
	(void)snprintf(rule, sizeof(rule), "norm-ratio:3,center:%llu,finite",
	    (unsigned long long)n);
	return set_rule(arg, row, rule, e);
}

static const char *const rules[] = { "mean", "sum", "clip:", "trim:", "median",
	"center:", "norm-ratio:", "finite", NULL };
static const char *const intervals[] = { "common", "own", NULL };
static const struct opt options[] = {
	{ 0, "devices", "N", "contributions that a round needs",
	    OPT_U64(struct aggregate_opts, expect, 1, 1 << 20) },
	{ 0, "rule", "RULE",
	    "mean, sum, clip:X, trim:F, median, center:F, and limits",
	    OPT_CALL(set_rule), .words = rules,
	    .several = 1, .def = "mean" },
	{ 0, "tolerate", "F", "tolerate F bad devices: the rule "
	    "norm-ratio:3,center:F,finite",
	    OPT_CALL(set_tolerate) },
	{ 0, "delay", "STEPS", "steps after which devices apply the average "
	    "(default: the most that a device asks for)",
	    OPT_CALL(set_delay) },
	{ 0, "interval", "WHOSE",
	    "common, or own: each device also gets the interval that it asks "
	    "for",
	    OPT_WORD(struct aggregate_opts, own, intervals), .def = "common" },
	{ 0, "cluster", "THETA",
	    "name clusters of devices, merged while 1 - cos is at most THETA; "
	    ":mean also writes the mean of each",
	    OPT_CALL(set_cluster) },
	{ 0, "spool", "DIR",
	    "aggregate what ace-recv puts there, step after step",
	    OPT_PATH(struct aggregate_opts, spool, OPT_DIR) },
	{ 0, "create", NULL, "make the spool if it is absent",
	    OPT_FLAG(struct aggregate_opts, create), .with = "spool" },
	{ 0, "quorum", "N",
	    "shards of a spool that are enough at the deadline (default 1)",
	    OPT_U64(struct aggregate_opts, quorum, 1, 1 << 20), .with = "spool" },
	{ 0, "deadline", "TIME",
	    "how long to wait for more shards in a spool once a quorum is "
	    "there (default: for ever)",
	    OPT_TIME(struct aggregate_opts, deadline), .with = "spool" },
	{ 0, "rounds", "N", "end after N rounds of a spool (default never)",
	    OPT_U64(struct aggregate_opts, steps, 1, UINT64_MAX), .with = "spool" },
	{ 0, "keep", "N",
	    "remove shards from a spool N steps later (default never)",
	    OPT_U64(struct aggregate_opts, keep, 1, UINT64_MAX), .with = "spool" },
	{ 0, "publish", NULL,
	    "begin the next round of a spool when ace-recv --publish has "
	    "stored the average",
	    OPT_FLAG(struct aggregate_opts, published), .with = "spool" },
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	FILTER_OPT_THREADS,
	{ 'd', "device", "NAME", "name of the aggregate",
	    OPT_TEXT(struct aggregate_opts, device),
	    .def = "aggregate" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

static int
check(const struct aggregate_opts *o, size_t n, char **paths, struct err *e)
{
	const struct robust_rule *q = &o->who.rule;
	const int whole = robust_elements(q) || robust_centered(q);
	struct stat st;

	if (robust_centered(q) && o->expect != 0 && o->expect < 2 * q->f + 1)
		return err_set(e, ERR_USAGE, "--devices %llu with F = %zu: any rule "
		    "tolerates fewer than half of the devices, here at most %llu%s",
		    (unsigned long long)o->expect, q->f,
		    (unsigned long long)(o->expect - 1) / 2, o->expect > 2 ? "" :
		    ": leave out --rule or --tolerate, or give more devices");
	if (o->expect != 0 && o->quorum > o->expect)
		return err_set(e, ERR_USAGE, "--quorum %llu is larger than --devices %llu",
		    (unsigned long long)o->quorum, (unsigned long long)o->expect);
	if (o->means && (o->sum || whole))
		return err_set(e, ERR_USAGE, "--cluster THETA:mean needs the rule mean, found %s: "
		    "leave out --rule and --tolerate, or :mean", o->sum ? "sum" : o->who.rule_text);
	if (o->published && o->f->output != NULL && strcmp(o->f->output, "-") != 0 &&
	    (stat(o->f->output, &st) < 0 || S_ISREG(st.st_mode)))
		return err_set(e, ERR_USAGE, "--publish needs a reader of each average: leave out "
		    "--output '%s', and pipe the output to ace-recv --publish", o->f->output);
	if (o->means && o->published)
		return err_set(e, ERR_USAGE, "--cluster THETA:mean excludes --publish, since a "
		    "spool keeps one average per step: give THETA without :mean");
	if (o->spool != NULL && n != 0)
		return err_set(e, ERR_USAGE, "--spool reads no FILE, found "
		    "'%s': leave out --spool or FILE", paths[0]);
	return 0;
}

static volatile sig_atomic_t asked;

static void
on_asked(int sig)
{
	asked++;
}

static int
run(void *arg, char **paths, size_t n, struct err *e)
{
	const struct aggregate_opts *o = arg;
	const struct sigaction ask = { .sa_handler = on_asked,
	    .sa_flags = SA_RESTART };
	int r = check(o, n, paths, e);

	if (r < 0)
		return r;
	if (o->spool != NULL)
		(void)sigaction(SIGUSR1, &ask, NULL);
	return aggregate_run(o, paths, n, e);
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-aggregate",
			.usage = "[--rule RULE] [--devices N]\n    [--spool DIR [--quorum N] "
			    "[--deadline TIME] | FILE...]",
			.about = "Weighted mean or sum of the shards of a step, one "
			    "from each FILE, or all from one.",
			.examples = "ace-aggregate edge1.aceg edge2.aceg >mean.aceg\n"
			    "ace-aggregate --spool spool --devices 2 --rounds "
			    "1 >mean.aceg\n",
			.opt = options
		},
		.run = run
	};
	struct aggregate_opts o = { .f = &p.f, .asked = &asked,
	    .deadline = -1, .who = { .theta = -1 } };

	return program_main(&p, argc, argv, &o);
}
