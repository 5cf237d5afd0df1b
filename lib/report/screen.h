/*
 * Fields of reports, each said once, in a row of a table: its name, as JSON, a
 * table with tabs and the page have it; what it is, in which unit; where it is
 * shown, and how wide.  Whoever adds a field adds a row.
 */
#ifndef ACE_SCREEN_H
#define ACE_SCREEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipe/emit.h"

struct screen;

/* How a field is kept, and what text makes of it; JSON and tables with tabs have
 * the number as it is. */
enum screen_type {
	SCREEN_U64, SCREEN_U32,
	SCREEN_F64, SCREEN_F32,	/* as the field's text says */
	SCREEN_NAME,		/* const char *; NULL: not known */
	SCREEN_CHARS,		/* char[] */
	SCREEN_ID,		/* 16 bytes: in hexadecimal */
	SCREEN_SIZE,		/* uint64_t, bytes: "12.4 MB" */
	SCREEN_AGO,		/* double, seconds: "3.4 h" */
	SCREEN_RATE,		/* double, bit/s: in Mbit/s */
	SCREEN_FLAG,		/* int: true or false */
	SCREEN_CALL		/* put prints it, in whichever form */
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
	void (*put)(struct screen *x, const char *name, const void *row);
};

enum screen_form { SCREEN_TEXT, SCREEN_TSV, SCREEN_JSON };

struct screen {
	FILE *f;
	enum screen_form form;
	unsigned in;		/* the report */
	int wide[4];
	struct emit json;
};

/* What prints it now: a table's first line (not in JSON); a row of it, which ends
 * no line and in JSON opens nothing; "key value" lines.  have: what the row has. */
void screen_head(struct screen *x, const struct screen_field *t);
void screen_row(struct screen *x, const struct screen_field *t, const void *row,
    unsigned have);
void screen_lines(struct screen *x, const struct screen_field *t,
    const void *row, unsigned have);

/* Prints a name from outside, without what a terminal would obey. */
void screen_name(FILE *f, const char *name);
/* screen_chars(s): how many columns of a terminal s takes, nearly: characters,
 * not bytes. */
int screen_chars(const char *s);
/* "12 s", "3.4 h" */
const char *screen_ago(double secs, char out[32]);

#endif
