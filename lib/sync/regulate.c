#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "sync/regulate.h"

/*
 * The numbers of the search.  Some only end what ends by itself; the others are
 * chosen so that few codings do, which tests/bench-planner counts, and no result is
 * wrong with others.
 */
enum {
	/* twice the 8 bytes that payloads are padded to, nearer than which no
	 * budget can be met on purpose */
	REGULATE_PAD = 16,
	/* a factor doubled 40 times is beyond any step; an interval halved 12
	 * times is a 4096th of itself */
	REGULATE_ROUNDS = 40,
	REGULATE_HALVINGS = 12,
	/* groups: of fewer each one is so much of the whole that two sizes give
	 * no slope */
	REGULATE_SOME = 12,
	/* rounds: after so many that coded all groups again the slope is known;
	 * after so many that missed, sizes jump, and REGULATE_WIDE will do */
	REGULATE_WHOLE = 5,
	REGULATE_PATIENT = 3,
	REGULATE_TRIES = 8,
	/* passes: of more, each takes a share of all groups at least */
	REGULATE_PASSES = 40,
	REGULATE_SHARE = 8,
	/* times that room which is left is filled with finer codes */
	REGULATE_FILLS = 4,
	REGULATE_ENTRY = 4	/* bytes: about, of a record's entry */
};
#define REGULATE_SPAN 0.4	/* between the points of a curve */
#define REGULATE_END 0.6	/* beyond, it is a straight line */
#define REGULATE_SLOPE 0.7	/* where nothing is told */
#define REGULATE_ABOVE 6	/* measured, at a third of a bit */
/* What codes take of what was foretold counts as if this share of all had been
 * coded; and the plan is not farther off than that. */
#define REGULATE_PRIOR 0.15
#define REGULATE_FORETOLD 0.4
/* log factors: if it is to move by no more, only some groups are coded again,
 * and these stand apart from the others by no more than REGULATE_APART, or where
 * bytes respond little, which is where errors respond most, by that share of
 * e. */
#define REGULATE_NEAR 0.03
#define REGULATE_APART 0.05
#define REGULATE_APART_OF_E 0.045
#define REGULATE_JUMP 8		/* times as steep as all */
/* A log factor: a plan is not farther off, whatever codes of a few values that
 * take a byte or none may tell. */
#define REGULATE_FAR 3
/* A log factor: what was coded before and is farther off the plan is coded as if it
 * had not been, since to come from there takes more codings (six of all, measured
 * from four bits to three). */
#define REGULATE_GIVEN 0.25

enum { PHASE_FIXED, PHASE_PASS, PHASE_REST, PHASE_WALK, PHASE_LEVER,
    PHASE_TURN, PHASE_COARSE, PHASE_FILL };

static double
regulate_clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static double
regulate_apart(const struct regulate *r)
{
	return fmin(REGULATE_APART, REGULATE_APART_OF_E * r->e);
}

static double
regulate_band(const struct regulate *r)
{
	return fmax((double)r->budget * r->band, REGULATE_PAD);
}

static int
regulate_fits(const struct regulate *r)
{
	return r->bytes <= r->budget;
}

static int
regulate_done(const struct regulate *r)
{
	return regulate_fits(r) && (double)(r->budget - r->bytes) <
	    regulate_band(r);
}

static struct regulate_code *
regulate_code(const struct regulate *r, size_t j)
{
	return &r->g[r->order[j]].code;
}

/* ---- what is foretold ---- */

/* What codes take of what is foretold of single values: contexts tell the more
 * of a value the fewer bits it has (measured on gradients, with a residual and
 * without: 0.6 at a quarter of a bit, 0.9 at four). */
static double
regulate_share(double bits)
{
	return regulate_clamp(0.72 + 0.115 * detmath_log(bits), 0.45, 1);
}

struct codec_plan
regulate_knob(const struct regulate *r, size_t slot, int point)
{
	return codec_turn(&r->g[r->order[slot]].plan,
	    detmath_exp((point - 1) * REGULATE_SPAN));
}

/* How much group i is of all: bytes go about as its values do, or where it has
 * a step as what they are above it does. */
static double
regulate_size(const struct regulate_group *g, int stepped)
{
	const double arg = (double)g->plan.arg, n = g->n;

	return !stepped || !(arg > 0) ? n : n * (1e-6 + detmath_log(1 +
	    REGULATE_ABOVE * fmin(g->seen.sumsq / n / (arg * arg), 1e12)));
}

static struct regulate_shape
regulate_fit(const double bytes[REGULATE_POINTS])
{
	const double lo = detmath_log(bytes[0] / bytes[1]);
	const double hi = detmath_log(bytes[2] / bytes[1]);
	struct regulate_shape s = { 0 };

	s.b = regulate_clamp((hi - lo) / (2 * REGULATE_SPAN), -6, -0.1);
	/* falling all the way */
	s.c = regulate_clamp((hi + lo) / (2 * REGULATE_SPAN * REGULATE_SPAN),
	    0.4 * s.b / REGULATE_END, -0.4 * s.b / REGULATE_END);
	return s;
}

/* Of many groups some have told; the others take as much for their size, by that
 * of the two that these contradict less. */
static void
regulate_others(struct regulate *r)
{
	const struct regulate_sample *by = r->by;
	double off[2], per;
	size_t j;
	int k;

	for (k = 0; k < 2; k++) {
		per = r->told[1] / by[k].sum;
		off[k] = per * (per * by[k].square - 2 * by[k].product);
	}
	k = off[1] < off[0];
	for (j = r->asked; j < r->k; j++)
		r->weight[j] = regulate_size(&r->g[r->order[j]], k) *
		    r->told[1] / by[k].sum;
	r->shape[0] = regulate_fit(r->told);
}

/* Few groups are coded in the order of their bytes for a value. */
static void
regulate_sort(struct regulate *r, size_t j, double weight,
    struct regulate_shape shape)
{
	const uint32_t i = r->order[j];

	for (; j > 0 && r->weight[j - 1] * r->g[i].n <
	    weight * r->g[r->order[j - 1]].n; j--) {
		r->order[j] = r->order[j - 1];
		r->weight[j] = r->weight[j - 1];
		r->shape[j] = r->shape[j - 1];
	}
	r->order[j] = i;
	r->weight[j] = weight;
	r->shape[j] = shape;
}

void
regulate_tell(struct regulate *r, size_t slot,
    const double told[REGULATE_POINTS])
{
	const struct regulate_group *g = &r->g[r->order[slot]];
	const double n = g->n;
	double bytes[REGULATE_POINTS], w;
	int p;

	for (p = 0; p < REGULATE_POINTS; p++) {
		w = told[p] > 0 ? told[p] * regulate_share(8 * told[p] / n) :
		    told[p] < 0 ? n * detmath_exp(-REGULATE_SLOPE * (p - 1) *
		    REGULATE_SPAN) : 0;
		bytes[p] = w + (double)REGULATE_ENTRY;
		r->told[p] += bytes[p];
	}
	for (p = 0; p < 2; p++) {
		w = regulate_size(g, p);
		r->by[p].sum += w;
		r->by[p].square += w * w;
		r->by[p].product += w * bytes[1];
	}
	r->weight[slot] = bytes[1];
	if (r->k <= REGULATE_ASKED)
		regulate_sort(r, slot, bytes[1], regulate_fit(bytes));
	else if (slot + 1 == r->asked)
		regulate_others(r);
}

static struct regulate_shape *
regulate_shape(const struct regulate *r, size_t j)
{
	return &r->shape[r->k > REGULATE_ASKED ? 0 : j];
}

/* What a group of that shape takes at t, over what it takes at 0. */
static double
regulate_at(const struct regulate_shape *s, double t)
{
	const double at = regulate_clamp(t, -REGULATE_END, REGULATE_END);

	return detmath_exp(at * (s->b + s->c * at) +
	    (t - at) * (s->b + 2 * s->c * at));
}

/* ---- where all of it stands ---- */

static double
regulate_sum(const struct regulate *r)
{
	double sum = 0;
	size_t j;

	for (j = 0; j < r->k; j++)
		sum += (double)regulate_code(r, j)->len;
	return sum;
}

/* The bytes that the bodies with a knob should take, so that the whole fits,
 * of which they take `now'. */
static double
regulate_aim(const struct regulate *r, double now)
{
	return fmax((double)r->budget - regulate_band(r) / 2 -
	    ((double)r->bytes - now), 1);
}

/* The mean log factor, weighted by bytes; of groups that take none, the least. */
static double
regulate_mean(const struct regulate *r)
{
	double sum = 0, bytes = 0, least = HUGE_VAL;
	size_t j;

	for (j = 0; j < r->k; j++) {
		const struct regulate_code *c = regulate_code(r, j);

		sum += (double)c->len * c->t;
		bytes += (double)c->len;
		least = fmin(least, c->t);
	}
	return bytes > 0 ? sum / bytes : least;
}

/* A group has to be coded: it was not yet, or stands apart from the others. */
static int
regulate_pending(const struct regulate *r, size_t j)
{
	return fabs(regulate_code(r, j)->t - r->all) > regulate_apart(r);
}

/* Sums up, in bytes at 0, what was coded and what was not. */
static void
regulate_sums(struct regulate *r)
{
	const struct regulate_code *c;
	struct regulate_shape *s = NULL;
	double t = HUGE_VAL, base, unit = 1;
	size_t j;

	for (j = 0; j < r->shapes; j++)
		r->shape[j].base = r->shape[j].moves = r->shape[j].open =
		    r->shape[j].done = 0;
	for (r->stay = 0, j = 0; j < r->k; j++) {
		c = regulate_code(r, j);
		if (!(c->t < HUGE_VAL)) {
			regulate_shape(r, j)->open += r->weight[j];
			continue;
		}
		if (c->t != t || s != regulate_shape(r, j)) {
			s = regulate_shape(r, j);
			unit = regulate_at(s, t = c->t);
		}
		base = (double)c->len / unit;
		s->done += r->weight[j];
		s->base += base;
		if (regulate_pending(r, j))
			s->moves += base;
		else
			r->stay += (double)c->len;
	}
}

/* Bytes at t of all; or where those stay that are not pending. */
static double
regulate_foresee(const struct regulate *r, double t, int stay)
{
	const struct regulate_shape *s;
	double sum = stay ? r->stay : 0;

	for (s = r->shape; s < r->shape + r->shapes; s++)
		sum += regulate_at(s, t) * ((stay ? s->moves : s->base) +
		    r->gain * s->open);
	return sum;
}

/* The t, near this one, at which they should take what is aimed at; *e: how
 * bytes respond there. */
static double
regulate_solve(const struct regulate *r, double t, int stay, double *e)
{
	const double aim = detmath_log(regulate_aim(r, regulate_sum(r)));
	const double by = 0.02;
	double now, slope, move = 1;
	int i;

	for (i = 0; i < REGULATE_TRIES && fabs(move) > 1e-3; i++) {
		now = detmath_log(fmax(regulate_foresee(r, t, stay), 1));
		slope = (now - detmath_log(fmax(regulate_foresee(r, t + by, stay),
		    1))) / by;
		*e = regulate_clamp(slope, 0.1, 8);
		move = regulate_clamp((now - aim) / *e, -0.7, 0.7);
		t += move;
	}
	return t;
}

/* What codes take of what was foretold: of few groups the first ones say little
 * of the others. */
static void
regulate_gain(struct regulate *r)
{
	const struct regulate_shape *s;
	double len = 0, told = 0, all = 0, one;

	for (s = r->shape; s < r->shape + r->shapes; s++) {
		one = regulate_at(s, r->all);
		len += one * s->base;
		told += one * s->done;
		all += one * (s->done + s->open);
	}
	all *= r->k > REGULATE_ASKED && r->coded > 0 ? 0 : REGULATE_PRIOR;
	r->gain = (len + all) / (told + all);
}

/* ---- the pass ---- */

static void
regulate_begin(struct regulate *r, int phase, double t)
{
	r->phase = phase;
	r->t = t;
	r->f = detmath_exp(t);
	r->many = 0;
}

static void
regulate_add(struct regulate *r, size_t i)
{
	r->was[r->many] = r->g[i].code;
	r->which[r->many++] = (uint32_t)i;
}

/* What coded groups tell: how far all have to be turned; how many are to be
 * coded. */
static size_t
regulate_heed(struct regulate *r)
{
	size_t j, left = 0;
	double far;

	regulate_sums(r);
	regulate_gain(r);
	far = r->coded == 0 ? REGULATE_FORETOLD : REGULATE_FAR;
	r->all = regulate_clamp(regulate_solve(r, r->all, 0, &r->e), -far, far);
	for (j = 0; j < r->k; j++)
		left += (size_t)regulate_pending(r, j);
	regulate_sums(r);
	return left;
}

/* Group j is to be coded now: one that was not yet, as long as there is one. */
static int
regulate_wants(const struct regulate *r, size_t j)
{
	return r->coded < r->k ? !(regulate_code(r, j)->t < HUGE_VAL) :
	    regulate_pending(r, j);
}

/* The next ones, so that all that are pending should bring the shard to its aim:
 * a third of few groups' bytes, an eighth or a quarter of many groups. */
static int
regulate_pass(struct regulate *r)
{
	const int few = r->k <= REGULATE_ASKED;
	double all = 0, part = 0, e, t;
	size_t j, some;

	if (regulate_heed(r) == 0 || r->made > r->n + 3 * r->k)
		return 0;
	t = regulate_solve(r, r->all, 1, &e);
	e = regulate_apart(r) / 2;
	regulate_begin(r, PHASE_PASS, regulate_clamp(t, r->all - e, r->all + e));
	for (j = 0; j < r->k; j++)
		if (regulate_wants(r, j))
			all += r->weight[j];
	all /= few ? 3 : r->coded > 0 ? 4 : 8;
	some = r->passes++ < REGULATE_PASSES ? 0 : r->k / REGULATE_SHARE;
	if (!few && some < REGULATE_SOME)
		some = REGULATE_SOME;
	for (j = 0; j < r->k && (part < all || r->many < some); j++)
		if (regulate_wants(r, j)) {
			part += r->weight[j];
			regulate_add(r, r->order[j]);
		}
	return 1;
}

/* ---- the rest ---- */

/* All at t. */
static int
regulate_all(struct regulate *r, int phase, double t)
{
	size_t j;

	regulate_begin(r, phase, t);
	for (j = 0; j < r->k; j++)
		if (regulate_code(r, j)->t != t)
			regulate_add(r, r->order[j]);
	return 1;
}

/* By how much the factor of all has to change.  Where it is known what all take
 * on both sides of the budget, it lies between, and nearer to where the bytes
 * are nearer. */
static double
regulate_step(const struct regulate *r, double mean)
{
	const double bytes = regulate_sum(r);
	const double aim = detmath_log(regulate_aim(r, bytes));
	double t;

	if (r->k < REGULATE_SOME || !r->over.known || !r->within.known ||
	    r->over.t >= r->within.t ||
	    r->over.bytes <= aim || r->within.bytes >= aim)
		return regulate_clamp((detmath_log(fmax(bytes, 1)) - aim) / r->e,
		    -1.4, 1.4);
	t = regulate_clamp((r->over.bytes - aim) / (r->over.bytes -
	    r->within.bytes), 0.1, 0.9);
	return r->over.t + t * (r->within.t - r->over.t) - mean;
}

/* The bytes that are missing, or < 0 too much. */
static double
regulate_need(const struct regulate *r)
{
	return (double)r->budget - regulate_band(r) / 2 - (double)r->bytes;
}

/* Turns the group of the fewest values that can make up for what is missing or
 * too much, and a half of that more, without standing apart from the others; 0:
 * there is none. */
static int
regulate_lever(struct regulate *r, double mean)
{
	const struct regulate_code *c;
	size_t j, i, best = r->n;
	double to, t = 0;

	for (j = 0; j < r->k; j++) {
		i = r->order[j];
		c = &r->g[i].code;
		if (c->len == 0 || (best < r->n && r->g[i].n >= r->g[best].n))
			continue;
		to = c->t - 1.5 * regulate_need(r) / (r->e * (double)c->len);
		if (fabs(to - mean) > regulate_apart(r))
			continue;
		best = i;
		t = to;
	}
	if (best == r->n)
		return 0;
	regulate_begin(r, PHASE_LEVER, t);
	regulate_add(r, best);
	if (regulate_fits(r))
		r->least = r->bytes;
	return 1;
}

/* As many as are expected to do go as far as they may; of few groups those that
 * alone would go too far only if there are no others. */
static int
regulate_walk(struct regulate *r, double mean, double by)
{
	const double need = regulate_need(r);
	double gain, sum = 0, small = HUGE_VAL;
	size_t i, j, best = r->n;

	by *= r->reach * regulate_clamp(regulate_apart(r) / fabs(by), 1.3, 16);
	regulate_begin(r, PHASE_WALK, mean + by);
	for (j = 0; j < r->k && fabs(sum) < fabs(need); j++) {
		i = r->order[j];
		gain = (double)r->g[i].code.len * (detmath_exp(r->e *
		    (r->g[i].code.t - r->t)) - 1);
		if (r->g[i].code.len == 0 ? need < 0 : gain * need <= 0)
			continue;
		if (r->k < REGULATE_ASKED && fabs(sum + gain) > fabs(need)) {
			best = fabs(gain) < small ? i : best;
			small = fmin(small, fabs(gain));
			continue;
		}
		sum += gain;
		regulate_add(r, i);
	}
	if (r->many == 0 && best < r->n)
		regulate_add(r, best);
	return r->many > 0;
}

/* One round: 0 when it is good enough, or gets no better. */
static int
regulate_rest(struct regulate *r)
{
	const double mean = regulate_mean(r);
	double by;

	r->stuck = r->round > 0 && regulate_fits(r) && r->last > 0 &&
	    r->bytes <= r->last ? r->stuck + 1 : 0;
	r->reach = r->stuck > 0 ? 2 * r->reach : 1;
	if (regulate_done(r) || r->stuck >= 2 || r->round >= REGULATE_ROUNDS)
		return 0;
	r->last = regulate_fits(r) ? r->bytes : 0;
	if (r->round++ == REGULATE_PATIENT)
		r->band = REGULATE_WIDE;
	by = regulate_step(r, mean);
	if (fabs(by) < 1e-3)
		by = regulate_fits(r) ? -1e-3 : 1e-3;
	if (r->whole < REGULATE_WHOLE && fabs(by) > REGULATE_NEAR) {
		r->whole++;
		return regulate_all(r, PHASE_REST, mean + by);
	}
	return regulate_lever(r, mean) || regulate_walk(r, mean, by);
}

/* By how many bytes more, at most, a group is as it was: one that is not sent has
 * no entry, which is two bytes at least. */
static double
regulate_more(const struct regulate_code *was, const struct regulate_code *now)
{
	const double by = (double)was->len - (double)now->len;

	return was->len == 0 && now->len != 0 ? by - 2 :
	    was->len != 0 && now->len == 0 ? by + (double)REGULATE_ENTRY : by;
}

/* Of what was coded, what is too much is as it was; the search goes on there. */
static int
regulate_back(struct regulate *r, int phase)
{
	double now = (double)r->bytes, by;
	const double budget = (double)r->budget;
	size_t b;
	int any = 0;

	for (b = r->many; b-- > 0;) {
		struct regulate_code *c = &r->g[r->which[b]].code;

		by = regulate_more(&r->was[b], c);
		if (now > budget ? by >= 0 : by <= 0 ||
		    now + by + (double)REGULATE_PAD > budget)
			continue;
		now += by;
		*c = r->was[b];
		any = 1;
	}
	r->many = 0;
	r->phase = phase;
	return any;
}

/* ---- one group, between two of its codes ---- */

/* Halves what is between, where lengths do not tell better; 0 when nothing is
 * left there. */
static int
regulate_between(struct regulate *r)
{
	const size_t i = r->which[0];
	const double want = (double)r->budget - (double)r->least -
	    regulate_band(r) / 2;
	double part = 0.5;

	/* a jump, in which there is nothing to be found */
	if (r->turns >= REGULATE_HALVINGS || (double)r->much.len -
	    (double)r->fits.len > 2 * REGULATE_PAD + REGULATE_JUMP * r->e *
	    fabs(r->much.t - r->fits.t) * (double)r->fits.len)
		return 0;
	/* lengths tell where, but that may be slow */
	if (r->turns++ % 3 < 2 && r->much.len > r->fits.len)
		part = regulate_clamp(want / ((double)r->much.len -
		    (double)r->fits.len), 0.05, 0.95);
	regulate_begin(r, PHASE_TURN, r->fits.t + part *
	    (r->much.t - r->fits.t));
	regulate_add(r, i);
	return 1;
}

/* The group in which is coded anew: 1 when it is to be again, or the size is to
 * be found; 0 otherwise. */
static int
regulate_turn(struct regulate *r)
{
	struct regulate_code *c = &r->g[r->which[0]].code;

	if (r->phase == PHASE_LEVER) {
		r->turns = 0;
		r->phase = PHASE_REST;
		if (regulate_done(r) || (r->least > 0) == regulate_fits(r)) {
			r->least = 0;
			return 0;		/* not crossed yet */
		}
		r->fits = regulate_fits(r) ? *c : r->was[0];
		r->much = regulate_fits(r) ? r->was[0] : *c;
		if (regulate_fits(r))
			r->least = r->bytes;
	} else if (!regulate_fits(r)) {
		r->much = *c;
	} else if (c->len > r->fits.len) {
		r->fits = *c;
		r->least = r->bytes;
	} else {
		r->fits.t = c->t;	/* no finer code is longer here */
	}
	if (!regulate_done(r) && regulate_between(r))
		return 1;
	r->phase = PHASE_REST;
	r->many = 0;
	r->least = 0;
	if (regulate_done(r))
		return 0;
	*c = r->fits;
	return 1;
}

/* ---- all of it ---- */

/* A straight line from now on, if t has moved by enough to tell. */
static void
regulate_straight(struct regulate_shape *s, double by, double e)
{
	if (fabs(by) < REGULATE_NEAR || !(e > 0))
		return;
	s->b = -regulate_clamp(e, 0.05, 6);
	s->c = 0;
}

/* Groups that were coded before tell how they respond, of few each itself. */
static void
regulate_learn(struct regulate *r)
{
	const double all = regulate_sum(r);
	const struct regulate_code *now, *was;
	double turned = 0, gained = 0, e;
	size_t b, j;

	for (b = 0; b < r->many; b++) {
		now = &r->g[r->which[b]].code;
		was = &r->was[b];
		if (!(was->t < HUGE_VAL) || was->t == now->t)
			continue;
		turned += ((double)was->len + (double)now->len) / 2 *
		    (now->t - was->t);
		gained += (double)was->len - (double)now->len;
		e = detmath_log(fmax((double)was->len, 1) /
		    fmax((double)now->len, 1)) / (now->t - was->t);
		for (j = 0; j < r->shapes && r->shapes > 1; j++)
			if (r->order[j] == r->which[b])
				regulate_straight(&r->shape[j], now->t - was->t,
				    e);
	}
	if (!(fabs(turned) > 1e-4 * all) || !(gained / turned > 0))
		return;
	r->e = regulate_clamp(gained / turned, 0.1, 6);
	if (r->shapes == 1)
		regulate_straight(&r->shape[0], 8 * turned / all, r->e);
}

/* What was to be coded is, and the size is known. */
static void
regulate_take(struct regulate *r)
{
	struct regulate_end *end = regulate_fits(r) ? &r->within : &r->over;
	size_t b;

	for (b = 0; b < r->many; b++) {
		struct regulate_group *g = &r->g[r->which[b]];

		r->made++;
		r->tried += g->n;
		r->coded += codec_knob(&g->plan) && !(r->was[b].t < HUGE_VAL);
		g->code.t = r->t;
	}
	if (r->phase != PHASE_TURN && r->many > 0)
		regulate_learn(r);
	if (r->phase == PHASE_REST && r->many > 0)
		*end = (struct regulate_end){ r->t, detmath_log(fmax(
		    regulate_sum(r), 1)), 1 };
}

/* More and more coarsely, if nothing else helps. */
static int
regulate_coarse(struct regulate *r)
{
	return r->coarse++ < REGULATE_ROUNDS &&
	    regulate_all(r, PHASE_COARSE, regulate_mean(r) + 0.7 * r->coarse);
}

/* Groups of a few values take a byte more or none: where no factor fills the
 * budget, as many as find room in it are coded more finely. */
static int
regulate_fill(struct regulate *r)
{
	const double room = (double)(r->budget - r->bytes);

	return r->k > 0 && r->fills++ < REGULATE_FILLS && room >
	    fmax(2 * REGULATE_WIDE * (double)r->budget, 2 * REGULATE_PAD) &&
	    regulate_all(r, PHASE_FILL, regulate_mean(r) - 0.1 * (1 << r->fills));
}

int
regulate_next(struct regulate *r, uint64_t bytes)
{
	size_t i;

	r->bytes = bytes;
	if (r->phase < 0) {		/* what has no knob comes first */
		regulate_begin(r, PHASE_FIXED, 0);
		for (i = 0; i < r->n; i++)
			if (!codec_knob(&r->g[i].plan))
				regulate_add(r, i);
		return 1;
	}
	regulate_take(r);
	if (r->phase == PHASE_FIXED && (r->k == 0 || (double)r->bytes -
	    regulate_sum(r) > (double)r->budget))
		return 0;
	if (r->phase <= PHASE_PASS && regulate_pass(r))
		return 1;
	if (r->phase == PHASE_WALK && regulate_back(r, PHASE_REST))
		return 1;
	if ((r->phase == PHASE_LEVER || r->phase == PHASE_TURN) &&
	    regulate_turn(r))
		return 1;
	if ((r->phase == PHASE_FILL || (r->phase == PHASE_COARSE &&
	    regulate_fits(r))) && regulate_back(r, PHASE_FILL))
		return 1;
	r->many = 0;
	if (r->phase < PHASE_COARSE && regulate_rest(r))
		return 1;
	return regulate_fits(r) ? regulate_fill(r) : regulate_coarse(r);
}

/* Puts the groups that have a knob in an order in which the first few, however
 * many, are spread evenly: it steps by the golden ratio. */
static void
regulate_spread(struct regulate *r)
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
		if (codec_knob(&r->g[i].plan))
			in[t++] = (uint32_t)i;
	for (i = 0; i < r->k; i++, at = (at + step) % r->k)
		r->order[i] = in[at];
}

int
regulate_open(struct regulate *r, struct err *e)
{
	size_t i;
	int knob;

	*r = (struct regulate){ .g = r->g, .n = r->n, .budget = r->budget, .given = r->given,
	    .phase = -1, .e = REGULATE_SLOPE, .gain = 1,
	    .band = REGULATE_BAND, .reach = 1 };
	for (i = 0; i < r->n; i++) {
		knob = codec_knob(&r->g[i].plan) != 0;
		if (!r->given || !knob || !(fabs(r->g[i].code.t) <
		    REGULATE_GIVEN))
			r->g[i].code = (struct regulate_code){ HUGE_VAL, 0, 0, 0 };
		r->k += (size_t)knob;
		r->coded += r->g[i].code.t < HUGE_VAL;
	}
	r->asked = r->k < REGULATE_ASKED ? r->k : REGULATE_ASKED;
	r->order = alloc_get(r->k, sizeof(*r->order), e);
	r->which = alloc_get(r->n, sizeof(*r->which), e);
	r->weight = alloc_get(r->k, sizeof(*r->weight), e);
	r->shapes = r->k > REGULATE_ASKED ? 1 : r->k;
	r->shape = alloc_get(r->shapes, sizeof(*r->shape), e);
	r->was = alloc_get(r->n, sizeof(*r->was), e);
	if (r->order == NULL || r->which == NULL || r->was == NULL ||
	    r->weight == NULL || r->shape == NULL)
		return -ERR_SYS;
	if (r->k > 0)
		regulate_spread(r);
	return 0;
}

void
regulate_close(struct regulate *r)
{
	alloc_free(r->order);
	alloc_free(r->which);
	alloc_free(r->was);
	alloc_free(r->weight);
	alloc_free(r->shape);
}
