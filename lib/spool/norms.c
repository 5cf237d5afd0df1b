#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/compare.h"
#include "spool/ledger.h"
#include "spool/norms.h"

enum { NORMS_LINE = 64 };

/* Reads one line, which ends at *end; 0 when it is not a valid one. */
static int
norms_line(const char *s, struct norms_step *v, char **end)
{
	if (*s < '0' || *s > '9')
		return 0;
	v->step = strtoull(s, end, 10);
	if (**end != ' ')
		return 0;
	v->norm = strtod(*end + 1, end);
	return **end == '\n' && v->norm >= 0 && isfinite(v->norm);
}

static int
norms_parse(struct norms *s, const char *text, struct err *e)
{
	struct norms_step v;
	char *end;

	for (; *text != '\0'; text = end + 1) {
		if (s->n == NORMS_WINDOW || !norms_line(text, &v, &end) ||
		    (s->n != 0 && s->last[s->n - 1].step >= v.step))
			return err_set(e, ERR_DATA, "corrupt: '%s' is no list "
			    "of norms", s->path);
		s->last[s->n++] = v;
	}
	return 0;
}

int
norms_open(struct norms *s, char *path, enum io_sync sync, struct err *e)
{
	char text[NORMS_WINDOW * NORMS_LINE + 1];
	int k;

	*s = (struct norms){ .path = path, .sync = sync };
	k = ledger_text(path, text, sizeof(text), e);
	return k > 0 ? norms_parse(s, text, e) : k;
}

void
norms_release(struct norms *s)
{
	alloc_free(s->path);
	*s = (struct norms)NORMS_INIT;
}

double
norms_median(const struct norms *s, uint64_t step)
{
	double v[NORMS_WINDOW];
	size_t n;

	for (n = 0; n < s->n && s->last[n].step < step; n++)
		v[n] = s->last[n].norm;
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(v[0]), compare_f64);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

static int
norms_save(const struct norms *s, struct err *e)
{
	char text[NORMS_WINDOW * NORMS_LINE + 1];
	size_t i, n = 0;

	if (s->path == NULL)
		return 0;
	for (i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%llu %.17g\n",
		    (unsigned long long)s->last[i].step, s->last[i].norm);
	return ledger_set_text(s->path, text, s->sync, e);
}

int
norms_add(struct norms *s, uint64_t step, double norm, struct err *e)
{
	while (s->n != 0 && s->last[s->n - 1].step >= step)
		s->n--;
	if (s->n == NORMS_WINDOW)
		memmove(&s->last[0], &s->last[1],
		    --s->n * sizeof(s->last[0]));
	s->last[s->n++] = (struct norms_step){ step, norm };
	return norms_save(s, e);
}
