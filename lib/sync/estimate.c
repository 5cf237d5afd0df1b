#include <math.h>
#include <string.h>

#include "base/elem.h"
#include "sync/estimate.h"
#include "sync/estimate_draw.h"
#include "sync/estimate_topk.h"

#define ESTIMATE_LN2 0.69314718055994530942
enum { ESTIMATE_QBLOCK = 32, ESTIMATE_SIGNBLOCK = 256 };	/* ace-stream(5) */

static double
estimate_log2(double x)
{
	return elem_log(x) / ESTIMATE_LN2;
}

static double
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

int
estimate_fixed(const struct codec_plan *plan)
{
	switch (plan->codec) {
	case CODEC_NONE:
	case CODEC_F32:
	case CODEC_F16:
	case CODEC_BF16:
	case CODEC_Q8:
	case CODEC_Q4:
	case CODEC_SIGN:
	case CODEC_TERN:
	case CODEC_LOWRANK:
	case CODEC_I64:
		return 1;
	default:
		return 0;
	}
}

/* ---- ECQ ---- */

enum { ESTIMATE_CELLS = 16 };
#define ESTIMATE_DEAD 0.6	/* the encoder's thresholds, codec/ecq.c */
#define ESTIMATE_ROUND 0.45
#define ESTIMATE_ESCAPE 32767

struct estimate_cells {
	double mass[ESTIMATE_CELLS + 1], sum[ESTIMATE_CELLS + 1],
	    sum2[ESTIMATE_CELLS + 1];
	double bits, error;	/* of the values beyond the cells */
	double nonzero;
};

static double
estimate_edge(int k)
{
	return k == 0 ? 0 : k == 1 ? ESTIMATE_DEAD : k - ESTIMATE_ROUND;
}

/* w values evenly between a and b, in steps */
static void
estimate_spread(struct estimate_cells *c, double a, double b, double w)
{
	double lo, hi, m;
	int k = (int)(a + ESTIMATE_ROUND);

	for (k = k > 0 ? k - 1 : 0; k <= ESTIMATE_CELLS; k++) {
		lo = fmax(a, estimate_edge(k));
		hi = fmin(b, k < ESTIMATE_CELLS ? estimate_edge(k + 1) : b);
		if (hi <= lo)
			continue;
		m = w * (hi - lo) / (b - a);
		c->mass[k] += m;
		c->sum[k] += m * (lo + hi) / 2;
		c->sum2[k] += m * (lo * lo + lo * hi + hi * hi) / 3;
	}
}

/*
 * The quantised values' distribution: cell by cell while they are few; above
 * sixteen steps a value costs the logarithm of its density and errs by a
 * twelfth of a squared step.
 */
static void
estimate_cells(const struct estimate *m, double step, struct estimate_cells *c)
{
	double half = estimate_exp2(0.5 / ESTIMATE_PIECES), a, b, p;
	unsigned i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < m->points; i++) {
		a = m->x[i] / half / step;
		b = m->x[i] * half / step;
		if (a < ESTIMATE_CELLS - 1) {
			estimate_spread(c, a, b, m->w[i]);
			continue;
		}
		c->nonzero += m->w[i];
		if (a > ESTIMATE_ESCAPE) {
			c->bits += m->w[i] * 46;	/* exact, and dear */
			continue;
		}
		p = m->w[i] / (b - a) / m->n;
		c->bits += m->w[i] * (p < 1 ? -estimate_log2(p) : 0);
		c->error += m->w[i] / 12;
	}
	c->mass[0] += m->n - m->nonzero;
}

/* Order-0 entropy and signs; what the context gains is learnt later. */
static int64_t
estimate_ecq_rate(const struct estimate *m, double step)
{
	struct estimate_cells c;
	double bits;
	int k;

	if (m->max < ESTIMATE_DEAD * step)
		return 0;
	estimate_cells(m, step, &c);
	bits = c.bits + c.nonzero;
	for (k = 0; k <= ESTIMATE_CELLS; k++) {
		if (!(c.mass[k] > 0))
			continue;
		bits -= c.mass[k] * estimate_log2(fmin(c.mass[k] / m->n, 1));
		bits += k > 0 ? c.mass[k] : 0;
	}
	bits /= 8;		/* bytes from here on */
	bits += fmin(0.3 * bits, 350) + 16;	/* what adapting costs, about */
	return (int64_t)ceil(fmin(bits, 4 * m->n + 2));
}

static double
estimate_ecq_error(const struct estimate *m, double step)
{
	struct estimate_cells c;
	double sum;
	int k;

	if (m->max < ESTIMATE_DEAD * step)
		return m->sumsq;
	estimate_cells(m, step, &c);
	sum = c.error + c.sum2[0];
	for (k = 1; k <= ESTIMATE_CELLS; k++)
		if (c.mass[k] > 0)
			sum += c.sum2[k] - c.sum[k] * c.sum[k] / c.mass[k];
	return fmin(sum * step * step, m->sumsq);
}

/* ---- rates ---- */

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

/* Packed where that is less. */
static int64_t
estimate_qsgd_rate(const struct estimate *m, const struct codec_plan *plan)
{
	double count[256] = { 0 }, f, bytes, s = (double)plan->param;
	double unit = sqrt(m->sumsq) / s;
	double all = (double)codec_bound(plan, (size_t)m->n);
	unsigned i, l;

	if (!(unit > 0))
		return 4;
	count[0] = m->n;
	for (i = 0; i < m->points; i++) {
		f = m->x[i] / unit;
		l = f < s ? (unsigned)f : plan->param - 1u;
		f = f - l < 1 ? f - l : 1;
		count[l] += m->w[i] * (1 - f);
		count[l + 1] += m->w[i] * f;
		count[0] -= m->w[i];
	}
	bytes = estimate_coded(m, count, plan->param);
	return (int64_t)(plan->param < 128 && bytes < all ? bytes : all);
}

int64_t
estimate_rate(const struct estimate *m, const struct codec_plan *plan)
{
	if (estimate_fixed(plan))
		return plan->codec == CODEC_NONE ? 0 :
		    (int64_t)codec_size(plan, &m->ctx, (size_t)m->n);
	if (plan->codec == CODEC_EDEN)
		return (int64_t)codec_bound(plan, (size_t)m->n);
	if (plan->codec == CODEC_NATURAL)
		return estimate_draw_natural_rate(m);
	if (plan->codec == CODEC_QSGD)
		return estimate_qsgd_rate(m, plan);
	if (plan->codec == CODEC_TOPK)
		return estimate_topk_rate(m, plan);
	if (plan->codec == CODEC_ECQ && plan->arg > 0)
		return estimate_ecq_rate(m, (double)plan->arg);
	return -1;
}

/* ---- errors ---- */

/* Rounding to a significand of `bits' after the point, down to `least'. */
static double
estimate_float_error(const struct estimate *m, int bits, int least)
{
	double sum = 0, ulp;
	unsigned i;
	int exp;

	for (i = 0; i < m->points; i++) {
		(void)frexp(m->x[i], &exp);
		ulp = ldexp(1, (exp - 1 - bits > least ? exp - 1 - bits :
		    least));
		sum += m->w[i] * fmin(ulp * ulp / 12, m->x[i] * m->x[i]);
	}
	return sum;
}

/*
 * Blocks of 32 with a step of block maximum / levels: over the distribution of
 * the maximum of 32 draws, P(max <= x) = F(x)^32; what is below half a step
 * becomes zero, the rest errs by step^2 / 12.
 */
static double
estimate_block_error(const struct estimate *m, double levels)
{
	double count[ESTIMATE_POINTS + 1], energy[ESTIMATE_POINTS + 1];
	double above = 0, p, was = 1, f, step, part, sum = 0, below;
	unsigned i, k, j = 0;

	/* count[i], energy[i]: of the points from i on, smaller ones */
	count[m->points] = energy[m->points] = 0;
	for (i = m->points; i-- > 0;) {
		count[i] = count[i + 1] + m->w[i];
		energy[i] = energy[i + 1] + m->w[i] * m->x[i] * m->x[i];
	}
	for (i = 0; i < m->points; i++) {
		above += m->w[i];
		f = above < m->n ? 1 - above / m->n : 0;
		for (p = f, k = 1; k < ESTIMATE_QBLOCK; k *= 2)
			p *= p;
		part = was - p;			/* the maximum is x[i] */
		was = p;
		step = m->x[i] / levels;
		while (j < m->points && m->x[j] > step / 2)
			j++;
		/* of the values not above x[i], as a share of a block */
		below = m->n - (above - m->w[i]);
		if (j > i && below > 0)
			sum += part * m->n / below * (energy[j] +
			    (count[i] - count[j]) * step * step / 12);
	}
	return sum;
}

/* After the rotation all is Gaussian; between whole bits the mixture of the
 * two quantisers. */
static double
estimate_eden_error(const struct estimate *m, const struct codec_plan *plan)
{
	/* test_eden.c's D */
	static const double d[] = { 1, .36338, .11748, .03454, .00950, 0 };
	unsigned lo = plan->arg < 4 ? (unsigned)plan->arg : 4;
	double f = (double)plan->arg - lo, e = d[lo] + f * (d[lo + 1] - d[lo]);

	return m->sumsq * (plan->param == 0 ? e / (1 - e) : e);
}

/* The mean magnitude of 256: what a block's own mean explains is not lost. */
static double
estimate_sign_error(const struct estimate *m)
{
	double mean = m->n > 0 ? m->sumabs / m->n : 0;
	double var = m->n > 0 ? m->sumsq / m->n - mean * mean : 0;

	if (var < 0)
		var = 0;
	return m->n * var * (1 - 1.0 / ESTIMATE_SIGNBLOCK);
}

/*
 * The share of an R x C matrix of independent values that a direction of the
 * codec's two rounds holds, v random: |M^T M M^T M v|^2 / |M M^T M v|^2 =
 * R m4 / m3, with the moments of M^T M / R for C / R = g (Marchenko, Pastur
 * 1967).  Then what rounding the columns loses.
 */
static double
estimate_lowrank_error(const struct estimate *m, const struct codec_plan *plan)
{
	double c = m->ctx.cols, g, rank = plan->param & 127, held;

	if (c < 2 || c > m->n / 2)
		c = floor(sqrt(m->n));
	if (!(c >= 1))
		return 0;
	g = c * c / m->n;
	rank = fmin(rank, fmin(c, m->n / c));
	held = rank / c * (1 + 6 * g + 6 * g * g + g * g * g) /
	    (1 + 3 * g + g * g);
	/* no more than as many directions as there are hold all */
	held = fmax(fmin(held, 1), rank / fmin(c, m->n / c));
	return m->sumsq * (1 - held * (plan->param & 128 ? 1 - 6e-5 :
	    1 - 0x1p-16));
}

double
estimate_error(const struct estimate *m, const struct codec_plan *plan)
{
	switch (plan->codec) {
	case CODEC_NONE:
		return m->sumsq;
	case CODEC_F32:
	case CODEC_LOSSLESS:
		return 0;
	case CODEC_F16:
		return m->max < 65520 ? estimate_float_error(m, 10, -24) :
		    HUGE_VAL;
	case CODEC_BF16:
		return m->max < 0x1.ffp127 ? estimate_float_error(m, 7, -133) :
		    HUGE_VAL;
	case CODEC_Q8:
		return estimate_block_error(m, 127);
	case CODEC_Q4:
		return estimate_block_error(m, 8);
	case CODEC_SIGN:
		return estimate_sign_error(m);
	case CODEC_TOPK:
		return estimate_topk_error(m, plan);
	case CODEC_QSGD:
		return estimate_draw_qsgd(m, (double)plan->param);
	case CODEC_EDEN:
		return estimate_eden_error(m, plan);
	case CODEC_TERN:
		return estimate_draw_tern(m, plan->param);
	case CODEC_NATURAL:
		return estimate_draw_natural(m);
	case CODEC_LOWRANK:
		return estimate_lowrank_error(m, plan);
	case CODEC_ECQ:
		return plan->arg > 0 ?
		    estimate_ecq_error(m, (double)plan->arg) : -1;
	case CODEC_I64:
		return m->n * ldexp(1, -80) / 12;
	default:
		return -1;
	}
}
