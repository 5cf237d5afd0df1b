#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "sync/select_core.h"

enum { SELECT_CORE_FEW = 64, SELECT_CORE_MANY = 24, SELECT_CORE_LIST = 4000 };

/* A partial answer over the first groups of the core. */
struct core_state {
	int64_t rate;
	double dist;
	double over;		/* sum of reduced costs: the bound's loss */
	uint32_t parent;
	uint32_t level;
};

struct core_group {
	uint32_t group;
	double second;		/* second smallest reduced cost */
	int64_t cheapest;	/* rate of its cheapest level kept */
	uint32_t nlevel;
	uint8_t level[SELECT_LEVELS];
	double over[SELECT_LEVELS];
};

struct core {
	const struct select_level *level;
	size_t m;
	struct core_group *g;		/* candidates, then sorted, n of them */
	size_t n;
	struct core_state *s[SELECT_CORE_FEW + 1];	/* the list per stage */
	size_t len[SELECT_CORE_FEW + 1];
	struct core_state *work;	/* before the cap */
	int64_t budget;			/* for the core's groups */
	double gap;			/* reduced cost they may use up */
	double lambda;
	int complete;			/* nothing was left out */
};

static double
core_cost(const struct core *c, const struct select_level *l)
{
	return l->dist + c->lambda * (double)l->rate;
}

static double
core_least(const struct core *c, const struct select_level *v)
{
	size_t l = select_price(v, c->m, c->lambda);

	return core_cost(c, v + l);
}

/* The levels of group i that a better answer may use. */
static void
core_levels(const struct core *c, size_t i, struct core_group *o)
{
	const struct select_level *v = c->level + i * c->m;
	double least = core_least(c, v), first = HUGE_VAL, rc;
	size_t l;

	o->group = (uint32_t)i;
	o->second = HUGE_VAL;
	o->nlevel = 0;
	o->cheapest = INT64_MAX;
	for (l = 0; l < c->m; l++) {
		if (!select_usable(&v[l]))
			continue;
		rc = core_cost(c, &v[l]) - least;
		if (rc > c->gap)
			continue;
		if (rc < first) {
			o->second = first;
			first = rc;
		} else if (rc < o->second) {
			o->second = rc;
		}
		o->level[o->nlevel] = (uint8_t)l;
		o->over[o->nlevel++] = rc;
		if (v[l].rate < o->cheapest)
			o->cheapest = v[l].rate;
	}
}

/* the most undecided first: the second smallest reduced cost is least */
static int
core_cmp(const void *a, const void *b)
{
	const struct core_group *x = a, *y = b;

	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return x->group < y->group ? -1 : 1;
}

/* What is decided stays as it is; the rest, at most `most' groups, is the
 * core. */
static int
core_reduce(struct core *c, size_t n, size_t most, const uint8_t *choice,
    struct err *e)
{
	struct core_group g;
	size_t cap = 0, i;
	const struct select_level *v;

	for (i = 0; i < n; i++) {
		core_levels(c, i, &g);
		v = c->level + i * c->m;
		if (g.nlevel == 1) {
			/* choice's own level: its costs are within the gap */
			c->budget -= v[choice[i]].rate;
			continue;
		}
		if (alloc_grow(&c->g, &cap, c->n + 1, sizeof(*c->g), e) < 0)
			return -ERR_SYS;
		c->g[c->n++] = g;
	}
	if (c->n > 0)
		qsort(c->g, c->n, sizeof(*c->g), core_cmp);
	c->complete = c->n <= most;
	for (i = most; i < c->n; i++) {
		v = c->level + c->g[i].group * c->m;
		c->budget -= v[choice[c->g[i].group]].rate;
		c->gap -= core_cost(c, v + choice[c->g[i].group]) -
		    core_least(c, v);
	}
	if (c->n > most)
		c->n = most;
	return 0;
}

/* Stage k's candidates, merged in order of (rate, dist), the undominated kept.
 * rest: what the later groups need at least. */
static size_t
core_merge(struct core *c, size_t k, int64_t rest)
{
	const struct core_group *g = &c->g[k];
	const struct select_level *v = c->level + g->group * c->m;
	const struct core_state *p = c->s[k];
	size_t at[SELECT_LEVELS] = { 0 }, n = 0, l, b;
	struct core_state t = { 0, 0, 0, 0, 0 }, w = t;
	double low = HUGE_VAL;

	for (;;) {
		b = SELECT_LEVELS;
		for (l = 0; l < g->nlevel; l++) {
			if (at[l] >= c->len[k])
				continue;
			t.rate = p[at[l]].rate + v[g->level[l]].rate;
			t.dist = p[at[l]].dist + v[g->level[l]].dist;
			if (b < SELECT_LEVELS && (t.rate > w.rate ||
			    (t.rate == w.rate && t.dist >= w.dist)))
				continue;
			w.rate = t.rate;
			w.dist = t.dist;
			w.over = p[at[l]].over + g->over[l];
			w.parent = (uint32_t)at[l];
			w.level = g->level[l];
			b = l;
		}
		if (b == SELECT_LEVELS)
			return n;
		at[b]++;
		if (w.rate > c->budget - rest)
			return n;
		if (w.dist < low && w.over <= c->gap) {
			low = w.dist;
			c->work[n++] = w;
		}
	}
}

static int
core_over_cmp(const void *a, const void *b)
{
	double x = ((const struct core_state *)a)->over;
	double y = ((const struct core_state *)b)->over;

	return (x > y) - (x < y);
}

/* Keeps the states that lose least against the bound, in their old order. */
static int
core_cap(struct core *c, size_t k, size_t n, struct err *e)
{
	struct core_state *s;
	size_t i, kept = 0;
	double limit = HUGE_VAL;

	if (n > SELECT_CORE_LIST) {
		if ((s = alloc_get(n, sizeof(*s), e)) == NULL)
			return -ERR_SYS;
		memcpy(s, c->work, n * sizeof(*s));
		qsort(s, n, sizeof(*s), core_over_cmp);
		limit = s[SELECT_CORE_LIST - 1].over;
		alloc_free(s);
		c->complete = 0;
	}
	s = alloc_get(n < SELECT_CORE_LIST ? n : SELECT_CORE_LIST, sizeof(*s),
	    e);
	if (s == NULL)
		return -ERR_SYS;
	for (i = 0; i < n && kept < SELECT_CORE_LIST; i++)
		if (c->work[i].over <= limit)
			s[kept++] = c->work[i];
	c->s[k + 1] = s;
	c->len[k + 1] = kept;
	return 0;
}

static int
core_search(struct core *c, struct err *e)
{
	int64_t rest = 0;
	size_t k, most = 0, n;
	int r;

	/* the most decided first: their reduced costs prune most */
	for (k = 0; k < c->n / 2; k++) {
		struct core_group t = c->g[k];

		c->g[k] = c->g[c->n - 1 - k];
		c->g[c->n - 1 - k] = t;
	}
	for (k = 0; k < c->n; k++) {
		rest += c->g[k].cheapest;
		most = c->g[k].nlevel > most ? c->g[k].nlevel : most;
	}
	c->work = alloc_get(most * SELECT_CORE_LIST, sizeof(*c->work), e);
	c->s[0] = alloc_get(1, sizeof(**c->s), e);
	if (c->work == NULL || c->s[0] == NULL)
		return -ERR_SYS;
	c->len[0] = 1;
	for (k = 0; k < c->n; k++) {
		rest -= c->g[k].cheapest;
		n = core_merge(c, k, rest);
		if ((r = core_cap(c, k, n, e)) < 0)
			return r;
	}
	return 0;
}

/* Takes the last state of the last list, the least distortion, if it is
 * better than what choice has. */
static void
core_take(const struct core *c, uint8_t *choice)
{
	double have = 0;
	size_t k, at;

	if (c->len[c->n] == 0)
		return;
	for (k = 0; k < c->n; k++)
		have += c->level[c->g[k].group * c->m +
		    choice[c->g[k].group]].dist;
	at = c->len[c->n] - 1;
	if (c->s[c->n][at].dist >= have)
		return;
	for (k = c->n; k-- > 0;) {
		choice[c->g[k].group] = (uint8_t)c->s[k + 1][at].level;
		at = c->s[k + 1][at].parent;
	}
}

int
select_core_search(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res, struct err *e)
{
	struct core c;
	double least = 0;
	size_t i;
	int r;

	memset(&c, 0, sizeof(c));
	c.level = level;
	c.m = m;
	c.budget = budget;
	c.lambda = res->lambda;
	for (i = 0; i < n; i++)
		least += core_least(&c, level + i * m);
	c.gap = res->dist - (least - c.lambda * (double)budget);
	c.gap += 1e-9 * (fabs(res->dist) + c.lambda * (double)budget);
	if ((r = core_reduce(&c, n, n <= SELECT_CORE_FEW ? SELECT_CORE_FEW :
	    SELECT_CORE_MANY, choice, e)) < 0 || (r = core_search(&c, e)) < 0)
		goto out;
	core_take(&c, choice);
	res->exact = c.complete;
out:
	for (i = 0; i <= SELECT_CORE_FEW; i++)
		alloc_free(c.s[i]);
	alloc_free(c.work);
	alloc_free(c.g);
	return r;
}
