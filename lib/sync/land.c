#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/land.h"
#include "sync/sweep.h"

/*
 * The numbers of the search.  Two are the format's; those of the second kind only
 * end what ends by itself; the others are chosen so that few codings do, which
 * tests/bench-plan counts, and no result is wrong with others.
 */
enum {
	/* ace-stream(5): a frame's header, by which the size jumps where one
	 * more frame begins; and twice the 8 that payloads are padded to,
	 * nearer than which no budget can be met on purpose */
	LAND_FRAME = 64,
	LAND_PAD = 16,		/* bytes */

	/* a factor doubled 40 times is beyond any step; an interval halved 12
	 * times is a 4096th of itself */
	LAND_ROUNDS = 40,
	LAND_HALVINGS = 12,

	/* groups: with fewer the last bytes are sought in the small ones, since
	 * one large one may be more than what is missing; and with fewer still
	 * each one is so much of the whole that two sizes give no slope */
	LAND_FEW = 64,
	LAND_SOME = 12,

	/* rounds: after so many that coded all groups again the slope is known,
	 * and some groups are enough; after so many that missed, sizes jump by
	 * more than LAND_WINDOW, and LAND_WIDE will do */
	LAND_WHOLE = 5,
	LAND_PATIENT = 3
};
/* log f: if it is to move by no more, only some groups are coded again, and
 * these stand apart from the others by no more than LAND_APART, or where bytes
 * respond little, which is where errors respond most, by that share of e. */
#define LAND_NEAR 0.03
#define LAND_APART 0.05
#define LAND_APART_OF_E 0.045

double
land_apart(const struct land *l)
{
	return fmin(LAND_APART, LAND_APART_OF_E * l->e);
}

static uint64_t
land_window(const struct land *l)
{
	uint64_t w = (uint64_t)((double)l->budget * l->window);

	return w > LAND_PAD ? w : LAND_PAD;
}

static int
land_fits(const struct land *l)
{
	return l->bytes <= l->budget;
}

static int
land_done(const struct land *l)
{
	return land_fits(l) && l->budget - l->bytes < land_window(l);
}

/* Puts the groups that have a knob in an order in which the first few, however
 * many, are spread evenly: it steps by the golden ratio. */
static void
land_spread(struct land *l)
{
	size_t step = (size_t)((double)l->k * 0.6180339887), a, b, t, i, at = 0;
	uint32_t *in = l->order + l->k;

	for (step += step == 0; ; step++) {
		for (a = l->k, b = step; b != 0; t = a % b, a = b, b = t)
			continue;
		if (a == 1)
			break;
	}
	for (i = 0, t = 0; i < l->n; i++)
		if (l->knob[i])
			in[t++] = (uint32_t)i;
	for (i = 0; i < l->k; i++, at = (at + step) % l->k)
		l->order[i] = in[at];
}

/* The bytes of the first q bodies of the order. */
double
land_bytes(const struct land *l, size_t q)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < q; i++)
		sum += (double)l->code[l->order[i]].len;
	return sum;
}

/* The bytes that the bodies with a knob should take, so that the whole fits,
 * of which they take `now'. */
double
land_aim(const struct land *l, double now)
{
	double aim = (double)l->budget - (double)land_window(l) / 2 -
	    ((double)l->bytes - now);

	return aim > 1 ? aim : 1;
}

/* The mean of log f, weighted by bytes. */
static double
land_mean(const struct land *l)
{
	double sum = 0, bytes = 0;
	size_t i;

	for (i = 0; i < l->k; i++) {
		const struct land_code *c = &l->code[l->order[i]];

		sum += (double)c->len * detmath_log(c->f);
		bytes += (double)c->len;
	}
	return bytes > 0 ? sum / bytes : 0;
}

/* By how much log f has to change for `now' bytes to become the bytes aimed
 * at, within what can be trusted of the measured slope.  all: how many of the
 * bodies' bytes are in l->bytes. */
static double
land_move(const struct land *l, double now, double all)
{
	double v = detmath_log(fmax(now, 1) / land_aim(l, all)) / l->e;

	return v < -1.4 ? -1.4 : v > 1.4 ? 1.4 : v;
}

/* Notes, after one more group was coded again, how its bytes respond to the
 * factor. */
static void
land_learn(struct land *l, const struct land_code *was,
    const struct land_code *now)
{
	double mean = ((double)was->len + (double)now->len) / 2;

	if (!(was->f > 0) || was->f == now->f)
		return;
	l->turned += mean * detmath_log(now->f / was->f);
	l->gained += (double)was->len - (double)now->len;
}

/* Uses what was learnt from now on, if it was enough to be reliable. */
static void
land_believe(struct land *l)
{
	double e = l->gained / l->turned;

	if (fabs(l->turned) > 1e-4 * land_bytes(l, l->k) && e > 0)
		l->e = e < 0.1 ? 0.1 : e > 6 ? 6 : e;
	l->turned = l->gained = 0;
}

/* Group i was coded: c. */
static void
land_made(struct land *l, size_t i, const struct land_code *c)
{
	const struct land_code was = l->code[i];

	l->made++;
	l->tried += l->values[i];
	l->code[i] = *c;
	land_learn(l, &was, c);
}

static int
land_make(struct land *l, size_t i, double f, struct err *e)
{
	struct land_code c = { f, 0, 0, 0 };
	int r = l->make(l->arg, i, f, &c, e);

	if (r == 0)
		land_made(l, i, &c);
	return r;
}

/* The same for k groups, which may be coded at the same time. */
int
land_make_many(struct land *l, const uint32_t *which, size_t k, double f,
    struct err *e)
{
	struct land_code c[LAND_AT_ONCE];
	size_t i;
	int r = 0;

	for (i = 0; l->many == NULL && i < k && r == 0; i++)
		r = land_make(l, which[i], f, e);
	if (l->many == NULL)
		return r;
	for (i = 0; i < k; i++)
		c[i] = (struct land_code){ f, 0, 0, 0 };
	r = l->many(l->arg, which, k, f, c, e);
	for (i = 0; i < k && r == 0; i++)
		land_made(l, which[i], &c[i]);
	return r;
}

/* All groups are coded at log f now. */
static void
land_know(struct land *l, double f)
{
	struct land_end *end = land_fits(l) ? &l->within : &l->over;

	*end = (struct land_end){ f, detmath_log(fmax(land_bytes(l, l->k), 1)),
	    1 };
}

/* By how much log f, which is at `mean', has to change. Where it is known what
 * all take on both sides of the budget, it lies between, and nearer to where the
 * bytes are nearer: how they respond somewhere else does not matter. */
static double
land_step(const struct land *l, double mean)
{
	const double bytes = land_bytes(l, l->k);
	const double aim = detmath_log(land_aim(l, bytes));
	double t;

	if (l->k < LAND_SOME || !l->over.known || !l->within.known ||
	    l->over.f >= l->within.f ||
	    l->over.bytes <= aim || l->within.bytes >= aim)
		return land_move(l, bytes, bytes);
	t = (l->over.bytes - aim) / (l->over.bytes - l->within.bytes);
	t = t < 0.1 ? 0.1 : t > 0.9 ? 0.9 : t;
	return l->over.f + t * (l->within.f - l->over.f) - mean;
}

static int
land_all(struct land *l, double f, struct err *e)
{
	uint32_t which[LAND_AT_ONCE];
	size_t i, k = 0;
	int r = 0;

	for (i = 0; i < l->n && r == 0; i++) {
		if (l->knob[i] && !(l->code[i].f == f))
			which[k++] = (uint32_t)i;
		if (k < LAND_AT_ONCE && i + 1 < l->n)
			continue;
		r = land_make_many(l, which, k, f, e);
		k = 0;
	}
	l->bytes = l->size(l->arg, l);
	land_believe(l);
	land_know(l, detmath_log(f));
	return r;
}

/* ---- the last bytes ---- */

/* A factor between those of two codes of a group, at which it should take the
 * bytes that are left. */
static double
land_between(const struct land *l, const struct land_code *fits,
    const struct land_code *over)
{
	double want = (double)(l->budget - l->bytes) -
	    (double)land_window(l) / 2;
	double part = want / ((double)over->len - (double)fits->len);

	part = part > 0.05 ? part < 0.95 ? part : 0.95 : 0.05;
	return fits->f * detmath_exp(part * detmath_log(over->f / fits->f));
}

/* Of group i two codes are known, one that fits and one that does not:
 * searches for the finest one between them that fits. */
static int
land_halve(struct land *l, size_t i, struct land_code fits,
    struct land_code over, struct err *e)
{
	struct land_code mid;
	int h, r = 0;

	l->code[i] = fits;
	l->bytes = l->size(l->arg, l);
	for (h = 0; h < LAND_HALVINGS && r == 0 && !land_done(l); h++) {
		/* lengths tell where, but that may be slow */
		if ((r = land_make(l, i, h % 3 < 2 && over.len > fits.len ?
		    land_between(l, &fits, &over) : sqrt(fits.f * over.f),
		    e)) < 0)
			break;
		l->bytes = l->size(l->arg, l);
		mid = l->code[i];
		if (land_fits(l) && mid.len > fits.len) {
			fits = mid;
			continue;
		}
		if (land_fits(l))
			fits.f = mid.f;	/* no finer code is longer here */
		else
			over = mid;
		l->code[i] = fits;
		l->bytes = l->size(l->arg, l);
	}
	return r;
}

enum land_turned { LAND_ON, LAND_OVER, LAND_DONE };

/* Codes group i at f; where that crosses the budget, the finest that fits is
 * searched for.  LAND_ON: not crossed yet.  *bytes: the size, about; exact where
 * it may matter. */
static int
land_turn(struct land *l, size_t i, double f, double *bytes, struct err *e)
{
	const int fits = land_fits(l);
	const struct land_code was = l->code[i];
	double off;
	int r = land_make(l, i, f, e);

	if (r < 0)
		return r;
	*bytes += (double)l->code[i].len - (double)was.len;
	off = fits ? (double)l->budget - *bytes : *bytes - (double)l->budget;
	if (off > 4.0 * LAND_FRAME + (double)land_window(l) +
	    (double)(l->since++))
		return LAND_ON;
	l->since = 0;
	l->bytes = l->size(l->arg, l);
	*bytes = (double)l->bytes;
	if (land_done(l))
		return LAND_DONE;
	if (land_fits(l) == fits)
		return LAND_ON;
	r = fits ? land_halve(l, i, was, l->code[i], e) :
	    land_halve(l, i, l->code[i], was, e);
	*bytes = (double)l->bytes;
	if (r < 0 || land_done(l))
		return r < 0 ? r : LAND_DONE;
	/* fits now, and fills up next time */
	return fits ? LAND_ON : LAND_OVER;
}

/* Codes group by group at f until the budget is crossed.  Of few groups the
 * largest come first, and those that would cross it wait for smaller ones, so
 * that the last bytes are searched for in a small one. */
static int
land_walk(struct land *l, double f, struct err *e)
{
	double bytes = (double)l->bytes, gain, off;
	size_t i, k, wait = l->n;
	int r = LAND_ON;

	l->since = 0;
	for (k = 0; k < l->k && r == LAND_ON; k++) {
		i = l->order[k];
		if (l->code[i].f == f)
			continue;
		gain = fabs((double)l->code[i].len *
		    (1 - detmath_exp(l->e * detmath_log(l->code[i].f / f))));
		off = fabs((double)l->budget - bytes);
		if (l->k < LAND_FEW && gain > off)
			wait = i;
		else
			r = land_turn(l, i, f, &bytes, e);
	}
	l->bytes = l->size(l->arg, l);
	bytes = (double)l->bytes;
	if (r == LAND_ON && wait < l->n && !land_done(l))
		r = land_turn(l, wait, f, &bytes, e);
	l->bytes = l->size(l->arg, l);
	return r < 0 ? r : land_done(l);
}

/* ---- all of it ---- */

/* Those with the longest bodies come first. */
static void
land_longest(struct land *l)
{
	const struct land_code *c = l->code;
	size_t i, j;
	uint32_t t;

	for (i = 1; i < l->k; i++)
		for (j = i; j > 0 && c[l->order[j]].len >
		    c[l->order[j - 1]].len; j--) {
			t = l->order[j];
			l->order[j] = l->order[j - 1];
			l->order[j - 1] = t;
		}
}

/* How far log f of group i has to move for its bytes alone to make up for what
 * is missing or too much, and a half of that more. */
static double
land_pull(const struct land *l, size_t i)
{
	return 1.5 * ((double)l->bytes - (double)l->budget +
	    (double)land_window(l) / 2) / (l->e * (double)l->code[i].len);
}

/* The group of the fewest values that can do so without standing apart from the
 * others, which are at `mean'; n: none can. */
static size_t
land_lever(const struct land *l, double mean)
{
	size_t i, j, best = l->n;
	double to;

	for (j = 0; j < l->k; j++) {
		i = l->order[j];
		if (l->code[i].len == 0 || (best < l->n &&
		    l->values[i] >= l->values[best]))
			continue;
		to = detmath_log(l->code[i].f) + land_pull(l, i) - mean;
		if (fabs(to) <= land_apart(l))
			best = i;
	}
	return best;
}

/* Codes all groups again while the size is far off, and otherwise one, or as few
 * of them as may be turned without standing apart from the others; 1 when it is
 * within the budget. */
static int
land_round(struct land *l, int whole, struct err *e)
{
	double mean = land_mean(l), by = land_step(l, mean), more;
	double bytes = (double)l->bytes;
	size_t i;
	int r;

	if (fabs(by) < 1e-3)
		by = land_fits(l) ? -1e-3 : 1e-3;
	if (whole && fabs(by) > LAND_NEAR) {
		r = land_all(l, detmath_exp(mean + by), e);
		return r < 0 ? r : land_done(l);
	}
	if ((i = land_lever(l, mean)) < l->n) {
		r = land_turn(l, i, l->code[i].f * detmath_exp(land_pull(l, i)),
		    &bytes, e);
		l->bytes = l->size(l->arg, l);
		land_believe(l);
		return r < 0 ? r : land_done(l);
	}
	if (l->k < LAND_FEW)
		land_longest(l);
	more = land_apart(l) / fabs(by);
	by *= more < 1.3 ? 1.3 : more > 16 ? 16 : more;
	r = land_walk(l, detmath_exp(mean + by), e);
	land_believe(l);
	return r;
}

/* Codes more and more coarsely; 1 when that does not help. */
static int
land_coarsen(struct land *l, double f, struct err *e)
{
	int i, r = 0;

	for (i = 0; i < LAND_ROUNDS && r == 0 && !land_fits(l); i++)
		r = land_all(l, f *= 2, e);
	return r < 0 ? r : !land_fits(l);
}

static int
land_search(struct land *l, struct err *e)
{
	uint64_t was;
	int r, i, stuck = 0;

	land_spread(l);
	if ((r = sweep_run(l, e)) < 0)
		return r;
	r = land_done(l);
	for (i = 0; i < LAND_ROUNDS && r == 0 && stuck < 2 && !land_done(l);
	    i++) {
		was = land_fits(l) ? l->bytes : 0;
		if (i == LAND_PATIENT)
			l->window = LAND_WIDE;
		r = land_round(l, i < LAND_WHOLE, e);
		/* it fits, and does not get any closer to the budget */
		stuck = was > 0 && land_fits(l) && l->bytes <= was ?
		    stuck + 1 : 0;
	}
	return r < 0 ? r : land_coarsen(l, detmath_exp(land_mean(l)), e);
}

int
land_run(struct land *l, struct err *e)
{
	size_t i;
	int r = 0;

	l->k = l->made = l->tried = 0;
	l->e = 0.7;
	l->window = LAND_WINDOW;
	l->turned = l->gained = 0;
	l->over.known = l->within.known = 0;
	for (i = 0; i < l->n && r == 0; i++) {
		l->code[i] = (struct land_code){ 0, 0, 0, 0 };
		if (!l->knob[i])
			r = land_make(l, i, 1, e);
		l->k += l->knob[i] != 0;
	}
	if (r < 0)
		return r;
	l->bytes = l->size(l->arg, l);
	if (l->k == 0 || !land_fits(l))
		return !land_fits(l);
	if ((l->order = alloc_get(2 * l->k, sizeof(*l->order), e)) == NULL)
		return -ERR_SYS;
	r = land_search(l, e);
	alloc_free(l->order);
	l->order = NULL;
	return r;
}
