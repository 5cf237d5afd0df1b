#include "base/alloc.h"
#include "base/err.h"
#include "sync/dynacomm.h"

#define MOST ((int64_t)1 << 61)

int
dynacomm_init(struct dynacomm *d, const int64_t *pt, const int64_t *fc,
    size_t n, int64_t dt, struct err *e)
{
	int64_t sum = 0;
	size_t i;

	*d = (struct dynacomm)DYNACOMM_INIT;
	if (n == 0 || n >= SIZE_MAX / sizeof(*d->pt) || dt < 0)
		return err_set(e, ERR_USAGE, "found %zu layers and %g s per transfer (--cuts): "
		    "expected 1 layer or more and 0 s or more", n, (double)dt * 1e-9);
	if ((d->pt = alloc_get(n + 1, sizeof(*d->pt), e)) == NULL ||
	    (d->fc = alloc_get(n + 1, sizeof(*d->fc), e)) == NULL) {
		dynacomm_release(d);
		return -ERR_SYS;
	}
	d->n = n;
	d->dt = dt;
	for (i = 0; i < n; i++) {
		if (pt[i] < 0 || fc[i] < 0) {
			dynacomm_release(d);
			return err_set(e, ERR_USAGE, "layer %zu has times of %g s and %g s, "
			    "expected 0 s or more", i + 1, (double)pt[i] * 1e-9,
			    (double)fc[i] * 1e-9);
		}
		if (pt[i] > MOST - sum || fc[i] > MOST - sum - pt[i] ||
		    dt > MOST - sum - pt[i] - fc[i]) {
			dynacomm_release(d);
			return err_set(e, ERR_DATA, "limit: the times and --cuts up "
			    "to layer %zu add up to more than 2.3e9 s", i + 1);
		}
		sum += pt[i] + fc[i] + dt;
		d->pt[i + 1] = d->pt[i] + pt[i];
		d->fc[i + 1] = d->fc[i] + fc[i];
	}
	return 0;
}

void
dynacomm_release(struct dynacomm *d)
{
	alloc_free(d->pt);
	alloc_free(d->fc);
	*d = (struct dynacomm)DYNACOMM_INIT;
}

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t
dynacomm_forward(const struct dynacomm *d, const size_t *cuts, size_t k)
{
	int64_t t = 0, link = 0;
	size_t j, lo = 0;

	for (j = 0; j < k; lo = cuts[j++]) {
		link += d->dt + d->pt[cuts[j]] - d->pt[lo];
		t = later(t, link) + d->fc[cuts[j]] - d->fc[lo];
	}
	return t;
}

int64_t
dynacomm_backward(const struct dynacomm *d, const size_t *cuts, size_t k)
{
	int64_t link = 0;
	size_t j, lo;

	for (j = k; j-- > 0; ) {
		lo = j > 0 ? cuts[j - 1] : 0;
		link = later(link, d->fc[d->n] - d->fc[lo]) + d->dt +
		    d->pt[cuts[j]] - d->pt[lo];
	}
	return link;
}

/* Return the largest b >= a with PT[b] <= lim, or a if there is none.  The step width is
 * doubled and then halved, so that calls that walk over all layers take O(L) together. */
static size_t
reach(const struct dynacomm *d, size_t a, int64_t lim)
{
	size_t lo = a, hi, step = 1, mid;

	if (d->pt[a] > lim)
		return a;
	while (step <= d->n - lo && d->pt[lo + step] <= lim) {
		lo += step;
		step *= 2;
	}
	hi = step <= d->n - lo ? lo + step : d->n + 1;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (d->pt[mid] <= lim)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Make each segment as long as T allows. Return the number of segments, or 0 if T is too
 * short. Each j needs T >= j dt + PT[b_j] + FC[L] - FC[b_{j-1}], and a larger b_{j-1}
 * only relaxes the inequalities of later j. So no other cuts reach further with as few
 * segments.
 */
static size_t
feasible(const struct dynacomm *d, int64_t t, size_t *cuts)
{
	int64_t left = t - d->fc[d->n];
	size_t a = 0, b, j = 0;

	for (; a < d->n; a = b) {
		left -= d->dt;
		if ((b = reach(d, a, left + d->fc[a])) == a)
			return 0;
		cuts[j++] = b;
	}
	return j;
}

/* Return PT'[m], the link time of the m top layers. */
static int64_t
top_pt(const struct dynacomm *d, size_t m)
{
	return d->pt[d->n] - d->pt[d->n - m];
}

int
dynacomm_best(const struct dynacomm *d, size_t *cuts, size_t *k, struct err *e)
{
	size_t n = d->n, m, at = 0, head = 0, tail = 0;
	int64_t *b = alloc_get(n + 1, sizeof(*b), e), done, best;
	size_t *q = alloc_get(n + 1, sizeof(*q), e);	/* the window */
	int r = -ERR_SYS;

	if (b == NULL || q == NULL)
		goto out;
	for (m = 1; m <= n; m++) {
		/* m - 1 enters the window.  Entries that m - 1 beats would leave
		 * the window before m - 1, so they can never be best */
		while (tail > head && b[q[tail - 1]] - top_pt(d, q[tail - 1]) >=
		    b[m - 1] - top_pt(d, m - 1))
			tail--;
		q[tail++] = m - 1;
		done = d->fc[n] - d->fc[n - m];
		while (at + 1 < m && b[at + 1] <= done)
			at++;
		while (head < tail && q[head] <= at)
			head++;
		best = done - top_pt(d, at);
		if (head < tail && b[q[head]] - top_pt(d, q[head]) < best)
			best = b[q[head]] - top_pt(d, q[head]);
		b[m] = best + d->dt + top_pt(d, m);
	}
	*k = feasible(d, b[n], cuts);
	r = 0;
out:
	alloc_free(b);
	alloc_free(q);
	return r;
}

size_t
dynacomm_sequential(const struct dynacomm *d, size_t *cuts)
{
	cuts[0] = d->n;
	return 1;
}

size_t
dynacomm_layers(const struct dynacomm *d, size_t *cuts)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		cuts[i] = i + 1;
	return d->n;
}

size_t
dynacomm_ibatch(const struct dynacomm *d, size_t *cuts)
{
	size_t k = 1, b = 1, next;

	cuts[0] = 1;
	for (; b < d->n; b = next) {
		next = reach(d, b, d->pt[b] - d->dt + d->fc[b] -
		    d->fc[k > 1 ? cuts[k - 2] : 0]);
		if (next == b)
			next++;
		cuts[k++] = next;
	}
	return k;
}

size_t
dynacomm_ibatch_backward(const struct dynacomm *d, size_t *cuts)
{
	size_t k = 0, i, hi = d->n, lo = d->n, swap;
	int64_t link = 0;

	for (; hi > 0; hi = lo) {
		lo = hi - 1;
		while (lo > 0 && d->fc[d->n] - d->fc[lo - 1] <= link)
			lo--;
		link = later(link, d->fc[d->n] - d->fc[lo]) + d->dt +
		    d->pt[hi] - d->pt[lo];
		cuts[k++] = hi;
	}
	for (i = 0; i < k / 2; i++) {
		swap = cuts[i];
		cuts[i] = cuts[k - 1 - i];
		cuts[k - 1 - i] = swap;
	}
	return k;
}
