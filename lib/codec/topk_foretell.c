#include <math.h>

#include "base/elem.h"
#include "codec/estimate.h"
#include "codec/topk.h"
#include "codec/topk_foretell.h"

static double
topk_foretell_kept(const struct estimate *m, const struct codec_plan *plan)
{
	double k = floor((double)plan->arg * m->n + 0.5);
	unsigned i;

	if (plan->param >> TOPK_PICK == TOPK_THRESHOLD)
		for (i = 0, k = 0; i < m->points &&
		    m->x[i] >= (double)plan->arg; i++)
			k += m->w[i];
	else if (!(k >= 1))
		k = 1;
	return k < m->nonzero ? k : m->nonzero;
}

/* The kept magnitudes' weights, w[i] of x[i]: how many points. */
static unsigned
topk_foretell_weights(const struct estimate *m, double k, double *w)
{
	unsigned i;

	for (i = 0; i < m->points && k > 0; i++) {
		w[i] = m->w[i] < k ? m->w[i] : k;
		k -= w[i];
	}
	return i;
}

/* What w[i] values of x[i] lose to the mean of those above t and the mean of
 * the others; *t: the middle of the two means. */
static double
topk_foretell_two_means(const double *x, const double *w, unsigned n, double *t)
{
	double c[2] = { 0 }, s[2] = { 0 }, q[2] = { 0 };
	unsigned i, up;

	for (i = 0; i < n; i++) {
		up = x[i] > *t;
		c[up] += w[i];
		s[up] += w[i] * x[i];
		q[up] += w[i] * x[i] * x[i];
	}
	for (up = 0; up < 2; up++)
		if (c[up] > 0) {
			q[up] -= s[up] * s[up] / c[up];
			s[up] /= c[up];
		}
	if (c[0] > 0 && c[1] > 0)
		*t = (s[0] + s[1]) / 2;
	return q[0] + q[1];
}

/* q4's eight cells between x[n - 1] and x[0], in the logarithm: point i's
 * weight, spread to half way to its neighbours. */
static void
topk_foretell_cells(const double *x, const double *w, unsigned n, double c[8])
{
	double first = estimate_log2(x[n - 1]), here = estimate_log2(x[0]);
	double unit = (here - first) / 8, hi = here, next, lo, at;
	unsigned i, k;

	for (i = 0; i < n; i++, hi = lo, here = next) {
		next = i + 1 < n ? estimate_log2(x[i + 1]) : here;
		lo = (here + next) / 2;
		for (k = 0; k < 8; k++) {
			at = lo + (hi - lo) * (k + 0.5) / 8 - first;
			at = unit > 0 ? at / unit : 0;
			c[at < 7 ? (unsigned)at : 7] += w[i] / 8;
		}
	}
}

/* The bits a kept level takes: the entropy of the cells; of q4's, which the
 * points are too few for, a third of a bit to be safe. */
static double
topk_foretell_level_bits(const struct estimate *m, unsigned kind, double k)
{
	double w[ESTIMATE_POINTS], c[8] = { 0 }, h = 0, t;
	unsigned n = topk_foretell_weights(m, k, w), i;

	if (n == 0 || kind == TOPK_MAG)
		return 0;
	t = m->x[n - 1];
	for (i = 0; kind == TOPK_Q2 && i < 8; i++)
		(void)topk_foretell_two_means(m->x, w, n, &t);
	for (i = 0; kind == TOPK_Q2 && i < n; i++)
		c[m->x[i] > t] += w[i];
	if (kind == TOPK_Q4)
		topk_foretell_cells(m->x, w, n, c);
	for (i = 0; i < 8; i++)
		if (c[i] > 0)
			h -= c[i] / k * estimate_log2(c[i] / k);
	return kind == TOPK_Q4 ? fmin(h + 0.35, 3) : h;
}

/* The bits a kept magnitude takes: the entropy of its eighth between two powers
 * of two, where the model's pieces are eighths of octaves, and what a half has
 * below. */
static double
topk_foretell_bits(const struct estimate *m, unsigned kind, double k)
{
	double left = k, take, h = 0, q;
	unsigned i;
	int exp;

	if (kind != TOPK_F16)
		return topk_foretell_level_bits(m, kind, k);
	for (i = 0; i < m->points && left > 0; i++) {
		take = m->w[i] < left ? m->w[i] : left;
		q = i > 0 && i + 1 < m->points ? m->x[i] / m->x[i + 1] : 1;
		q = q > 1 && q < 1.09 ? q : 1.09;
		if (take > 0)
			h += take / k * (estimate_log2(16 * (q - 1) *
			    frexp(m->x[i], &exp)) - estimate_log2(take / k));
		left -= take;
	}
	return h + 7;
}

/* Uniform positions.  RICE128: entropy and 0.17 bit an index at most (measured
 * 0.12 to 0.15), then a byte and a half a block of 128.  Coded: entropy, 1.2
 * per cent, and what it costs to learn the values' distribution. */
static int64_t
topk_foretell_rate(const struct estimate *m, const struct codec_plan *plan)
{
	static const double width[] = { 16, 4, 2, 1 };
	unsigned kind = plan->param & TOPK_KIND;
	double k = topk_foretell_kept(m, plan), p, bits;

	if (!(k > 0))
		return 1;
	p = k / m->n;
	bits = p < 1 ? -k * estimate_log2(p) -
	    (m->n - k) * estimate_log2(1 - p) : 0;
	if (plan->param & TOPK_RICE)
		return (int64_t)ceil((bits + 0.17 * k + width[kind] * k) / 8 +
		    k / 85) + 8;
	bits += k * (1.01 + topk_foretell_bits(m, kind, k));
	return (int64_t)ceil((bits * 1.012 + 10 * estimate_log2(1 + k)) / 8) +
	    10;
}

/* Of w[i] kept magnitudes x[i], largest first, what their few levels lose. */
static double
topk_foretell_levels_error(const double *x, const double *w, unsigned n,
    unsigned kind)
{
	double t = kind == TOPK_MAG ? HUGE_VAL : x[n - 1], lost = 0, r;
	unsigned i;

	if (kind == TOPK_Q4) {		/* cells of equal ratio, uniform */
		r = elem_exp(elem_log(x[0] / x[n - 1]) / 8);
		for (i = 0; i < n; i++)
			lost += w[i] * x[i] * x[i] * (r - 1) * (r - 1) /
			    (3 * (r + 1) * (r + 1));
		return lost;
	}
	for (i = 0; i < 8; i++)
		lost = topk_foretell_two_means(x, w, n, &t);
	return lost;
}

static double
topk_foretell_error(const struct estimate *m, const struct codec_plan *plan)
{
	double w[ESTIMATE_POINTS], kept = 0;
	unsigned n = topk_foretell_weights(m, topk_foretell_kept(m, plan), w), i;
	unsigned kind = plan->param & TOPK_KIND;

	for (i = 0; i < n; i++)
		kept += w[i] * m->x[i] * m->x[i];
	if (kept > m->sumsq)
		kept = m->sumsq;
	if (n > 0 && kind != TOPK_F16)
		return m->sumsq - kept +
		    topk_foretell_levels_error(m->x, w, n, kind);
	/* the values as f16: 2^-20 / 12 of an octave's low end squared */
	return m->sumsq - kept + kept * 3.5e-8;
}

void
topk_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error)
{
	*rate = topk_foretell_rate(m, plan);
	*error = topk_foretell_error(m, plan);
}
