#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "sync/select.h"
#include "sync/select_core.h"

enum { SELECT_SMALL = 64 };		/* groups searched exactly by default */
#define SELECT_GAP 1e-3			/* and the gap that asks for it */
#define SELECT_WORK ((size_t)1 << 25)	/* level visits of the repair */

int
select_usable(const struct select_level *l)
{
	return l->rate >= 0 && l->dist <= SELECT_DIST;
}

/* slope of the hull from level a up to level b: distortion saved per byte */
static double
select_slope(const struct select_level *l, unsigned a, unsigned b)
{
	return (l[a].dist - l[b].dist) / (double)(l[b].rate - l[a].rate);
}

size_t
select_hull(const struct select_level *l, size_t m, uint8_t hull[SELECT_LEVELS])
{
	uint8_t o[SELECT_LEVELS];
	size_t n = 0, k = 0, i, j;

	/* by (rate, dist, level): an insertion sort of a dozen */
	for (i = 0; i < m && i < SELECT_LEVELS; i++) {
		if (!select_usable(&l[i]))
			continue;
		for (j = n++; j > 0 && (l[o[j - 1]].rate > l[i].rate ||
		    (l[o[j - 1]].rate == l[i].rate &&
		    l[o[j - 1]].dist > l[i].dist)); j--)
			o[j] = o[j - 1];
		o[j] = (uint8_t)i;
	}
	for (i = 0; i < n; i++) {
		if (k > 0 && (l[o[i]].dist >= l[hull[k - 1]].dist ||
		    l[o[i]].rate == l[hull[k - 1]].rate))
			continue;		/* dominated */
		/* the slopes as computed fall strictly: no order is left to
		 * the rounding */
		while (k >= 2 && select_slope(l, hull[k - 1], o[i]) >=
		    select_slope(l, hull[k - 2], hull[k - 1]))
			k--;
		hull[k++] = o[i];
	}
	return k;
}

size_t
select_price(const struct select_level *l, size_t m, double lambda)
{
	size_t best = m, i;
	double c, low = 0;

	for (i = 0; i < m; i++) {
		if (!select_usable(&l[i]))
			continue;
		c = l[i].dist + lambda * (double)l[i].rate;
		if (best == m || c < low || (c == low &&
		    l[i].rate < l[best].rate)) {
			best = i;
			low = c;
		}
	}
	return best;
}

double
select_gap(const struct select_result *r)
{
	if (r->dist <= r->bound)
		return 0;
	return r->bound > 0 ? (r->dist - r->bound) / r->bound : HUGE_VAL;
}

/* ---- the greedy walk along the hulls ---- */

struct select_walk {
	const struct select_level *level;
	size_t n, m;
	uint8_t (*hull)[SELECT_LEVELS];
	uint8_t *len, *at;		/* of each hull; where the group is */
	double *slope;			/* of its next step */
	uint32_t *heap;			/* groups with a next step */
	size_t nheap;
};

/* 1 when group a's next step comes before b's */
static int
select_before(const struct select_walk *w, uint32_t a, uint32_t b)
{
	if (w->slope[a] != w->slope[b])
		return w->slope[a] > w->slope[b];
	return a < b;
}

static void
select_sift(struct select_walk *w, size_t i)
{
	size_t c;
	uint32_t t;

	for (; (c = 2 * i + 1) < w->nheap; i = c) {
		if (c + 1 < w->nheap &&
		    select_before(w, w->heap[c + 1], w->heap[c]))
			c++;
		if (!select_before(w, w->heap[c], w->heap[i]))
			return;
		t = w->heap[c];
		w->heap[c] = w->heap[i];
		w->heap[i] = t;
	}
}

/* group g's next step: 1, or 0 when it is at its hull's end */
static int
select_next(struct select_walk *w, uint32_t g)
{
	const uint8_t *h = w->hull[g];
	size_t a = w->at[g];

	if (a + 1 >= w->len[g])
		return 0;
	w->slope[g] = select_slope(w->level + g * w->m, h[a], h[a + 1]);
	return 1;
}

static void
select_walk_free(struct select_walk *w)
{
	alloc_free(w->hull);
	alloc_free(w->len);
	alloc_free(w->at);
	alloc_free(w->slope);
	alloc_free(w->heap);
}

static int
select_walk_new(struct select_walk *w, const struct select_level *level,
    size_t n, size_t m, struct err *e)
{
	size_t g;

	memset(w, 0, sizeof(*w));
	w->level = level;
	w->n = n;
	w->m = m;
	w->hull = alloc_get(n, sizeof(*w->hull), e);
	w->len = alloc_get(n, 1, e);
	w->at = alloc_get(n, 1, e);
	w->slope = alloc_get(n, sizeof(*w->slope), e);
	w->heap = alloc_get(n, sizeof(*w->heap), e);
	if (w->hull == NULL || w->len == NULL || w->at == NULL ||
	    w->slope == NULL || w->heap == NULL)
		return -ERR_SYS;
	for (g = 0; g < n; g++) {
		w->len[g] = (uint8_t)select_hull(level + g * m, m, w->hull[g]);
		if (w->len[g] == 0)
			return err_set(e, ERR_USAGE,
			    "group %zu has no level to choose", g);
		if (select_next(w, (uint32_t)g))
			w->heap[w->nheap++] = (uint32_t)g;
	}
	for (g = w->nheap; g-- > 0;)
		select_sift(w, g);
	return 0;
}

static void
select_totals(const struct select_level *level, size_t n, size_t m,
    const uint8_t *choice, struct select_result *res)
{
	size_t g;

	res->dist = 0;
	res->rate = 0;
	for (g = 0; g < n; g++) {
		res->dist += level[g * m + choice[g]].dist;
		res->rate += level[g * m + choice[g]].rate;
	}
}

/* Takes steps while they fit; the first that does not gives the bound. */
static void
select_greedy(struct select_walk *w, int64_t budget, uint8_t *choice,
    struct select_result *res)
{
	const struct select_level *l;
	int64_t rate = res->rate, dr;
	int bounded = 0;
	uint32_t g;

	while (w->nheap > 0) {
		g = w->heap[0];
		l = w->level + g * w->m;
		dr = l[w->hull[g][w->at[g] + 1]].rate -
		    l[w->hull[g][w->at[g]]].rate;
		if (dr <= budget - rate) {
			rate += dr;
			choice[g] = w->hull[g][++w->at[g]];
			if (select_next(w, g)) {
				select_sift(w, 0);
				continue;
			}
		} else if (!bounded) {
			bounded = 1;
			select_totals(w->level, w->n, w->m, choice, res);
			res->lambda = w->slope[g];
			res->bound = res->dist - res->lambda *
			    (double)(budget - rate);
		}
		w->heap[0] = w->heap[--w->nheap];
		select_sift(w, 0);
	}
	select_totals(w->level, w->n, w->m, choice, res);
	if (!bounded) {
		res->lambda = 0;
		res->bound = res->dist;
		res->exact = 1;
	}
}

/* Makes the best single move that fits and lowers the distortion, again and
 * again. */
static void
select_repair(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res)
{
	size_t left = SELECT_WORK, g, l, bg, bl;
	double drop, best;

	do {
		best = 0;
		bg = bl = 0;
		for (g = 0; g < n; g++) {
			const struct select_level *v = level + g * m;
			const struct select_level *c = v + choice[g];

			for (l = 0; l < m; l++) {
				drop = c->dist - v[l].dist;
				if (drop > best && select_usable(&v[l]) &&
				    v[l].rate - c->rate <= budget - res->rate) {
					best = drop;
					bg = g;
					bl = l;
				}
			}
		}
		if (best > 0) {
			res->rate += level[bg * m + bl].rate -
			    level[bg * m + choice[bg]].rate;
			choice[bg] = (uint8_t)bl;
		}
		left -= left < n * m ? left : n * m;
	} while (best > 0 && left > 0);
	select_totals(level, n, m, choice, res);
}

int
select_budget(const struct select_level *level, size_t n, size_t m,
    int64_t budget, enum select_effort effort, uint8_t *choice,
    struct select_result *res, struct err *e)
{
	struct select_walk w;
	size_t g;
	int r;

	memset(res, 0, sizeof(*res));
	if (m > SELECT_LEVELS)
		return err_set(e, ERR_USAGE, "more than %d levels",
		    SELECT_LEVELS);
	if ((r = select_walk_new(&w, level, n, m, e)) < 0)
		goto out;
	for (g = 0; g < n; g++)
		choice[g] = w.hull[g][0];
	select_totals(level, n, m, choice, res);
	if (res->rate > budget) {
		res->bound = res->dist;
		r = 1;
		goto out;
	}
	select_greedy(&w, budget, choice, res);
	if (!res->exact)
		select_repair(level, n, m, budget, choice, res);
	if (!res->exact && effort != SELECT_FAST && (n <= SELECT_SMALL ||
	    effort == SELECT_EXACT || select_gap(res) > SELECT_GAP)) {
		r = select_core_search(level, n, m, budget, choice, res, e);
		select_totals(level, n, m, choice, res);
		if (res->exact)
			res->bound = res->dist;
	}
	if (res->bound > res->dist)	/* by a rounding */
		res->bound = res->dist;
out:
	select_walk_free(&w);
	return r;
}

/* ---- equation (2) ---- */

struct select_rank {
	float score;
	uint32_t group;
};

static int
select_rank_cmp(const void *a, const void *b)
{
	const struct select_rank *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->group < y->group ? -1 : 1;
}

int
select_share(const float *score, size_t n, double p, uint8_t *chosen,
    struct err *e)
{
	struct select_rank *v = alloc_get(n, sizeof(*v), e);
	double total = 0, sum = 0;
	size_t i;

	if (v == NULL)
		return -ERR_SYS;
	for (i = 0; i < n; i++) {
		v[i].score = score[i];
		v[i].group = (uint32_t)i;
		chosen[i] = 0;
	}
	qsort(v, n, sizeof(*v), select_rank_cmp);
	for (i = 0; i < n; i++)		/* in the same order as below: p = 1 */
		total += (double)v[i].score;
	/* all of it is all: a small one is not lost in a large sum */
	for (i = 0; i < n && (sum < p * total ||
	    (p >= 1 && v[i].score > 0)); i++) {
		sum += (double)v[i].score;
		chosen[v[i].group] = 1;
	}
	alloc_free(v);
	return 0;
}
