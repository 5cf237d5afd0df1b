#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "codec/estimate.h"
#include "sync/allot.h"

enum {
	ALLOT_NODES = 28,	/* octaves below the step at which all is 0 */
	ALLOT_LOOK = 256,	/* groups that the search looks at */
	ALLOT_KEPT = 64,	/* groups whose distribution is kept */
	ALLOT_ROUNDS = 6
};
#define ALLOT_LN2 0.69314718055994530942
#define ALLOT_DEAD 0.6		/* |x| / step below which they make 0 */
/* Foretold bytes are a few per cent off, and the less they are the more: an
 * exception must be better by this share, and by so many bytes. */
#define ALLOT_MARGIN 0.06
#define ALLOT_BYTES 8

/* What the codec whose step is shared costs and loses on a group, at step
 * max / 0.6 / 2^k. */
struct allot_curve {
	float bytes[ALLOT_NODES], error[ALLOT_NODES];	/* log2; error < 0:
							 * not foretold yet */
	float top;		/* log2 of max / 0.6, as of weight 1 */
	uint32_t have;		/* bit k: foretold */
};

struct allot_work {
	struct allot *a;
	struct allot_curve *curve;	/* [n] */
	double *weight;			/* [n] */
	uint8_t *fixed;			/* [n] an exception, plan[g] is it */
	/* distributions, of group g at g % ALLOT_KEPT: it is asked for at each
	 * step that is tried, and of few groups once is enough */
	struct allot_kept {
		struct estimate m;
		size_t of;		/* group + 1; 0: none */
	} *kept;
	double taken;			/* by the exceptions */
	size_t step;			/* one group in so many is looked at */
	double bias;			/* all groups over those looked at */
	int plain;			/* no exceptions */
};

static double
allot_log2(double x)
{
	return detmath_log(x) / ALLOT_LN2;
}

static double
allot_exp2(double x)
{
	return detmath_exp(x * ALLOT_LN2);
}

static struct codec_plan
allot_shared(const struct allot_work *w, size_t g, double step)
{
	struct codec_plan p = { w->a->shared, 0, 0 };

	p.arg = (float)(step / sqrt(w->weight[g]));
	return p;
}

/* The bytes and the weighted error of group g when it is coded this way;
 * infinite when that is not possible. */
static double
allot_told(const struct allot_work *w, size_t g, const struct estimate *m,
    const struct codec_plan *p, double *dist)
{
	double error;
	int64_t body;

	*dist = HUGE_VAL;
	estimate_coding(m, p, &body, &error);
	if (p->codec != CODEC_NONE && codec_fixed(p) == 0 && body < 0)
		body = (int64_t)codec_bound(p, (size_t)m->n);
	if (body < 0 || error < 0 || !(error < HUGE_VAL))
		return HUGE_VAL;
	*dist = w->weight[g] * error;
	return (double)w->a->cost(p->codec, (size_t)body, 1);
}

/* What stays until another group is asked for. */
static const struct estimate *
allot_model(const struct allot_work *w, size_t g)
{
	struct allot_kept *k = &w->kept[g % ALLOT_KEPT];
	struct codec_ctx ctx;

	if (k->of != g + 1) {
		w->a->ctx(w->a->arg, (uint32_t)g, &ctx);
		estimate_init(&k->m, &w->a->stat[g], &ctx);
		k->of = g + 1;
	}
	return &k->m;
}

/* ---- one step for all ---- */

static void
allot_node(struct allot_work *w, size_t g, unsigned k)
{
	struct allot_curve *c = &w->curve[g];
	struct codec_plan p;
	double bytes, dist;

	if ((c->have >> k & 1) != 0)
		return;
	c->have |= (uint32_t)1 << k;
	p = allot_shared(w, g, allot_exp2((double)c->top - k));
	bytes = allot_told(w, g, allot_model(w, g), &p, &dist);
	c->bytes[k] = (float)allot_log2(fmax(bytes, 1));
	c->error[k] = (float)allot_log2(fmax(dist, 1e-300));
}

/* Interpolates the logarithm between the nodes. dist is NULL when it is not
 * needed. */
static double
allot_at(struct allot_work *w, size_t g, double lstep, double *dist)
{
	struct allot_curve *c = &w->curve[g];
	double x = (double)c->top - lstep, t;
	unsigned k;

	if (x <= 0) {
		if (dist != NULL)
			*dist = w->weight[g] * (double)w->a->stat[g].sumsq;
		return 0;
	}
	x = fmin(x, (double)ALLOT_NODES - 1.01);
	k = (unsigned)x;
	t = x - k;
	allot_node(w, g, k);
	allot_node(w, g, k + 1);
	if (dist != NULL)
		*dist = allot_exp2((double)c->error[k] + t *
		    (double)(c->error[k + 1] - c->error[k]));
	return allot_exp2((double)c->bytes[k] + t *
	    (double)(c->bytes[k + 1] - c->bytes[k]));
}

/* When there are many groups the search looks at only some of them, chosen in
 * no regular order. */
static int
allot_looks(const struct allot_work *w, size_t g)
{
	return w->step <= 1 ||
	    (uint32_t)(g * 2654435769u) < UINT32_MAX / w->step;
}

/* The bytes of all groups that share the step. */
static double
allot_sum(struct allot_work *w, double lstep, double *dist)
{
	double bytes = 0, all = 0, seen = 0, d;
	size_t g;

	*dist = 0;
	for (g = 0; g < w->a->n; g++) {
		if (w->fixed[g])
			continue;
		all += (double)w->a->stat[g].n;
		if (!allot_looks(w, g))
			continue;
		seen += (double)w->a->stat[g].n;
		bytes += allot_at(w, g, lstep, &d);
		*dist += d;
	}
	if (!(seen > 0))
		return 0;
	*dist *= w->bias * all / seen;
	return w->bias * bytes * all / seen;
}

/* Finds the step whose bytes are what the exceptions leave of the budget. */
static double
allot_search(struct allot_work *w)
{
	double lo = HUGE_VAL, hi = -HUGE_VAL, mid, d, room;
	size_t g;
	int i;

	for (g = 0; g < w->a->n; g++)
		if (!w->fixed[g] && allot_looks(w, g)) {
			lo = fmin(lo, (double)w->curve[g].top);
			hi = fmax(hi, (double)w->curve[g].top);
		}
	if (!(hi > -HUGE_VAL))
		return 0;
	lo -= ALLOT_NODES - 2;
	hi += 0.01;		/* all is 0, however it is rounded */
	room = w->a->budget - w->taken;
	/* octave by octave from above, so that little is foretold in vain */
	for (mid = hi - 1; mid > lo && allot_sum(w, mid, &d) < room; mid -= 1)
		hi = mid;
	lo = fmax(mid, lo);
	for (i = 0; i < 10; i++) {
		mid = (lo + hi) / 2;
		if (allot_sum(w, mid, &d) > room)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

static double
allot_price(struct allot_work *w, double lstep)
{
	double d0, d1, r0, r1;

	r0 = allot_sum(w, lstep + 0.5, &d0);
	r1 = allot_sum(w, lstep - 0.5, &d1);
	return r1 > r0 && d0 > d1 ? (d0 - d1) / (r1 - r0) : 0;
}

/* ---- the exceptions ---- */

/* What contexts save is not foretold, so that rate control makes steps finer,
 * down to a half.  With such a step, and a quarter of the price, as errors go
 * with its square: what the shared step costs, less what an exception must be better
 * by. */
static double
allot_finer(const struct allot_work *w, size_t g, const struct estimate *m,
    double step, double price)
{
	const struct codec_plan p = allot_shared(w, g, step / 2);
	double dist, bytes = allot_told(w, g, m, &p, &dist);

	price /= 4;
	return (dist + price * bytes) * (1 - ALLOT_MARGIN) -
	    price * ALLOT_BYTES;
}

/* Tests whether another codec would do better for group g at this step and
 * price. */
static void
allot_except(struct allot_work *w, size_t g, double step, double price)
{
	struct allot *a = w->a;
	const int floor = a->floor && !w->plain && a->dense[g];
	const struct estimate *m = allot_model(w, g);
	double best, dist, bytes, finer = HUGE_VAL;
	size_t i;

	a->plan[g] = allot_shared(w, g, step);
	w->fixed[g] = 0;
	bytes = allot_told(w, g, m, &a->plan[g], &dist);
	best = floor ? HUGE_VAL : (dist + price * bytes) * (1 - ALLOT_MARGIN) -
	    price * ALLOT_BYTES;
	if (bytes == 0 && !floor)
		return;		/* all of it is 0: nothing is sent */
	for (i = 0; i < a->m && !w->plain; i++) {
		if (floor && !codec_dense(&a->other[i]))
			continue;
		/* the size is calculated first, since the loss takes longer to
		 * find */
		if (codec_fixed(&a->other[i]) && price * (double)codec_size(
		    &a->other[i], &m->ctx, (size_t)m->n) >= best)
			continue;
		bytes = allot_told(w, g, m, &a->other[i], &dist);
		if (!(bytes < HUGE_VAL) || dist + price * bytes >= best)
			continue;
		if (!floor && finer == HUGE_VAL)
			finer = allot_finer(w, g, m, step, price);
		if (dist + price / 4 * bytes >= finer)
			continue;
		best = dist + price * bytes;
		a->plan[g] = a->other[i];
		w->fixed[g] = 1;
	}
}

/* Tests all groups once the step is known; 1 when the exceptions changed. */
static int
allot_round(struct allot_work *w, double step)
{
	struct allot *a = w->a;
	struct codec_plan was;
	uint8_t fixed;
	size_t g;
	int moved = 0;

	for (g = 0; g < a->n; g++) {
		if (a->stat[g].nonzero == 0 || !(w->weight[g] > 0))
			continue;
		was = a->plan[g];
		fixed = w->fixed[g];
		allot_except(w, g, step, a->price);
		moved |= fixed != w->fixed[g] || (fixed &&
		    was.codec != a->plan[g].codec);
	}
	return moved;
}

/* Sums up how many bytes and how much error are predicted for the plan. */
static void
allot_total(struct allot_work *w)
{
	struct allot *a = w->a;
	double bytes, dist, weight;
	size_t g;

	a->bytes = a->dist = a->energy = w->taken = 0;
	a->sent = 0;
	for (g = 0; g < a->n; g++) {
		weight = (double)a->weight[g];
		a->energy += weight * (double)a->stat[g].sumsq;
		if (a->plan[g].codec == CODEC_NONE) {
			a->dist += weight * (double)a->stat[g].sumsq;
			continue;
		}
		bytes = allot_told(w, g, allot_model(w, g), &a->plan[g], &dist);
		a->bytes += bytes;
		a->dist += dist * (weight > 0 ? weight / w->weight[g] : 0);
		a->sent += bytes > 0;
		w->taken += w->fixed[g] ? bytes : 0;
	}
}

/* ---- all of it ---- */

/* Do the norms and biases stay dense? */
static void
allot_floor(struct allot_work *w)
{
	struct allot *a = w->a;
	const struct codec_plan q8 = { CODEC_Q8, 0, 0 };
	struct codec_ctx ctx;
	double bytes = 0;
	size_t g;

	for (g = 0; g < a->n; g++)
		if (a->dense[g] && a->stat[g].nonzero > 0) {
			a->ctx(a->arg, (uint32_t)g, &ctx);
			bytes += (double)a->cost(q8.codec, codec_size(&q8,
			    &ctx, a->stat[g].n), 1);
		}
	a->floor = bytes > 0 && bytes <= ALLOT_DENSE_SHARE * a->budget;
	for (g = 0; g < a->n; g++)
		w->weight[g] = (double)a->weight[g] *
		    (a->dense[g] ? ALLOT_DENSE_WEIGHT : 1);
}

static void
allot_run(struct allot_work *w)
{
	struct allot *a = w->a;
	double lstep = 0, d, looked, was;
	size_t g;
	int i, moved;

	allot_floor(w);
	for (g = 0; g < a->n; g++) {
		a->plan[g] = (struct codec_plan){ CODEC_NONE, 0, 0 };
		w->fixed[g] = a->stat[g].nonzero == 0 || !(w->weight[g] > 0);
		if (!w->fixed[g])
			w->curve[g].top = (float)allot_log2(sqrt(w->weight[g]) *
			    (double)a->stat[g].max_abs / ALLOT_DEAD);
	}
	for (i = 0; i < ALLOT_ROUNDS; i++) {
		lstep = allot_search(w);
		a->price = allot_price(w, lstep);
		a->step = allot_exp2(lstep);
		/* a price of 0: there is too little to buy anything with */
		w->plain |= !(a->price > 0);
		moved = allot_round(w, a->step);
		looked = allot_sum(w, lstep, &d);
		allot_total(w);
		was = w->bias;
		if (looked > 0 && a->bytes > w->taken)
			w->bias *= (a->bytes - w->taken) / looked;
		if (!moved && i > 0 && fabs(w->bias / was - 1) < 0.01)
			break;
	}
	if (w->taken > a->budget && !w->plain) {
		w->plain = 1;
		lstep = allot_search(w);
		a->step = allot_exp2(lstep);
		(void)allot_round(w, a->step);
		allot_total(w);
	}
	a->floor = a->floor && !w->plain;
}

int
allot_plan(struct allot *a, struct err *e)
{
	struct allot_work w = { .a = a, .step = (a->n + ALLOT_LOOK - 1) /
	    ALLOT_LOOK, .bias = 1 };
	int r = -ERR_SYS;

	a->step = a->price = 0;
	w.curve = alloc_get(a->n, sizeof(*w.curve), e);
	w.weight = alloc_get(a->n, sizeof(*w.weight), e);
	w.fixed = alloc_get(a->n, 1, e);
	w.kept = alloc_get(a->n < ALLOT_KEPT ? a->n : ALLOT_KEPT,
	    sizeof(*w.kept), e);
	if (w.curve != NULL && w.weight != NULL && w.fixed != NULL &&
	    w.kept != NULL) {
		allot_run(&w);
		r = 0;
	}
	alloc_free(w.curve);
	alloc_free(w.weight);
	alloc_free(w.fixed);
	alloc_free(w.kept);
	return r;
}
