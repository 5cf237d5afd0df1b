#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "codec/stat.h"
#include "sync/select.h"

#define SELECT_DEAR 0x1p+900	/* a lambda at which only bytes count */
/* Most groups in the core: FEW if n <= FEW, otherwise MANY.  LIST: most answers per stage. */
enum { SELECT_CORE_FEW = 64, SELECT_CORE_MANY = 24, SELECT_CORE_LIST = 4000 };
#define SELECT_WORK ((size_t)1 << 25)	/* levels that select_fill may try */

int
select_usable(const struct select_level *l)
{
	return l->bytes >= 0 && l->dist <= SELECT_DIST;
}

size_t
select_price(const struct select_level *l, size_t m, double lambda)
{
	size_t best = m, i;
	double c, low = 0;

	for (i = 0; i < m; i++) {
		if (!select_usable(&l[i]))
			continue;
		c = l[i].dist + lambda * (double)l[i].bytes;
		if (best == m || c < low || (c == low &&
		    (l[i].bytes < l[best].bytes || (l[i].bytes == l[best].bytes &&
		    l[i].dist < l[best].dist)))) {
			best = i;
			low = c;
		}
	}
	return best;
}

/* ---- finding lambda ---- */

/* Set choice to each group's best level at this lambda.  Return 1 when these levels
 * are within the budget. */
static int
select_at(const struct select_level *level, size_t n, size_t m, double lambda,
    int64_t budget, uint8_t *choice)
{
	int64_t bytes = 0;
	size_t g;

	for (g = 0; g < n; g++) {
		choice[g] = (uint8_t)select_price(level + g * m, m, lambda);
		bytes += level[g * m + choice[g]].bytes;
	}
	return bytes <= budget;
}

static void
select_totals(const struct select_level *level, size_t n, size_t m,
    const uint8_t *choice, struct select_result *res)
{
	size_t g;

	res->dist = 0;
	res->bytes = 0;
	for (g = 0; g < n; g++) {
		res->dist += level[g * m + choice[g]].dist;
		res->bytes += level[g * m + choice[g]].bytes;
	}
}

static double
select_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Repeatedly make the single change that lowers the distortion most within the budget, until
 * no change does or SELECT_WORK levels were tried. */
static void
select_fill(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res)
{
	const struct select_level *v, *c;
	size_t left = SELECT_WORK, g, l, bg, bl;
	double best;

	do {
		best = 0;
		bg = bl = 0;
		for (g = 0; g < n; g++) {
			v = level + g * m;
			c = v + choice[g];
			for (l = 0; l < m; l++)
				if (c->dist - v[l].dist > best &&
				    select_usable(&v[l]) &&
				    v[l].bytes - c->bytes <= budget - res->bytes) {
					best = c->dist - v[l].dist;
					bg = g;
					bl = l;
				}
		}
		if (best > 0) {
			res->bytes += level[bg * m + bl].bytes -
			    level[bg * m + choice[bg]].bytes;
			choice[bg] = (uint8_t)bl;
		}
		left -= left < n * m ? left : n * m;
	} while (best > 0 && left > 0);
	select_totals(level, n, m, choice, res);
}

/* Set choice and res to the best levels at the least lambda that fits, with the rest of the budget
 * filled.  Return 1 if that lambda is 0, else 0. */
static int
select_bisect(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res)
{
	const double dear = SELECT_DEAR;
	uint64_t lo = 0, hi, mid;

	if (select_at(level, n, m, 0, budget, choice)) {
		select_totals(level, n, m, choice, res);
		return 1;
	}
	/* positive doubles have the same order as their bits */
	for (memcpy(&hi, &dear, sizeof(hi)); hi - lo > 1; ) {
		mid = lo + (hi - lo) / 2;
		if (select_at(level, n, m, select_double(mid), budget, choice))
			hi = mid;
		else
			lo = mid;
	}
	res->lambda = select_double(hi);
	(void)select_at(level, n, m, res->lambda, budget, choice);
	select_totals(level, n, m, choice, res);
	select_fill(level, n, m, budget, choice, res);
	return 0;
}

/* ---- groups that lambda leaves undecided ---- */

/* A partial answer over the first groups of the core. */
struct select_state {
	int64_t bytes;
	double dist;
	double over;		/* sum of reduced costs (select_improve) */
	uint32_t parent;	/* index of the answer without the last group, one stage before */
	uint32_t level;		/* level of the last group */
};

struct select_group {
	uint32_t group;
	int64_t cheapest;	/* least bytes of its levels in `level' */
	uint32_t nlevel;
	uint8_t level[SELECT_LEVELS];	/* [nlevel] levels that a better answer may use */
	double over[SELECT_LEVELS];	/* [nlevel] their reduced costs */
};

struct select_core {
	const struct select_level *level;
	size_t m;
	struct select_group *g;		/* [n] groups, the most decided first (select_reduce) */
	size_t n;
	struct select_state *s[SELECT_CORE_FEW + 1];	/* [k]: answers over the first k groups */
	size_t len[SELECT_CORE_FEW + 1];	/* number of answers in each s[k] */
	struct select_state *work;	/* merged list, before select_cap */
	int64_t budget;			/* bytes for the core's groups */
	double gap;			/* largest reduced cost of a better answer */
	double lambda;
};

static double
select_cost(const struct select_core *c, const struct select_level *l)
{
	return l->dist + c->lambda * (double)l->bytes;
}

static double
select_least(const struct select_core *c, const struct select_level *v)
{
	size_t l = select_price(v, c->m, c->lambda);

	return select_cost(c, v + l);
}

/* List in *o the levels of group i that a better answer may use.  Return the second smallest
 * of their reduced costs, or HUGE_VAL if there is one level. */
static double
select_levels(const struct select_core *c, size_t i, struct select_group *o)
{
	const struct select_level *v = c->level + i * c->m;
	double least = select_least(c, v), first = HUGE_VAL, second = HUGE_VAL, rc;
	size_t l;

	o->group = (uint32_t)i;
	o->nlevel = 0;
	o->cheapest = INT64_MAX;
	for (l = 0; l < c->m; l++) {
		if (!select_usable(&v[l]))
			continue;
		rc = select_cost(c, &v[l]) - least;
		if (rc > c->gap)
			continue;
		if (rc < first) {
			second = first;
			first = rc;
		} else if (rc < second) {
			second = rc;
		}
		o->level[o->nlevel] = (uint8_t)l;
		o->over[o->nlevel++] = rc;
		if (v[l].bytes < o->cheapest)
			o->cheapest = v[l].bytes;
	}
	return second;
}

/* An undecided group.  The struct is small, since there may be a million groups. */
struct select_open {
	double second;
	size_t group;
};

/* Put the most undecided group first: the one whose second smallest reduced cost is least. */
static int
select_cmp(const void *a, const void *b)
{
	const struct select_open *x = a, *y = b;

	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return x->group < y->group ? -1 : 1;
}

/* List in *open the groups with several levels that a better answer may use, the most
 * undecided first.  Subtract the bytes of the other groups from the budget. */
static int
select_undecided(struct select_core *c, size_t n, const uint8_t *choice,
    struct select_open **open, size_t *many, struct err *e)
{
	struct select_group g;
	size_t cap = 0, i;
	double second;

	*open = NULL;
	*many = 0;
	for (i = 0; i < n; i++) {
		second = select_levels(c, i, &g);
		if (g.nlevel == 1) {
			/* no other level is within the gap: the group keeps that of `choice' */
			c->budget -= c->level[i * c->m + choice[i]].bytes;
			continue;
		}
		if (alloc_grow(open, &cap, *many + 1, sizeof(**open), e) < 0)
			return -ERR_SYS;
		(*open)[(*many)++] = (struct select_open){ second, i };
	}
	if (*many > 0)
		qsort(*open, *many, sizeof(**open), select_cmp);
	return 0;
}

/* Make a core of at most `most' groups, the most undecided ones; all others keep their level
 * in choice.  In the core the most decided groups come first, so that more answers are pruned. */
static int
select_reduce(struct select_core *c, size_t n, size_t most, const uint8_t *choice,
    struct err *e)
{
	const struct select_level *v;
	struct select_open *open;
	size_t i, many;
	int r = select_undecided(c, n, choice, &open, &many, e);

	c->n = many < most ? many : most;
	if (r == 0 && (c->g = alloc_get(c->n, sizeof(*c->g), e)) == NULL)
		r = -ERR_SYS;
	for (i = 0; i < c->n && r == 0; i++)
		(void)select_levels(c, open[i].group, &c->g[c->n - 1 - i]);
	for (i = c->n; i < many && r == 0; i++) {
		v = c->level + open[i].group * c->m;
		c->budget -= v[choice[open[i].group]].bytes;
		c->gap -= select_cost(c, v + choice[open[i].group]) -
		    select_least(c, v);
	}
	alloc_free(open);
	return r;
}

/* Extend each answer of stage k by each level of group k, and merge the results into c->work
 * in order of (bytes, dist), without dominated ones.  rest: least bytes of the groups after
 * k.  Return the number of results. */
static size_t
select_merge(struct select_core *c, size_t k, int64_t rest)
{
	const struct select_group *g = &c->g[k];
	const struct select_level *v = c->level + g->group * c->m;
	const struct select_state *p = c->s[k];
	size_t at[SELECT_LEVELS] = { 0 }, n = 0, l, b;
	struct select_state t = { 0, 0, 0, 0, 0 }, w = t;
	double low = HUGE_VAL;

	for (;;) {
		b = SELECT_LEVELS;
		for (l = 0; l < g->nlevel; l++) {
			if (at[l] >= c->len[k])
				continue;
			t.bytes = p[at[l]].bytes + v[g->level[l]].bytes;
			t.dist = p[at[l]].dist + v[g->level[l]].dist;
			if (b < SELECT_LEVELS && (t.bytes > w.bytes ||
			    (t.bytes == w.bytes && t.dist >= w.dist)))
				continue;
			w.bytes = t.bytes;
			w.dist = t.dist;
			w.over = p[at[l]].over + g->over[l];
			w.parent = (uint32_t)at[l];
			w.level = g->level[l];
			b = l;
		}
		if (b == SELECT_LEVELS)
			return n;
		at[b]++;
		if (w.bytes > c->budget - rest)
			return n;
		if (w.dist < low && w.over <= c->gap) {
			low = w.dist;
			c->work[n++] = w;
		}
	}
}

static int
select_over_cmp(const void *a, const void *b)
{
	double x = ((const struct select_state *)a)->over;
	double y = ((const struct select_state *)b)->over;

	return (x > y) - (x < y);
}

/* Keep in order the first SELECT_CORE_LIST answers whose `over' is at most the
 * SELECT_CORE_LIST-th least of all. */
static int
select_cap(struct select_core *c, size_t k, size_t n, struct err *e)
{
	struct select_state *s;
	size_t i, kept = 0;
	double limit = HUGE_VAL;

	if (n > SELECT_CORE_LIST) {
		if ((s = alloc_get(n, sizeof(*s), e)) == NULL)
			return -ERR_SYS;
		memcpy(s, c->work, n * sizeof(*s));
		qsort(s, n, sizeof(*s), select_over_cmp);
		limit = s[SELECT_CORE_LIST - 1].over;
		alloc_free(s);
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
select_search(struct select_core *c, struct err *e)
{
	int64_t rest = 0;
	size_t k, most = 0, n;
	int r;

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
		n = select_merge(c, k, rest);
		if ((r = select_cap(c, k, n, e)) < 0)
			return r;
	}
	return 0;
}

/* Copy the last answer of the last stage, which has the least distortion, into choice if
 * that is better. */
static void
select_take(const struct select_core *c, uint8_t *choice)
{
	double have = 0;
	size_t k, at;

	if (c->len[c->n] == 0)
		return;
	for (k = 0; k < c->n; k++)
		have += c->level[c->g[k].group * c->m + choice[c->g[k].group]].dist;
	at = c->len[c->n] - 1;
	if (c->s[c->n][at].dist >= have)
		return;
	for (k = c->n; k-- > 0;) {
		choice[c->g[k].group] = (uint8_t)c->s[k + 1][at].level;
		at = c->s[k + 1][at].parent;
	}
}

/*
 * Improve choice, whose totals are in res, if that is possible.
 *
 * With c(l) = dist + lambda * bytes, a level of group i can be part of a better answer only
 * if its reduced cost c_i(l) - min c_i is at most gap = dist - (sum_i min c_i - lambda B).
 * Groups with more than one such level are undecided.  The most undecided 24 (64 when
 * n <= 64) form the core and are searched by a list of at most 4000 undominated
 * (bytes, dist) pairs.  All other groups keep their level.
 */
static int
select_improve(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, const struct select_result *res, struct err *e)
{
	struct select_core c;
	double least = 0;
	size_t i;
	int r;

	memset(&c, 0, sizeof(c));
	c.level = level;
	c.m = m;
	c.budget = budget;
	c.lambda = res->lambda;
	for (i = 0; i < n; i++)
		least += select_least(&c, level + i * m);
	c.gap = res->dist - (least - c.lambda * (double)budget);
	c.gap += 1e-9 * (fabs(res->dist) + c.lambda * (double)budget);
	if ((r = select_reduce(&c, n, n <= SELECT_CORE_FEW ? SELECT_CORE_FEW :
	    SELECT_CORE_MANY, choice, e)) < 0 || (r = select_search(&c, e)) < 0)
		goto out;
	select_take(&c, choice);
out:
	for (i = 0; i <= SELECT_CORE_FEW; i++)
		alloc_free(c.s[i]);
	alloc_free(c.work);
	alloc_free(c.g);
	return r;
}

int
select_budget(const struct select_level *level, size_t n, size_t m,
    int64_t budget, uint8_t *choice, struct select_result *res, struct err *e)
{
	size_t g;
	int r;

	memset(res, 0, sizeof(*res));
	if (m > SELECT_LEVELS)
		return err_set(e, ERR_USAGE, "a group has %zu levels, expected at most %d", m,
		    SELECT_LEVELS);
	for (g = 0; g < n; g++)
		if (select_price(level + g * m, m, 0) == m)
			return err_set(e, ERR_USAGE,
			    "group %zu has no level that can be chosen", g);
	if (!select_at(level, n, m, SELECT_DEAR, budget, choice)) {
		select_totals(level, n, m, choice, res);
		return 1;
	}
	if (select_bisect(level, n, m, budget, choice, res))
		return 0;
	r = select_improve(level, n, m, budget, choice, res, e);
	select_totals(level, n, m, choice, res);
	return r;
}

/* ---- equation (2) ---- */

struct select_rank {
	float score;
	float energy;	/* mean of x^2: the error per value that is not sent */
	uint32_t group;
};

static int
select_rank_cmp(const void *a, const void *b)
{
	const struct select_rank *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->energy != y->energy)
		return x->energy > y->energy ? -1 : 1;
	return x->group < y->group ? -1 : 1;
}

int
select_share(const float *score, const struct stat_group *stat,
    const uint32_t *size, size_t n, double p, uint8_t *chosen, struct err *e)
{
	struct select_rank *v = alloc_get(n, sizeof(*v), e);
	double total = 0, sum = 0;
	size_t i;

	if (v == NULL)
		return -ERR_SYS;
	for (i = 0; i < n; i++) {
		v[i].score = score[i];
		v[i].energy = stat[i].n > 0 ? stat[i].sumsq / (float)stat[i].n : 0;
		v[i].group = (uint32_t)i;
		chosen[i] = 0;
	}
	qsort(v, n, sizeof(*v), select_rank_cmp);
	for (i = 0; i < n; i++)		/* add in the next loop's order, to round as it does */
		total += size != NULL ? size[v[i].group] : (double)v[i].score;
	/* p = 1 also chooses groups whose scores are too small to change the sum */
	for (i = 0; i < n && (sum < p * total ||
	    (p >= 1 && v[i].score > 0)); i++) {
		sum += size != NULL ? size[v[i].group] : (double)v[i].score;
		chosen[v[i].group] = 1;
	}
	alloc_free(v);
	return 0;
}
