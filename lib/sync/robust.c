#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/err.h"
#include "sync/robust.h"

/* Parse ':' and a number of devices; move *s past them.  Return 0 on error. */
static int
robust_devices(const char **s, size_t lo, size_t *v)
{
	char *end;
	unsigned long n;

	if (**s != ':' || (*s)[1] < '0' || (*s)[1] > '9')
		return 0;
	n = strtoul(*s + 1, &end, 10);
	if (n < lo || n > 1 << 20)
		return 0;
	*s = end;
	*v = (size_t)n;
	return 1;
}

/* Parse ':' and a number from lo to hi; move *s past them.  Return 0 on error. */
static int
robust_number(const char **s, double lo, double hi, double *v)
{
	char *end;

	if (**s != ':' || (*s)[1] < '0' || (*s)[1] > '9')
		return 0;
	*v = strtod(*s + 1, &end);
	*s = end;
	return *v >= lo && *v <= hi;
}

/* Return 1 if ":senders" follows; move *s past it. */
static int
robust_whom(const char **s)
{
	static const char senders[] = ":senders";
	const size_t n = sizeof(senders) - 1;
	const int is = strncmp(*s, senders, n) == 0;

	*s += is ? n : 0;
	return is;
}

/* Parse the word that says how to combine values; its name has n bytes.  Move *s past it. */
static int
robust_kind(struct robust_rule *q, const char **s, size_t n)
{
	static const char *const names[] = { "mean", "clip", "trim", "median",
	    "center" };
	const char *const name = *s;
	int i;

	for (i = 0; i <= ROBUST_CENTER; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			break;
	*s += n;
	q->kind = (enum robust_kind)i;
	switch (i) {
	case ROBUST_MEAN:
		return 1;
	case ROBUST_CLIP:
		return robust_number(s, DBL_MIN, DBL_MAX, &q->clip);
	case ROBUST_TRIM:
		if (!robust_devices(s, 0, &q->f))
			return 0;
		q->senders = robust_whom(s);
		return 1;
	case ROBUST_MEDIAN:
		q->senders = robust_whom(s);
		return 1;
	case ROBUST_CENTER:
		return robust_devices(s, 0, &q->f);
	default:
		return 0;
	}
}

/* Parse a word of a rule: 1 for a limit, 2 for how to combine values, 0 for neither. */
static int
robust_word(struct robust_rule *q, const char **s)
{
	const size_t n = strcspn(*s, ":,");

	if (n == 10 && memcmp(*s, "norm-ratio", n) == 0) {
		*s += n;
		return robust_number(s, 1, DBL_MAX, &q->max_ratio);
	}
	if (n == 6 && memcmp(*s, "finite", n) == 0) {
		*s += n;
		q->finite = 1;
		return 1;
	}
	return robust_kind(q, s, n) ? 2 : 0;
}

int
robust_parse(struct robust_rule *q, const char *s, struct err *e)
{
	const char *p = s;
	int word, kinds = 0;

	*q = (struct robust_rule){ 0 };
	for (;; p++) {
		word = robust_word(q, &p);
		kinds += word == 2;
		if (word == 0 || kinds > 1 || (*p != ',' && *p != '\0'))
			return err_set(e, ERR_USAGE, "--rule '%s' is unknown: "
			    "expected mean, sum, clip:X, trim:F, median or center:F; "
			    "norm-ratio:R and finite may follow after commas", s);
		if (*p == '\0')
			return 0;
	}
}

int
robust_centered(const struct robust_rule *q)
{
	return q->kind == ROBUST_CENTER;
}

int
robust_elements(const struct robust_rule *q)
{
	return q->kind == ROBUST_TRIM || q->kind == ROBUST_MEDIAN;
}

int
robust_active(const struct robust_rule *q)
{
	return q->kind != ROBUST_MEAN || q->max_ratio > 0 || q->finite;
}

int
robust_step(struct robust_step *t, size_t k, struct err *e)
{
	robust_release(t);
	t->k = k;
	t->one = alloc_get(k, sizeof(*t->one), e);
	t->x = alloc_get(k, sizeof(*t->x), e);
	t->element = alloc_get(k, sizeof(*t->element), e);
	for (; t->one != NULL && k > 0; k--)
		t->one[k - 1].share = t->one[k - 1].scale = 1;
	return t->one != NULL && t->x != NULL && t->element != NULL ? 0 : -ERR_SYS;
}

void
robust_release(struct robust_step *t)
{
	alloc_free(t->one);
	alloc_free(t->x);
	alloc_free(t->element);
	*t = (struct robust_step){ .k = 0 };
}

/* ---- which contributions count ---- */

int
robust_counts(const struct robust_one *o)
{
	return o->fate == ROBUST_COUNTS || o->fate == ROBUST_CLIPPED;
}

const char *
robust_why(enum robust_fate fate)
{
	static const char *const why[] = { "counts", "clipped", "norm-ratio",
	    "nonfinite" };

	return why[fate];
}

static size_t
robust_left(const struct robust_one *o, size_t k)
{
	size_t i, n = 0;

	for (i = 0; i < k; i++)
		n += robust_counts(&o[i]) != 0;
	return n;
}

/* Store the sorted norms of the contributions that count in tmp.  Return their
 * number. */
static size_t
robust_norms(const struct robust_one *o, size_t k, double *tmp)
{
	size_t i, n = 0;

	for (i = 0; i < k; i++)
		if (robust_counts(&o[i]))
			tmp[n++] = sqrt(o[i].norm2);
	qsort(tmp, n, sizeof(*tmp), compare_f64);
	return n;
}

static void
robust_limits(const struct robust_rule *q, struct robust_step *t, double *tmp)
{
	struct robust_one *o = t->one;
	size_t i, n, k = t->k;

	for (i = 0; i < k; i++) {
		o[i].scale = 1;
		o[i].fate = o[i].nonfinite ? ROBUST_NONFINITE : ROBUST_COUNTS;
	}
	/* the norms of bad devices are included: each moves the median by one place only.  Take
	 * the smaller of the middle two, since a step that is too short does less harm */
	if ((n = robust_norms(o, k, tmp)) != 0)
		t->median = tmp[(n - 1) / 2];
	for (i = 0; i < k; i++) {
		double norm = sqrt(o[i].norm2);

		if (!robust_counts(&o[i]))
			continue;
		if (q->max_ratio > 0 && norm > q->max_ratio * t->median) {
			o[i].fate = ROBUST_BY_RATIO;
		} else if (q->kind == ROBUST_CLIP && norm > q->clip) {
			o[i].fate = ROBUST_CLIPPED;
			o[i].scale = q->clip / norm;
		}
	}
}

/* Set t->f for the n contributions that the limits leave.  If n is too small for F, each
 * one left out counts as one of the F bad ones, so that a bad device cannot stop the step
 * by being left out.  Refuse if even all K are too few. */
static int
robust_fit(const struct robust_rule *q, struct robust_step *t, struct err *e)
{
	const size_t n = robust_left(t->one, t->k), out = t->k - n;
	const size_t rest = q->f > out ? q->f - out : 0, most = (n - 1) / 2;

	t->f = q->f;
	if (q->kind != ROBUST_TRIM || n > 2 * q->f)
		return 0;
	if (t->k <= 2 * q->f)
		return err_set(e, ERR_REFUSED, "trim:%zu removes all %zu contributions, "
		    "from both ends: use trim:%zu or less", q->f, n, (t->k - 1) / 2);
	t->f = rest < most ? rest : most;
	return 0;
}

/* Lower all weights to the smallest one. */
static void
robust_even(struct robust_one *o, size_t k)
{
	double least = 0;
	size_t i;

	for (i = 0; i < k; i++)
		if (robust_counts(&o[i]) && (least <= 0 || o[i].weight < least))
			least = o[i].weight;
	for (i = 0; i < k; i++)
		if (robust_counts(&o[i]) && o[i].weight > least)
			o[i].share *= least / o[i].weight;
}

/* Refuse sparse shards: their median is zero wherever most values are zero.  Each device
 * has one vote, so that neither a few devices that send only zeros nor a few with dense
 * shards decide. */
static int
robust_dense(const struct robust_rule *q, const struct robust_one *o, size_t k,
    struct err *e)
{
	size_t i, sparse = 0, n = 0;

	for (i = 0; i < k && !q->senders; i++) {
		if (!robust_counts(&o[i]))
			continue;
		n += o[i].values != 0;
		sparse += o[i].nonzero < o[i].values - o[i].nonzero;
	}
	if (sparse <= n - sparse)
		return 0;
	return err_set(e, ERR_REFUSED, "%s of sparse shards would be near zero: %zu "
	    "of %zu devices sent more zeros than other values: append :senders to %s "
	    "in --rule, to average over nonzero values",
	    q->kind == ROBUST_TRIM ? "the trimmed mean" : "the median", sparse, n,
	    q->kind == ROBUST_TRIM ? "trim:F" : "median");
}

/* Clip to a radius, the lower median of the distances.  While most devices are honest,
 * the radius is at most the largest distance of an honest device.  Devices at more than
 * twice the radius are marked as clipped. */
void
robust_past(struct robust_step *t, double *tmp)
{
	struct robust_one *o = t->one;
	const size_t k = t->k;
	size_t i, n = 0;
	double far, radius;

	for (i = 0; i < k; i++)
		if (robust_counts(&o[i]))
			tmp[n++] = sqrt(o[i].far2);
	qsort(tmp, n, sizeof(*tmp), compare_f64);
	radius = tmp[(n - 1) / 2];
	for (i = 0; i < k; i++) {
		if (!robust_counts(&o[i]))
			continue;
		far = sqrt(o[i].far2);
		o[i].scale *= far > radius ? radius / far : 1;
		if (far > 2 * radius)
			o[i].fate = ROBUST_CLIPPED;
	}
}

static int
robust_center(const struct robust_rule *q, struct robust_step *t, double *tmp,
    struct err *e)
{
	/* contributions already left out count as bad ones */
	if (t->k < 2 * q->f + 1)
		return err_set(e, ERR_REFUSED, "center:%zu needs "
		    "at least %zu contributions, found %zu", q->f, 2 * q->f + 1, t->k);
	robust_past(t, tmp);
	robust_even(t->one, t->k);
	return 0;
}

int
robust_judge(const struct robust_rule *q, struct robust_step *t, struct err *e)
{
	struct robust_one *o = t->one;
	size_t k = t->k;
	double *tmp = alloc_get(k, sizeof(*tmp), e);
	int r = 0;

	if (tmp == NULL)
		return -ERR_SYS;
	robust_limits(q, t, tmp);
	t->none = robust_left(o, k) == 0;
	if (t->none)
		r = err_set(e, ERR_REFUSED, "all %zu contributions are left "
		    "out: not finite, or beyond a limit", k);
	else if (robust_centered(q))
		r = robust_center(q, t, tmp, e);
	else if (robust_elements(q))
		r = robust_dense(q, o, k, e);
	if (r == 0)
		r = robust_fit(q, t, e);
	alloc_free(tmp);
	return r;
}

/* Sort v[n].  Few values in nearly sorted order are common, so this is an insertion
 * sort, with Shell's strides for many values. */
static void
robust_sort(float *v, size_t n)
{
	size_t gap, i, j;
	float t;

	for (gap = 1; gap < n / 9; gap = 3 * gap + 1)
		;
	for (; gap > 0; gap /= 3)
		for (i = gap; i < n; i++) {
			t = v[i];
			for (j = i; j >= gap && v[j - gap] > t; j -= gap)
				v[j] = v[j - gap];
			v[j] = t;
		}
}

/* Combine the r values of one element. */
static double
robust_element(const struct robust_rule *q, float *v, size_t r)
{
	size_t lo, hi, i;
	double s = 0;

	if (r == 0 || (q->kind == ROBUST_TRIM && r <= 2 * q->f))
		return 0;	/* too few values to outvote F bad devices */
	robust_sort(v, r);
	lo = q->kind == ROBUST_TRIM ? q->f : (r - 1) / 2;
	hi = q->kind == ROBUST_TRIM ? r - q->f : r / 2 + 1;
	for (i = lo; i < hi; i++)
		s += (double)v[i];
	s /= (double)(hi - lo);
	return s;
}

void
robust_combine(const struct robust_rule *q, double *y, const float *const *x,
    size_t k, size_t n, float *tmp)
{
	size_t at, i, r;
	float v;

	for (at = 0; at < n; at++) {
		for (i = r = 0; i < k; i++) {
			if (x[i] == NULL && q->senders)
				continue;
			/* + 0 turns -0 into +0 */
			v = x[i] != NULL ? x[i][at] + 0.0f : 0;
			if (!q->senders || v < 0 || v > 0)
				tmp[r++] = v;
		}
		y[at] = robust_element(q, tmp, r);
	}
}

int
robust_sum_room(struct robust_sum *c, size_t cap, struct err *e)
{
	if (cap <= c->cap)
		return 0;
	robust_sum_release(c);
	c->acc = alloc_get(cap, sizeof(*c->acc), e);
	c->y = alloc_get(cap, sizeof(*c->y), e);
	if (c->acc == NULL || c->y == NULL)
		return -ERR_SYS;
	c->cap = cap;
	return 0;
}

void
robust_sum_release(struct robust_sum *c)
{
	alloc_free(c->acc);
	alloc_free(c->y);
	*c = (struct robust_sum){ .kern = c->kern };
}

void
robust_sum_begin(struct robust_sum *c, size_t n)
{
	c->n = n;
	memset(c->acc, 0, n * sizeof(*c->acc));
}

void
robust_sum_add(struct robust_sum *c, double f, const float *x)
{
	c->kern->axpy64(c->acc, f, x, c->n);
}

void
robust_sum_add_some(struct robust_sum *c, double f, const uint32_t *pos,
    const float *x, size_t k)
{
	size_t i;

	for (i = 0; i < k; i++)
		c->acc[pos[i]] += f * (double)x[i];
}

const float *
robust_sum_round(struct robust_sum *c, double d)
{
	size_t k;

	if (d < 1 || d > 1)
		for (k = 0; k < c->n; k++)
			c->acc[k] /= d;
	c->kern->narrow(c->y, c->acc, c->n);
	return c->kern->first_nonfinite(c->y, c->n) == c->n ? c->y : NULL;
}
