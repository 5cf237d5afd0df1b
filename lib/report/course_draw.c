#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/course.h"
#include "report/course_draw.h"
#include "report/report.h"
#include "report/svg.h"

enum { COURSE_CODEC = 100 };	/* measures from here on: a codec's share */

static const char *const course_measures[] = {
	"bytes", "residual", "bandwidth, Mbit/s", "interval"
};
enum { COURSE_MEASURES = sizeof(course_measures) / sizeof(char *) };

/* The value of a measure at a point, or NAN. */
static double
course_draw_value(const struct course_point *x, int m)
{
	uint64_t all = 0;
	int i;

	if (m >= COURSE_CODEC) {
		for (i = 0; i < CODEC_MAX; i++)
			all += x->coded[i];
		return all == 0 ? (double)NAN :
		    100 * (double)x->coded[m - COURSE_CODEC] / (double)all;
	}
	switch (m) {
	case 0:
		return x->shards != 0 ? (double)x->bytes : (double)NAN;
	case 1:
		return x->residuals != 0 ?
		    x->residual / (double)x->residuals : (double)NAN;
	case 2:
		return x->bandwidths != 0 ?
		    x->bandwidth / (double)x->bandwidths / 1e6 : (double)NAN;
	default:
		return x->intervals != 0 ?
		    x->interval / (double)x->intervals : (double)NAN;
	}
}

/* The smallest and the largest of all runs: 0 when nobody has any. */
static int
course_draw_range(const struct course_run *c, size_t n, int m, double *lo,
    double *hi)
{
	int any = 0;
	size_t i, k;
	double v;

	for (i = 0; i < n; i++)
		for (k = 0; k < c[i].n; k++) {
			v = course_draw_value(&c[i].at[k], m);
			if (isnan(v))
				continue;
			*lo = !any || v < *lo ? v : *lo;
			*hi = !any || v > *hi ? v : *hi;
			any = 1;
		}
	return any && (m < COURSE_CODEC || *hi > 0);
}

static void
course_draw_steps(const struct course_run *c, size_t n, uint64_t *lo,
    uint64_t *hi)
{
	size_t i;

	*lo = UINT64_MAX;
	*hi = 0;
	for (i = 0; i < n; i++) {
		if (c[i].at[0].step < *lo)
			*lo = c[i].at[0].step;
		if (c[i].at[c[i].n - 1].step > *hi)
			*hi = c[i].at[c[i].n - 1].step;
	}
}

/* ---- text ---- */

/* One of eight heights. */
static void
course_draw_bar(const struct report *p, int h)
{
	static const char *const blocks[] = {
		"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
		"\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"
	};

	if (p->utf8)
		(void)fputs(blocks[h], p->f);
	else
		(void)fputc("_.:-=+*#"[h], p->f);
}

/* A run's measure, a column for one or several steps: their mean. */
static void
course_draw_row(const struct report *p, const struct course_run *c, int m,
    const double range[2], const uint64_t step[2])
{
	const int columns = p->width - 4;
	const double steps = (double)(step[1] - step[0]) + 1;
	double v, sum, wide = range[1] - range[0];
	size_t k = 0, got;
	const int used = steps < columns ? (int)steps : columns;
	int x;

	for (x = 0; x < used; x++) {
		sum = 0;
		for (got = 0; k < c->n && (double)(c->at[k].step - step[0]) <
		    (x + 1) * steps / used; k++) {
			v = course_draw_value(&c->at[k], m);
			got += isnan(v) ? 0 : 1;
			sum += isnan(v) ? 0 : v;
		}
		if (got == 0)
			(void)fputc(' ', p->f);
		else
			course_draw_bar(p, wide > 0 ? (int)(7.999 * (sum /
			    (double)got - range[0]) / wide) : 0);
	}
	(void)fputc('\n', p->f);
}

static void
course_draw_measure(const struct report *p, const struct course_run *c,
    size_t n, int m, const uint64_t step[2])
{
	double range[2] = { 0, 0 };
	char name[16];
	size_t i;

	if (!course_draw_range(c, n, m, &range[0], &range[1]))
		return;
	if (m >= COURSE_CODEC) {
		range[0] = 0;
		range[1] = 100;
		(void)fprintf(p->f, "\n%s, share of the bytes\n",
		    report_codec((unsigned)(m - COURSE_CODEC), name));
	} else {
		(void)fprintf(p->f, "\n%s: %.5g to %.5g\n", course_measures[m],
		    range[0], range[1]);
	}
	for (i = 0; i < n; i++) {
		(void)fprintf(p->f, "%2zu  ", i + 1);
		course_draw_row(p, &c[i], m, range, step);
	}
}

void
course_draw_text(struct report *p, const struct course_run *c, size_t n)
{
	uint64_t step[2], shards;
	size_t i, k;
	int m;

	course_draw_steps(c, n, &step[0], &step[1]);
	for (i = 0; i < n; i++) {
		for (shards = 0, k = 0; k < c[i].n; k++)
			shards += c[i].at[k].shards;
		(void)fprintf(p->f, "%2zu  ", i + 1);
		report_path(p, c[i].name);
		(void)fprintf(p->f, ", %llu shards\n",
		    (unsigned long long)shards);
	}
	(void)fprintf(p->f, "    steps %llu to %llu\n",
	    (unsigned long long)step[0], (unsigned long long)step[1]);
	for (m = 0; m < COURSE_MEASURES; m++)
		course_draw_measure(p, c, n, m, step);
	for (m = 0; m < CODEC_MAX; m++)
		course_draw_measure(p, c, n, COURSE_CODEC + m, step);
}

/* ---- a picture ---- */

/* A measure of all runs: a curve for each. */
static int
course_draw_curves(struct svg *s, const struct course_run *c, size_t n, int m,
    const uint64_t step[2], struct err *e)
{
	const double steps = (double)(step[1] - step[0]);
	double range[2] = { 0, 0 }, wide, v;
	char title[48], name[16], lo[24], hi[24];
	size_t i, k;
	int r;

	if (!course_draw_range(c, n, m, &range[0], &range[1]))
		return 0;
	if (m >= COURSE_CODEC)
		(void)snprintf(title, sizeof(title), "%s, %% of the bytes",
		    report_codec((unsigned)(m - COURSE_CODEC), name));
	else
		(void)snprintf(title, sizeof(title), "%s", course_measures[m]);
	(void)snprintf(lo, sizeof(lo), "%.5g", range[0]);
	(void)snprintf(hi, sizeof(hi), "%.5g", range[1]);
	wide = range[1] - range[0];
	if ((r = svg_title(s, title, e)) < 0 ||
	    (r = svg_frame(s, lo, hi, e)) < 0)
		return r;
	for (i = 0; i < n && r == 0; i++) {
		for (k = 0; k < c[i].n && r == 0; k++) {
			v = course_draw_value(&c[i].at[k], m) - range[0];
			r = svg_curve(s, i, steps > 0 ?
			    (double)(c[i].at[k].step - step[0]) / steps : 0,
			    wide > 0 ? v / wide : v, e);
		}
		if (r == 0)
			r = svg_lift(s, e);
	}
	return r;
}

int
course_draw_svg(struct io *out, const struct course_run *c, size_t n,
    struct err *e)
{
	struct svg s = SVG_INIT;
	char title[80], name[SVG_NAME + 1];
	uint64_t step[2];
	size_t i;
	int m, r;

	course_draw_steps(c, n, &step[0], &step[1]);
	(void)snprintf(title, sizeof(title), "steps %llu to %llu",
	    (unsigned long long)step[0], (unsigned long long)step[1]);
	r = svg_title(&s, title, e);
	for (i = 0; i < n && r == 0; i++) {
		svg_name(name, c[i].name);
		r = svg_key(&s, i, name, e);
	}
	for (m = 0; m < COURSE_MEASURES && r == 0; m++)
		r = course_draw_curves(&s, c, n, m, step, e);
	for (m = 0; m < CODEC_MAX && r == 0; m++)
		r = course_draw_curves(&s, c, n, COURSE_CODEC + m, step, e);
	if (r == 0)
		r = svg_write(&s, out, e);
	svg_release(&s);
	return r;
}
