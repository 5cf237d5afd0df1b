/*
 * Fields of reports.  One table row describes each field: its name in JSON and tables, its
 * type and unit, the reports that show it, its width as text, and its name and description
 * as a metric.  To add a field, add a row.
 *
 * Metrics are Prometheus text (exposition format 0.0.4), as node_exporter reads it from a
 * file.  Each family has one HELP, one TYPE and all its samples, so samples of several
 * directories are kept until all are read.  Units are bytes and seconds, counters end in
 * _total, samples have no time.  OpenMetrics 1.0 names a counter's family without _total,
 * which node_exporter would take for another family without a type; where the two differ,
 * we follow node_exporter.
 */
#ifndef ACE_RENDER_H
#define ACE_RENDER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "pipe/json_out.h"

struct err;
struct render;

/* Storage and text form of a field.  JSON, metrics and tables with tabs have the plain value,
 * unless stated below. */
enum render_type {
	RENDER_U64, RENDER_U32,
	RENDER_F64, RENDER_F32,	/* printed by the format in the field's `text' */
	RENDER_NAME,		/* const char *; NULL: not known */
	RENDER_CHARS,		/* char[] */
	RENDER_ID,		/* 16 bytes: in hexadecimal */
	RENDER_SIZE,		/* uint64_t, bytes: "12.4 MB" */
	RENDER_AGO,		/* double, seconds: "3.4 h" */
	/* double, bit/s: text in Mbit/s; metric in bytes per second */
	RENDER_RATE,
	RENDER_FLAG,		/* int: true or false in JSON, else 1 or 0 */
	RENDER_CALL		/* the function `put' prints it, in each form */
};

enum { RENDER_WIDE = 1000 };	/* RENDER_WIDE + N: the width is x->wide[N] */

struct render_field {
	const char *name;	/* NULL ends the table */
	const char *head;	/* column head in text; NULL: the name */
	enum render_type type;
	size_t at;		/* offset in a row */
	unsigned in;		/* reports that have the field: bits that the caller defines */
	unsigned need;		/* data that a row must have for it: bits of `have' */
	int width;		/* width of a text column; < 0: left-aligned */
	int gap;		/* blanks before the column; 0: two */
	const char *text;	/* format of a floating-point number; NULL: "%.9g" */
	/* for RENDER_CALL; f: this field; at: its member of the row */
	void (*put)(struct render *x, const struct render_field *f, const void *at);
	const char *family, *help;	/* name and description as a metric */
};

enum render_form { RENDER_TEXT, RENDER_METRICS, RENDER_JSON, RENDER_TSV };
enum render_label { RENDER_DIRECTORY, RENDER_RUN, RENDER_DEVICE, RENDER_VERDICT,
	RENDER_LABELS };
enum { RENDER_FAMILIES = 32 };	/* limit on families */

struct render {
	FILE *f;
	enum render_form form;
	unsigned in;		/* print the fields that have one of these bits */
	int wide[4];		/* widths of columns, see RENDER_WIDE */
	int columns;		/* width of the terminal; 0: 80 */
	struct json_out json;

	/* RENDER_METRICS */
	const char *label[RENDER_LABELS];	/* labels of the next samples; NULL: none */
	/* [families], in the order of their first samples */
	const struct render_field *family[RENDER_FAMILIES];
	struct buf sample[RENDER_FAMILIES];	/* text of each family's samples */
	size_t families;
	int failed;		/* first error of a sample, 0: none */
	struct err *e;
};

/* render_head: print the column heads as a line; in text, first narrow x->wide[0] so that a
 * line fits into the terminal, if the first column has this width: then a longer name has a
 * line of its own.  In JSON and metrics do nothing.  render_row: print a row, without
 * the line's end and, in JSON, without opening an object. render_item: print a row as a
 * line or, in JSON, as an object of an array. render_lines: print a row as "key value"
 * lines. have: bits for the data that the row has (see `need'). */
void render_head(struct render *x, const struct render_field *t);
void render_row(struct render *x, const struct render_field *t, const void *row,
    unsigned have);
void render_item(struct render *x, const struct render_field *t, const void *row,
    unsigned have);
void render_lines(struct render *x, const struct render_field *t,
    const void *row, unsigned have);

/* In JSON, open an object or an array (json_out_open), or close it. */
void render_open(struct render *x, const char *key, char bracket);
void render_close(struct render *x);

/* render_sample: add the sample v to the family of f, with the labels of x.
 * render_metrics: print all families that have samples, and release the samples.  If memory
 * ran out for a sample, print nothing and return that error. */
void render_sample(struct render *x, const struct render_field *f, double v);
int render_metrics(struct render *x);

/* Print a name. If it is not clean text (text_clean), each byte that is not printable ASCII
 * becomes '?'. */
void render_name(FILE *f, const char *name);
/* Return how many terminal columns s takes, approximately: characters, not bytes. */
int render_chars(const char *s);
/* Format a time, as in "12 s" or "3.4 h". */
const char *render_ago(double secs, char out[32]);

#endif
