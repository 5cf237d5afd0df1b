#include <math.h>
#include <string.h>

#include "codec/codec_impl.h"
#include "codec/estimate.h"

/* These functions are called some dozen times per group; nine digits are enough. As in
 * base/detmath.h they use only operations that every machine rounds alike. */
double
estimate_log2(double x)
{
	int k;
	double m = frexp(x, &k), s, t;

	if (m < 0.70710678118654752440) {
		m *= 2;
		k--;
	}
	/* log2 m = 2 / ln 2 atanh(s), |s| < 0.172: s^13 / 13 is below 1e-11 */
	s = (m - 1) / (m + 1);
	t = s * s;
	return k + 2.8853900817779268147 * s * (1 + t * (1.0 / 3 + t *
	    (1.0 / 5 + t * (1.0 / 7 + t * (1.0 / 9 + t * (1.0 / 11))))));
}

/* Return 2^x to nine digits, the same on every machine; 0 if x < -1000, 2^1000 if x > 1000. */
static double
estimate_exp2(double x)
{
	double k, r;

	if (x < -1000)
		return 0;
	if (x > 1000)
		x = 1000;
	k = floor(x + 0.5);
	r = (x - k) * 0.69314718055994530942;
	/* Taylor, |r| < 0.347: r^10 / 10! is below 1e-11 */
	r = 1 + r * (1 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r *
	    (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r *
	    (1.0 / 40320 + r * (1.0 / 362880)))))))));
	return ldexp(r, (int)k);
}

/* ---- the histogram's density ---- */

/* For each bin, log2 of its density at the point `at', which is in octaves from the lower end
 * of bin 0.  Bin 0 ends at the largest value.  have: 0 if the bin has too few values or too
 * small a width, or is the last one. */
struct estimate_bins {
	double at[STAT_BINS], density[STAT_BINS];
	char have[STAT_BINS];
};

/* Fill d from the histogram. top: the largest value divided by the lower end of bin 0. */
static void
estimate_density(struct estimate_bins *d, const struct stat_group *s, double top)
{
	int b;

	for (b = 0; b < STAT_BINS; b++) {
		d->have[b] = b < STAT_BINS - 1 &&
		    s->hist[b] >= (b == 0 ? 3 : 1) && (b > 0 || top >= 1.01);
		if (!d->have[b])
			continue;
		d->at[b] = b == 0 ? estimate_log2(top) / 2 : 0.5 - b;
		d->density[b] = estimate_log2((double)s->hist[b]) +
		    (b == 0 ? -estimate_log2(top - 1) : b);
	}
}

/* Return the slope of the density in bin b, p(x) ~ x^-slope, from the densities of its
 * neighbours. */
static double
estimate_slope(const struct estimate_bins *d, int b)
{
	double sum = 0;
	int i, n = 0;

	for (i = b > 0 ? b - 1 : 0; i <= b && i + 1 < STAT_BINS; i++) {
		if (!d->have[i] || !d->have[i + 1])
			continue;
		sum += (d->density[i + 1] - d->density[i]) / (d->at[i] - d->at[i + 1]);
		n++;
	}
	sum = n > 0 ? sum / n : 0;
	return sum < -1 ? -1 : sum > 12 ? 12 : sum;
}

/* ---- the points ---- */

/* Add count values between lo and lo * 2^bits, whose density falls as x^-slope, as points in
 * geometric spacing, largest first. Weights are geometric too, so log2(w / x), which m->log has
 * until estimate_sums, changes in equal steps. */
static void
estimate_bin(struct estimate *m, double lo, double bits, double count, double slope)
{
	double lq = bits / (double)ESTIMATE_PIECES, lr = (1 - slope) * lq;
	double q = estimate_exp2(lq), r = estimate_exp2(lr);
	double ws[ESTIMATE_PIECES], w = 1, x = lo * sqrt(q), total = 0, log;
	unsigned i, at = m->points + ESTIMATE_PIECES;

	for (i = 0; i < ESTIMATE_PIECES; i++, w *= r) {
		ws[i] = w;
		total += w;
	}
	count /= total;
	log = estimate_log2(count / x);
	for (i = 0; i < ESTIMATE_PIECES; i++, x *= q, log += lr - lq) {
		at--;
		m->x[at] = x;
		m->w[at] = count * ws[i];
		m->log[at] = log;
	}
	m->points += ESTIMATE_PIECES;
}

/* Scale all points except the largest towards the known sum of squares: their squares by a
 * factor of 1/2 to 2, and none beyond the largest. */
static void
estimate_meet(struct estimate *m)
{
	double e = 0, fix, log;
	unsigned i;

	for (i = 1; i < m->points; i++)
		e += m->w[i] * m->x[i] * m->x[i];
	fix = e > 0 ? (m->sumsq - m->max * m->max) / e : 1;
	fix = sqrt(fix < 0.5 ? 0.5 : fix > 2 ? 2 : fix);
	log = estimate_log2(fix);
	for (i = 1; i < m->points; i++) {
		m->x[i] = m->x[i] * fix < m->max ? m->x[i] * fix : m->max;
		m->log[i] -= log;
	}
}

static void
estimate_sums(struct estimate *m)
{
	double count = 0, energy = 0, log = 0;
	unsigned i = m->points;

	m->count[i] = m->energy[i] = m->log[i] = 0;
	while (i-- > 0) {
		m->count[i] = count += m->w[i];
		m->energy[i] = energy += m->w[i] * m->x[i] * m->x[i];
		m->log[i] = log += m->w[i] * m->log[i];
	}
}

void
estimate_init(struct estimate *m, const struct stat_group *s,
    const struct codec_ctx *ctx)
{
	static const struct codec_ctx none;
	struct estimate_bins d;
	double lo, top;
	int exp, b;

	m->ctx = ctx != NULL ? *ctx : none;
	m->n = (double)s->n;
	m->nonzero = (double)s->nonzero;
	m->sumsq = (double)s->sumsq;
	m->sumabs = (double)s->sumabs;
	m->max = (double)s->max_abs;
	m->points = 0;
	if (m->max > 0 && s->nonzero > 0) {
		(void)frexp(m->max, &exp);
		lo = ldexp(1, exp - 1);
		top = m->max / lo;
		estimate_density(&d, s, top);
		m->x[0] = m->max;
		m->w[0] = 1;
		m->log[0] = -estimate_log2(m->max);
		m->points = 1;
		if (s->hist[0] > 1)
			estimate_bin(m, lo, estimate_log2(top),
			    (double)(s->hist[0] - 1), estimate_slope(&d, 0));
		for (b = 1; b < STAT_BINS; b++)
			if (s->hist[b] > 0)
				estimate_bin(m, ldexp(lo, -b), 1,
				    (double)s->hist[b], estimate_slope(&d, b));
		estimate_meet(m);
	}
	estimate_sums(m);
}

double
estimate_positions(const struct estimate *m, double k)
{
	const double p = k / m->n;

	if (!(k > 0 && p < 1))
		return 0;
	return 0.25 * fmin(k, m->n - k) - k * estimate_log2(p) -
	    (m->n - k) * estimate_log2(1 - p);
}

unsigned
estimate_below(const struct estimate *m, double x)
{
	unsigned lo = 0, hi = m->points, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (m->x[mid] < x)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Estimate the bytes: entropy and signs, a margin, and the rANS table. */
double
estimate_coded(const struct estimate *m, const double *count, unsigned levels)
{
	double bits = 0;
	unsigned l, used = 0;

	for (l = 0; l <= levels; l++)
		if (count[l] > 0) {
			bits += count[l] * ((l > 0) - estimate_log2(count[l] / m->n));
			used += count[l] > 0.5;
		}
	return (bits * 1.005 + 1.4 * sqrt(bits)) / 8 + 4 * used + 24;
}

void
estimate_coding(const struct estimate *m, const struct codec_plan *plan,
    int64_t *bytes, double *error)
{
	const struct codec_impl *c = codec_row(plan->codec);

	*bytes = -1;
	*error = codec_exact(plan->codec) ? 0 : -1;
	if (plan->codec == CODEC_NONE) {
		*bytes = 0;
		*error = m->sumsq;
	}
	if (c->fixed)
		*bytes = (int64_t)codec_size(plan, &m->ctx, (size_t)m->n);
	if (c->estimate != NULL)
		c->estimate(plan, m, bytes, error);
	if (*bytes < 0)
		*bytes = (int64_t)codec_bound(plan, (size_t)m->n);
}
