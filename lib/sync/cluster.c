#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "sync/cluster.h"

#define MOST ((int64_t)1 << 61)

/* ---- tiers ---- */

struct item {
	int64_t t;
	size_t at;
};

static int
by_time(const void *va, const void *vb)
{
	const struct item *a = va, *b = vb;

	if (a->t != b->t)
		return a->t < b->t ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

struct tiers {
	size_t n, k;
	struct item *s;		/* [n] the devices, the fastest first */
	int64_t *p;		/* [n + 1] prefix sums of their times */
	int64_t *last, *next;	/* rows D[k-1] and D[k] */
	uint32_t *arg;		/* the best i of each D[k][j]: k + 1 rows of n + 1 */
};

static int
tiers_init(struct tiers *x, const int64_t *t, size_t n, size_t k, struct err *e)
{
	size_t i;

	if (n == 0 || n > CLUSTER_DEVICES || k == 0 || k > CLUSTER_TIERS)
		return err_set(e, ERR_USAGE, "cannot put %zu devices into %zu tiers: expected "
		    "1 to %d devices and 1 to %d tiers", n, k, CLUSTER_DEVICES, CLUSTER_TIERS);
	x->n = n;
	x->k = k < n ? k : n;
	if ((x->s = alloc_get(n, sizeof(*x->s), e)) == NULL ||
	    (x->p = alloc_get(n + 1, sizeof(*x->p), e)) == NULL ||
	    (x->last = alloc_get(n + 1, sizeof(*x->last), e)) == NULL ||
	    (x->next = alloc_get(n + 1, sizeof(*x->next), e)) == NULL ||
	    (x->arg = alloc_get((x->k + 1) * (n + 1), sizeof(*x->arg), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < n; i++) {
		if (t[i] < 0)
			return err_set(e, ERR_USAGE, "device %zu has a time of %g s, expected 0 "
			    "s or more", i + 1, (double)t[i] * 1e-9);
		if (t[i] > MOST / (int64_t)n)
			return err_set(e, ERR_DATA, "limit: device %zu has a time of %.3g "
			    "s, expected at most %.3g s", i + 1, (double)t[i] * 1e-9,
			    (double)(MOST / (int64_t)n) * 1e-9);
		x->s[i].t = t[i];
		x->s[i].at = i;
	}
	qsort(x->s, n, sizeof(*x->s), by_time);
	for (i = 0; i < n; i++)
		x->p[i + 1] = x->p[i] + x->s[i].t;
	return 0;
}

/* Return the waiting time of devices i to j - 1 if they form one tier. */
static int64_t
wait_of(const struct tiers *x, size_t i, size_t j)
{
	return (int64_t)(j - i) * x->s[j - 1].t - (x->p[j] - x->p[i]);
}

/* Fill in D[k][j] for j in lo..hi.  The best i of each is known to be in from..to. */
static void
tiers_half(struct tiers *x, size_t k, size_t lo, size_t hi, size_t from, size_t to)
{
	size_t j = lo + (hi - lo) / 2, i, end = to < j - 1 ? to : j - 1;
	int64_t v, best = INT64_MAX;
	size_t arg = from;

	for (i = from; i <= end; i++)
		if ((v = x->last[i] + wait_of(x, i, j)) < best) {
			best = v;
			arg = i;
		}
	x->next[j] = best;
	x->arg[k * (x->n + 1) + j] = (uint32_t)arg;
	if (j > lo)
		tiers_half(x, k, lo, j - 1, from, arg);
	if (j < hi)
		tiers_half(x, k, j + 1, hi, arg, to);
}

/* Fill in all rows up to x->k, and copy each D[k][n] into idle[k]. */
static void
tiers_solve(struct tiers *x, int64_t *idle)
{
	int64_t *swap;
	size_t j, k;

	for (j = 1; j <= x->n; j++)
		x->last[j] = wait_of(x, 0, j);
	idle[1] = x->last[x->n];
	for (k = 2; k <= x->k; k++) {
		tiers_half(x, k, k, x->n, k - 1, x->n - 1);
		idle[k] = x->next[x->n];
		swap = x->last;
		x->last = x->next;
		x->next = swap;
	}
}

int
cluster_tiers(const int64_t *t, size_t n, size_t most, int64_t lambda,
    size_t *tier, int64_t *idle, size_t *k, struct err *e)
{
	struct tiers x = { 0 };
	int64_t all[CLUSTER_TIERS + 1];
	size_t i, j, lo, best = 1;
	int r;

	if (lambda < 0 || lambda > MOST / CLUSTER_TIERS)
		return err_set(e, ERR_USAGE, "the time of a tier (lambda) is %.3g s, "
		    "expected 0 to 3.6e7 s", (double)lambda * 1e-9);
	if ((r = tiers_init(&x, t, n, most, e)) == 0) {
		tiers_solve(&x, all);
		for (i = 2; i <= x.k; i++)
			if (all[i] + (int64_t)i * lambda <
			    all[best] + (int64_t)best * lambda)
				best = i;
		*idle = all[best];
		*k = best;
		for (j = x.n; best > 0; best--, j = lo) {
			lo = best > 1 ? x.arg[best * (x.n + 1) + j] : 0;
			for (i = lo; i < j; i++)
				tier[x.s[i].at] = best - 1;
		}
	}
	alloc_free(x.s);
	alloc_free(x.p);
	alloc_free(x.last);
	alloc_free(x.next);
	alloc_free(x.arg);
	return r;
}

/* ---- distances ---- */

void
cluster_cosine(const double *x, size_t n, size_t m, double *dist)
{
	double dot, a, b, c;
	size_t i, j, f;

	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++) {
			dot = a = b = 0;
			for (f = 0; f < m; f++) {
				dot += x[i * m + f] * x[j * m + f];
				a += x[i * m + f] * x[i * m + f];
				b += x[j * m + f] * x[j * m + f];
			}
			/* one root of the product, so that c is exactly 1 for equal rows */
			c = a > 0 && b > 0 && isfinite(a) && isfinite(b) ?
			    dot / sqrt(a * b) : 0;
			dist[i * n + j] = i == j ? 0 : 1 - fmin(1, fmax(-1, c));
		}
}

/* ---- groups ---- */

/* Number the groups in the order of their first members.  Return the number of groups.  name:
 * scratch for n numbers. */
static size_t
rename_groups(size_t *group, size_t n, size_t *name)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		name[i] = SIZE_MAX;
	for (i = 0; i < n; i++) {
		if (name[group[i]] == SIZE_MAX)
			name[group[i]] = k++;
		group[i] = name[group[i]];
	}
	return k;
}

/* A group is stored at the index a of its first member, where size[a] > 0.  near[a] is
 * the closest group with a larger index, or a if there is none. */
struct linkage {
	size_t n, *size, *near;
	double *d;
};

static void
link_near(struct linkage *x, size_t a)
{
	size_t b;

	x->near[a] = a;
	for (b = a + 1; b < x->n; b++)
		if (x->size[b] > 0 && (x->near[a] == a ||
		    x->d[a * x->n + b] < x->d[a * x->n + x->near[a]]))
			x->near[a] = b;
}

/* Merge group b into a < b.  The distance from a to each other group becomes the mean of
 * both distances, weighted by group size. */
static void
link_merge(struct linkage *x, size_t a, size_t b)
{
	double wa = (double)x->size[a], wb = (double)x->size[b], d;
	size_t c, n = x->n;

	for (c = 0; c < n; c++) {
		d = (wa * x->d[a * n + c] + wb * x->d[b * n + c]) / (wa + wb);
		x->d[a * n + c] = x->d[c * n + a] = d;
	}
	x->size[a] += x->size[b];
	x->size[b] = 0;
	for (c = 0; c < b; c++)
		if (x->size[c] > 0 && (c == a || x->near[c] == a ||
		    x->near[c] == b || (c < a && x->d[c * n + a] <=
		    x->d[c * n + x->near[c]])))
			link_near(x, c);
}

static void
link_all(struct linkage *x, double theta, size_t *group)
{
	size_t a, b, best, i, n = x->n;

	for (;;) {
		best = n;
		for (a = 0; a < n; a++)
			if (x->size[a] > 0 && x->near[a] != a && (best == n ||
			    x->d[a * n + x->near[a]] <
			    x->d[best * n + x->near[best]]))
				best = a;
		if (best == n || !(x->d[best * n + x->near[best]] <= theta))
			return;
		b = x->near[best];
		link_merge(x, best, b);
		for (i = 0; i < n; i++)
			if (group[i] == b)
				group[i] = best;
	}
}

int
cluster_linkage(const double *dist, size_t n, double theta, size_t *group,
    size_t *k, struct err *e)
{
	struct linkage x = { n, NULL, NULL, NULL };
	int r = -ERR_SYS;
	size_t i;

	if (n == 0 || n > CLUSTER_GROUP)
		return err_set(e, ERR_USAGE, "cannot group %zu devices: "
		    "expected 1 to %d", n, CLUSTER_GROUP);
	if ((x.size = alloc_get(n, sizeof(*x.size), e)) == NULL ||
	    (x.near = alloc_get(n, sizeof(*x.near), e)) == NULL ||
	    (x.d = alloc_get(n * n, sizeof(*x.d), e)) == NULL)
		goto out;
	for (i = 0; i < n * n; i++)
		x.d[i] = dist[i];
	for (i = 0; i < n; i++) {
		group[i] = i;
		x.size[i] = 1;
	}
	for (i = 0; i < n; i++)
		link_near(&x, i);
	link_all(&x, theta, group);
	*k = rename_groups(group, n, x.near);
	r = 0;
out:
	alloc_free(x.size);
	alloc_free(x.near);
	alloc_free(x.d);
	return r;
}
