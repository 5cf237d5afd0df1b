#include <math.h>
#include <string.h>

#include "codec/ecq_foretell.h"
#include "codec/estimate.h"

enum { CELLS = 16 };
#define DEAD 0.6	/* the encoder's thresholds, codec/ecq.c */
#define ROUND 0.45
#define ESCAPE 32767
/* a point stands for the magnitudes from x / HALF to x * HALF, a sixteenth of
 * an octave: 2^(0.5 / ESTIMATE_PIECES) */
#define HALF 1.0442737824274138403

/* The quantised values' distribution: how many have |q| = k, the sum of |x|
 * and of x^2 of these, in steps. */
struct ecq_cells {
	double mass[CELLS + 1], sum[CELLS + 1], sum2[CELLS + 1];
	double bits, error;	/* of the values beyond the cells */
	double nonzero;		/* how many these are */
};

/* Where cell k begins; the last has no end. */
static const double ecq_edge[CELLS + 2] = {
	0, DEAD, 2 - ROUND, 3 - ROUND, 4 - ROUND, 5 - ROUND, 6 - ROUND,
	7 - ROUND, 8 - ROUND, 9 - ROUND, 10 - ROUND, 11 - ROUND, 12 - ROUND,
	13 - ROUND, 14 - ROUND, 15 - ROUND, 16 - ROUND, HUGE_VAL
};

/* w values evenly between a and b, in steps */
static void
ecq_spread(struct ecq_cells *c, double a, double b, double w)
{
	double per = w / (b - a), hi, m;
	int k = (int)(a + ROUND);

	for (k -= a < ecq_edge[k]; a < b; k++, a = hi) {
		hi = fmin(b, ecq_edge[k + 1]);
		m = per * (hi - a);
		c->mass[k] += m;
		c->sum[k] += m * (a + hi) / 2;
		c->sum2[k] += m * (a * a + a * hi + hi * hi) / 3;
	}
}

/*
 * Cell by cell while they are few; above sixteen steps a value costs the
 * logarithm of its density and errs by a twelfth of a squared step; past what
 * is quantised it is exact, and dear.  Only the points around the cells are
 * looked at, the others' sums are there.
 */
static void
ecq_fill(const struct estimate *m, double step, struct ecq_cells *c)
{
	unsigned exact = estimate_below(m, ESCAPE * step * HALF);
	unsigned i = estimate_below(m, (CELLS - 1) * step * HALF);
	unsigned small = estimate_below(m, DEAD * step / HALF);
	double wide = m->count[exact] - m->count[i], inv = 1 / step;

	memset(c, 0, sizeof(*c));
	c->nonzero = m->count[0] - m->count[i];
	c->bits = (m->count[0] - m->count[exact]) * 46;
	/* their density: w values over x * (HALF - 1 / HALF) / step, of n */
	if (exact < i)
		c->bits += wide * estimate_log2(m->n * (HALF - 1 / HALF) *
		    inv) - (m->log[exact] - m->log[i]);
	c->error = wide / 12;
	for (; i < small; i++)
		ecq_spread(c, m->x[i] * inv / HALF, m->x[i] * inv * HALF,
		    m->w[i]);
	c->mass[0] += m->n - m->nonzero + m->count[small];
	c->sum2[0] += m->energy[small] * inv * inv *
	    (1 / (HALF * HALF) + 1 + HALF * HALF) / 3;
}

/* Order-0 entropy and signs; what the context gains is learnt later. */
static int64_t
ecq_rate(const struct estimate *m, const struct ecq_cells *c)
{
	double bits = c->bits + c->nonzero;
	int k;

	for (k = 0; k <= CELLS; k++) {
		if (!(c->mass[k] > 0))
			continue;
		bits -= c->mass[k] * estimate_log2(fmin(c->mass[k] / m->n, 1));
		bits += k > 0 ? c->mass[k] : 0;
	}
	bits /= 8;		/* bytes from here on */
	bits += fmin(0.3 * bits, 350) + 16;	/* what adapting costs, about */
	return (int64_t)ceil(fmin(bits, 4 * m->n + 2));
}

static double
ecq_error(const struct ecq_cells *c)
{
	double sum = c->error + c->sum2[0];
	int k;

	for (k = 1; k <= CELLS; k++)
		if (c->mass[k] > 0)
			sum += c->sum2[k] - c->sum[k] * c->sum[k] / c->mass[k];
	return sum;
}

void
ecq_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error)
{
	double step = (double)plan->arg;
	struct ecq_cells c;

	if (!(step > 0))
		return;
	*rate = 0;
	*error = m->sumsq;
	if (m->max < DEAD * step)
		return;
	ecq_fill(m, step, &c);
	*rate = ecq_rate(m, &c);
	*error = fmin(ecq_error(&c) * step * step, m->sumsq);
}
