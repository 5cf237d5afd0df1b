#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elem.h"
#include "base/err.h"
#include "sync/fit.h"
#include "sync/once.h"

#define ONCE_LN2 0.69314718055994530942

int
once_new(struct once **out, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e)
{
	struct once *o;
	int r;

	*out = NULL;
	if (m > SELECT_LEVELS)
		return err_set(e, ERR_USAGE, "more than %d levels",
		    SELECT_LEVELS);
	if ((o = alloc_get(1, sizeof(*o), e)) == NULL)
		return -ERR_SYS;
	memcpy(o->level, level, m * sizeof(*level));
	o->m = m;
	o->ladder = ladder;
	o->measure = (struct measure)MEASURE_INIT;
	if ((r = allot_new(&o->row, o->level, m, 1, e)) < 0) {
		once_free(o);
		return r;
	}
	*out = o;
	return 0;
}

void
once_free(struct once *o)
{
	if (o == NULL)
		return;
	allot_free(o->row);
	measure_release(&o->measure);
	alloc_free(o);
}

void
once_begin(struct once *o, double budget, double total)
{
	o->dist = o->energy = 0;
	price_begin(&o->price, budget, total);
}

uint64_t
once_least(const struct once *o, size_t n)
{
	uint64_t least = UINT64_MAX, v;
	size_t l;

	for (l = 1; l < o->m; l++) {
		if (!codec_dense(&o->level[l]))
			continue;
		v = (uint64_t)allot_cost(codec_bound(&o->level[l], n));
		least = v < least ? v : least;
	}
	return least != UINT64_MAX ? least : 0;
}

/* From a 1024th of the root mean square to where all becomes zero: what the
 * group would take at any price. */
static void
once_wide(struct once *o, const struct stat_group *s)
{
	double rms = s->n > 0 ? sqrt((double)s->sumsq / (double)s->n) : 0;
	double lo = rms / 1024, hi = 1.3 * (double)s->max_abs;
	int i;

	for (i = 0; i < FIT_LADDER; i++)
		o->level[o->ladder + (size_t)i].arg = lo > 0 ? (float)(lo *
		    elem_exp(elem_log(hi / lo) * i / (FIT_LADDER - 1))) : 1;
}

/* Around the step that is best at this price where the rate is high:
 * error = step^2 / 12, and a bit for every halving of the step, make
 * price = 16 ln 2 / 12 * weight * step^2 a byte. */
static void
once_near(struct once *o, double price, double weight)
{
	double step = sqrt(price / (weight * 16 * ONCE_LN2 / 12));
	size_t i;

	fit_ladder(o->level + o->ladder);
	for (i = o->ladder; i < o->ladder + FIT_LADDER; i++)
		o->level[i].arg = (float)(step * (double)o->level[i].arg);
}

static int
once_measure(struct once *o, const struct once_group *g, size_t l,
    struct err *e)
{
	double error;
	size_t len;
	int r = measure_group(&o->measure, &o->level[l], &g->ctx, g->x, g->n,
	    &len, &error, e);

	if (r == 0)
		allot_measured(o->row, 0, l, len, error);
	return r;
}

/* The levels, those that only coding tells measured. */
static int
once_row(struct once *o, const struct once_group *g, struct err *e)
{
	size_t l;
	int r = 0;

	allot_group(o->row, 0, g->stat, g->weight, 1, g->dense,
	    &g->ctx);
	for (l = 0; l < o->m && r == 0; l++)
		if (o->row->known[l] == ALLOT_BLIND)
			r = once_measure(o, g, l, e);
	return r;
}

/* The best level at this price that fits, measured.  told: the bytes that
 * were foretold of the first that was tried. */
static int
once_choose(struct once *o, const struct once_group *g, double price,
    double *told, struct err *e)
{
	struct allot *a = o->row;
	size_t l;
	int r;

	a->solved = 1;		/* what is measured tells of its like, too */
	for (*told = -1;;) {
		l = select_price(a->level, a->m, price);
		if (l == a->m) {	/* a dense group that nothing fits */
			l = 0;
			a->level[0].rate = 0;
		}
		a->choice[0] = (uint8_t)l;
		if (*told < 0)
			*told = (double)a->level[l].rate;
		if (l == 0)
			return 0;
		if (a->known[l] != ALLOT_EXACT) {
			/* and if it is now no longer the best: again */
			if ((r = once_measure(o, g, l, e)) < 0)
				return r;
			continue;
		}
		if (g->fits(g->arg, &o->level[l], allot_body(a, 0)))
			return 0;
		a->known[l] = ALLOT_BARRED;
		a->level[l].rate = -1;
	}
}

void
once_look(struct once *o, const struct once_group *g, struct price_own *own)
{
	allot_reset(o->row);
	if (o->ladder != 0)
		once_wide(o, g->stat);
	allot_group(o->row, 0, g->stat, g->weight, 1, g->dense,
	    &g->ctx);
	price_look(&o->price, o->row->level, o->m, (double)g->n, own);
}

int
once_group(struct once *o, const struct once_group *g,
    const struct price_own *own, struct err *e)
{
	struct allot *a = o->row;
	double price = price_of(&o->price), told;
	int r;

	allot_reset(a);
	if (o->ladder != 0 && price > 0 && isfinite(price) && g->weight > 0)
		once_near(o, price, g->weight);
	else if (o->ladder != 0)
		once_wide(o, g->stat);
	if ((r = once_row(o, g, e)) < 0 ||
	    (r = once_choose(o, g, price, &told, e)) < 0)
		return r;
	o->plan = o->level[a->choice[0]];
	o->body = allot_body(a, 0);
	price_paid(&o->price, own, told,
	    (double)a->level[a->choice[0]].rate);
	o->dist += a->level[a->choice[0]].dist;
	o->energy += g->weight * (double)g->stat->sumsq;
	return 0;
}
