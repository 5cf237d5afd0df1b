#include <math.h>

#include "base/alloc.h"
#include "base/elem.h"
#include "base/err.h"
#include "sync/land.h"

enum {
	LAND_MANY = 64,		/* groups: then an eighth is coded first */
	LAND_AT_ONCE = 256,	/* groups that are handed out together */
	LAND_WHOLE = 5,		/* times that all groups are coded again */
	LAND_PATIENT = 3,	/* rounds, then the window is wider */
	LAND_ROUNDS = 40,
	LAND_HALVINGS = 12,
	LAND_PAD = 16,		/* bytes: no budget is met better */
	LAND_FRAME = 64		/* the size's jumps, as frames are padded */
};
#define LAND_PROBE 0.09		/* log f, about an eighth of an octave */
/* log f: if it is to move by no more, only some groups are coded again. */
#define LAND_NEAR 0.007
#define LAND_NEAR_MANY 0.015

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
static double
land_bytes(const struct land *l, size_t q)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < q; i++)
		sum += (double)l->code[l->order[i]].len;
	return sum;
}

/* The bytes that the bodies with a knob should take, so that the whole
 * fits. */
static double
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

		sum += (double)c->len * elem_log(c->f);
		bytes += (double)c->len;
	}
	return bytes > 0 ? sum / bytes : 0;
}

/* By how much log f has to change for `now' bytes to become the bytes aimed
 * at, within what can be trusted of the measured slope. */
static double
land_move(const struct land *l, double now)
{
	double v = elem_log(fmax(now, 1) / land_aim(l, now)) / l->e;

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
	l->turned += mean * elem_log(now->f / was->f);
	l->gained += (double)was->len - (double)now->len;
}

/* Uses what was learnt from now on, if it was enough to be reliable. */
static void
land_believe(struct land *l)
{
	double e = l->gained / l->turned;

	if (fabs(l->turned) > 1e-4 * land_bytes(l, l->k) && e > 0)
		l->e = e < 0.1 ? 0.1 : e > 3 ? 3 : e;
	l->turned = l->gained = 0;
}

/* Group i was coded: c. */
static void
land_made(struct land *l, size_t i, const struct land_code *c)
{
	struct land_code was = l->code[i];

	l->made++;
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
static int
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

/* Codes q groups slightly beside f, to see how the bytes respond to it. */
static int
land_probe(struct land *l, size_t q, double f, struct err *e)
{
	size_t i;
	int r = 0;

	f *= elem_exp(land_fits(l) ? -LAND_PROBE : LAND_PROBE);
	for (i = 0; i < q && r == 0; i++)
		r = land_make(l, l->order[i], f, e);
	land_believe(l);
	return r;
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
	return r;
}

/* Codes an eighth of the groups at f = 1, which gives a factor that is nearly
 * right. */
static int
land_sample(struct land *l, double *f, struct err *e)
{
	size_t q = l->k / 8, i;
	double seen = 0, all = 0, now;
	int r = 0;

	for (i = 0; i < l->k; i++) {
		all += (double)l->values[l->order[i]];
		seen += i < q ? (double)l->values[l->order[i]] : 0;
	}
	l->bytes = l->size(l->arg, l);
	for (i = 0; i < q && r == 0; i++)
		r = land_make(l, l->order[i], 1, e);
	now = land_bytes(l, q) * all / seen;
	l->bytes += (uint64_t)now;
	if (r == 0)
		r = land_probe(l, q / 4 + 1, 1, e);
	if (r == 0)
		*f = elem_exp(land_move(l, now));
	return r;
}

/* ---- the last bytes ---- */

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
		if ((r = land_make(l, i, sqrt(fits.f * over.f), e)) < 0)
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

/* Codes group by group at f until the budget is crossed. Returns 1 when it is
 * within the budget, 0 when all were coded at f. */
static int
land_walk(struct land *l, double f, struct err *e)
{
	const int fits = land_fits(l);
	double near = 4.0 * LAND_FRAME + (double)land_window(l), bytes, off;
	struct land_code was, now;
	size_t i, k, since = 0;
	int r;

	bytes = (double)l->bytes;
	for (k = 0; k < l->k; k++) {
		i = l->order[k];
		was = l->code[i];
		if (was.f == f)
			continue;
		if ((r = land_make(l, i, f, e)) < 0)
			return r;
		now = l->code[i];
		bytes += (double)now.len - (double)was.len;
		/* exact to the byte only where it may matter */
		off = fits ? (double)l->budget - bytes :
		    bytes - (double)l->budget;
		if (off > near + (double)(since++) && k + 1 < l->k)
			continue;
		l->bytes = l->size(l->arg, l);
		bytes = (double)l->bytes;
		since = 0;
		if (land_done(l))
			return 1;
		if (land_fits(l) == fits)
			continue;
		r = fits ? land_halve(l, i, was, now, e) :
		    land_halve(l, i, now, was, e);
		if (r < 0 || land_done(l))
			return r < 0 ? r : 1;
		if (!fits)
			return 0;	/* fits now, and fills up next time */
		bytes = (double)l->bytes;
	}
	return 0;
}

/* ---- all of it ---- */

/* Codes all groups again while the size is far off, and otherwise some of
 * them; 1 when it is within the budget. */
static int
land_round(struct land *l, int whole, struct err *e)
{
	double mean = land_mean(l), by = land_move(l, land_bytes(l, l->k));
	int r;

	if (fabs(by) < 1e-3)
		by = land_fits(l) ? -1e-3 : 1e-3;
	if (whole && fabs(by) > (l->k < LAND_MANY ? LAND_NEAR :
	    LAND_NEAR_MANY)) {
		r = land_all(l, elem_exp(mean + by), e);
		return r < 0 ? r : land_done(l);
	}
	/* half of the groups will be enough */
	r = land_walk(l, elem_exp(mean + 2 * by), e);
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
	double f = 1;
	size_t q = l->k / 8 + 1;
	uint64_t was;
	int r = 0, i, stuck = 0;

	land_spread(l);
	if (l->k >= LAND_MANY && (r = land_sample(l, &f, e)) < 0)
		return r;
	if ((r = land_all(l, f, e)) < 0 || land_done(l))
		return r;
	q = q < 3 ? l->k < 3 ? l->k : 3 : q;
	if (l->k < LAND_MANY && fabs(land_move(l, land_bytes(l, l->k))) >
	    4 * LAND_NEAR && (r = land_probe(l, q, f, e)) < 0)
		return r;
	l->bytes = l->size(l->arg, l);
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
	return r < 0 ? r : land_coarsen(l, elem_exp(land_mean(l)), e);
}

int
land_run(struct land *l, struct err *e)
{
	size_t i;
	int r = 0;

	l->k = l->made = 0;
	l->e = 0.7;
	l->window = LAND_WINDOW;
	l->turned = l->gained = 0;
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
