#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/err.h"
#include "base/num.h"
#include "sync/robust.h"

static int
robust_devices(size_t *v, const char *s)
{
	uint64_t n;

	if (s == NULL || num_u64(&n, s, 0, 1 << 20, "F", NULL) < 0)
		return 0;
	*v = (size_t)n;
	return 1;
}

static int
robust_number(double *v, const char *s, double lo)
{
	return s != NULL && num_f64(v, s, lo, DBL_MAX, "X", NULL) == 0;
}

/* Parse a word of a rule, which is cut up.  Return 1 for a limit, 2 for a way to combine
 * values, 0 if the word is invalid. */
static int
robust_word(struct robust_rule *q, char *word)
{
	static const char *const kinds[] = { "mean", "clip", "trim", "median", "center" };
	char *arg = strchr(word, ':'), *whom = strstr(word, ":senders");
	int kind, known;

	/* ":senders" must come last, and may follow trim:F and median */
	if (whom != NULL && strcmp(whom, ":senders") == 0)
		*whom = '\0';
	else
		whom = NULL;
	if (arg != NULL && arg == whom)
		arg = NULL;
	if (arg != NULL)
		*arg++ = '\0';
	if (whom == NULL && strcmp(word, "norm-ratio") == 0)
		return robust_number(&q->max_ratio, arg, 1);
	if (whom == NULL && arg == NULL && strcmp(word, "finite") == 0)
		return q->finite = 1;
	for (kind = ROBUST_CENTER; kind >= 0 && strcmp(kinds[kind], word) != 0; kind--)
		continue;
	q->kind = (enum robust_kind)kind;
	q->senders = whom != NULL;
	known = kind == ROBUST_CLIP ? robust_number(&q->clip, arg, DBL_MIN) :
	    kind == ROBUST_TRIM || kind == ROBUST_CENTER ? robust_devices(&q->f, arg) :
	    kind >= 0 && arg == NULL;
	return known && (whom == NULL || robust_elements(q)) ? 2 : 0;
}

int
robust_parse(struct robust_rule *q, const char *s, struct err *e)
{
	char copy[128], *next = copy, *word;
	int what = snprintf(copy, sizeof(copy), "%s", s) < (int)sizeof(copy), kinds = 0;

	*q = (struct robust_rule){ 0 };
	while (what != 0 && (word = next) != NULL) {
		if ((next = strchr(word, ',')) != NULL)
			*next++ = '\0';
		what = robust_word(q, word);
		kinds += what == 2;
	}
	return what != 0 && kinds <= 1 ? 0 : err_set(e, ERR_USAGE, "--rule '%s' is not valid: "
	    "expected sum, or mean, clip:X (X > 0), trim:F[:senders], median[:senders] or "
	    "center:F, if wanted with norm-ratio:R (R from 1) and finite, joined by commas", s);
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
	t->sorted = alloc_get(k, sizeof(*t->sorted), e);
	for (; t->one != NULL && k > 0; k--)
		t->one[k - 1].share = t->one[k - 1].scale = 1;
	return t->one != NULL && t->x != NULL && t->element != NULL &&
	    t->sorted != NULL ? 0 : -ERR_SYS;
}

void
robust_release(struct robust_step *t)
{
	alloc_free(t->one);
	alloc_free(t->x);
	alloc_free(t->element);
	alloc_free(t->sorted);
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

/* Return the lower median of the norms of the contributions that count, of their distances or of
 * their weights; 0 if no contribution counts. */
enum robust_what { ROBUST_NORM, ROBUST_FAR, ROBUST_WEIGHT };
static double
robust_middle(const struct robust_step *t, enum robust_what what)
{
	size_t i, n = 0;

	for (i = 0; i < t->k; i++)
		if (robust_counts(&t->one[i]))
			t->sorted[n++] = what == ROBUST_WEIGHT ? t->one[i].weight :
			    sqrt(what == ROBUST_FAR ? t->one[i].far2 : t->one[i].norm2);
	qsort(t->sorted, n, sizeof(*t->sorted), compare_f64);
	return n != 0 ? t->sorted[(n - 1) / 2] : 0;
}

static void
robust_limits(const struct robust_rule *q, struct robust_step *t)
{
	struct robust_one *o = t->one;
	size_t i, k = t->k;

	for (i = 0; i < k; i++) {
		o[i].scale = 1;
		o[i].fate = o[i].nonfinite ? ROBUST_NONFINITE : ROBUST_COUNTS;
	}
	/* the finite norms of bad devices are included: each moves the median by at most one place.
	 * Take the smaller of the middle two, since a step that is too short does less harm */
	t->median = robust_middle(t, ROBUST_NORM);
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

/* Set t->f, the bad devices to tolerate among the n contributions that the limits leave.
 * For trim, if n is too small for F, each contribution left out counts as one of the F, so
 * that a bad device cannot stop the step by being left out; refuse K <= 2F contributions. */
static int
robust_fit(const struct robust_rule *q, struct robust_step *t, struct err *e)
{
	const size_t n = robust_left(t->one, t->k), out = t->k - n;
	const size_t rest = q->f > out ? q->f - out : 0, most = (n - 1) / 2;

	t->f = q->f;
	if (q->kind != ROBUST_TRIM || n > 2 * q->f)
		return 0;
	if (t->k <= 2 * q->f)
		return err_set(e, ERR_REFUSED, "trim:%zu needs at least %zu contributions, found "
		    "%zu: use trim:%zu%s%s", q->f, 2 * q->f + 1, t->k, (t->k - 1) / 2,
		    q->senders ? ":senders" : "", t->k > 2 ? " or less" : "");
	t->f = rest < most ? rest : most;
	return 0;
}

/* Give each contribution that counts the median weight, which F bad ones of 2F + 1 cannot make
 * lower than every honest one's.  One with almost no weight keeps it, since f64 cannot undo it. */
static void
robust_even(struct robust_step *t)
{
	const double middle = robust_middle(t, ROBUST_WEIGHT);
	struct robust_one *o;

	for (o = t->one; o < t->one + t->k; o++)
		if (robust_counts(o) && o->weight > 1e-300 * middle)
			o->share *= middle / o->weight;
}

/* Without :senders, refuse if most devices sent sparse shards: the median is zero wherever
 * most values are zero.  Each device with values has one vote, however many it sent. */
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

/* While most devices are honest, the radius is at most the largest distance of an honest
 * device. */
void
robust_past(struct robust_step *t)
{
	const double radius = robust_middle(t, ROBUST_FAR);
	struct robust_one *o;
	double far;

	for (o = t->one; o < t->one + t->k; o++) {
		if (!robust_counts(o))
			continue;
		far = sqrt(o->far2);
		o->scale *= far > radius ? radius / far : 1;
		if (far > 2 * radius)
			o->fate = ROBUST_CLIPPED;
	}
}

static int
robust_center(const struct robust_rule *q, struct robust_step *t, struct err *e)
{
	/* contributions already left out count as bad ones */
	if (t->k < 2 * q->f + 1)
		return err_set(e, ERR_REFUSED, "center:%zu (from --rule or --tolerate) needs %zu "
		    "contributions, found %zu, enough for F = %zu: use %sanother rule", q->f,
		    2 * q->f + 1, t->k, (t->k - 1) / 2, t->k > 2 ? "a smaller F, or " : "");
	robust_past(t);
	robust_even(t);
	return 0;
}

int
robust_judge(const struct robust_rule *q, struct robust_step *t, struct err *e)
{
	int r = 0;

	robust_limits(q, t);
	t->none = robust_left(t->one, t->k) == 0;
	if (t->none)
		return err_set(e, ERR_REFUSED, "no contribution is left (found %zu): each "
		    "has a NaN or an infinity: correct the training", t->k);
	if (robust_centered(q))
		r = robust_center(q, t, e);
	else if (robust_elements(q))
		r = robust_dense(q, t->one, t->k, e);
	return r < 0 ? r : robust_fit(q, t, e);
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

/* Return the trimmed mean or median of one element's r values, which are sorted in place. */
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
	return c->kern->max_bits(c->y, c->n) < 0x7f800000 ? c->y : NULL;
}
