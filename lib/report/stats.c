#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/values.h"
#include "kern/kern.h"
#include "pipe/pick.h"
#include "report/report.h"
#include "report/stats.h"

void
stats_add(struct stats *m, const struct kern *k, const float *x, size_t n)
{
	struct stats g = STATS_INIT;
	struct kern_stat s;
	double d;
	size_t i;

	k->stat(x, n, &s);
	g.n = n - s.nonfinite;
	g.nonzero = s.nonzero;
	g.sumsq = s.sumsq;
	g.max_abs = s.max_abs;
	g.mean = g.n != 0 ? s.sum / (double)g.n : 0;
	g.min = INFINITY;
	g.max = -INFINITY;
	for (i = 0; i < n; i++) {
		if (!isfinite(x[i])) {
			g.nan += isnan(x[i]) != 0;
			g.inf += isinf(x[i]) != 0;
			continue;
		}
		g.min = x[i] < g.min ? x[i] : g.min;
		g.max = x[i] > g.max ? x[i] : g.max;
		d = (double)x[i] - g.mean;
		g.m2 += d * d;
	}
	stats_merge(m, &g);
}

void
stats_zeros(struct stats *m, uint64_t n)
{
	struct stats g = STATS_INIT;

	g.n = n;
	stats_merge(m, &g);
}

void
stats_merge(struct stats *m, const struct stats *o)
{
	double a = (double)m->n, b = (double)o->n, d = o->mean - m->mean;

	m->nan += o->nan;
	m->inf += o->inf;
	if (o->n == 0)
		return;
	m->min = m->n == 0 || o->min < m->min ? o->min : m->min;
	m->max = m->n == 0 || o->max > m->max ? o->max : m->max;
	m->max_abs = o->max_abs > m->max_abs ? o->max_abs : m->max_abs;
	m->mean = m->n == 0 ? o->mean : m->mean + d * (b / (a + b));
	m->m2 += o->m2 + (m->n == 0 ? 0 : d * d * (a * b / (a + b)));
	m->sumsq += o->sumsq;
	m->n += o->n;
	m->nonzero += o->nonzero;
}

double
stats_std(const struct stats *m)
{
	return m->n != 0 ? sqrt(m->m2 / (double)m->n) : 0;
}

struct stats_run {
	struct report *p;
	struct report_row row;
	struct stats now, total;
};

static void
stats_row(struct report_row *x, const struct stats *m)
{
	x->min = m->min;
	x->max = m->max;
	x->mean = m->mean;
	x->std = stats_std(m);
	x->l2 = sqrt(m->sumsq);
	x->max_abs = m->max_abs;
	x->zeros = m->n - m->nonzero;
	x->nan = m->nan;
	x->inf = m->inf;
}

/* Print a tensor or the total, as a line or as a JSON object. */
static void
stats_put(struct report *p, const struct report_row *x, unsigned in)
{
	struct json_out *j = &p->s.json;

	if (p->s.form != RENDER_JSON) {
		report_put(p, in | REPORT_NAMED, x, 0);
		return;
	}
	if (x->tensor != NULL) {
		json_out_open(j, NULL, '{');
		in |= REPORT_NAMED | REPORT_SHAPED;
	} else {
		json_out_close(j);
		json_out_open(j, "total", '{');
	}
	report_put(p, in, x, 0);
	if (x->tensor != NULL)
		json_out_close(j);
	else
		json_out_end(j);
}

static int
stats_group(void *arg, const struct schema_tensor *t, const float *x, size_t n,
    struct err *e)
{
	struct stats_run *s = arg;

	stats_add(&s->now, s->p->kern, x, n);
	return 0;
}

/* Return the REPORT_ bits for the form of output. A table with tabs has no total. */
static unsigned
stats_report(const struct report *p)
{
	return p->s.form == RENDER_TSV ? REPORT_PLACE :
	    p->s.form == RENDER_JSON ? REPORT_TALLY | REPORT_VALUES : REPORT_STATS;
}

static int
stats_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct stats_run *s = arg;
	struct report *p = s->p;

	stats_zeros(&s->now, y->elements - y->sent);
	report_tensor(&s->row, t, y);
	stats_row(&s->row, &s->now);
	stats_put(p, &s->row, stats_report(p));
	stats_merge(&s->total, &s->now);
	memset(&s->now, 0, sizeof(s->now));
	return ferror(p->s.f) ? report_flush(p, e) : 0;
}

int
stats_stream(struct report *p, struct reader *r, struct err *e)
{
	struct stats_run s = { .p = p };
	struct walk w = { .glob = p->glob, .group = stats_group,
	    .tensor = stats_tensor, .arg = &s };
	int k;

	while ((k = report_next(p, r, e)) > 0) {
		memset(&s.total, 0, sizeof(s.total));
		report_shard(p, &s.row, r);
		if (p->s.form == RENDER_JSON) {
			report_object(p, &s.row);
			json_out_open(&p->s.json, "tensors", '[');
		} else if (p->s.form == RENDER_TEXT) {
			report_heading(p, &s.row);
			(void)fputs("\n", p->s.f);
			report_columns(p, reader_schema(r));
			report_head(p, REPORT_NAMED | stats_report(p));
		} else if (!p->begun++) {
			report_head(p, REPORT_PLACE);
		}
		if ((k = walk_shard(&w, r, e)) < 0)
			break;
		report_tensor(&s.row, NULL, &w.total);
		stats_row(&s.row, &s.total);
		if (p->s.form != RENDER_TSV)
			stats_put(p, &s.row, stats_report(p));
		if ((k = report_flush(p, e)) < 0)
			break;
	}
	walk_release(&w);
	return report_fail(p, k, e);
}

/* ---- the difference of two streams ---- */

enum { NO_GROUP = -1 };

struct stats_sums {
	double dd, xx, yy, xy;	/* sums of (x-y)^2, x^2, y^2, x*y */
	double max;		/* largest |x - y| */
	uint64_t differ;	/* number of pairs x, y that differ */
	uint64_t strange;	/* of these, pairs with a value that is not finite */
};

/* One of the two streams: its position and a group of its values. */
struct stats_side {
	struct reader *r;
	const struct record *list;
	size_t at, n;
	int ended;
	float *x;
	size_t cap;		/* room in x, in values */
};

struct stats_pair {
	struct report *p;
	struct stats_side x, y;
	int differ;		/* 1: a tensor differs, or a shard has no partner */
	struct stats_sums now, total;
	uint64_t elements;	/* number of values of all tensors so far */
	struct report_row row;
};

static void
stats_diff_values(struct stats_sums *s, const float *x, const float *y, size_t n)
{
	double a, b, d;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!isfinite(x[i]) || !isfinite(y[i])) {
			if (bytes_u32(x[i]) != bytes_u32(y[i])) {
				s->differ++;
				s->strange++;
			}
			continue;
		}
		a = (double)x[i];
		b = (double)y[i];
		d = a - b;
		s->dd += d * d;
		s->xx += a * a;
		s->yy += b * b;
		s->xy += a * b;
		s->differ += d != 0;
		s->max = fabs(d) > s->max ? fabs(d) : s->max;
	}
}

/* Add s to `to'.  exact 1: s is of an exact type (schema_exact), whose sums would dominate
 * and are left out. */
static void
stats_diff_merge(struct stats_sums *to, const struct stats_sums *s, int exact)
{
	if (!exact) {
		to->dd += s->dd;
		to->xx += s->xx;
		to->yy += s->yy;
		to->xy += s->xy;
	}
	to->differ += s->differ;
	to->strange += s->strange;
	to->max = s->max > to->max ? s->max : to->max;
}

static double
stats_diff_nmse(const struct stats_sums *s)
{
	if (s->dd == 0)
		return 0;
	return s->yy != 0 ? s->dd / s->yy : INFINITY;
}

static double
stats_diff_cosine(const struct stats_sums *s)
{
	double c;

	if (s->xx == 0 || s->yy == 0)
		return s->xx == s->yy ? 1 : 0;
	c = s->xy / (sqrt(s->xx) * sqrt(s->yy));
	return c > 1 ? 1 : c < -1 ? -1 : c;
}

/* Print the difference of a tensor, or the total if t is NULL. */
static void
stats_diff_put(struct stats_pair *d, const struct schema_tensor *t)
{
	const struct stats_sums *s = t != NULL ? &d->now : &d->total;
	struct report_row *x = &d->row;
	struct report *p = d->p;
	struct tally elements = { .elements = t != NULL ? t->numel : d->elements };

	report_tensor(x, t, &elements);
	x->differ = s->differ;
	x->largest = s->max;
	x->nmse = stats_diff_nmse(s);
	x->cosine = stats_diff_cosine(s);
	if (p->s.form == RENDER_JSON || !p->quiet)
		stats_put(p, x, REPORT_DIFF);
}

static int
stats_diff_tensor(struct stats_pair *d, const struct schema_tensor *t, struct err *e)
{
	const int exact = schema_exact(t->dtype);
	struct report *p = d->p;

	d->differ |= d->now.strange != 0 || (d->now.differ != 0 &&
	    (exact || !(stats_diff_nmse(&d->now) <= p->tolerance &&
	    p->tolerance > 0)));
	stats_diff_put(d, t);
	stats_diff_merge(&d->total, &d->now, exact);
	d->elements += t->numel;
	memset(&d->now, 0, sizeof(d->now));
	return ferror(p->s.f) ? report_flush(p, e) : 0;
}

/* Set *group to the next group that was sent, or NO_GROUP at the end of the shard. */
static int
stats_diff_peek(struct stats_side *s, int64_t *group, struct err *e)
{
	int k;

	while (!s->ended && s->at == s->n) {
		if ((k = reader_next(s->r, e)) < 0)
			return k;
		if (k == READER_DATA) {
			s->list = reader_records(s->r, &s->n);
			s->at = 0;
		}
		s->ended = k == READER_SEND;
	}
	*group = s->ended ? NO_GROUP : (int64_t)s->list[s->at].group;
	return 0;
}

/* Read the n values of a group into s->x: zeros if it was not sent. */
static int
stats_diff_take(struct stats_side *s, int sent, size_t n, struct err *e)
{
	if (sent)
		return values_decode(s->r, &s->list[s->at++], s->x, n, &n, e);
	memset(s->x, 0, n * sizeof(*s->x));
	return 0;
}

/* Compare the shards' groups, and report each tensor after its last group. */
static int
stats_diff_groups(struct stats_pair *d, const struct schema *sc, struct err *e)
{
	struct schema_span span;
	int64_t g = 0, gx, gy, end;
	int k, wanted;
	size_t t;

	for (t = 0; t < sc->n; t++) {
		wanted = pick_tensor(d->p->glob, sc->t[t].name);
		for (end = g + (int64_t)sc->t[t].ngroups; g < end; g++) {
			if ((k = stats_diff_peek(&d->x, &gx, e)) < 0 ||
			    (k = stats_diff_peek(&d->y, &gy, e)) < 0)
				return k;
			if (gx != g && gy != g)
				continue;
			schema_span(sc, (uint32_t)g, &span);
			if ((k = stats_diff_take(&d->x, gx == g, span.n, e)) < 0 ||
			    (k = stats_diff_take(&d->y, gy == g, span.n, e)) < 0)
				return k;
			if (wanted)
				stats_diff_values(&d->now, d->x.x, d->y.x, span.n);
		}
		if (wanted && (k = stats_diff_tensor(d, &sc->t[t], e)) < 0)
			return k;
	}
	/* read the ends of both shards */
	k = stats_diff_peek(&d->x, &gx, e);
	return k < 0 ? k : stats_diff_peek(&d->y, &gy, e);
}

static int
stats_diff_begin(struct stats_pair *d, const struct schema *sc, struct err *e)
{
	const struct shard *y = reader_shard(d->y.r);
	struct report *p = d->p;

	d->x.at = d->x.n = d->y.at = d->y.n = 0;
	d->x.ended = d->y.ended = 0;
	memset(&d->total, 0, sizeof(d->total));
	d->elements = 0;
	if (alloc_grow(&d->x.x, &d->x.cap, sc->group_size, sizeof(float), e) < 0 ||
	    alloc_grow(&d->y.x, &d->y.cap, sc->group_size, sizeof(float), e) < 0)
		return -ERR_SYS;
	report_columns(p, sc);
	report_shard(p, &d->row, d->x.r);
	if (p->s.form == RENDER_JSON) {
		report_object(p, &d->row);
		json_out_string(&p->s.json, "other_device", shard_device(y));
		json_out_u64(&p->s.json, "other_step", y->step);
		json_out_open(&p->s.json, "tensors", '[');
	} else if (!p->quiet) {
		report_heading(p, &d->row);
		(void)fprintf(p->s.f, " and '%s/%llu'\n", shard_device(y),
		    (unsigned long long)y->step);
		report_head(p, REPORT_NAMED | REPORT_DIFF);
	}
	return 0;
}

static int
stats_diff_shard(struct stats_pair *d, struct err *e)
{
	const struct schema *sc = reader_schema(d->x.r);
	struct report *p = d->p;
	char why[256];
	int k;

	if (schema_diff(sc, reader_schema(d->y.r), why) != 0)
		return err_set(e, ERR_DATA, "mismatch: '%s' and '%s' have "
		    "different tensors: %s", reader_name(d->x.r), reader_name(d->y.r),
		    why);
	if ((k = stats_diff_begin(d, sc, e)) < 0 || (k = stats_diff_groups(d, sc, e)) < 0)
		return k;
	stats_diff_put(d, NULL);
	return report_flush(p, e);
}

/* Go to the next selected shard of r.  Return READER_SHARD, 0 at the end, or an error. */
static int
stats_diff_next(const struct report *p, struct reader *r, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0 && (k != READER_SHARD ||
	    (p->pick != NULL && !pick_wants(p->pick, reader_shard(r)))))
		continue;
	return k;
}

/* If r is at a shard without a partner (more > 0), read r to its end, so that damage is not
 * taken for a difference, and print the number of selected shards that only r has. */
static int
stats_diff_rest(struct stats_pair *d, struct reader *r, int more, struct err *e)
{
	uint64_t n = more > 0;

	if (more <= 0)
		return 0;
	while ((more = stats_diff_next(d->p, r, e)) > 0)
		n++;
	if (more < 0)
		return more;
	d->differ = 1;
	if (d->p->s.form == RENDER_JSON) {
		json_out_open(&d->p->s.json, NULL, '{');
		json_out_string(&d->p->s.json, "only_in", reader_name(r));
		json_out_u64(&d->p->s.json, "shards", n);
		json_out_end(&d->p->s.json);
	} else if (!d->p->quiet) {
		(void)fputs("only in ", d->p->s.f);
		render_name(d->p->s.f, reader_name(r));
		(void)fprintf(d->p->s.f, ": %llu shards\n", (unsigned long long)n);
	}
	return report_flush(d->p, e);
}

int
stats_diff(struct report *p, struct reader *x, struct reader *y, struct err *e)
{
	struct stats_pair d = { .p = p, .x = { .r = x }, .y = { .r = y } };
	int k, kx, ky;

	for (;;) {
		if ((k = kx = report_next(p, x, e)) < 0)
			break;
		if ((k = ky = stats_diff_next(p, y, e)) < 0 || kx == 0 || ky == 0)
			break;
		if ((k = stats_diff_shard(&d, e)) < 0)
			break;
	}
	if (k >= 0 && (k = stats_diff_rest(&d, x, kx, e)) >= 0)
		k = stats_diff_rest(&d, y, ky, e);
	alloc_free(d.x.x);
	alloc_free(d.y.x);
	if (k < 0)
		return report_fail(p, k, e);
	return d.differ ? -ERR_NO : 0;
}
