#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/table.h"

struct parse {
	struct table *t;
	size_t cap, line_cap, cells, line;
	int named;
};

/* Find the cells of one line, which ends in a 0 byte. */
static int
one_line(struct parse *x, char *s, struct err *e)
{
	struct table *t = x->t;
	size_t n = 0;
	char *save, *word;
	int r;

	s[strcspn(s, "#")] = '\0';
	for (word = strtok_r(s, " \t\r\v\f", &save); word != NULL;
	    word = strtok_r(NULL, " \t\r\v\f", &save), n++) {
		if ((r = alloc_grow(&t->cell, &x->cap, x->cells + 1,
		    sizeof(*t->cell), e)) < 0)
			return r;
		if (!x->named && strchr(word, ',') != NULL)
			return err_set(e, ERR_DATA, "corrupt: line %zu has a comma in "
			    "'%.40s': separate columns by blanks", x->line, word);
		t->cell[x->cells++] = (size_t)(word - t->text);
		if (n >= TABLE_COLUMNS)
			return err_set(e, ERR_DATA, "limit: line %zu has more than "
			    "%d columns", x->line, TABLE_COLUMNS);
	}
	if (n == 0)
		return 0;
	if (x->named && n != t->cols)
		return err_set(e, ERR_DATA, "corrupt: line %zu has %zu cell%s, but "
		    "the table has %zu column%s", x->line, n, n == 1 ? "" : "s",
		    t->cols, t->cols == 1 ? "" : "s");
	if ((r = alloc_grow(&t->line, &x->line_cap, t->rows + 2,
	    sizeof(*t->line), e)) < 0)
		return r;
	t->rows += x->named ? 1 : 0;
	t->line[t->rows] = x->line;
	t->cols = n;
	x->named = 1;
	return 0;
}

static const char *
table_name(const struct table *t, size_t col)
{
	return t->text + t->cell[col];
}

static int
check_names(const struct table *t, struct err *e)
{
	size_t i;

	for (i = 0; i < t->cols; i++)
		if (table_column(t, table_name(t, i)) != i)
			return err_set(e, ERR_DATA, "corrupt: line %zu names column "
			    "'%.40s' twice", t->line[0], table_name(t, i));
	return 0;
}

int
table_read(struct table *t, const char *path, struct err *e)
{
	struct parse x = { t, 0, 0, 0, 0, 0 };
	struct buf b = BUF_INIT;
	char *s, *end;
	int r;

	*t = (struct table)TABLE_INIT;
	r = io_named_text(&b, path, TABLE_BYTES, e);
	t->text = (char *)b.p;
	for (s = t->text; r == 0 && s < t->text + b.n; s = end + 1) {
		x.line++;
		end = memchr(s, '\n', (size_t)(t->text + b.n - s));
		if (end == NULL)
			end = t->text + b.n;
		*end = '\0';
		r = one_line(&x, s, e);
	}
	if (r == 0 && !x.named)
		r = err_set(e, ERR_DATA, "truncated: the table has no "
		    "line of column names");
	if (r == 0)
		r = check_names(t, e);
	if (r == 0 && t->rows == 0)
		r = err_set(e, ERR_DATA, "truncated: the table has no row after the "
		    "column names in line %zu", t->line[0]);
	if (r < 0)
		table_release(t);
	return r;
}

void
table_release(struct table *t)
{
	alloc_free(t->text);
	alloc_free(t->cell);
	alloc_free(t->line);
	*t = (struct table)TABLE_INIT;
}

const char *
table_cell(const struct table *t, size_t row, size_t col)
{
	return t->text + t->cell[(row + 1) * t->cols + col];
}

size_t
table_column(const struct table *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->cols; i++)
		if (strcmp(table_name(t, i), name) == 0)
			return i;
	return TABLE_NONE;
}

int
table_value(const struct table *t, size_t row, size_t col,
    enum table_kind kind, double lo, double hi, double *v, struct err *e)
{
	const char *s = table_cell(t, row, col);
	int r;

	if ((r = num_f64(v, s, -1e300, 1e300, "", NULL)) < 0 && kind == TABLE_TIME)
		r = num_time(v, s, "", NULL);
	else if (r < 0 && kind == TABLE_RATE)
		r = num_rate(v, s, "", NULL);
	if (r < 0)
		return err_set(e, ERR_DATA, "corrupt: line %zu: %.40s '%.40s' "
		    "is not a %s", t->line[row + 1], table_name(t, col), s,
		    kind == TABLE_TIME ? "time such as 10ms" : kind == TABLE_RATE ?
		    "rate such as 5Mbit" : "number");
	if (*v >= lo && *v <= hi)
		return 0;
	return err_set(e, ERR_DATA, "corrupt: line %zu: %.40s '%.40s': expected "
	    "%g to %g%s", t->line[row + 1], table_name(t, col), s, lo, hi,
	    kind == TABLE_TIME ? " s" : kind == TABLE_RATE ? " bit/s" : "");
}
