/*
 * Fields of reports.  Each is described once, by a row of a table: its name in JSON,
 * in a table with tabs and on the page; its type and unit; the reports that show it;
 * its width as text; its name and description as a metric.  To add a field, add a row.
 *
 * Metrics are the text that Prometheus reads (exposition format 0.0.4), as its
 * node_exporter takes it from a file.  Each family has one HELP, one TYPE and then all
 * its samples, so the samples of several directories wait here until all were read.
 * Units are bytes and seconds, counters end in _total, and no sample has a time.
 * OpenMetrics 1.0 names the family of a counter without that _total, which
 * node_exporter would take for another family without a type: where the two differ,
 * this is node_exporter's format.
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

/* How a field is kept, and what text makes of it; JSON, metrics and tables with tabs
 * have the number as it is. */
enum screen_type {
	SCREEN_U64, SCREEN_U32,
	SCREEN_F64, SCREEN_F32,	/* as the field's text says */
	SCREEN_NAME,		/* const char *; NULL: not known */
	SCREEN_CHARS,		/* char[] */
	SCREEN_ID,		/* 16 bytes: in hexadecimal */
	SCREEN_SIZE,		/* uint64_t, bytes: "12.4 MB" */
	SCREEN_AGO,		/* double, seconds: "3.4 h" */
	SCREEN_RATE,		/* double, bit/s: in Mbit/s; a metric: bytes per second */
	SCREEN_FLAG,		/* int: true or false */
	SCREEN_CALL		/* put prints it, in each form */
};

enum { SCREEN_WIDE = 1000 };	/* as wide as x->wide[width - SCREEN_WIDE] */

struct screen_field {
	const char *name;	/* NULL ends the table */
	const char *head;	/* above a column of text; NULL: the name */
	enum screen_type type;
	size_t at;		/* offset in a row */
	unsigned in;		/* reports that have it, bits of the caller's */
	unsigned need;		/* what a row must have, bits of the caller's */
	int width;		/* of a column of text, < 0: to the left */
	int gap;		/* blanks before that, 0: two */
	const char *text;	/* of a floating-point number, NULL: "%.9g" */
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
	int failed;		/* the first error of a sample, 0: none */
	struct err *e;
};

/* Print the first line of a table (as text); a row of it, which ends no line and in
 * JSON opens nothing; "key value" lines.  have: what the row has. */
void screen_head(struct screen *x, const struct screen_field *t);
void screen_row(struct screen *x, const struct screen_field *t, const void *row,
    unsigned have);
void screen_lines(struct screen *x, const struct screen_field *t,
    const void *row, unsigned have);

/* screen_families(x, t): adds the metrics of a table, whose families are printed in this
 * order.  screen_sample(x, family, v): adds a sample with the labels of x.
 * screen_metrics(x): prints all samples and releases them; families without a sample are
 * left out.  It prints nothing where a sample found no memory, and returns that error. */
void screen_families(struct screen *x, const struct screen_field *t);
void screen_sample(struct screen *x, const char *family, double v);
int screen_metrics(struct screen *x);

/* Prints a name from outside, without what a terminal would obey. */
void screen_name(FILE *f, const char *name);
/* screen_chars(s): how many columns of a terminal s takes, nearly: characters,
 * not bytes. */
int screen_chars(const char *s);
/* "12 s", "3.4 h" */
const char *screen_ago(double secs, char out[32]);

#endif
