#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "report/moments.h"
#include "report/report.h"
#include "report/stats.h"

struct stats {
	struct report *p;
	struct moments now, total;
};

void
stats_columns(const struct report *p)
{
	report_name(p, "tensor");
	(void)fprintf(p->f, "  %*s  %12s %12s %12s %12s %12s %12s %*s %6s %6s  "
	    "%10s", p->wnum, "elements", "min", "max", "mean", "std",
	    "l2", "max_abs", p->wnum, "zeros", "nan", "inf", "bits/param");
}

void
stats_line(struct report *p, const char *name, const struct moments *m,
    const struct tally *y)
{
	report_name(p, name);
	(void)fprintf(p->f, "  %*llu  %12.5g %12.5g %12.5g %12.5g %12.5g "
	    "%12.5g %*llu %6llu %6llu  %10.4f", p->wnum,
	    (unsigned long long)y->elements, (double)m->min, (double)m->max,
	    m->mean, moments_std(m), sqrt(m->sumsq), (double)m->max_abs,
	    p->wnum, (unsigned long long)(m->n - m->nonzero),
	    (unsigned long long)m->nan, (unsigned long long)m->inf,
	    walk_bits(y));
}

/* The last column, of any width. */
static void
stats_codec(const struct report *p, const struct tally *y)
{
	char codecs[512];

	(void)fprintf(p->f, "  %s\n", report_codecs(y, codecs));
}

void
stats_members(struct report *p, const struct moments *m)
{
	struct emit *j = &p->json;

	emit_f32(j, "min", m->min);
	emit_f32(j, "max", m->max);
	emit_f64(j, "mean", m->mean);
	emit_f64(j, "std", moments_std(m));
	emit_f64(j, "l2", sqrt(m->sumsq));
	emit_f32(j, "max_abs", m->max_abs);
	emit_u64(j, "zeros", m->n - m->nonzero);
	emit_u64(j, "nan", m->nan);
	emit_u64(j, "inf", m->inf);
}

static int
stats_group(void *arg, const struct schema_tensor *t, const float *x, size_t n,
    struct err *e)
{
	struct stats *s = arg;

	(void)t;
	(void)e;
	moments_add(&s->now, s->p->kern, x, n);
	return 0;
}

static int
stats_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct stats *s = arg;
	struct report *p = s->p;

	moments_zeros(&s->now, y->elements - y->sent);
	if (p->as_json) {
		emit_open(&p->json, NULL, '{');
		report_tensor(p, t);
		report_tally(p, y);
		stats_members(p, &s->now);
		emit_close(&p->json);
	} else {
		stats_line(p, t->name, &s->now, y);
		stats_codec(p, y);
	}
	moments_merge(&s->total, &s->now);
	memset(&s->now, 0, sizeof(s->now));
	return ferror(p->f) ? report_flush(p, e) : 0;
}

static void
stats_end(struct stats *s, const struct tally *total)
{
	struct report *p = s->p;

	if (p->as_json) {
		emit_close(&p->json);
		emit_open(&p->json, "total", '{');
		report_tally(p, total);
		stats_members(p, &s->total);
		emit_end(&p->json);
	} else {
		stats_line(p, "total", &s->total, total);
		stats_codec(p, total);
	}
}

int
stats_stream(struct report *p, struct reader *r, struct err *e)
{
	struct stats s = { p, MOMENTS_INIT, MOMENTS_INIT };
	struct walk w = { .glob = p->glob, .group = stats_group,
	    .tensor = stats_tensor, .arg = &s };
	int k;

	while ((k = report_next(p, r, e)) > 0) {
		memset(&s.total, 0, sizeof(s.total));
		if (p->as_json) {
			report_object(p, reader_shard(r));
			emit_open(&p->json, "tensors", '[');
		} else {
			report_heading(p, reader_shard(r));
			(void)fputs("\n", p->f);
			report_columns(p, reader_schema(r));
			stats_columns(p);
			(void)fputs("  codec\n", p->f);
		}
		if ((k = walk_shard(&w, r, e)) < 0)
			break;
		stats_end(&s, &w.total);
		if ((k = report_flush(p, e)) < 0)
			break;
	}
	walk_release(&w);
	return report_fail(p, k, e);
}
