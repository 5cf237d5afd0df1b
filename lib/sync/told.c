#include <math.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/told.h"

/* The grid, of log f: from -TOLD_REACH to TOLD_REACH. */
enum { TOLD_POINTS = 41 };
#define TOLD_GRID 0.1
#define TOLD_REACH 2.0
#define TOLD_ENTRY 4		/* bytes: about, of a record's entry */
#define TOLD_SLOPE 0.7		/* beyond it, or where nothing is told */

int
told_open(struct told *t, struct err *e)
{
	size_t i, n;

	t->asked = t->k < TOLD_ASKED ? t->k : TOLD_ASKED;
	n = (t->k > TOLD_ASKED ? 1 : t->k) * TOLD_POINTS;
	if ((t->row = alloc_get(n, sizeof(*t->row), e)) == NULL)
		return -ERR_SYS;
	t->sample = t->all = 0;
	for (i = 0; i < t->k; i++) {
		t->all += t->values[t->order[i]];
		t->sample = i < t->asked ? t->all : t->sample;
	}
	return 0;
}

void
told_close(struct told *t)
{

	alloc_free(t->row);
	t->row = NULL;
}

/* What codes take of what is foretold of single values: contexts tell the more
 * of a value the fewer bits it has (measured on gradients, with a residual and
 * without: 0.6 at a quarter of a bit, 0.9 at four). */
static double
told_share(double bits)
{
	double s = 0.72 + 0.115 * detmath_log(bits);

	return s < 0.45 ? 0.45 : s > 1 ? 1 : s;
}

/* Of the one in that slot. */
static double
told_one(const struct told *t, size_t slot, double f)
{
	const size_t i = t->order[slot];
	double v = t->foretell != NULL ?
	    t->foretell(t->arg, i, slot, detmath_exp(f)) : -1;

	if (v > 0)
		v *= told_share(8 * v / t->values[i]);
	else if (v < 0)
		v = t->values[i] * detmath_exp(-TOLD_SLOPE * f);
	return v + TOLD_ENTRY;
}

/* At a point of the grid; 0: nobody asked yet. */
static double
told_point(const struct told *t, size_t j, int p)
{
	const double f = TOLD_GRID * p - TOLD_REACH;
	double *at = &t->row[j * TOLD_POINTS + (size_t)p];
	size_t i;

	if (*at > 0)
		return *at;
	if (t->k <= TOLD_ASKED)
		return *at = told_one(t, j, f);
	for (i = 0; i < t->asked; i++)
		*at += told_one(t, i, f);
	return *at;
}

double
told_bytes(const struct told *t, size_t j, double f)
{
	const double at = fmin(fmax(f, -TOLD_REACH), TOLD_REACH);
	const int i = (int)((at + TOLD_REACH) / TOLD_GRID);
	const int p = i < TOLD_POINTS - 1 ? i : TOLD_POINTS - 2;
	const double lo = told_point(t, j, p);
	const double v = lo + (told_point(t, j, p + 1) - lo) *
	    ((at + TOLD_REACH) / TOLD_GRID - p);

	return at == f ? v : v * detmath_exp(TOLD_SLOPE * (at - f));
}

double
told_value(const struct told *t, double f)
{
	return told_bytes(t, 0, f) / t->sample;
}
