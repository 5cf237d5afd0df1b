/*
 * A table in text: cells separated by blanks, one row per line, the first row the
 * column names; # begins a comment.
 */
#ifndef ACE_TABLE_H
#define ACE_TABLE_H

#include <stddef.h>

struct err;

enum {
	TABLE_COLUMNS = 1024,		/* limit on columns */
	TABLE_BYTES = 256 << 20		/* limit on bytes of a file */
};
#define TABLE_NONE ((size_t)-1)

struct table {
	size_t rows, cols;	/* rows: without the column names */
	char *text;		/* the file, each cell ended by a NUL */
	size_t *cell;		/* offsets into text: the column names, then each row */
	size_t *line;		/* line numbers from 1: [0] names, [i + 1] row i */
};
#define TABLE_INIT { 0, 0, NULL, NULL, NULL }

enum table_kind {
	TABLE_NUMBER,
	TABLE_TIME,		/* seconds, or 10ms, 1.5s */
	TABLE_RATE		/* bit/s, or 5Mbit */
};

/* Read a table file; NULL or "-" is standard input. Return -ERR_DATA for a row of more or
 * fewer cells than names, a table without rows, a repeated name, a zero byte, or more than
 * the limits above. */
int table_read(struct table *t, const char *path, struct err *e);
void table_release(struct table *t);

/* Return the index of a column, or TABLE_NONE. */
size_t table_column(const struct table *t, const char *name);
const char *table_cell(const struct table *t, size_t row, size_t col);

/* Parse a cell of this kind, lo <= *v <= hi; -ERR_DATA with line and column otherwise. */
int table_value(const struct table *t, size_t row, size_t col,
    enum table_kind kind, double lo, double hi, double *v, struct err *e);

#endif
