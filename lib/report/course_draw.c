#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/course.h"
#include "report/course_draw.h"
#include "report/report.h"

enum { COURSE_CODEC = 100 };	/* measures from here on: a codec's share */

static const char *const course_measures[] = {
	"bytes", "residual", "bandwidth, bit/s", "interval"
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
		    x->bandwidth / (double)x->bandwidths : (double)NAN;
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

/* ---- gnuplot ---- */

/* In single quotes: what ends them is doubled. */
static void
course_draw_quoted(const struct report *p, const char *s)
{
	for (; *s != '\0'; s++) {
		(void)fputc(*s >= 0x20 && *s < 0x7f ? *s : '?', p->f);
		if (*s == '\'')
			(void)fputc('\'', p->f);
	}
}

static void
course_draw_number(const struct report *p, double v)
{
	if (isnan(v))
		(void)fputs(" NaN", p->f);
	else
		(void)fprintf(p->f, " %.9g", v);
}

static void
course_draw_block(const struct report *p, const struct course_run *c, size_t i)
{
	size_t k;
	int m;

	(void)fprintf(p->f, "$run%zu << END\n", i + 1);
	for (k = 0; k < c->n; k++) {
		(void)fprintf(p->f, "%llu",
		    (unsigned long long)c->at[k].step);
		for (m = 0; m < COURSE_MEASURES; m++)
			course_draw_number(p, course_draw_value(&c->at[k], m));
		for (m = 0; m < CODEC_MAX; m++)
			course_draw_number(p, course_draw_value(&c->at[k],
			    COURSE_CODEC + m));
		(void)fputc('\n', p->f);
	}
	(void)fputs("END\n", p->f);
}

/* One picture of the column, with a line for each run. */
static void
course_draw_picture(const struct report *p, const struct course_run *c,
    size_t n, const char *title, int column)
{
	size_t i;

	(void)fprintf(p->f, "set ylabel '%s' noenhanced\nplot", title);
	for (i = 0; i < n; i++) {
		(void)fprintf(p->f, "%s $run%zu using 1:%d with linespoints "
		    "pointsize 0.3 title '", i != 0 ? "," : "", i + 1, column);
		course_draw_quoted(p, c[i].name);
		(void)fputs("' noenhanced", p->f);
	}
	(void)fputc('\n', p->f);
}

void
course_draw_gnuplot(struct report *p, const struct course_run *c, size_t n)
{
	int m, rows = 0, codecs[CODEC_MAX];
	char name[16], title[48];
	double lo, hi;
	size_t i;

	for (i = 0; i < n; i++)
		course_draw_block(p, &c[i], i);
	for (m = 0; m < COURSE_MEASURES; m++)
		rows += course_draw_range(c, n, m, &lo, &hi);
	for (m = 0; m < CODEC_MAX; m++)
		rows += codecs[m] = course_draw_range(c, n, COURSE_CODEC + m,
		    &lo, &hi);
	(void)fprintf(p->f, "set terminal svg size 960,%d background 'white'\n"
	    "set datafile missing 'NaN'\nset xlabel 'step'\n"
	    "set multiplot layout %d,1\n", 60 + 200 * rows, rows);
	for (m = 0; m < COURSE_MEASURES; m++)
		if (course_draw_range(c, n, m, &lo, &hi))
			course_draw_picture(p, c, n, course_measures[m], m + 2);
	for (m = 0; m < CODEC_MAX; m++) {
		if (!codecs[m])
			continue;
		(void)snprintf(title, sizeof(title), "%s, %% of the bytes",
		    report_codec((unsigned)m, name));
		course_draw_picture(p, c, n, title, COURSE_MEASURES + 2 + m);
	}
	(void)fputs("unset multiplot\n", p->f);
}
