#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/detmath.h"
#include "base/err.h"
#include "codec/estimate.h"
#include "sync/allot.h"

enum {
	ALLOT_LOOK = 256,	/* limit on the groups that the search evaluates */
	ALLOT_OCTAVES = 26,	/* octaves searched below the step that zeroes a group */
	ALLOT_HALVES = 16,
	ALLOT_ROUNDS = 6
};
#define ALLOT_LN2 0.69314718055994530942
#define ALLOT_DEAD 0.6		/* |x| / step below which a value becomes 0 */
/* Estimated bytes are wrong by a few per cent, by more in small groups.  So a group becomes
 * an exception (gets a codec of its own) only if its D + lambda R (sync/allot.h) is less
 * than that of the shared codec by ALLOT_MARGIN of it plus lambda ALLOT_BYTES. */
#define ALLOT_MARGIN 0.06
#define ALLOT_BYTES 8

struct allot_work {
	struct allot *a;
	double *weight;			/* [n] a->weight, times ALLOT_DENSE_WEIGHT if dense */
	uint8_t *fixed;			/* [n] 1: an exception, or all zeros, or of weight 0 */
	struct estimate *model;		/* [looks] models of the evaluated groups */
	size_t looks;
	double taken;			/* bytes of the exceptions */
	int plain;			/* 1: exceptions are not allowed */
};

static struct codec_plan
allot_shared(const struct allot_work *w, size_t g, double step)
{
	const struct codec_plan one = { w->a->shared, 0, 1 };

	return codec_turn(&one, step / sqrt(w->weight[g]));
}

/* Return the estimated bytes of group g coded by p, and set *dist to its weighted error.
 * Both are infinite if p cannot code the group or its error is unknown. */
static double
allot_estimate(const struct allot_work *w, size_t g, const struct estimate *m,
    const struct codec_plan *p, double *dist)
{
	double error;
	int64_t body;

	*dist = HUGE_VAL;
	estimate_coding(m, p, &body, &error);
	if (error < 0 || !(error < HUGE_VAL))
		return HUGE_VAL;
	*dist = w->weight[g] * error;
	return (double)w->a->cost(p->codec, (size_t)body, 1);
}

/* Return the i-th group that the search evaluates: every group, or a sample by a hash. */
static size_t
allot_look(const struct allot_work *w, size_t i)
{
	return w->looks == w->a->n ? i : (size_t)((uint64_t)(uint32_t)(i *
	    2654435769u) * w->a->n >> 32);
}

static void
allot_model(const struct allot_work *w, size_t g, struct estimate *m)
{
	struct codec_ctx ctx;

	w->a->ctx(w->a->arg, (uint32_t)g, &ctx);
	estimate_init(m, &w->a->stat[g], &ctx);
}

/* Estimate the bytes and, in *dist, the error of the groups that share the step, if it is
 * 2^lstep: sum over the evaluated ones of them, and scale the sums to `all' values. */
static double
allot_sum(const struct allot_work *w, double lstep, double all, double *dist)
{
	const double step = detmath_exp(lstep * ALLOT_LN2);
	double bytes = 0, seen = 0, d;
	struct codec_plan p;
	size_t i, g;

	for (*dist = 0, i = 0; i < w->looks; i++) {
		if (w->fixed[g = allot_look(w, i)])
			continue;
		p = allot_shared(w, g, step);
		seen += (double)w->a->stat[g].n;
		bytes += allot_estimate(w, g, &w->model[i], &p, &d);
		*dist += d;
	}
	if (!(seen > 0))
		return 0;
	*dist *= all / seen;
	return bytes * all / seen;
}

/* Set a->step to the step at which all groups but the exceptions take the bytes that the
 * exceptions leave of the budget, and a->price to lambda at that step; to 1 and 0 if there
 * are no such groups. */
static void
allot_search(struct allot_work *w)
{
	struct allot *a = w->a;
	double lo = HUGE_VAL, hi = -HUGE_VAL, mid, all = 0, top, d0, d1, r0, r1;
	size_t g;
	int i;

	a->step = 1;
	a->price = 0;
	for (g = 0; g < a->n; g++) {
		if (w->fixed[g])
			continue;
		all += (double)a->stat[g].n;
		top = sqrt(w->weight[g]) * (double)a->stat[g].max_abs / ALLOT_DEAD;
		lo = fmin(lo, top);
		hi = fmax(hi, top);
	}
	if (!(hi > 0))
		return;
	lo = detmath_log(lo) / ALLOT_LN2 - (double)ALLOT_OCTAVES;
	hi = detmath_log(hi) / ALLOT_LN2 + 0.01;	/* at this step every group
							 * is 0, despite rounding */
	for (i = 0; i < ALLOT_HALVES; i++) {
		mid = (lo + hi) / 2;
		if (allot_sum(w, mid, all, &d0) > a->budget - w->taken)
			lo = mid;
		else
			hi = mid;
	}
	a->step = detmath_exp(hi * ALLOT_LN2);
	r0 = allot_sum(w, hi + 0.5, all, &d0);
	r1 = allot_sum(w, hi - 0.5, all, &d1);
	if (r1 > r0 && d0 > d1)
		a->price = (d0 - d1) / (r1 - r0);
}

/* Plan group g: the shared step, or another codec if its D + lambda R is clearly lower; for
 * a norm or bias that stays dense, the best dense codec.  Return the estimated bytes, and set
 * *lost to the weighted error. */
static double
allot_group(struct allot_work *w, size_t g, const struct estimate *m, double *lost)
{
	struct allot *a = w->a;
	const int floor = a->floor && !w->plain && a->dense[g];
	const double price = a->price;
	double best = HUGE_VAL, dist, bytes, took;
	const struct codec_plan *p;

	a->plan[g] = allot_shared(w, g, a->step);
	w->fixed[g] = 0;
	took = allot_estimate(w, g, m, &a->plan[g], lost);
	if (!floor)
		best = (*lost + price * took) * (1 - ALLOT_MARGIN) -
		    price * ALLOT_BYTES;
	if ((took == 0 && !floor) || w->plain)
		return took;		/* 0: every value becomes 0, so the group is not sent */
	for (p = a->other; p < a->other + a->m; p++) {
		if (floor && !codec_dense(p))
			continue;
		/* first compare by size alone, since the error takes longer to
		 * estimate */
		if (codec_fixed(p) && price * (double)codec_size(p, &m->ctx,
		    (size_t)m->n) >= best)
			continue;
		bytes = allot_estimate(w, g, m, p, &dist);
		if (!(bytes < HUGE_VAL) || dist + price * bytes >= best)
			continue;
		best = dist + price * bytes;
		took = bytes;
		*lost = dist;
		a->plan[g] = *p;
		w->fixed[g] = 1;
	}
	return took;
}

/* Plan all groups and sum their estimates.  Return 1 if the exceptions or their codecs
 * changed. */
static int
allot_round(struct allot_work *w)
{
	struct allot *a = w->a;
	struct codec_plan was;
	struct estimate m;
	double bytes, lost;
	uint8_t fixed;
	size_t g;
	int moved = 0;

	a->bytes = a->dist = w->taken = 0;
	a->sent = 0;
	for (g = 0; g < a->n; g++) {
		if (a->stat[g].nonzero == 0 || !(w->weight[g] > 0))
			continue;
		was = a->plan[g];
		fixed = w->fixed[g];
		if (w->looks < a->n)
			allot_model(w, g, &m);
		bytes = allot_group(w, g, w->looks < a->n ? &m : &w->model[g], &lost);
		moved |= fixed != w->fixed[g] || (fixed &&
		    was.codec != a->plan[g].codec);
		a->bytes += bytes;
		a->dist += lost * ((double)a->weight[g] / w->weight[g]);
		a->sent += bytes > 0;
		w->taken += w->fixed[g] ? bytes : 0;
	}
	return moved;
}

/* Decide whether norms and biases stay dense, and set the weights of all groups. */
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
	int i, moved = 1;
	size_t g;

	allot_floor(w);
	for (a->energy = 0, g = 0; g < a->n; g++) {
		a->energy += (double)a->weight[g] * (double)a->stat[g].sumsq;
		a->plan[g] = (struct codec_plan){ CODEC_NONE, 0, 0 };
		w->fixed[g] = a->stat[g].nonzero == 0 || !(w->weight[g] > 0);
	}
	for (g = 0; g < w->looks; g++)
		allot_model(w, allot_look(w, g), &w->model[g]);
	for (i = 0; i < ALLOT_ROUNDS && moved; i++) {
		w->plain |= i + 1 == ALLOT_ROUNDS && w->taken > a->budget;
		allot_search(w);
		/* a lambda of 0 cannot compare codecs: no exceptions */
		w->plain |= !(a->price > 0);
		moved = allot_round(w);
		moved |= w->taken > a->budget;
	}
	a->floor = a->floor && !w->plain;
}

int
allot_plan(struct allot *a, struct err *e)
{
	struct allot_work w = { .a = a, .looks = a->n < ALLOT_LOOK ? a->n :
	    ALLOT_LOOK };
	int r = -ERR_SYS;

	w.weight = alloc_get(a->n, sizeof(*w.weight), e);
	w.fixed = alloc_get(a->n, 1, e);
	w.model = alloc_get(w.looks, sizeof(*w.model), e);
	if (w.weight != NULL && w.fixed != NULL && w.model != NULL) {
		allot_run(&w);
		r = 0;
	}
	alloc_free(w.weight);
	alloc_free(w.fixed);
	alloc_free(w.model);
	return r;
}
