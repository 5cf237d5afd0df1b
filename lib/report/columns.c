#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/columns.h"

enum { CELL = 32 };		/* bytes of a number with its unit */

struct column {
	int rate, time;		/* units of its numbers */
	int wide;		/* of its widest cell */
	int words;		/* some are no numbers: aligned on the left */
};

static void
columns_head(struct column *c, const char *cell, size_t n)
{
	static const char *const times[] = { "compute", "latency", "seconds", "step",
	    "time" };
	size_t i;

	c->rate = n == 9 && strncmp(cell, "bandwidth", n) == 0;
	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		c->time |= n == strlen(times[i]) && strncmp(cell, times[i], n) == 0;
}

/* Return a number of at least 0 with its unit, in four digits. */
static const char *
columns_unit(const struct column *c, double x, char out[CELL])
{
	static const char *const rate[] = { "bit/s", "kbit/s", "Mbit/s", "Gbit/s" },
	    *const time[] = { "us", "ms", "s" };
	const size_t most = c->rate ? 3 : 2;
	size_t i = 0;

	for (x = c->rate ? x : x * 1e6; i < most && x >= 999.95; i++)
		x /= 1e3;
	(void)snprintf(out, CELL, "%.4g %s", x, c->rate ? rate[i] : time[i]);
	return out;
}

/* Measure a cell of n bytes, or with f print it; last: nothing follows in its line. */
static void
columns_cell(FILE *f, struct column *c, const char *cell, size_t n, int last)
{
	const int number = isdigit((unsigned char)*cell) || *cell == '-';
	char out[CELL];

	if (isdigit((unsigned char)*cell) && (c->rate || c->time)) {
		cell = columns_unit(c, strtod(cell, NULL), out);
		n = strlen(cell);
	}
	if (f == NULL) {
		c->wide = (int)n > c->wide && (int)n < 80 ? (int)n : c->wide;
		c->words |= !number;
	} else {
		(void)fprintf(f, "%*s%.*s", c->words || (int)n > c->wide ? 0 :
		    c->wide - (int)n, "", (int)n, cell);
		(void)fprintf(f, "%*s", last ? 0 : 2 + (c->words ? c->wide -
		    (int)n : 0), "");
	}
}

static void
columns_pass(FILE *f, struct column c[COLUMNS_MOST], const char *p)
{
	size_t n, i;
	int head;

	for (head = 1; *p != '\0'; p += n + (p[n] != '\0')) {
		n = strcspn(p, "\n");
		if (*p == '#') {
			if (f != NULL)
				(void)fprintf(f, "%.*s\n", (int)n, p);
			continue;
		}
		for (i = 0; i < COLUMNS_MOST; i++, p += n + 1) {
			n = strcspn(p, "\t\n");
			if (head && f == NULL)
				columns_head(&c[i], p, n);
			if (head && f == NULL)
				c[i].wide = (int)n;
			else
				columns_cell(f, &c[i], p, n, p[n] != '\t');
			if (p[n] != '\t')
				break;
		}
		if (f != NULL)
			(void)fputc('\n', f);
		head = 0;
	}
}

void
columns_print(FILE *f, const char *tsv)
{
	struct column c[COLUMNS_MOST];

	memset(c, 0, sizeof(c));
	columns_pass(NULL, c, tsv);
	columns_pass(f, c, tsv);
}
