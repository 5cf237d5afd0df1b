#include <math.h>
#include <string.h>

#include "base/elem.h"
#include "codec/estimate.h"

#define ESTIMATE_LN2 0.69314718055994530942

double
estimate_log2(double x)
{
	return elem_log(x) / ESTIMATE_LN2;
}

double
estimate_exp2(double x)
{
	return elem_exp(x * ESTIMATE_LN2);
}

/* log2 of the density of bin b at *at octaves above bin 0's lower end; 0 when
 * the bin is too thin to tell.  Bin 0 ends at the largest value. */
static int
estimate_density(const struct stat_group *s, int b, double top, double *at,
    double *density)
{
	double width = b == 0 ? top - 1 : estimate_exp2(-b);

	if (b < 0 || b >= STAT_BINS - 1 || s->hist[b] < (b == 0 ? 3 : 1) ||
	    (b == 0 && width < 0.01))
		return 0;
	*at = b == 0 ? estimate_log2(top) / 2 : 0.5 - b;
	*density = estimate_log2((double)s->hist[b] / width);
	return 1;
}

/* How the density falls over bin b, per octave upwards: p(x) ~ x^-slope, from
 * its neighbours' densities.  top: the largest value over bin 0's lower end. */
static double
estimate_slope(const struct stat_group *s, int b, double top)
{
	double at[3] = { 0 }, d[3] = { 0 }, sum = 0;
	int have[3], i, n = 0;

	for (i = 0; i < 3; i++)
		have[i] = estimate_density(s, b + 1 - i, top, &at[i], &d[i]);
	for (i = 0; i < 2; i++) {
		if (!have[i] || !have[i + 1])
			continue;
		sum += (d[i] - d[i + 1]) / (at[i + 1] - at[i]);
		n++;
	}
	sum = n > 0 ? sum / n : 0;
	return sum < -1 ? -1 : sum > 12 ? 12 : sum;
}

/* count values between lo and hi, geometrically spaced, largest first */
static void
estimate_bin(struct estimate *m, double lo, double hi, double count,
    double slope)
{
	double q = estimate_exp2(estimate_log2(hi / lo) / ESTIMATE_PIECES);
	double r = elem_exp((1 - slope) * elem_log(q)), total = 0, w = 1;
	double x = lo * sqrt(q), xs[ESTIMATE_PIECES], ws[ESTIMATE_PIECES];
	int i;

	for (i = 0; i < ESTIMATE_PIECES; i++, x *= q, w *= r) {
		xs[i] = x;
		ws[i] = w;
		total += w;
	}
	for (i = ESTIMATE_PIECES; i-- > 0; m->points++) {
		m->x[m->points] = xs[i];
		m->w[m->points] = count * ws[i] / total;
	}
}

void
estimate_init(struct estimate *m, const struct stat_group *s,
    const struct codec_ctx *ctx)
{
	double lo, e = 0, fix;
	unsigned i;
	int exp, b;

	memset(m, 0, sizeof(*m));
	if (ctx != NULL)
		m->ctx = *ctx;
	m->n = (double)s->n;
	m->nonzero = (double)s->nonzero;
	m->sumsq = (double)s->sumsq;
	m->sumabs = (double)s->sumabs;
	m->max = (double)s->max_abs;
	if (!(m->max > 0) || s->nonzero == 0)
		return;
	(void)frexp(m->max, &exp);
	lo = ldexp(1, exp - 1);
	m->x[0] = m->max;
	m->w[0] = 1;
	m->points = 1;
	if (s->hist[0] > 1)
		estimate_bin(m, lo, m->max, (double)(s->hist[0] - 1),
		    estimate_slope(s, 0, m->max / lo));
	for (b = 1; b < STAT_BINS; b++)
		if (s->hist[b] > 0)
			estimate_bin(m, ldexp(lo, -b), ldexp(lo, 1 - b),
			    (double)s->hist[b], estimate_slope(s, b, m->max / lo));
	/* the energy is known: all but the largest move to meet it */
	for (i = 1; i < m->points; i++)
		e += m->w[i] * m->x[i] * m->x[i];
	fix = e > 0 ? (m->sumsq - m->max * m->max) / e : 1;
	fix = sqrt(fix < 0.5 ? 0.5 : fix > 2 ? 2 : fix);
	for (i = 1; i < m->points; i++)
		m->x[i] = m->x[i] * fix < m->max ? m->x[i] * fix : m->max;
}

/* The entropy and the signs, half a percent and chance for rANS and its
 * table. */
double
estimate_coded(const struct estimate *m, const double *count, unsigned levels)
{
	double bits = 0;
	unsigned l, used = 0;

	for (l = 0; l <= levels; l++)
		if (count[l] > 0) {
			bits += count[l] * ((l > 0) - estimate_log2(count[l] /
			    m->n));
			used += count[l] > 0.5;
		}
	return (bits * 1.005 + 1.4 * sqrt(bits)) / 8 + 4 * used + 24;
}
