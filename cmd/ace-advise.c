/*
 * ace-advise: prints the settings that equation (5) of ACE-Sync and the papers
 * on links, layers and devices recommend.  There is one command for each
 * question; most of them read a table and print one.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/table.h"
#include "kern/kern.h"
#include "report/render.h"
#include "stage/stage_policy.h"
#include "sync/cluster.h"
#include "sync/deco.h"
#include "sync/dynacomm.h"

/* Options of all commands; below 0: the option was not given. */
struct opts {
	struct stage_policy_ratio factor;
	double bandwidth;	/* bit/s; for ratio, and for dynacomm with a column `bytes' */
	double dt;		/* for dynacomm: seconds that each transmission costs */
};

#define LONGEST 1e9		/* seconds; the longest time, except for deco and ROUND */
#define LEAST 1e-9		/* seconds; the least time where 0 is not allowed */
#define LARGEST 1e15		/* bytes, bit/s or, for deco, seconds */
#define ROUND 1e7		/* seconds; longest round for cluster, which adds up times in ns */

/* ---- dynacomm ---- */

/* Convert to ns.  Times of 4e9 s or more become a time that the solvers refuse. */
static int64_t
ns(double seconds)
{
	return seconds < 4e9 ? (int64_t)floor(seconds * 1e9 + 0.5) : INT64_MAX / 2;
}

/* Read a cell of a required column. */
static int
column(const struct table *t, size_t row, const char *name,
    enum table_kind kind, double lo, double hi, double *v, struct err *e)
{
	size_t col = table_column(t, name);

	if (col == TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: column '%s' is "
		    "missing", t->line[0], name);
	return table_value(t, row, col, kind, lo, hi, v, e);
}

/* Read a column of times into v, in ns; each is at least lo seconds. */
static int
times(const struct table *t, const char *name, double lo, int64_t *v, struct err *e)
{
	double x;
	size_t i;
	int r;

	for (i = 0; i < t->rows; i++) {
		if ((r = column(t, i, name, TABLE_TIME, lo, LONGEST, &x,
		    e)) < 0)
			return r;
		v[i] = ns(x);
	}
	return 0;
}

/* Set v to transfer times in ns: column `name' or, with column `bytes', 8 * bytes / bandwidth. */
static int
transfers(const struct table *t, const char *name,
    const struct opts *o, int64_t *v, struct err *e)
{
	size_t col = table_column(t, "bytes"), i;
	double x;
	int r;

	if (col == TABLE_NONE)
		return times(t, name, 0, v, e);
	if (table_column(t, name) != TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: columns 'bytes' and "
		    "'%s' exclude each other: leave one out", t->line[0], name);
	if (!(o->bandwidth > 0))
		return err_set(e, ERR_USAGE, "dynacomm: column 'bytes' needs "
		    "--bandwidth above 0");
	for (i = 0; i < t->rows; i++) {
		if ((r = table_value(t, i, col, TABLE_NUMBER, 0, LARGEST, &x,
		    e)) < 0)
			return r;
		x = x * 8 / o->bandwidth;
		if (x > LONGEST)
			return err_set(e, ERR_DATA, "limit: line %zu: sending 'bytes' would take "
			    "%.9g s, expected at most %.9g s: check 'bytes' and --bandwidth",
			    t->line[i + 1], x, LONGEST);
		v[i] = ns(x);
	}
	return 0;
}

enum { SEQUENTIAL, LAYERS, IBATCH, OPTIMAL, SCHEDULES };

struct pass {
	const char *name, *pt, *fc;
	int back;
	int64_t time[SCHEDULES];
};

static void
put_time(const char *pass, int s, const int64_t *time)
{
	static const char *const name[SCHEDULES] = { "sequential", "layers",
	    "ibatch", "optimal" };
	double all = (double)time[SEQUENTIAL];

	(void)printf("%-8s  %-10s %14.9f %7.2f", pass, name[s], (double)time[s] * 1e-9,
	    all > 0 ? 100 * (all - (double)time[s]) / all : 0);
}

/* Print k, the number of transmissions, and for each, in sending order, its last layer
 * (forward) or its first layer (backward); or `all' if each layer is sent alone. */
static void
put_cuts(const struct dynacomm *d, int back, const size_t *cuts, size_t k)
{
	size_t j;

	(void)printf("  %8zu  ", k);
	if (k == d->n && k > 1)
		(void)fputs("all", stdout);
	else if (back)
		for (j = k; j-- > 0; )
			(void)printf("%zu%s", (j > 0 ? cuts[j - 1] : 0) + 1,
			    j > 0 ? "," : "");
	else
		for (j = 0; j < k; j++)
			(void)printf("%s%zu", j > 0 ? "," : "", cuts[j]);
	(void)putchar('\n');
}

static int
solve(const struct dynacomm *d, int s, int back, size_t *cuts, size_t *k,
    struct err *e)
{
	switch (s) {
	case SEQUENTIAL:
		*k = dynacomm_sequential(d, cuts);
		return 0;
	case LAYERS:
		*k = dynacomm_layers(d, cuts);
		return 0;
	case IBATCH:
		*k = back ? dynacomm_ibatch_backward(d, cuts) :
		    dynacomm_ibatch(d, cuts);
		return 0;
	default:
		return dynacomm_best(d, cuts, k, e);
	}
}

static int
put_pass(const struct table *t, const struct opts *o, struct pass *p, struct err *e)
{
	struct dynacomm d = DYNACOMM_INIT;
	int64_t *pt = alloc_get(t->rows, sizeof(*pt), e);
	int64_t *fc = alloc_get(t->rows, sizeof(*fc), e);
	size_t *cuts = alloc_get(t->rows, sizeof(*cuts), e), k;
	int r = -ERR_SYS, s;

	if (pt == NULL || fc == NULL || cuts == NULL ||
	    (r = transfers(t, p->pt, o, pt, e)) < 0 ||
	    (r = times(t, p->fc, LEAST, fc, e)) < 0 ||
	    (r = dynacomm_init(&d, pt, fc, t->rows, ns(o->dt), e)) < 0)
		goto out;
	if (!p->back || table_column(t, "fc") == TABLE_NONE)
		(void)printf("%-8s  %-10s %14s %7s  %8s  cuts\n", "pass", "schedule",
		    "seconds", "saved", "segments");
	for (s = 0; s < SCHEDULES; s++) {
		if ((r = solve(&d, s, p->back, cuts, &k, e)) < 0)
			break;
		p->time[s] = p->back ? dynacomm_backward(&d, cuts, k) :
		    dynacomm_forward(&d, cuts, k);
		put_time(p->name, s, p->time);
		put_cuts(&d, p->back, cuts, k);
	}
out:
	dynacomm_release(&d);
	alloc_free(pt);
	alloc_free(fc);
	alloc_free(cuts);
	return r;
}

/* advise_dynacomm(t, o, e): print how long each schedule takes and where it cuts
 * the layers into transmissions. */
static int
advise_dynacomm(const struct table *t, const struct opts *o, struct err *e)
{
	struct pass way[2] = {
		{ "forward", "pt", "fc", 0, { 0 } },
		{ "backward", "gt", "bc", 1, { 0 } }
	};
	int64_t both[SCHEDULES];
	int r = 0, i, s, n = 0;

	if (!(o->dt >= 0))
		return err_set(e, ERR_USAGE, "dynacomm: the time of a cut is missing: add "
		    "--cuts TIME");
	if (o->bandwidth >= 0 && table_column(t, "bytes") == TABLE_NONE)
		return err_set(e, ERR_USAGE, "dynacomm: --bandwidth needs a column "
		    "'bytes': the table has none");
	if (table_column(t, "fc") == TABLE_NONE &&
	    table_column(t, "bc") == TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: expected a column "
		    "'fc' or 'bc'", t->line[0]);
	for (i = 0; i < 2 && r == 0; i++)
		if (table_column(t, way[i].fc) != TABLE_NONE) {
			r = put_pass(t, o, &way[i], e);
			n++;
		}
	for (s = 0; r == 0 && n == 2 && s < SCHEDULES; s++) {
		both[s] = way[0].time[s] + way[1].time[s];
		put_time("both", s, both);
		(void)printf("  %8s  -\n", "-");
	}
	return r;
}

/* ---- deco ---- */

static void
put_plan(const struct deco *d, const char *rule, struct deco_plan p, double phi)
{
	double sync = deco_time(d, (struct deco_plan){ 0, 1 });
	double step = deco_time(d, p), n = deco_steps(d, p);
	char term[32] = "-";

	if (phi >= 0)
		(void)snprintf(term, sizeof(term), "%.6g", phi);
	(void)printf("%9.6g %11.9g %9.6g %-8s %5d %8.6g %10.6g %8.4g %10s %9.6g %8.4g\n",
	    d->compute, d->bandwidth, d->latency, rule, p.tau, 1 / p.delta, step,
	    sync / step, term, n, sync / (n * step));
}

static void
put_rules(const struct deco *d)
{
	static const char *const name[] = { "paper", "s2", "additive" };
	struct deco_plan p = { 0, 1 };
	int i;

	put_plan(d, "sync", p, -1);
	for (i = DECO_PAPER; i <= DECO_ADDITIVE; i++) {
		(void)deco_bubbles(d, (enum deco_phi)i, &p);
		put_plan(d, name[i], p, deco_phi(d, (enum deco_phi)i, p));
	}
	put_plan(d, "tta", deco_best(d), -1);
}

/* advise_deco(t, o, e): print for each link (a row of t) the compression ratio and the
 * delay that each rule gives. */
static int
advise_deco(const struct table *t, const struct opts *o, struct err *e)
{
	struct deco d = DECO_INIT;
	size_t i;
	int r;

	for (i = 0; i < t->rows; i++) {
		if ((r = column(t, i, "compute", TABLE_TIME, LEAST, LARGEST,
		    &d.compute, e)) < 0 ||
		    (r = column(t, i, "bandwidth", TABLE_RATE, 1, LARGEST,
		    &d.bandwidth, e)) < 0 ||
		    (r = column(t, i, "latency", TABLE_TIME, 0, LARGEST,
		    &d.latency, e)) < 0 ||
		    (r = column(t, i, "values", TABLE_NUMBER, 1, LARGEST / 32,
		    &d.size, e)) < 0)
			return r;
		d.size *= 32;
		if ((r = deco_check(&d, e)) < 0)
			return r;
		if (i == 0)
			(void)printf("%9s %11s %9s %-8s %5s %8s %10s %8s %10s %9s %8s\n",
			    "compute", "bandwidth", "latency", "rule", "delay", "ratio",
			    "step", "speedup", "phi", "steps", "faster");
		put_rules(&d);
	}
	return 0;
}

/* ---- cluster ---- */

struct fleet {
	int64_t *time;
	size_t *tier;
};

static int
round_time(const struct table *t, size_t row, double *v, struct err *e)
{
	static const struct {
		const char *name;
		enum table_kind kind;
		double lo, hi;
	} part[4] = {
		{ "compute", TABLE_TIME, LEAST, LONGEST },
		{ "bandwidth", TABLE_RATE, 1, LARGEST },
		{ "rtt", TABLE_TIME, 0, LONGEST },
		{ "bytes", TABLE_NUMBER, 0, LARGEST }
	};
	double x[4];
	size_t col, i;
	int r;

	if ((col = table_column(t, "time")) != TABLE_NONE)
		return table_value(t, row, col, TABLE_TIME, LEAST, ROUND, v, e);
	for (i = 0; i < 4; i++) {
		if ((col = table_column(t, part[i].name)) == TABLE_NONE)
			return err_set(e, ERR_DATA, "corrupt: line %zu: without a "
			    "column 'time', column '%s' is needed", t->line[0], part[i].name);
		if ((r = table_value(t, row, col, part[i].kind, part[i].lo,
		    part[i].hi, &x[i], e)) < 0)
			return r;
	}
	*v = x[0] + 8 * x[3] / x[1] + x[2];
	if (*v > ROUND)
		return err_set(e, ERR_DATA, "limit: line %zu: a round would take %.9g s, "
		    "expected at most %.9g s: check its times, bandwidth and bytes",
		    t->line[row + 1], *v, ROUND);
	return 0;
}

static void
put_fleet(const struct fleet *x, const struct table *t, size_t k, int64_t idle)
{
	size_t dev = table_column(t, "device"), i, j, n;
	int64_t slow;

	(void)printf("# %zu tier%s, idle %.9f s\n", k, k == 1 ? "" : "s",
	    (double)idle * 1e-9);
	for (j = 0; j < k; j++) {
		for (n = i = 0, slow = 0; i < t->rows; i++)
			if (x->tier[i] == j) {
				n++;
				slow = slow > x->time[i] ? slow : x->time[i];
			}
		(void)printf("# tier %zu: %zu device%s, a round of %.9f "
		    "s\n", j + 1, n, n == 1 ? "" : "s", (double)slow * 1e-9);
	}
	(void)printf("%4s %17s  device\n", "tier", "time");
	for (i = 0; i < t->rows; i++) {
		(void)printf("%4zu %17.9f  ", x->tier[i] + 1, (double)x->time[i] * 1e-9);
		if (dev != TABLE_NONE)
			render_name(stdout, table_cell(t, i, dev));
		else
			(void)printf("%zu", i + 1);
		(void)putchar('\n');
	}
}

static int
arrange(struct fleet *x, const struct table *t, size_t *k, int64_t *idle, struct err *e)
{
	double v, sum = 0;
	size_t i;
	int r;

	if (t->rows > CLUSTER_DEVICES)
		return err_set(e, ERR_DATA, "limit: the table has %zu devices, expected at most %d",
		    t->rows, CLUSTER_DEVICES);
	for (i = 0; i < t->rows; i++) {
		if ((r = round_time(t, i, &v, e)) < 0)
			return r;
		x->time[i] = ns(v);
		sum += v / (double)t->rows;
	}
	return cluster_tiers(x->time, t->rows, 16, ns(sum), x->tier, idle, k, e);
}

/* advise_cluster(t, o, e): print the tier of each device. */
static int
advise_cluster(const struct table *t, const struct opts *o, struct err *e)
{
	struct fleet x = { NULL, NULL };
	size_t k = 0;
	int64_t idle = 0;
	int r = -ERR_SYS;

	if ((x.time = alloc_get(t->rows, sizeof(*x.time), e)) != NULL &&
	    (x.tier = alloc_get(t->rows, sizeof(*x.tier), e)) != NULL &&
	    (r = arrange(&x, t, &k, &idle, e)) == 0)
		put_fleet(&x, t, k, idle);
	alloc_free(x.time);
	alloc_free(x.tier);
	return r;
}

/* ---- ratio ---- */

static const struct opt ratio_options[] = {
	OPT_PART(stage_policy_ratio_rows, struct opts, factor),
	{ 0, "bandwidth", "RATE", "print the ratio for this link, not a table",
	    OPT_RATE(struct opts, bandwidth) },
	OPT_END
};

static void
ratio_put(const struct opts *o, double bandwidth)
{
	double c = stage_policy_ratio(&o->factor, bandwidth);

	(void)printf("%12.0f %9.6g %10.6g\n", bandwidth, c, 32 / c);
}

static int
ratio_run(void *arg, char **path, size_t n, struct err *e)
{
	const struct opts *o = arg;
	int i;

	if (n != 0)
		return err_set(e, ERR_USAGE, "ratio takes no FILE: leave out '%s'", path[0]);
	if (o->factor.warmup > 0)
		return err_set(e, ERR_USAGE, "ratio: --ratio takes no WARMUP here, "
		    "since a link has no steps: leave the fourth number out");
	(void)printf("%12s %9s %10s\n", "bandwidth", "ratio", "bits");
	if (o->bandwidth >= 0)
		ratio_put(o, o->bandwidth);
	for (i = -6; i <= 4 && o->bandwidth < 0; i++)
		ratio_put(o, o->factor.half * ldexp(1, i));
	return 0;
}

/* ---- tables in, tables out ---- */

static const struct opt dynacomm_options[] = {
	{ 0, "cuts", "TIME", "time that each transmission costs besides its "
	    "bytes", OPT_TIME(struct opts, dt), .hi.f = LONGEST },
	{ 0, "bandwidth", "RATE", "bandwidth of the link; the column bytes "
	    "needs it", OPT_RATE(struct opts, bandwidth) },
	OPT_END
};

/* Define a command that reads a table. */
#define TABLE(name) \
static int \
name##_run(void *arg, char **path, size_t n, struct err *e) \
{ \
	struct table t; \
	int r = table_read(&t, *path, e); \
\
	if (r == 0) \
		r = advise_##name(&t, arg, e); \
	table_release(&t); \
	return r == -ERR_DATA ? err_file(e, r, *path) : r; \
}
TABLE(dynacomm)
TABLE(deco)
TABLE(cluster)

static const struct cli_command commands[] = {
	{ "ratio", "[options]", "Prints a compression ratio for each bandwidth",
	    ratio_options, ratio_run, 0 },
	{ "dynacomm", "--cuts TIME [--bandwidth RATE] [FILE]",
	    "Chooses the layers between which transmissions are cut",
	    dynacomm_options, dynacomm_run, 1 },
	{ "deco", "[FILE]",
	    "Chooses a compression and a delay for each link",
	    NULL, deco_run, 1 },
	{ "cluster", "[FILE]", "Groups devices that belong together",
	    NULL, cluster_run, 1 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-advise",
		.usage = "COMMAND [options] [FILE]",
		.about = "Answers questions about links, layers and devices "
		    "with tables.",
		.examples = "ace-advise ratio --ratio 2,300,5Mbit\n"
		    "printf 'time\\n1s\\n2s\\n9s\\n' | "
		    "ace-advise cluster\n",
		.commands = commands,
		.kernels = kern_name
	};
	struct opts o = { .bandwidth = -1, .dt = -1 };

	return cli_main(&c, argc, argv, NULL, &o);
}
