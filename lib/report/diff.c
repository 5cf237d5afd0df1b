#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "format/values.h"
#include "report/diff.h"
#include "report/moments.h"
#include "report/report.h"
#include "report/stats.h"

enum { NO_GROUP = -1 };

struct diff_sums {
	double dd, xx, yy, xy;	/* (x-y)^2, x^2, y^2, x*y */
	double max;		/* largest |x - y| */
	uint64_t differ;	/* values that are not the same */
	uint64_t strange;	/* of those, with one that is not finite */
};

/* One of the two streams: its position and a group of its values. */
struct diff_side {
	struct reader *r;
	const struct record *list;
	size_t at, n;
	int ended;
	float *x;
};

struct diff {
	struct report *p;
	struct diff_side x, y;
	size_t cap;		/* values in x.x and y.x */
	size_t at;		/* tensor */
	int differ;
	struct diff_sums now, total;
	struct moments m, m_total;	/* of x, for --stats */
	struct tally t, t_total;
};

/* ---- arithmetic ---- */

static void
diff_values(struct diff_sums *s, const float *x, const float *y, size_t n)
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

static void
diff_merge(struct diff_sums *to, const struct diff_sums *s)
{
	to->dd += s->dd;
	to->xx += s->xx;
	to->yy += s->yy;
	to->xy += s->xy;
	to->differ += s->differ;
	to->strange += s->strange;
	to->max = s->max > to->max ? s->max : to->max;
}

static double
diff_nmse(const struct diff_sums *s)
{
	if (s->dd == 0)
		return 0;
	return s->yy != 0 ? s->dd / s->yy : INFINITY;
}

static double
diff_cosine(const struct diff_sums *s)
{
	double c;

	if (s->xx == 0 || s->yy == 0)
		return s->xx == s->yy ? 1 : 0;
	c = s->xy / (sqrt(s->xx) * sqrt(s->yy));
	return c > 1 ? 1 : c < -1 ? -1 : c;
}

static int
diff_counts(const struct diff *d, const struct diff_sums *s)
{
	return s->strange != 0 || (s->differ != 0 &&
	    !(diff_nmse(s) <= d->p->tolerance && d->p->tolerance > 0));
}

/* ---- reports ---- */

static void
diff_columns(const struct diff *d)
{
	struct report *p = d->p;

	if (p->stats) {
		stats_columns(p);
	} else {
		report_name(p, "tensor");
		(void)fprintf(p->f, "  %*s  %*s  %12s", p->wnum, "elements",
		    p->wnum, "differ", "max |x-y|");
	}
	(void)fprintf(p->f, "  %12s  %11s%s\n", "nmse", "cosine",
	    p->stats ? "  codec" : "");
}

static void
diff_line(const struct diff *d, const char *name, const struct diff_sums *s,
    const struct moments *m, const struct tally *t)
{
	struct report *p = d->p;
	char codecs[512];

	if (p->stats) {
		stats_line(p, name, m, t);
	} else {
		report_name(p, name);
		(void)fprintf(p->f, "  %*llu  %*llu  %12.5g", p->wnum,
		    (unsigned long long)t->elements, p->wnum,
		    (unsigned long long)s->differ, s->max);
	}
	(void)fprintf(p->f, "  %12.5g  %11.8f", diff_nmse(s), diff_cosine(s));
	if (p->stats)
		(void)fprintf(p->f, "  %s", report_codecs(t, codecs));
	(void)fputc('\n', p->f);
}

static void
diff_members(struct report *p, const struct diff_sums *s,
    const struct moments *m, const struct tally *t)
{
	struct emit *j = &p->json;

	if (p->stats) {
		report_tally(p, t);
		stats_members(p, m);
	} else {
		emit_u64(j, "elements", t->elements);
	}
	emit_u64(j, "differ", s->differ);
	emit_f64(j, "max_abs_difference", s->max);
	emit_f64(j, "nmse", diff_nmse(s));
	emit_f64(j, "cosine", diff_cosine(s));
}

static int
diff_tensor(struct diff *d, const struct schema_tensor *t, struct err *e)
{
	struct report *p = d->p;

	moments_zeros(&d->m, t->numel - d->t.sent);
	d->t.elements = t->numel;
	d->t.groups = t->ngroups;
	d->differ |= diff_counts(d, &d->now);
	if (p->as_json) {
		emit_open(&p->json, NULL, '{');
		report_tensor(p, t);
		diff_members(p, &d->now, &d->m, &d->t);
		emit_close(&p->json);
	} else if (!p->quiet) {
		diff_line(d, t->name, &d->now, &d->m, &d->t);
	}
	diff_merge(&d->total, &d->now);
	moments_merge(&d->m_total, &d->m);
	walk_add(&d->t_total, &d->t);
	memset(&d->now, 0, sizeof(d->now));
	memset(&d->m, 0, sizeof(d->m));
	memset(&d->t, 0, sizeof(d->t));
	return ferror(p->f) ? report_flush(p, e) : 0;
}

/* ---- lockstep ---- */

/* The next group that was sent, NO_GROUP at the end of the shard. */
static int
diff_peek(struct diff_side *s, int64_t *group, struct err *e)
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

/* Gives the n values of group g: zeros when the group was not sent. */
static int
diff_take(struct diff_side *s, int sent, size_t n, struct err *e)
{
	if (sent)
		return values_decode(s->r, &s->list[s->at++], s->x, n, &n, e);
	memset(s->x, 0, n * sizeof(*s->x));
	return 0;
}

static int
diff_leave(struct diff *d, const struct schema *sc, size_t to, struct err *e)
{
	int k;

	for (; d->at < to; d->at++)
		if (walk_wants(d->p->glob, &sc->t[d->at]) &&
		    (k = diff_tensor(d, &sc->t[d->at], e)) < 0)
			return k;
	return 0;
}

static int
diff_group(struct diff *d, const struct schema *sc, int64_t gx, int64_t gy,
    struct err *e)
{
	int64_t g = gx == NO_GROUP || (gy != NO_GROUP && gy < gx) ? gy : gx;
	const struct record *rec = gx == g ? &d->x.list[d->x.at] : NULL;
	struct schema_span span;
	int k;

	schema_span(sc, (uint32_t)g, &span);
	if ((k = diff_leave(d, sc, span.tensor, e)) < 0 ||
	    (k = diff_take(&d->x, gx == g, span.n, e)) < 0 ||
	    (k = diff_take(&d->y, gy == g, span.n, e)) < 0)
		return k;
	if (!walk_wants(d->p->glob, &sc->t[span.tensor]))
		return 0;
	diff_values(&d->now, d->x.x, d->y.x, span.n);
	if (rec == NULL || !d->p->stats)
		return 0;
	moments_add(&d->m, d->p->kern, d->x.x, span.n);
	d->t.sent += span.n;
	d->t.sent_groups++;
	d->t.bytes += rec->len;
	d->t.codec[rec->codec]++;
	return 0;
}

static int
diff_begin(struct diff *d, const struct schema *sc, struct err *e)
{
	const struct shard *y = reader_shard(d->y.r);
	struct report *p = d->p;

	d->x.at = d->x.n = d->y.at = d->y.n = 0;
	d->x.ended = d->y.ended = 0;
	d->at = 0;
	memset(&d->total, 0, sizeof(d->total));
	memset(&d->m_total, 0, sizeof(d->m_total));
	memset(&d->t_total, 0, sizeof(d->t_total));
	if (d->cap < sc->group_size) {
		alloc_free(d->x.x);
		alloc_free(d->y.x);
		d->cap = 0;
		d->x.x = alloc_get(sc->group_size, sizeof(float), e);
		d->y.x = alloc_get(sc->group_size, sizeof(float), e);
		if (d->x.x == NULL || d->y.x == NULL)
			return -ERR_SYS;
		d->cap = sc->group_size;
	}
	report_columns(p, sc);
	if (p->as_json) {
		report_object(p, reader_shard(d->x.r));
		emit_string(&p->json, "other_device", shard_device(y));
		emit_u64(&p->json, "other_step", y->step);
		emit_open(&p->json, "tensors", '[');
	} else if (!p->quiet) {
		report_heading(p, reader_shard(d->x.r));
		(void)fprintf(p->f, " and '%s/%llu'\n", shard_device(y),
		    (unsigned long long)y->step);
		diff_columns(d);
	}
	return 0;
}

static int
diff_shard(struct diff *d, struct err *e)
{
	const struct schema *sc = reader_schema(d->x.r);
	struct report *p = d->p;
	int64_t gx, gy;
	char why[256];
	int k;

	if (schema_diff(sc, reader_schema(d->y.r), why) != 0)
		return err_set(e, ERR_DATA, "mismatch: schemas of '%.60s' and "
		    "'%.60s': %s", reader_name(d->x.r), reader_name(d->y.r),
		    why);
	if ((k = diff_begin(d, sc, e)) < 0)
		return k;
	for (;;) {
		if ((k = diff_peek(&d->x, &gx, e)) < 0 ||
		    (k = diff_peek(&d->y, &gy, e)) < 0)
			return k;
		if (gx == NO_GROUP && gy == NO_GROUP)
			break;
		if ((k = diff_group(d, sc, gx, gy, e)) < 0)
			return k;
	}
	if ((k = diff_leave(d, sc, sc->n, e)) < 0)
		return k;
	if (p->as_json) {
		emit_close(&p->json);
		emit_open(&p->json, "total", '{');
		diff_members(p, &d->total, &d->m_total, &d->t_total);
		emit_end(&p->json);
	} else if (!p->quiet) {
		diff_line(d, "total", &d->total, &d->m_total, &d->t_total);
	}
	return report_flush(p, e);
}

/* One of the two ended before the other: its rest is read to its end, so that
 * damage is not taken for a difference. */
static int
diff_rest(struct diff *d, struct reader *r, int more, struct err *e)
{
	uint64_t n = more > 0;

	if (more <= 0)
		return 0;
	while ((more = reader_next(r, e)) > 0)
		n += more == READER_SHARD;
	if (more < 0)
		return more;
	d->differ = 1;
	if (d->p->as_json) {
		emit_open(&d->p->json, NULL, '{');
		emit_string(&d->p->json, "only_in", reader_name(r));
		emit_u64(&d->p->json, "shards", n);
		emit_end(&d->p->json);
	} else if (!d->p->quiet) {
		(void)fputs("only in ", d->p->f);
		report_path(d->p, reader_name(r));
		(void)fprintf(d->p->f, ": %llu shards\n",
		    (unsigned long long)n);
	}
	return report_flush(d->p, e);
}

int
diff_streams(struct report *p, struct reader *x, struct reader *y,
    struct err *e)
{
	struct diff d = { .p = p, .x = { .r = x }, .y = { .r = y } };
	int k, kx, ky;

	for (;;) {
		if ((k = kx = report_next(p, x, e)) < 0)
			break;
		while ((ky = reader_next(y, e)) > 0 && ky != READER_SHARD)
			continue;
		if ((k = ky) < 0 || kx == 0 || ky == 0)
			break;
		if ((k = diff_shard(&d, e)) < 0)
			break;
	}
	if (k >= 0 && (k = diff_rest(&d, x, kx, e)) >= 0)
		k = diff_rest(&d, y, ky, e);
	alloc_free(d.x.x);
	alloc_free(d.y.x);
	if (k < 0)
		return report_fail(p, k, e);
	return d.differ ? -ERR_NO : 0;
}
