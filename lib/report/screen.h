/*
 * Fields of reports.  One table row describes each: its name in JSON, tables and the page;
 * type and unit; the reports that show it; its width as text; name and description as a
 * metric.  To add a field, add a row.
 *
 * Metrics are Prometheus text (exposition format 0.0.4), as node_exporter reads it from a
 * file.  Each family has one HELP, one TYPE and all its samples, so samples of several
 * directories wait here until all are read.  Units are bytes and seconds, counters end in
 * _total, samples have no time.  OpenMetrics 1.0 names a counter's family without _total,
 * which node_exporter would take for another family without a type; where they differ, this
 * is node_exporter's format.
 */
#ifndef ACE_SCREEN_H
#define ACE_SCREEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "pipe/emit.h"

struct err;
struct screen;

/* Storage and text form of a field; JSON, metrics and tables have the plain number. */
enum screen_type {
	SCREEN_U64, SCREEN_U32,
	SCREEN_F64, SCREEN_F32,	/* as the field's text says */
	SCREEN_NAME,		/* const char *; NULL: not known */
	SCREEN_CHARS,		/* char[] */
	SCREEN_ID,		/* 16 bytes: in hexadecimal */
	SCREEN_SIZE,		/* uint64_t, bytes: "12.4 MB" */
	SCREEN_AGO,		/* double, seconds: "3.4 h" */
	/* double, bit/s: text in Mbit/s; metric in bytes per second */
	SCREEN_RATE,
	SCREEN_FLAG,		/* int: true or false */
	SCREEN_CALL		/* put prints it, in each form */
};

enum { SCREEN_WIDE = 1000 };	/* as wide as x->wide[width - SCREEN_WIDE] */

struct screen_field {
	const char *name;	/* NULL ends the table */
	const char *head;	/* column head in text; NULL: the name */
	enum screen_type type;
	size_t at;		/* offset in a row */
	unsigned in;		/* reports that have it, the caller's bits */
	unsigned need;		/* what a row must have, the caller's bits */
	int width;		/* of a text column; < 0: left-aligned */
	int gap;		/* blanks before the column; 0: two */
	const char *text;	/* format of a floating-point number; NULL: "%.9g" */
	void (*put)(struct screen *x, const char *name, const void *at);
	const char *family, *help;	/* as a metric */
};

enum screen_form { SCREEN_TEXT, SCREEN_METRICS, SCREEN_JSON, SCREEN_TSV };
enum screen_label { SCREEN_DIRECTORY, SCREEN_RUN, SCREEN_DEVICE, SCREEN_VERDICT,
	SCREEN_LABELS };
enum { SCREEN_FAMILIES = 32 };	/* at most */

struct screen {
	FILE *f;
	enum screen_form form;
	unsigned in;		/* the report */
	int wide[4];
	struct emit json;

	/* SCREEN_METRICS */
	const char *label[SCREEN_LABELS];	/* of the next samples; NULL: none */
	const struct screen_field *family[SCREEN_FAMILIES];
	struct buf sample[SCREEN_FAMILIES];
	size_t families;
	int failed;		/* first error of a sample, 0: none */
	struct err *e;
};

/* Narrow the first column, of the width x->wide[column], so that a line fits `width'. A
 * longer name then has a line of its own. */
void screen_fit(struct screen *x, const struct screen_field *t, int column, int width);

/* Print the first line of a table (as text); a row of it, which ends no line and in
 * JSON opens nothing; "key value" lines. have: what the row has. */
void screen_head(struct screen *x, const struct screen_field *t);
void screen_row(struct screen *x, const struct screen_field *t, const void *row,
    unsigned have);
void screen_lines(struct screen *x, const struct screen_field *t,
    const void *row, unsigned have);

/* screen_families: add the metrics of a table; families are printed in this order.
 * screen_sample: add a sample with the labels of x. screen_metrics: print all samples
 * and release them, without families that have no sample. If a sample found no memory,
 * print nothing and return that error. */
void screen_families(struct screen *x, const struct screen_field *t);
void screen_sample(struct screen *x, const char *family, double v);
int screen_metrics(struct screen *x);

/* Print a name from outside, without control characters. */
void screen_name(FILE *f, const char *name);
/* Return how many terminal columns s takes, approximately: characters, not bytes. */
int screen_chars(const char *s);
/* "12 s", "3.4 h" */
const char *screen_ago(double secs, char out[32]);

/* Print a table of lines with tabs, whose first line names the columns, as aligned
 * columns. Lines that begin with # stay as they are. Cells of the columns bandwidth
 * (bit/s) and compute, latency, seconds, step, time (s) get units: "2.5 Mbit/s", "200 ms".
 * At most SCREEN_COLUMNS columns. */
enum { SCREEN_COLUMNS = 16 };
void screen_columns(FILE *f, const char *tsv);

#endif
