#include <math.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/table.h"
#include "report/advise.h"
#include "sync/cluster.h"
#include "sync/deco.h"
#include "sync/dynacomm.h"
#include "sync/interval.h"

#define LONGEST 1e9		/* seconds, of one time */
#define LEAST 1e-9		/* seconds, of one that must not be 0 */
#define LARGEST 1e15		/* bytes, bits a second */

/* ---- dynacomm ---- */

/* What is too long stays so: the solvers say which limit it breaks. */
static int64_t
ns(double seconds)
{
	return seconds < 4e9 ? (int64_t)floor(seconds * 1e9 + 0.5) :
	    INT64_MAX / 2;
}

/* A cell of a column that has to be there. */
static int
column(const struct table *t, size_t row, const char *name,
    enum table_kind kind, double lo, double hi, double *v, struct err *e)
{
	size_t col = table_column(t, name);

	if (col == TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: no column "
		    "'%s'", t->line[0], name);
	return table_value(t, row, col, kind, lo, hi, v, e);
}

/* One column of times; nothing is computed in no time. */
static int
times(const struct table *t, const char *name, double lo, int64_t *v,
    struct err *e)
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

/* The column name, or bytes over the bandwidth. */
static int
transfers(const struct table *t, const char *name,
    const struct advise_cuts *o, int64_t *v, struct err *e)
{
	size_t col = table_column(t, "bytes"), i;
	double x;
	int r;

	if (col == TABLE_NONE)
		return times(t, name, 0, v, e);
	if (table_column(t, name) != TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: both bytes "
		    "and %s", t->line[0], name);
	if (!(o->bandwidth > 0))
		return err_set(e, ERR_USAGE, "dynacomm: the column bytes "
		    "needs --bandwidth, and not 0");
	for (i = 0; i < t->rows; i++) {
		if ((r = table_value(t, i, col, TABLE_NUMBER, 0, LARGEST, &x,
		    e)) < 0)
			return r;
		x = x * 8 / o->bandwidth;
		if (x > LONGEST)
			return err_set(e, ERR_DATA, "limit: line %zu: bytes "
			    "take %.3g s", t->line[i + 1], x);
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
put_time(FILE *f, const char *pass, int s, const int64_t *time)
{
	static const char *const name[SCHEDULES] = { "sequential", "layers",
	    "ibatch", "optimal" };
	double all = (double)time[SEQUENTIAL];

	(void)fprintf(f, "%s\t%s\t%.9f\t%.2f", pass, name[s],
	    (double)time[s] * 1e-9,
	    all > 0 ? 100 * (all - (double)time[s]) / all : 0);
}

/* Forward the last layer of each transmission; backward the lowest, in the
 * order of sending. */
static void
put_cuts(FILE *f, const struct dynacomm *d, int back, const size_t *cuts,
    size_t k)
{
	size_t j;

	(void)fprintf(f, "\t%zu\t", k);
	if (k == d->n && k > 1)
		(void)fputs("all", f);
	else if (back)
		for (j = k; j-- > 0; )
			(void)fprintf(f, "%zu%s", (j > 0 ? cuts[j - 1] : 0) + 1,
			    j > 0 ? "," : "");
	else
		for (j = 0; j < k; j++)
			(void)fprintf(f, "%s%zu", j > 0 ? "," : "", cuts[j]);
	(void)fputc('\n', f);
}

static int
solve(const struct dynacomm *d, int s, int back, enum advise_method m,
    size_t *cuts, size_t *k, struct err *e)
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
		return m == ADVISE_GREEDY ? dynacomm_greedy(d, cuts, k, e) :
		    m == ADVISE_DP3 ? dynacomm_dp3(d, cuts, k, e) :
		    dynacomm_dp(d, cuts, k, e);
	}
}

static int
put_pass(FILE *f, const struct table *t, const struct advise_cuts *o,
    struct pass *p, struct err *e)
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
	for (s = 0; s < SCHEDULES; s++) {
		if ((r = solve(&d, s, p->back, o->method, cuts, &k, e)) < 0)
			break;
		p->time[s] = p->back ? dynacomm_backward(&d, cuts, k) :
		    dynacomm_forward(&d, cuts, k);
		put_time(f, p->name, s, p->time);
		put_cuts(f, &d, p->back, cuts, k);
	}
out:
	dynacomm_release(&d);
	alloc_free(pt);
	alloc_free(fc);
	alloc_free(cuts);
	return r;
}

int
advise_dynacomm(FILE *f, const struct table *t, const struct advise_cuts *o,
    struct err *e)
{
	struct pass way[2] = {
		{ "forward", "pt", "fc", 0, { 0 } },
		{ "backward", "gt", "bc", 1, { 0 } }
	};
	int64_t both[SCHEDULES];
	int r = 0, i, s, n = 0;

	if (!(o->dt >= 0))
		return err_set(e, ERR_USAGE, "dynacomm: --dt is missing");
	if (table_column(t, "fc") == TABLE_NONE &&
	    table_column(t, "bc") == TABLE_NONE)
		return err_set(e, ERR_DATA, "corrupt: line %zu: neither a "
		    "column 'fc' nor 'bc'", t->line[0]);
	(void)fputs("pass\tschedule\tseconds\tsaved\tsegments\tcuts\n", f);
	for (i = 0; i < 2 && r == 0; i++)
		if (table_column(t, way[i].fc) != TABLE_NONE) {
			r = put_pass(f, t, o, &way[i], e);
			n++;
		}
	for (s = 0; r == 0 && n == 2 && s < SCHEDULES; s++) {
		both[s] = way[0].time[s] + way[1].time[s];
		put_time(f, "both", s, both);
		(void)fputs("\t-\t-\n", f);
	}
	return r;
}

/* ---- interval ---- */

int
advise_interval(FILE *f, const struct table *t, double target, struct err *e)
{
	struct interval o = INTERVAL_INIT;
	size_t steps_col = table_column(t, "interval"), i;
	double drift, steps = 1;
	int r;

	o.target = target;
	for (i = 0; i < t->rows; i++) {
		if ((r = column(t, i, "divergence", TABLE_NUMBER, 0, 1e300,
		    &drift, e)) < 0 ||
		    (steps_col != TABLE_NONE && (r = table_value(t, i,
		    steps_col, TABLE_NUMBER, 1, 1e6, &steps, e)) < 0))
			return r;
		if (i == 0)
			(void)fputs("divergence\tinterval\tforce\n", f);
		steps = (double)interval_next(&o, (uint64_t)steps, drift);
		(void)fprintf(f, "%.9g\t%.0f\t%d\n", drift, steps,
		    interval_force(&o, drift));
	}
	return 0;
}

/* ---- deco ---- */

static void
put_plan(FILE *f, const struct deco *d, const char *rule, struct deco_plan p,
    double phi)
{
	double sync = deco_time(d, (struct deco_plan){ 0, 1 });
	double step = deco_time(d, p), n = deco_steps(d, p);

	(void)fprintf(f, "%.9g\t%.9g\t%.9g\t%s\t%d\t%.6f\t%.6g\t%.4g\t",
	    d->compute, d->bandwidth, d->latency, rule, p.tau, p.delta, step,
	    sync / step);
	if (phi >= 0)
		(void)fprintf(f, "%.6g", phi);
	else
		(void)fputc('-', f);
	(void)fprintf(f, "\t%.6g\t%.4g\n", n, sync / (n * step));
}

static void
put_rules(FILE *f, const struct deco *d, int phi)
{
	static const char *const name[] = { "paper", "s2", "additive" };
	struct deco_plan p = { 0, 1 };
	int i;

	put_plan(f, d, "sync", p, -1);
	for (i = DECO_PAPER; i <= DECO_ADDITIVE; i++)
		if (phi == ADVISE_ALL || phi == i) {
			(void)deco_bubbles(d, (enum deco_phi)i, &p);
			put_plan(f, d, name[i], p, deco_phi(d,
			    (enum deco_phi)i, p));
		}
	if (phi == ADVISE_ALL || phi == ADVISE_TTA)
		put_plan(f, d, "tta", deco_best(d), -1);
}

int
advise_deco(FILE *f, const struct table *t, const struct advise_stale *o,
    struct err *e)
{
	struct deco d = DECO_INIT;
	size_t i;
	int r;

	d.kc = o->kc;
	d.kd = o->kd;
	for (i = 0; i < t->rows; i++) {
		if ((r = column(t, i, "compute", TABLE_TIME, LEAST, LARGEST,
		    &d.compute, e)) < 0 ||
		    (r = column(t, i, "bandwidth", TABLE_RATE, 1, LARGEST,
		    &d.bandwidth, e)) < 0 ||
		    (r = column(t, i, "latency", TABLE_TIME, 0, LARGEST,
		    &d.latency, e)) < 0 ||
		    (r = column(t, i, "values", TABLE_NUMBER, 1, LARGEST,
		    &d.size, e)) < 0)
			return r;
		d.size = fmin(32 * d.size, LARGEST);
		if ((r = deco_check(&d, e)) < 0)
			return r;
		if (i == 0)
			(void)fputs("compute\tbandwidth\tlatency\trule\tdelay"
			    "\tratio\tstep\tspeedup\tphi\tsteps\tfaster\n", f);
		put_rules(f, &d, o->phi);
	}
	return 0;
}

/* ---- cluster ---- */

struct fleet {
	int64_t *time;
	size_t *tier, *group;
	double *x;		/* rows of m features */
	size_t m, *feature;	/* their columns; + cols: as a logarithm */
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
		return table_value(t, row, col, TABLE_TIME, LEAST, LONGEST, v,
		    e);
	for (i = 0; i < 4; i++) {
		if ((col = table_column(t, part[i].name)) == TABLE_NONE)
			return err_set(e, ERR_DATA, "corrupt: line %zu: "
			    "neither a column 'time' nor '%s'", t->line[0],
			    part[i].name);
		if ((r = table_value(t, row, col, part[i].kind, part[i].lo,
		    part[i].hi, &x[i], e)) < 0)
			return r;
	}
	*v = x[0] + 8 * x[3] / x[1] + x[2];
	if (*v > LONGEST)
		return err_set(e, ERR_DATA, "limit: line %zu: a round of %.3g "
		    "s", t->line[row + 1], *v);
	return 0;
}

/* What devices are compared by: every column but the name and bytes, which is
 * a plan and not the device. */
static int
features(struct fleet *x, const struct table *t, struct err *e)
{
	static const char *const scaled[] = { "time", "compute", "bandwidth",
	    "rtt" };
	size_t dev = table_column(t, "device"), c, i, j;
	int r, log_of;
	double v;

	for (c = 0; c < t->cols; c++) {
		if (c == dev || c == table_column(t, "bytes"))
			continue;
		for (log_of = 0, j = 0; j < 4; j++)
			log_of |= c == table_column(t, scaled[j]);
		x->feature[x->m++] = log_of ? c + t->cols : c;
	}
	if ((x->x = alloc_get(t->rows, x->m * sizeof(*x->x), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < t->rows; i++)
		for (j = 0; j < x->m; j++) {
			c = x->feature[j] % t->cols;
			log_of = x->feature[j] >= t->cols;
			if ((r = table_value(t, i, c, !log_of ? TABLE_NUMBER :
			    c == table_column(t, "bandwidth") ? TABLE_RATE :
			    TABLE_TIME, log_of ? 0 : -1e100, 1e100, &v, e)) < 0)
				return r;
			x->x[i * x->m + j] = log_of ? log(fmax(v, LEAST)) : v;
		}
	return 0;
}

/* The groups of one tier, in fleet order. */
static int
group_tier(struct fleet *x, const struct table *t,
    const struct advise_tiers *o, size_t tier, struct err *e)
{
	size_t *at = alloc_get(t->rows, sizeof(*at), e), n = 0, i, j, k;
	size_t *group = alloc_get(t->rows, sizeof(*group), e);
	double *row = NULL, *dist = NULL;
	int r = -ERR_SYS;

	if (at == NULL || group == NULL)
		goto out;
	for (i = 0; i < t->rows; i++)
		if (x->tier[i] == tier)
			at[n++] = i;
	if (n > CLUSTER_GROUP) {
		r = err_set(e, ERR_DATA, "limit: %zu devices in one tier, at "
		    "most %d can be grouped", n, CLUSTER_GROUP);
		goto out;
	}
	if ((row = alloc_get(n, x->m * sizeof(*row), e)) == NULL ||
	    (dist = alloc_get(n * n, sizeof(*dist), e)) == NULL)
		goto out;
	for (i = 0; i < n; i++)
		for (j = 0; j < x->m; j++)
			row[i * x->m + j] = x->x[at[i] * x->m + j];
	cluster_zscore(row, n, x->m, dist);
	k = (size_t)o->groups;
	r = k > 0 ? cluster_medoids(dist, n, &k, group, e) :
	    cluster_linkage(dist, n, o->theta, group, &k, e);
	for (i = 0; i < n && r == 0; i++)
		x->group[at[i]] = group[i] + 1;
out:
	alloc_free(at);
	alloc_free(group);
	alloc_free(row);
	alloc_free(dist);
	return r;
}

/* A name from outside, without what a terminal would obey. */
static void
put_name(FILE *f, const char *s)
{
	for (; *s != '\0'; s++)
		(void)fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, f);
}

static void
put_fleet(FILE *f, const struct fleet *x, const struct table *t, size_t k,
    int64_t idle)
{
	size_t dev = table_column(t, "device"), i, j, n;
	int64_t slow;

	(void)fprintf(f, "# %zu tier%s, idle %.9f s\n", k, k == 1 ? "" : "s",
	    (double)idle * 1e-9);
	for (j = 0; j < k; j++) {
		for (n = i = 0, slow = 0; i < t->rows; i++)
			if (x->tier[i] == j) {
				n++;
				slow = slow > x->time[i] ? slow : x->time[i];
			}
		(void)fprintf(f, "# tier %zu: %zu device%s, a round of %.9f "
		    "s\n", j + 1, n, n == 1 ? "" : "s", (double)slow * 1e-9);
	}
	(void)fputs("device\ttime\ttier\tgroup\n", f);
	for (i = 0; i < t->rows; i++) {
		if (dev != TABLE_NONE)
			put_name(f, table_cell(t, i, dev));
		else
			(void)fprintf(f, "%zu", i + 1);
		(void)fprintf(f, "\t%.9f\t%zu\t%zu\n",
		    (double)x->time[i] * 1e-9, x->tier[i] + 1,
		    x->group[i] > 0 ? x->group[i] : 1);
	}
}

/* Tiers, then groups. */
static int
arrange(struct fleet *x, const struct table *t, const struct advise_tiers *o,
    size_t *k, int64_t *idle, struct err *e)
{
	double v, sum = 0;
	size_t i;
	int r;

	if (t->rows > CLUSTER_DEVICES)
		return err_set(e, ERR_DATA, "limit: %zu devices, at most %d",
		    t->rows, CLUSTER_DEVICES);
	for (i = 0; i < t->rows; i++) {
		if ((r = round_time(t, i, &v, e)) < 0)
			return r;
		x->time[i] = ns(v);
		sum += v / (double)t->rows;
	}
	*k = o->tiers < t->rows ? (size_t)o->tiers : t->rows;
	r = o->tiers > 0 ? cluster_tiers(x->time, t->rows, *k, x->tier, idle,
	    e) : cluster_choose(x->time, t->rows, 16,
	    ns(fmin(sum, 1e7)), x->tier, idle, k, e);
	if (r < 0 || (o->groups == 0 && o->theta < 0))
		return r;
	if ((r = features(x, t, e)) < 0)
		return r;
	for (i = 0; i < *k && r == 0; i++)
		r = group_tier(x, t, o, i, e);
	return r;
}

int
advise_cluster(FILE *f, const struct table *t, const struct advise_tiers *o,
    struct err *e)
{
	struct fleet x = { 0 };
	size_t k = 0;
	int64_t idle = 0;
	int r = -ERR_SYS;

	if ((x.time = alloc_get(t->rows, sizeof(*x.time), e)) != NULL &&
	    (x.tier = alloc_get(t->rows, sizeof(*x.tier), e)) != NULL &&
	    (x.group = alloc_get(t->rows, sizeof(*x.group), e)) != NULL &&
	    (x.feature = alloc_get(t->cols, sizeof(*x.feature), e)) != NULL &&
	    (r = arrange(&x, t, o, &k, &idle, e)) == 0)
		put_fleet(f, &x, t, k, idle);
	alloc_free(x.time);
	alloc_free(x.tier);
	alloc_free(x.group);
	alloc_free(x.feature);
	alloc_free(x.x);
	return r;
}
