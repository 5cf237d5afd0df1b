#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elem.h"
#include "base/err.h"
#include "sync/fit.h"

enum {
	FIT_ROUNDS = 6,		/* after which any feasible plan will do */
	FIT_MOST = 40,		/* and no more in any case */
	FIT_MEASURES = 3,	/* passes to measure what was chosen */
	FIT_KNOBS = 4,		/* groups whose knob is turned at the end */
	FIT_HALVINGS = 10,
	FIT_FINE = 64		/* groups: above, steps average out */
};
#define FIT_LN2 0.69314718055994530942

void
fit_ladder(struct codec_plan level[FIT_LADDER])
{
	int i;

	for (i = 0; i < FIT_LADDER; i++) {
		level[i].codec = CODEC_ECQ;
		level[i].param = 0;
		level[i].arg = (float)elem_exp((i - FIT_LADDER / 2) *
		    FIT_LN2 / 4);
	}
}

int
fit_levels(struct codec_plan level[SELECT_LEVELS], size_t *m, size_t *ladder,
    const char *list, const char *what, struct err *e)
{
	char word[64];
	size_t n;
	int r;

	memset(&level[0], 0, sizeof(level[0]));
	level[0].codec = CODEC_NONE;
	*ladder = 0;
	for (*m = 1; *list != '\0'; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == 0 || n >= sizeof(word) ||
		    *m + FIT_LADDER > SELECT_LEVELS)
			return err_set(e, ERR_USAGE, "%s: up to %d codecs, "
			    "separated by commas", what, SELECT_LEVELS -
			    FIT_LADDER);
		memcpy(word, list, n);
		word[n] = '\0';
		if (strcmp(word, "ecq") == 0 && *ladder == 0) {
			*ladder = *m;
			fit_ladder(level + *m);
			*m += FIT_LADDER;
			continue;
		}
		if ((r = codec_parse(word, &level[*m], e)) < 0)
			return r;
		*m += level[*m].codec != CODEC_NONE;
	}
	return 0;
}

void
fit_release(struct fit *f)
{
	allot_free(f->a);
	measure_release(&f->m);
	alloc_free(f->best);
	alloc_free(f->plan);
	f->a = NULL;
	f->best = NULL;
	f->plan = NULL;
}

size_t
fit_body(const struct fit *f, uint32_t g)
{
	return allot_body(f->a, g);
}

struct codec_plan
fit_choice(const struct fit *f, uint32_t g)
{
	return f->a->plan[f->a->choice[g]];
}

/* ---- measuring ---- */

static int
fit_want(const struct fit *f, uint32_t g)
{
	return allot_wants(f->a, g) >= 0;
}

static int
fit_measure(struct fit *f, uint32_t g, const float *x, size_t n, struct err *e)
{
	struct codec_plan p;
	struct codec_ctx ctx;
	double error;
	size_t len;
	int l, r = 0;

	f->ctx(f->arg, g, &ctx);
	while (r == 0 && (l = allot_wants(f->a, g)) >= 0) {
		p = allot_plan(f->a, g, (size_t)l);
		r = measure_group(&f->m, &p, &ctx, x, n, &len, &error, e);
		if (r == 0)
			allot_measured(f->a, g, (size_t)l, len, error);
	}
	return r;
}

/* ---- solving ---- */

static void
fit_rows(struct fit *f, int dense)
{
	struct codec_ctx ctx;
	double w;
	size_t g;

	for (g = 0; g < f->n; g++) {
		w = (double)f->weight[g];
		f->ctx(f->arg, (uint32_t)g, &ctx);
		allot_group(f->a, g, &f->stat[g], w, w > 0 ?
		    f->step / sqrt(w) : f->step, dense && f->dense[g], &ctx);
	}
}

/* One round: 0 a plan of which all is known, 1 too little for anything, 2 it
 * was measured and has to be solved again. */
static int
fit_round(struct fit *f, int64_t room, struct err *e)
{
	struct allot *a = f->a;
	int r = allot_solve(a, room, SELECT_FAST, e);

	if (r == 1 && !f->relaxed) {
		f->relaxed = 1;
		fit_rows(f, 0);
		r = allot_solve(a, room, SELECT_FAST, e);
	}
	if (r != 0 || a->unknown == 0)
		return r;
	if (f->measured++ >= FIT_MEASURES) {
		allot_settle(a);
		return allot_solve(a, room, SELECT_FAST, e);
	}
	r = f->pass(f->arg, fit_want, fit_measure, f, e);
	return r < 0 ? r : 2;
}

/* The choice as it is, if it keeps the budget and is the best so far. */
static int64_t
fit_keep(struct fit *f)
{
	uint64_t bytes = f->size(f->arg, f);

	if (bytes <= f->budget && (!f->found ||
	    f->a->res.dist < f->res.dist)) {
		f->found = 1;
		f->res = f->a->res;
		f->bytes = bytes;
		memcpy(f->best, f->a->choice, f->n);
	}
	return (int64_t)f->budget - (int64_t)bytes;
}

/* The exact search, now that all that may be chosen is known. */
static int
fit_exact(struct fit *f, int64_t room, struct err *e)
{
	int r;

	if (!f->found || f->res.exact)
		return 0;
	allot_settle(f->a);
	if ((r = allot_solve(f->a, room, SELECT_AUTO, e)) == 0)
		(void)fit_keep(f);
	return r < 0 ? r : 0;
}

static int
fit_solve(struct fit *f, int64_t room, struct err *e)
{
	int64_t left;
	int round, r;

	for (round = 0; round < FIT_MOST && room > 0; round++) {
		if ((r = fit_round(f, room, e)) < 0)
			return r;
		if (r == 2)
			continue;
		if (r == 1)
			break;
		left = fit_keep(f);
		/* a budget that is met, or that took all there is to take */
		if (left >= 0 && (round >= FIT_ROUNDS || left < 64 ||
		    f->a->res.lambda == 0))
			break;
		room += left;
	}
	return fit_exact(f, room, e);
}

/* ---- the last bytes ---- */

static int
fit_is_knob(const struct fit *f, uint32_t g)
{
	return g == f->knob;
}

/* The finest knob of this one group at which the shard keeps its budget. */
static int
fit_turn(struct fit *f, uint32_t g, const float *x, size_t n, struct err *e)
{
	struct codec_plan p = f->plan[g];
	struct select_level *l = &f->a->level[g * f->a->m + f->a->choice[g]];
	struct select_level good = *l;
	double fits = (double)p.arg, over, error;
	struct codec_ctx ctx;
	uint64_t bytes;
	size_t len;
	int i, r;

	over = (double)codec_turn(&p, 0.125).arg;
	f->ctx(f->arg, g, &ctx);
	for (i = 0; i < FIT_HALVINGS; i++) {
		p.arg = (float)sqrt(fits * over);
		if ((r = measure_group(&f->m, &p, &ctx, x, n, &len, &error,
		    e)) < 0)
			return r;
		l->rate = allot_cost(len);
		l->dist = f->a->weight[g] * error;
		bytes = f->size(f->arg, f);
		if (bytes > f->budget || l->dist > good.dist) {
			over = (double)p.arg;
			continue;
		}
		fits = (double)p.arg;
		f->plan[g].arg = p.arg;
		good = *l;
		if (f->budget - bytes < f->budget / 1000)
			break;
	}
	*l = good;
	return 0;
}

/* The group with a knob that takes most, less than `below'; n when none. */
static size_t
fit_largest(const struct fit *f, int64_t below)
{
	int64_t most = -1, rate;
	size_t g, at = f->n;

	for (g = 0; g < f->n; g++) {
		rate = f->a->level[g * f->a->m + f->a->choice[g]].rate;
		if (codec_knob(&f->plan[g]) && rate > most && rate < below) {
			most = rate;
			at = g;
		}
	}
	return at;
}

static int
fit_knobs(struct fit *f, struct err *e)
{
	int64_t below = INT64_MAX;
	struct select_level *l;
	size_t g;
	int i, r;

	for (i = 0; i < FIT_KNOBS; i++) {
		if (f->budget - f->bytes <= f->budget / 500 + 64)
			break;
		if ((g = fit_largest(f, below)) == f->n)
			break;
		l = &f->a->level[g * f->a->m + f->a->choice[g]];
		below = l->rate;
		f->knob = (uint32_t)g;
		f->res.dist -= l->dist;
		if ((r = f->pass(f->arg, fit_is_knob, fit_turn, f, e)) < 0)
			return r;
		f->res.dist += l->dist;
		f->res.exact = 0;
		f->bytes = f->size(f->arg, f);
	}
	return 0;
}

/* ---- all of it ---- */

static int
fit_begin(struct fit *f, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e)
{
	int r;

	f->a = NULL;
	f->m = (struct measure)MEASURE_INIT;
	f->plan = alloc_get(f->n, sizeof(*f->plan), e);
	f->best = alloc_get(f->n, 1, e);
	f->found = f->measured = f->relaxed = 0;
	f->sent = 0;
	memset(&f->res, 0, sizeof(f->res));
	if (f->plan == NULL || f->best == NULL)
		return -ERR_SYS;
	if ((r = allot_new(&f->a, level, m, f->n, e)) < 0)
		return r;
	f->a->scaled = ladder;
	f->a->scaled_end = ladder != 0 ? ladder + FIT_LADDER : 0;
	return 0;
}

static int
fit_run(struct fit *f, const struct codec_plan *level, size_t m,
    size_t ladder, double step, struct err *e)
{
	int64_t room;
	size_t g;
	int r;

	if ((r = fit_begin(f, level, m, ladder, e)) < 0)
		return r;
	f->bytes = f->size(f->arg, f);		/* of a shard without groups */
	room = (int64_t)f->budget - (int64_t)f->bytes;
	f->step = ladder == 0 ? 1 : step > 0 ? step : allot_step(f->stat,
	    f->weight, f->n, room > 0 ? (double)room : 0);
	fit_rows(f, 1);
	if ((r = f->pass(f->arg, fit_want, fit_measure, f, e)) < 0)
		return r;
	allot_learn(f->a);
	if ((r = fit_solve(f, room, e)) < 0)
		return r;
	memcpy(f->a->choice, f->best, f->n);
	for (g = 0; g < f->n; g++) {
		f->plan[g] = allot_plan(f->a, g, f->best[g]);
		f->sent += f->best[g] != 0;
	}
	return f->found ? fit_knobs(f, e) : 0;
}

/* Between the steps of the ladder: once more, with steps a sixteenth of an
 * octave apart around the one that was found; the better plan stays. */
static int
fit_finer(struct fit *f, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e)
{
	size_t g = fit_largest(f, INT64_MAX), i;
	struct fit fine = *f;
	int r;

	if (g == f->n || f->plan[g].codec != level[ladder].codec ||
	    !(f->weight[g] > 0))
		return 0;
	memcpy(fine.fine, level, m * sizeof(*level));
	for (i = 0; i < FIT_LADDER; i++)
		fine.fine[ladder + i].arg = (float)elem_exp(((double)i -
		    FIT_LADDER / 2) * FIT_LN2 / 16);
	r = fit_run(&fine, fine.fine, m, ladder, (double)f->plan[g].arg *
	    sqrt((double)f->weight[g]), e);
	if (r < 0 || !fine.found || !(fine.res.dist < f->res.dist)) {
		fit_release(&fine);
		return r;
	}
	fit_release(f);
	*f = fine;
	f->a->plan = f->fine;
	return 0;
}

int
fit_plan(struct fit *f, const struct codec_plan *level, size_t m,
    size_t ladder, struct err *e)
{
	int r = fit_run(f, level, m, ladder, 0, e);

	if (r < 0 || ladder == 0 || !f->found || f->n > FIT_FINE)
		return r;
	return fit_finer(f, level, m, ladder, e);
}
