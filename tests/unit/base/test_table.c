
#include "../tap.h"
#include "base/err.h"
#include "base/table.h"

/* Parse n bytes as a table, through a file. */
static int
read_text(struct table *t, const char *s, size_t n, struct err *e)
{
	char path[] = "/tmp/test_table.XXXXXX";
	int fd = mkstemp(path), r;

	*e = (struct err)ERR_INIT;
	r = fd < 0 || write(fd, s, n) != (ssize_t)n ? -99 : table_read(t, path, e);
	if (fd >= 0) {
		(void)close(fd);
		(void)unlink(path);
	}
	return r;
}

static void
refused(const char *s, size_t n, const char *want)
{
	struct table t;
	struct err e;

	ok(read_text(&t, s, n, &e) == -ERR_DATA && strstr(ERR_MSG(&e), want) != NULL
	    && t.text == NULL, "refused: %s", ERR_MSG(&e));
}

/* Parse a table of n columns and one row. */
static void
many(int n, int want)
{
	static char text[16 * (TABLE_COLUMNS + 1)];
	struct table t;
	struct err e;
	size_t at = 0;
	int i, r;

	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "c%d ", i);
	text[at++] = '\n';
	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ", i);
	r = read_text(&t, text, at, &e);
	ok(r == want && (r < 0 || (t.cols == (size_t)n && strcmp(table_cell(&t,
	    0, t.cols - 1), "1023") == 0)), "%d columns: %s", n, ERR_MSG(&e));
	table_release(&t);
}

int
main(void)
{
	static const char good[] = "# a comment\n\n a\tt  r # names\r\n"
	    "1 10ms 5Mbit\n-2\t0.5 \t 7 # x\n#\nx 1h 1";
	struct table t;
	struct err e;
	double v;

	ok(read_text(&t, good, sizeof(good) - 1, &e) == 0 && t.rows == 3 &&
	    t.cols == 3, "rows and columns");
	ok(table_column(&t, "r") == 2 && table_column(&t, "z") == TABLE_NONE,
	    "columns by name");
	ok(table_value(&t, 1, 0, TABLE_NUMBER, -9, 9, &v, &e) == 0 && v == -2,
	    "a number");
	ok(table_value(&t, 0, 1, TABLE_TIME, 0, 9, &v, &e) == 0 && v == 0.01 &&
	    table_value(&t, 1, 1, TABLE_TIME, 0, 9, &v, &e) == 0 && v == 0.5,
	    "times");
	ok(table_value(&t, 0, 2, TABLE_RATE, 0, 1e9, &v, &e) == 0 && v == 5e6 &&
	    table_value(&t, 1, 2, TABLE_RATE, 0, 1e9, &v, &e) == 0 && v == 7,
	    "rates");
	ok(table_value(&t, 2, 0, TABLE_NUMBER, 0, 9, &v, &e) == -ERR_DATA &&
	    strcmp(ERR_MSG(&e), "corrupt: line 7: a 'x' is not a number") == 0,
	    "the line is named: %s", ERR_MSG(&e));
	e = (struct err)ERR_INIT;
	ok(table_value(&t, 1, 0, TABLE_NUMBER, 0, 9, &v, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "line 5: a '-2' is not from 0 to 9") != NULL,
	    "so are the bounds: %s", ERR_MSG(&e));
	ok(table_value(&t, 1, 0, TABLE_NUMBER, -2, 9, &v, &e) == 0 &&
	    table_value(&t, 1, 0, TABLE_NUMBER, -9, -2, &v, &e) == 0,
	    "which belong to what is allowed");
	e = (struct err)ERR_INIT;
	ok(table_value(&t, 0, 1, TABLE_RATE, 0, 9, &v, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "t '10ms' is not a rate") != NULL,
	    "a time is no rate: %s", ERR_MSG(&e));
	e = (struct err)ERR_INIT;
	ok(table_value(&t, 0, 2, TABLE_TIME, 0, 1e9, &v, &e) == -ERR_DATA &&
	    strstr(ERR_MSG(&e), "r '5Mbit' is not a time") != NULL,
	    "nor a rate a time: %s", ERR_MSG(&e));
	e = (struct err)ERR_INIT;
	ok(table_value(&t, 0, 1, TABLE_NUMBER, 0, 9, &v, &e) == -ERR_DATA,
	    "nor either a number: %s", ERR_MSG(&e));
	table_release(&t);
	many(TABLE_COLUMNS, 0);
	many(TABLE_COLUMNS + 1, -ERR_DATA);
	refused("", 0, "truncated: the table has no line of column names");
	refused("a b\n", 4, "truncated: the table has no row after line 1");
	refused("a b\n1 2\n3\n", 10, "line 3 has 1 cell, but the table has 2 columns");
	refused("a b\n1 2 3\n", 10, "line 2 has 3 cells, but the table has 2 columns");
	refused("a a\n1 2\n", 8, "names column 'a' twice");
	refused("a b\n1 \0 2\n", 10, "line 2 has a zero byte");
	return done_testing();
}
