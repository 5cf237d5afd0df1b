#include <math.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/rate_control.h"

/*
 * The limits of the search.  They affect how often groups are coded, which
 * tests/bench-planner.c counts, and how well the shard fills its budget.
 */
enum {
	/* frames are padded to a multiple of this: fewer unused bytes than this are no loss */
	RATE_CONTROL_PAD = 8,
	RATE_CONTROL_ENTRY = 4,	/* approximate bytes of a directory entry */
	RATE_CONTROL_SOLVES = 6,	/* most iterations of rate_control_solve */
	/* most rounds in which no group is coded for the first time */
	RATE_CONTROL_ROUNDS = 16,
	/* most times that a group is coded again alone to fill the budget */
	RATE_CONTROL_TRIES = 6,
	/* most times that all groups are coded again if the rounds do not suffice: coarser to fit
	 * the budget; finer to fill it */
	RATE_CONTROL_COARSER = 40,
	RATE_CONTROL_FINER = 4
};
/* The share of the budget that may stay unused is RATE_CONTROL_BAND / (groups + 1), limited
 * to RATE_CONTROL_LEAST .. RATE_CONTROL_WIDEST, but at least RATE_CONTROL_PAD bytes. */
#define RATE_CONTROL_BAND 0.012
#define RATE_CONTROL_WIDEST 0.002
#define RATE_CONTROL_LEAST 0.0002
#define RATE_CONTROL_WIDE 0.0045	/* the share that may stay unused after all rounds */
/* Limits on differences of t (rate_control.h). */
#define RATE_CONTROL_APART 0.035	/* usual limit on a group's distance from r->all */
#define RATE_CONTROL_FAR 1.4	/* the largest single change of t, once all are coded */
#define RATE_CONTROL_TRUST 0.3	/* the largest single change while a group is uncoded */
#define RATE_CONTROL_TELLS 0.02	/* two codes give a slope if their t differ by more */
/* The slope -d log bytes / d t of a group is about this number divided by its bits per
 * value.  On normal values we measured 1.2 at 1 bit and 4 at 1/3 bit. */
#define RATE_CONTROL_SLOPE 1.25
#define RATE_CONTROL_STEEP 6
/* Bits per value are about c log(1 + RATE_CONTROL_ABOVE mean(x^2) / step^2), c a constant. */
#define RATE_CONTROL_ABOVE 6

enum { PHASE_START, PHASE_FIXED, PHASE_PASS, PHASE_SETTLE, PHASE_CHOSEN };

static double
rate_control_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static int
rate_control_coded(const struct rate_control_code *c)
{
	return c->t < HUGE_VAL;
}

static double
rate_control_cost(const struct rate_control *r, const struct rate_control_group *g,
    const struct rate_control_code *c)
{
	return (double)r->cost(g->plan.codec, c->len, 1);
}

double
rate_control_steep(double bytes, double n)
{
	return bytes > 0 ? rate_control_clamp(RATE_CONTROL_SLOPE * n / (8 * bytes),
	    0.05, RATE_CONTROL_STEEP) : 0;
}

/* Return the slope -d log bytes / d t of a coded group: rate_control_steep or, if the t of its
 * two codes differ by TELLS to FAR, the slope between them, within a factor of 3 of the former. */
static double
rate_control_slope(const struct rate_control_group *g)
{
	const double e = rate_control_steep((double)g->code.len, g->n);
	const double by = g->other.t - g->code.t;

	if (!(fabs(by) > RATE_CONTROL_TELLS && fabs(by) < RATE_CONTROL_FAR) ||
	    g->code.len == 0 || g->other.len == 0)
		return e;
	return rate_control_clamp(detmath_log((double)g->code.len /
	    (double)g->other.len) / by, e / 3, 3 * e);
}

/* Estimate the bytes that a coded group would take at t = r->all. */
static double
rate_control_there(const struct rate_control *r, const struct rate_control_group *g)
{
	return rate_control_cost(r, g, &g->code) * detmath_exp(rate_control_clamp(
	    rate_control_slope(g) * (g->code.t - r->all), -10, 10));
}

/* ---- before any group is coded ---- */

/* Return the aim: the bytes that all groups with a rate parameter should take together. */
static double
rate_control_aim(const struct rate_control *r)
{
	return fmax((double)r->budget - r->band / 2 - ((double)r->bytes - r->now), 1);
}

/* Estimate a group's bytes, up to a common factor, from its energy and its step. */
static double
rate_control_rough(const struct rate_control_group *g)
{
	const double arg = (double)g->plan.arg, n = g->n;

	return (double)RATE_CONTROL_ENTRY + n * detmath_log(1 + RATE_CONTROL_ABOVE *
	    (arg > 0 ? fmin(g->seen.sumsq / n / (arg * arg), 1e12) : 1));
}

/* Set each group's weight to its estimated bytes: its share of the aim, less what contexts save.
 * Contexts save more at fewer bits per value: on gradients, with and without a residual, we
 * measured that 0.6 of the bytes remain at a quarter of a bit, and 0.9 at four bits. */
static void
rate_control_guess(struct rate_control *r)
{
	const double aim = rate_control_aim(r);
	double rough = 0, n = 0, share;
	size_t j;

	for (j = 0; j < r->k; j++) {
		rough += rate_control_rough(&r->g[r->order[j]]);
		n += r->g[r->order[j]].n;
	}
	share = rate_control_clamp(0.72 + 0.115 * detmath_log(8 * aim / n), 0.45, 1);
	for (j = 0; j < r->k; j++)
		r->g[r->order[j]].weight = rate_control_rough(&r->g[r->order[j]]) *
		    share * aim / rough;
}

/* ---- all groups together ---- */

/* Set r->sent to the estimated bytes of all groups at t = r->all, from the slopes of coded and
 * the weights of uncoded groups.  Set r->e to its slope, r->now to the bytes of the codes, and
 * r->fresh and r->left to the number of uncoded groups and the sum of their weights. */
static void
rate_control_sums(struct rate_control *r)
{
	double weight = 0, slopes = 0, open = 0, guess, at, e;
	const struct rate_control_group *g;
	size_t j;

	r->now = r->sent = r->left = 0;
	r->fresh = 0;
	for (j = 0; j < r->k; j++) {
		g = &r->g[r->order[j]];
		e = rate_control_steep(g->weight, g->n);
		guess = g->weight * detmath_exp(-e * rate_control_clamp(r->all, -2, 2));
		if (!rate_control_coded(&g->code)) {
			open += guess;
			slopes += e * guess;
			r->left += g->weight;
			r->fresh++;
			continue;
		}
		weight += guess;
		r->now += rate_control_cost(r, g, &g->code);
		at = rate_control_there(r, g);
		r->sent += at;
		slopes += rate_control_slope(g) * at;
	}
	if (r->sent + open > 0)
		r->e = rate_control_clamp(slopes / (r->sent + open), 0.1,
		    RATE_CONTROL_STEEP);
	/* the coded groups correct the estimates of the others */
	r->sent += weight > 0 ? open * r->sent / weight : open;
}

/* Set r->all to the t at which all groups together take rate_control_aim bytes, but change
 * it by at most `far'. */
static void
rate_control_solve(struct rate_control *r, double far)
{
	const double was = r->all;
	double move = 1;
	int i;

	for (i = 0; i < RATE_CONTROL_SOLVES && fabs(move) > 1e-3; i++) {
		rate_control_sums(r);
		move = detmath_log(fmax(r->sent, 1) / rate_control_aim(r)) / r->e;
		r->all = rate_control_clamp(r->all + move, was - far, was + far);
	}
	rate_control_sums(r);
}

static void
rate_control_add(struct rate_control *r, size_t i, double t)
{
	struct rate_control_group *g = &r->g[i];

	g->other = g->code;
	g->code = (struct rate_control_code){ .t = t };
	r->which[r->many++] = (uint32_t)i;
}

static int
rate_control_pending(const struct rate_control *r, const struct rate_control_group *g)
{
	return !(fabs(g->code.t - r->all) <= RATE_CONTROL_APART);
}

/* All groups are coded near r->all: raise r->over to it if they exceed the budget, else lower
 * r->within to it.  Return within - over. */
static double
rate_control_side(struct rate_control *r)
{
	if (r->bytes > r->budget)
		r->over = fmax(r->over, r->all);
	else
		r->within = fmin(r->within, r->all);
	return r->within - r->over;
}

/* Return the t for the groups to code next at which the shard, with the other groups' codes
 * as they are, reaches the aim; at most RATE_CONTROL_APART / 2 from r->all. */
static double
rate_control_beside(const struct rate_control *r)
{
	const struct rate_control_group *g;
	double stay = 0, move = r->sent;
	size_t j;

	for (j = 0; j < r->k; j++) {
		g = &r->g[r->order[j]];
		if (rate_control_pending(r, g))
			continue;
		stay += rate_control_cost(r, g, &g->code);
		move -= rate_control_there(r, g);
	}
	if (stay == 0)
		return r->all;
	return r->all + rate_control_clamp(detmath_log(fmax(move, 1) /
	    fmax(rate_control_aim(r) - stay, 1)) / r->e, -RATE_CONTROL_APART / 2,
	    RATE_CONTROL_APART / 2);
}

/* Queue the next uncoded groups for coding: first an eighth of them by weight, then half of
 * the rest.  If all are coded, queue those that are too far from r->all.  Return 0 if none
 * was queued. */
static int
rate_control_pass(struct rate_control *r)
{
	const struct rate_control_group *g;
	const size_t fresh = r->fresh;
	double part = 0, most, t;
	size_t j;

	if (fresh == 0 && r->rounds++ >= RATE_CONTROL_ROUNDS)
		return 0;
	if (r->even)
		rate_control_side(r);
	rate_control_solve(r, fresh > 0 ? RATE_CONTROL_TRUST : RATE_CONTROL_FAR);
	if (r->within - r->over < HUGE_VAL && !(r->all > r->over && r->all < r->within))
		r->all = (r->over + r->within) / 2;
	t = rate_control_beside(r);
	most = r->left / (fresh == r->k ? 8 : 2);
	for (j = 0; j < r->k && (fresh == 0 || part < most || r->many == 0); j++) {
		g = &r->g[r->order[j]];
		if (fresh == 0 ? !rate_control_pending(r, g) :
		    rate_control_coded(&g->code))
			continue;
		part += g->weight;
		rate_control_add(r, r->order[j], t);
	}
	r->even = fresh == 0;
	r->phase = PHASE_PASS;
	return r->many > 0;
}

/* ---- the choice ---- */

static void
rate_control_swap(struct rate_control_group *g)
{
	const struct rate_control_code c = g->code;

	g->code = g->other;
	g->other = c;
}

/* Return how many more bytes a group's other code takes than its chosen code.  Return 0 if there
 * is no other code or, while r->whole is 0, if the other code's t is too far from r->all. */
static double
rate_control_gain(const struct rate_control *r, const struct rate_control_group *g)
{
	if (!rate_control_coded(&g->other) || (r->whole == 0 &&
	    fabs(g->other.t - r->all) > 1.5 * RATE_CONTROL_APART))
		return 0;
	return rate_control_cost(r, g, &g->other) - rate_control_cost(r, g, &g->code);
}

/* Choose the shorter code of each group, then each longer code that still fits.  Return the
 * number of longer codes. */
static size_t
rate_control_choose(struct rate_control *r)
{
	double room = (double)r->budget - (double)r->bytes - r->slack, gain;
	struct rate_control_group *g;
	size_t j, n = 0;

	for (j = 0; j < r->k; j++) {
		g = &r->g[r->order[j]];
		if ((gain = rate_control_gain(r, g)) < 0) {
			rate_control_swap(g);
			room -= gain;
		}
	}
	for (j = 0; j < r->k; j++) {
		g = &r->g[r->order[j]];
		gain = rate_control_gain(r, g);
		if (gain > 0 && gain <= room) {
			room -= gain;
			rate_control_swap(g);
			n++;
		}
	}
	r->phase = PHASE_CHOSEN;
	return n;
}

/* ---- filling the remaining room ---- */

/* Set *t to the t at which group g grows by *by bytes (shrinks if *by < 0).  If that t is out of
 * bounds, set *t to the bound and *by to the change there.  Return 0 if g is to stay as it is. */
static int
rate_control_move(const struct rate_control *r, const struct rate_control_group *g,
    double *t, double *by)
{
	const double len = rate_control_cost(r, g, &g->code), want = *by;
	const double e = rate_control_slope(g);
	const double end = r->all + (want > 0 ? -1 : 1) * RATE_CONTROL_APART;
	double gain;

	if (g->code.len == 0 || g->tries >= RATE_CONTROL_TRIES)
		return 0;
	gain = rate_control_gain(r, g);
	if (gain * want > 0) {		/* t is between those of the two codes */
		if (fabs(gain) < fabs(want))
			return 0;
		*t = g->code.t + (g->other.t - g->code.t) *
		    rate_control_clamp(want / gain, 0.03, 0.97);
		return 1;
	}
	if ((end - g->code.t) * want >= 0)
		return 0;
	gain = len * (detmath_exp(e * (g->code.t - end)) - 1);
	*t = end;
	if (fabs(gain) > fabs(want))
		*t = g->code.t - detmath_log(1 + fmax(want / len, -0.9)) / e;
	else
		*by = gain;
	return 1;
}

/* Queue for coding again the smallest group that can change by `need' bytes, or else several
 * groups that together can. Return 0 if all together cannot change by half of `need'. */
static int
rate_control_settle(struct rate_control *r, double need)
{
	double by, t = 0, to, sum = 0;
	struct rate_control_group *g;
	size_t j, best = r->n;

	for (j = 0; j < r->k; j++) {
		g = &r->g[r->order[j]];
		by = need;
		if ((best == r->n || g->n < r->g[best].n) &&
		    rate_control_move(r, g, &to, &by) && by == need) {
			best = r->order[j];
			t = to;
		}
	}
	if (best < r->n) {
		r->g[best].tries++;
		rate_control_add(r, best, t);
		return 1;
	}
	for (j = 0; j < r->k && fabs(sum) < fabs(need); j++) {
		by = need - sum;
		if (!rate_control_move(r, &r->g[r->order[j]], &t, &by))
			continue;
		sum += by;
		rate_control_add(r, r->order[j], t);
	}
	if (fabs(sum) >= fabs(need) / 2)
		return 1;
	while (r->many > 0) {		/* too small a change: restore these groups */
		g = &r->g[r->which[--r->many]];
		g->code = g->other;
		g->other.t = HUGE_VAL;
	}
	return 0;
}

/* Queue groups for one round.  Return 0 if the size is near enough to the budget or cannot
 * be improved. */
static int
rate_control_round(struct rate_control *r)
{
	const double room = (double)r->budget - (double)r->bytes;
	double apart;
	size_t j;

	r->phase = PHASE_SETTLE;
	r->even = 0;
	if (room >= 0 && room < r->band)
		return 0;
	if (r->rounds++ < RATE_CONTROL_ROUNDS) {
		rate_control_sums(r);
		if (rate_control_settle(r, room - r->band / 2) || rate_control_pass(r))
			return 1;
	}
	if ((room >= 0 && room < fmax(RATE_CONTROL_WIDE * (double)r->budget,
	    4 * RATE_CONTROL_PAD)) || r->whole >= (room >= 0 ? RATE_CONTROL_FINER :
	    RATE_CONTROL_COARSER))
		return 0;
	/* code all groups again: halve the range of t, or move t by a distance that doubles */
	if ((apart = rate_control_side(r)) < HUGE_VAL && apart > 0)
		r->all = (r->over + r->within) / 2;
	else
		r->all += (room >= 0 ? -RATE_CONTROL_APART : RATE_CONTROL_APART) *
		    (1 << (r->whole < 5 ? r->whole : 5));
	r->whole++;
	for (j = 0; j < r->k; j++)
		rate_control_add(r, r->order[j], r->all);
	return r->k > 0;
}

/* ---- the whole search ---- */

int
rate_control_next(struct rate_control *r, uint64_t bytes)
{
	size_t i;

	r->bytes = bytes;
	for (; r->many > 0; r->many--, r->made++)
		r->tried += r->g[r->which[r->many - 1]].n;
	switch (r->phase) {
	case PHASE_START:		/* groups without a rate parameter come first */
		r->phase = PHASE_FIXED;
		for (i = 0; i < r->n; i++)
			if (!codec_rate(&r->g[i].plan))
				rate_control_add(r, i, 0);
		return 1;
	case PHASE_FIXED:
		rate_control_sums(r);
		rate_control_guess(r);
		if (r->k == 0 || (double)r->bytes - r->now > (double)r->budget)
			return 0;
		/* fall through */
	case PHASE_PASS:
		rate_control_sums(r);
		if (rate_control_pass(r))
			return 1;
		/* fall through */
	case PHASE_SETTLE:
		r->slack = 0;
		r->chosen = rate_control_choose(r);
		return 1;
	default:			/* rate_control_choose does not count how frames grow */
		if (r->bytes > r->budget && r->chosen > 0) {
			r->slack += 2;
			r->chosen = rate_control_choose(r);
			return 1;
		}
		return rate_control_round(r);
	}
}

/* Order the groups with a rate parameter by steps of the golden ratio, so that the first k
 * groups are spread evenly over the model for any k. */
static void
rate_control_spread(struct rate_control *r)
{
	size_t step = (size_t)((double)r->k * 0.6180339887), a, b, t, i, at = 0;
	uint32_t *in = r->which;

	for (step += step == 0; ; step++) {
		for (a = r->k, b = step; b != 0; t = a % b, a = b, b = t)
			continue;
		if (a == 1)
			break;
	}
	for (i = 0, t = 0; i < r->n; i++)
		if (codec_rate(&r->g[i].plan))
			in[t++] = (uint32_t)i;
	for (i = 0; i < r->k; i++, at = (at + step) % r->k)
		r->order[i] = in[at];
}

int
rate_control_open(struct rate_control *r, struct err *e)
{
	static const struct rate_control_code none = { .t = HUGE_VAL };
	struct rate_control_group *g;
	double sum = 0, bytes = 0;

	*r = (struct rate_control){ .g = r->g, .n = r->n, .budget = r->budget,
	    .cost = r->cost, .e = 1, .over = -HUGE_VAL, .within = HUGE_VAL };
	for (g = r->g; g < r->g + r->n; g++) {
		g->other = none;
		g->tries = 0;
		g->weight = 0;
		if (!codec_rate(&g->plan) || !(fabs(g->code.t) < RATE_CONTROL_FAR))
			g->code = none;
		if (rate_control_coded(&g->code)) {
			sum += (double)g->code.len * g->code.t;
			bytes += (double)g->code.len;
		}
		r->k += (size_t)(codec_rate(&g->plan) != 0);
	}
	if (bytes > 0)		/* such rates fitted the budget of the last shard */
		r->all = sum / bytes;
	r->band = fmax((double)r->budget * rate_control_clamp(RATE_CONTROL_BAND /
	    (double)(r->k + 1), RATE_CONTROL_LEAST, RATE_CONTROL_WIDEST), RATE_CONTROL_PAD);
	r->order = alloc_get(r->k, sizeof(*r->order), e);
	r->which = alloc_get(r->n, sizeof(*r->which), e);
	if (r->order == NULL || r->which == NULL)
		return -ERR_SYS;
	if (r->k > 0)
		rate_control_spread(r);
	return 0;
}

void
rate_control_close(struct rate_control *r)
{
	alloc_free(r->order);
	alloc_free(r->which);
}
