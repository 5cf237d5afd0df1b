/*
 * ace-advise: prints the settings that equation (5) of ACE-Sync and the papers
 * on links, layers and devices recommend.  There is one command for each
 * question; most of them read a table and print one.
 */
#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "base/num.h"
#include "base/state.h"
#include "base/table.h"
#include "device/memory.h"
#include "pipe/program.h"
#include "report/advise.h"
#include "report/profile.h"
#include "sync/ratio.h"

enum {
	OPT_CMIN = CLI_LONG, OPT_CMAX, OPT_HALF, OPT_BANDWIDTH, OPT_TARGET,
	OPT_DT, OPT_METHOD, OPT_PHI, OPT_KC, OPT_KD, OPT_TIERS, OPT_GROUPS,
	OPT_THETA
};

struct opts {
	struct filter *f;
	const char *dir;		/* of ratio */
	double cmin, cmax, half;
	double bandwidth;		/* bit/s; < 0: not said */
	double target;
	struct advise_cuts cuts;
	struct advise_stale stale;
	struct advise_tiers tiers;
};

/* ---- ratio ---- */

static const struct cli_opt ratio_options[] = {
	{ 'S', "state", "DIR", "behind the curve, the link measured in DIR" },
	{ OPT_CMIN, "cmin", "X", "least compression factor (default 2)" },
	{ OPT_CMAX, "cmax", "X", "largest (default 300)" },
	{ OPT_HALF, "half", "RATE", "where it is half way (default 10Mbit)" },
	{ OPT_BANDWIDTH, "bandwidth", "RATE", "for this link, not the curve" },
	{ 0, NULL, NULL, NULL }
};

static int
ratio_set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case 'S':
		o->dir = val;
		return 0;
	case OPT_CMIN:
		return num_f64(&o->cmin, val, 1, 1e9, "--cmin", e);
	case OPT_CMAX:
		return num_f64(&o->cmax, val, 1, 1e9, "--cmax", e);
	case OPT_HALF:
		r = num_rate(&o->half, val, "--half", e);
		return r < 0 || o->half > 0 ? r :
		    err_set(e, ERR_USAGE, "--half must not be 0");
	default:
		return num_rate(&o->bandwidth, val, "--bandwidth", e);
	}
}

static int
ratio_put(const struct opts *o, double bandwidth)
{
	double c = ratio_factor(o->cmin, o->cmax, ratio_beta(o->half),
	    bandwidth);

	(void)printf("%.0f\t%.6g\t%.6g\n", bandwidth, c, 32 / c);
	return 0;
}

/* Today's point: what the state says of the link. */
static int
ratio_today(const struct opts *o, struct err *e)
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
	return ratio_put(o, rate);
}

static int
ratio_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	int i;

	(void)path;
	if (n != 0)
		return err_set(e, ERR_USAGE, "ratio takes no FILE");
	if (o->cmin > o->cmax)
		return err_set(e, ERR_USAGE, "--cmin is above --cmax");
	(void)puts("bandwidth\tratio\tbits");
	if (o->bandwidth >= 0)
		return ratio_put(o, o->bandwidth);
	for (i = -6; i <= 4; i++)
		(void)ratio_put(o, o->half * ldexp(1, i));
	return o->dir != NULL ? ratio_today(o, e) : 0;
}

/* ---- tables in, tables out ---- */

static const struct cli_opt interval_options[] = {
	{ OPT_TARGET, "target-divergence", "X",
	    "relative drift to aim at (default 0.01)" },
	{ 0, NULL, NULL, NULL }
};

static const struct cli_opt dynacomm_options[] = {
	{ OPT_DT, "dt", "TIME", "what a transmission costs beside its bytes" },
	{ OPT_BANDWIDTH, "bandwidth", "RATE", "of the link, for column bytes" },
	{ OPT_METHOD, "method", "NAME", "dp (default), greedy or dp3" },
	{ 0, NULL, NULL, NULL }
};

static const struct cli_opt deco_options[] = {
	{ OPT_PHI, "phi", "NAME",
	    "paper, s2, additive, tta or all (default all)" },
	{ OPT_KC, "kc", "X", "price of compression (default 0.005)" },
	{ OPT_KD, "kd", "X", "price of a step's delay (default 0.3)" },
	{ 0, NULL, NULL, NULL }
};

static const struct cli_opt cluster_options[] = {
	{ OPT_TIERS, "tiers", "N", "so many, whatever they save" },
	{ OPT_GROUPS, "groups", "N", "medoids in each tier" },
	{ OPT_THETA, "theta", "X", "join groups up to this distance" },
	{ 0, NULL, NULL, NULL }
};

static const struct cli_opt profile_options[] = {
	FILTER_OPTS_IN,
	{ 0, NULL, NULL, NULL }
};

static int
interval_set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;

	(void)key;
	return num_f64(&o->target, val, 1e-300, 1e300, "--target-divergence",
	    e);
}

static int
dynacomm_set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const method[] = { "dp", "greedy", "dp3", NULL };
	struct opts *o = arg;
	int r, m;

	switch (key) {
	case OPT_DT:
		return num_time(&o->cuts.dt, val, "--dt", e);
	case OPT_BANDWIDTH:
		return num_rate(&o->cuts.bandwidth, val, "--bandwidth", e);
	default:
		if ((r = num_choice(&m, val, method, "--method", e)) == 0)
			o->cuts.method = (enum advise_method)m;
		return r;
	}
}

static int
deco_set(void *arg, int key, const char *val, struct err *e)
{
	static const char *const phi[] = { "paper", "s2", "additive", "tta",
	    "all", NULL };
	struct opts *o = arg;

	switch (key) {
	case OPT_PHI:
		return num_choice(&o->stale.phi, val, phi, "--phi", e);
	case OPT_KC:
		return num_f64(&o->stale.kc, val, 0, 1e6, "--kc", e);
	default:
		return num_f64(&o->stale.kd, val, 0, 1e6, "--kd", e);
	}
}

static int
cluster_set(void *arg, int key, const char *val, struct err *e)
{
	struct opts *o = arg;
	int r;

	switch (key) {
	case OPT_TIERS:
		return num_u64(&o->tiers.tiers, val, 1, 64, "--tiers", e);
	case OPT_GROUPS:
		r = num_u64(&o->tiers.groups, val, 1, 2048, "--groups", e);
		break;
	default:
		r = num_f64(&o->tiers.theta, val, 0, 1e9, "--theta", e);
	}
	if (r == 0 && o->tiers.groups > 0 && o->tiers.theta >= 0)
		r = err_set(e, ERR_USAGE, "--groups or --theta, not both");
	return r;
}

static int
interval_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct table t;
	int r = table_read(&t, *path, e);

	(void)n;
	if (r == 0)
		r = advise_interval(stdout, &t, o->target, e);
	table_release(&t);
	return r;
}

static int
dynacomm_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct table t;
	int r = table_read(&t, *path, e);

	(void)n;
	if (r == 0)
		r = advise_dynacomm(stdout, &t, &o->cuts, e);
	table_release(&t);
	return r;
}

static int
deco_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct table t;
	int r = table_read(&t, *path, e);

	(void)n;
	if (r == 0)
		r = advise_deco(stdout, &t, &o->stale, e);
	table_release(&t);
	return r;
}

static int
cluster_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	struct table t;
	int r = table_read(&t, *path, e);

	(void)n;
	if (r == 0)
		r = advise_cluster(stdout, &t, &o->tiers, e);
	table_release(&t);
	return r;
}

/* ---- profile ---- */

static int
profile_run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct reader *in = NULL;
	int r = filter_in(o->f, &in, *path, e);

	(void)n;
	if (r == 0)
		r = profile_print(stdout, in, e);
	reader_free(in);
	return r;
}

static const struct cli_command commands[] = {
	{ "ratio", "[options]", "How hard to compress for each bandwidth",
	    ratio_options, ratio_set, ratio_run, 1 },
	{ "interval", "[--target-divergence X] [FILE]",
	    "How many local steps to take after each drift",
	    interval_options, interval_set, interval_run, 1 },
	{ "profile", "[FILE]", "What the layers of a stream take, for dynacomm",
	    profile_options, NULL, profile_run, 1 },
	{ "dynacomm", "--dt TIME [options] [FILE]",
	    "At which layers to cut the transmissions",
	    dynacomm_options, dynacomm_set, dynacomm_run, 1 },
	{ "deco", "[options] [FILE]",
	    "How much to compress and how late to aggregate, for each link",
	    deco_options, deco_set, deco_run, 1 },
	{ "cluster", "[options] [FILE]", "Which devices belong together",
	    cluster_options, cluster_set, cluster_run, 1 },
	{ NULL, NULL, NULL, NULL, NULL, NULL, 0 }
};

static const struct cli_opt options[] = { { 0, NULL, NULL, NULL } };

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-advise",
			.usage = "COMMAND [options] [FILE]",
			.about = "Answers questions about links, layers and devices "
			    "with tables.",
			.examples = "printf 'bandwidth\\n5Mbit\\n' | ace-advise "
			    "ratio --cmin 2 --cmax 300 --half 5Mbit\n"
			    "printf 'divergence\\n0.002\\n0.01\\n' | "
			    "ace-advise interval\n",
			.opt = options,
			.commands = commands
		}
	};
	struct opts o = { .f = &p.f, .cmin = 2, .cmax = 300, .half = 10e6,
	    .bandwidth = -1, .target = 0.01, .cuts = { -1, -1, ADVISE_DP },
	    .stale = { 0.005, 0.3, ADVISE_ALL }, .tiers = { 0, 0, -1 } };

	return program_main(&p, argc, argv, &o);
}
