/*
 * ace-advise: prints the settings that equation (5) of ACE-Sync and the papers
 * on links, layers and devices recommend.  There is one command for each
 * question; most of them read a table and print one.
 */
#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "base/state.h"
#include "base/table.h"
#include "device/memory.h"
#include "pipe/program.h"
#include "report/advise.h"
#include "report/profile.h"
#include "sync/ratio.h"

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

static const struct opt ratio_options[] = {
	{ 'S', "state", "DIR", "behind the curve, the link measured in DIR",
	    OPT_PATH(struct opts, dir, OPT_DIR) },
	{ 0, "cmin", "X", "least compression factor",
	    OPT_F64(struct opts, cmin, 1, 1e9), .def = "2" },
	{ 0, "cmax", "X", "largest",
	    OPT_F64(struct opts, cmax, 1, 1e9), .def = "300" },
	{ 0, "half", "RATE", "where it is half way",
	    OPT_RATE(struct opts, half), .lo.f = 1e-300, .def = "10Mbit" },
	{ 0, "bandwidth", "RATE", "for this link, not the curve",
	    OPT_RATE(struct opts, bandwidth) },
	OPT_END
};

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

static const struct opt interval_options[] = {
	{ 0, "target-divergence", "X", "relative drift to aim at",
	    OPT_F64(struct opts, target, 1e-300, 1e300), .def = "0.01" },
	OPT_END
};

static const char *const methods[] = { "dp", "greedy", "dp3", NULL };
static const struct opt dynacomm_options[] = {
	{ 0, "dt", "TIME", "what a transmission costs beside its bytes",
	    OPT_TIME(struct opts, cuts.dt) },
	{ 0, "bandwidth", "RATE", "of the link, for column bytes",
	    OPT_RATE(struct opts, cuts.bandwidth) },
	{ 0, "method", "NAME", NULL,
	    OPT_WORD(struct opts, cuts.method, methods), .def = "dp" },
	OPT_END
};

static const char *const phis[] = { "paper", "s2", "additive", "tta", "all",
	NULL };
static const struct opt deco_options[] = {
	{ 0, "phi", "NAME", NULL, OPT_WORD(struct opts, stale.phi, phis),
	    .def = "all" },
	{ 0, "kc", "X", "price of compression",
	    OPT_F64(struct opts, stale.kc, 0, 1e6), .def = "0.005" },
	{ 0, "kd", "X", "price of a step's delay",
	    OPT_F64(struct opts, stale.kd, 0, 1e6), .def = "0.3" },
	OPT_END
};

static const struct opt cluster_options[] = {
	{ 0, "tiers", "N", "so many, whatever they save",
	    OPT_U64(struct opts, tiers.tiers, 1, 64) },
	{ 0, "groups", "N", "medoids in each tier",
	    OPT_U64(struct opts, tiers.groups, 1, 2048) },
	{ 0, "theta", "X", "join groups up to this distance",
	    OPT_F64(struct opts, tiers.theta, 0, 1e9) },
	OPT_END
};

static const struct opt profile_options[] = { FILTER_OPTS_IN, OPT_END };

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
	int r;

	(void)n;
	if (o->tiers.groups > 0 && o->tiers.theta >= 0)
		return err_set(e, ERR_USAGE, "--groups or --theta, not both");
	if ((r = table_read(&t, *path, e)) == 0)
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
	    ratio_options, ratio_run, 1 },
	{ "interval", "[--target-divergence X] [FILE]",
	    "How many local steps to take after each drift",
	    interval_options, interval_run, 1 },
	{ "profile", "[FILE]", "What the layers of a stream take, for dynacomm",
	    profile_options, profile_run, 1 },
	{ "dynacomm", "--dt TIME [options] [FILE]",
	    "At which layers to cut the transmissions",
	    dynacomm_options, dynacomm_run, 1 },
	{ "deco", "[options] [FILE]",
	    "How much to compress and how late to aggregate, for each link",
	    deco_options, deco_run, 1 },
	{ "cluster", "[options] [FILE]", "Which devices belong together",
	    cluster_options, cluster_run, 1 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

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
			.commands = commands
		}
	};
	struct opts o = { .f = &p.f, .bandwidth = -1,
	    .cuts = { .dt = -1, .bandwidth = -1 }, .tiers = { .theta = -1 } };

	return program_main(&p, argc, argv, &o);
}
