#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/land.h"
#include "sync/sweep.h"
#include "sync/told.h"

enum { SWEEP_TRIES = 8, SWEEP_SOME = 12 };
/* What codes take of what was foretold, which counts as if this share of all
 * had been coded. */
#define SWEEP_GAIN 1.0
#define SWEEP_PRIOR 0.15
#define SWEEP_FORETOLD 0.4	/* log f: the plan is not farther off than that */

/* What a sweep knows: of each group of the order, the log f at which it was
 * coded, or HUGE_VAL. */
struct sweep {
	struct told told;
	double *at;
	double all;		/* log f at which all together take the aim */
	double apart;		/* how far from it some may be */
	double gain;		/* bytes over foretold bytes, so far */
	uint32_t *next;		/* room: places in the order */
	size_t left;		/* groups that are to be coded */
	size_t coded;		/* those that were, at least once */
	/* few groups in the order in which they are coded: first those that
	 * have the most bytes for a value, which are what is to be known */
	unsigned char turn[TOLD_ASKED];
	/* Of many groups, where one curve is all's, sums tell: with those that
	 * are not pending as they are (1), and not (0). */
	struct sweep_sum {
		double stay;	/* bytes of those that stay */
		double moved;	/* over what was foretold, of those that move */
		double open;	/* values that were not coded yet */
	} sum[2];
};

/* A group has to be coded: it was not yet, or stands apart from the others. */
static int
sweep_pending(const struct sweep *w, size_t j)
{
	return fabs(w->at[j] - w->all) > w->apart;
}

static void
sweep_sum(const struct land *l, struct sweep *w)
{
	struct sweep_sum s[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	double at = HUGE_VAL, unit = 1, len;
	size_t j;

	for (j = 0; j < l->k; j++) {
		if (!(w->at[j] < HUGE_VAL)) {
			s[0].open += l->values[l->order[j]];
			continue;
		}
		if (w->at[j] != at)
			unit = told_value(&w->told, at = w->at[j]);
		len = (double)l->code[l->order[j]].len;
		s[0].moved += len / unit;
		if (sweep_pending(w, j))
			s[1].moved += len / unit;
		else
			s[1].stay += len;
	}
	s[1].open = s[0].open;
	memcpy(w->sum, s, sizeof(s));
}

/* Bytes at log f, by what was foretold and what was coded, of all; or where
 * those stay as they are that are not pending, with the pending ones at f. */
static double
sweep_foresee(const struct land *l, const struct sweep *w, double f,
    int stay)
{
	const struct sweep_sum *s = &w->sum[stay];
	double sum = 0, len, told;
	size_t j;

	if (l->k > TOLD_ASKED)
		return s->stay + told_value(&w->told, f) * (s->moved +
		    w->gain * s->open);
	for (j = 0; j < l->k; j++) {
		len = (double)l->code[l->order[j]].len;
		if (stay && !sweep_pending(w, j)) {
			sum += len;
			continue;
		}
		told = told_bytes(&w->told, j, f);
		sum += w->at[j] < HUGE_VAL ? len * told /
		    told_bytes(&w->told, j, w->at[j]) : w->gain * told;
	}
	return sum;
}

/* The log f, near f, at which they should take what is aimed at; *e: how bytes
 * respond there. */
static double
sweep_solve(const struct land *l, const struct sweep *w, double f,
    int stay, double *e)
{
	const double aim = land_aim(l, land_bytes(l, l->k)), by = 0.02;
	double now, slope, move = 1;
	int i;

	for (i = 0; i < SWEEP_TRIES && fabs(move) > 1e-3; i++) {
		now = detmath_log(fmax(sweep_foresee(l, w, f, stay), 1));
		slope = (now - detmath_log(fmax(sweep_foresee(l, w, f + by, stay),
		    1))) / by;
		*e = slope < 0.1 ? 0.1 : slope > 8 ? 8 : slope;
		move = (now - detmath_log(aim)) / *e;
		move = move < -0.7 ? -0.7 : move > 0.7 ? 0.7 : move;
		f += move;
	}
	return f;
}

/* What codes take of what was foretold. */
static double
sweep_gain(const struct land *l, const struct sweep *w)
{
	double len = 0, told = 0, all = 0, one;
	size_t j;

	if (l->k > TOLD_ASKED)
		return w->coded > 0 ? w->sum[0].moved / (w->told.all -
		    w->sum[0].open) : SWEEP_GAIN;
	for (j = 0; j < l->k; j++) {
		one = told_bytes(&w->told, j, w->at[j] < HUGE_VAL ? w->at[j] :
		    w->all);
		all += one;
		if (w->at[j] < HUGE_VAL) {
			len += (double)l->code[l->order[j]].len;
			told += one;
		}
	}
	all *= SWEEP_PRIOR;
	return (len + all * SWEEP_GAIN) / (told + all);
}

/* What coded groups tell: how far all have to be turned. */
static void
sweep_tell(struct land *l, struct sweep *w)
{
	size_t j;

	sweep_sum(l, w);
	w->gain = sweep_gain(l, w);
	w->all = sweep_solve(l, w, w->all, 0, &l->e);
	if (w->coded == 0)
		w->all = fmin(fmax(w->all, -SWEEP_FORETOLD), SWEEP_FORETOLD);
	w->apart = land_apart(l);
	for (w->left = 0, j = 0; j < l->k; j++)
		w->left += (size_t)sweep_pending(w, j);
	sweep_sum(l, w);
}

static void
sweep_take_turns(const struct land *l, struct sweep *w)
{
	double worth[TOLD_ASKED], v;
	size_t i, j;

	for (i = 0; i < l->k && l->k <= TOLD_ASKED; i++) {
		v = told_bytes(&w->told, i, w->all) / l->values[l->order[i]];
		for (j = i; j > 0 && worth[j - 1] < v; j--) {
			worth[j] = worth[j - 1];
			w->turn[j] = w->turn[j - 1];
		}
		worth[j] = v;
		w->turn[j] = (unsigned char)i;
	}
}

/* Group j is to be coded now: one that was not yet, as long as there is one. */
static int
sweep_wants(const struct land *l, const struct sweep *w, size_t j)
{
	return w->coded < l->k ? !(w->at[j] < HUGE_VAL) : sweep_pending(w, j);
}

/* Of those, the next ones: a third of few groups' bytes, an eighth or a quarter
 * of many groups.  Puts their places in the order into next, and returns how
 * many they are. */
static size_t
sweep_some(const struct land *l, const struct sweep *w, uint32_t *next)
{
	const int few = l->k <= TOLD_ASKED;
	double all = 0, part = 0;
	size_t i, j, k = 0;

	for (j = 0; j < l->k; j++)
		if (sweep_wants(l, w, j))
			all += few ? told_bytes(&w->told, j, w->all) : 1;
	all /= few ? 3 : w->coded > 0 ? 4 : 8;
	for (i = 0; i < l->k && (part < all || (!few && k < SWEEP_SOME)); i++) {
		j = few ? w->turn[i] : i;
		if (!sweep_wants(l, w, j))
			continue;
		part += few ? told_bytes(&w->told, j, w->all) : 1;
		next[k++] = (uint32_t)j;
	}
	return k;
}

/* Codes the next groups, so that all that are pending should bring the shard to
 * its aim. */
static int
sweep_next(struct land *l, struct sweep *w, struct err *e)
{
	uint32_t which[LAND_AT_ONCE];
	const size_t n = sweep_some(l, w, w->next);
	size_t i, k = 0;
	double f, slope;
	int r = 0;

	f = sweep_solve(l, w, w->all, 1, &slope);
	f = fmin(fmax(f, w->all - w->apart / 2), w->all + w->apart / 2);
	for (i = 0; i < n && r == 0; i++) {
		w->coded += !(w->at[w->next[i]] < HUGE_VAL);
		w->at[w->next[i]] = f;
		which[k++] = l->order[w->next[i]];
		if (k < LAND_AT_ONCE && i + 1 < n)
			continue;
		r = land_make_many(l, which, k, detmath_exp(f), e);
		k = 0;
	}
	l->bytes = l->size(l->arg, l);
	return r;
}

/* Codes all groups, some after others: what these take tells how far those have
 * to be turned, so that the last ones bring the size near the budget. */
int
sweep_run(struct land *l, struct err *e)
{
	struct sweep w = { .told = { .k = l->k, .order = l->order,
	    .values = l->values, .foretell = l->foretell, .arg = l->arg } };
	const size_t most = l->made + 3 * l->k;
	size_t j;
	int r = told_open(&w.told, e);

	if (r == 0 && ((w.at = alloc_get(l->k, sizeof(*w.at), e)) == NULL ||
	    (w.next = alloc_get(l->k, sizeof(*w.next), e)) == NULL))
		r = -ERR_SYS;
	for (j = 0; j < l->k && r == 0; j++)
		w.at[j] = HUGE_VAL;
	while (r == 0) {
		sweep_tell(l, &w);
		if (w.coded == 0)
			sweep_take_turns(l, &w);
		if (w.left == 0 || l->made > most)
			break;
		r = sweep_next(l, &w, e);
	}
	alloc_free(w.next);
	alloc_free(w.at);
	told_close(&w.told);
	return r;
}
