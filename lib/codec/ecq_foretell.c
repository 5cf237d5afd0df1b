#include <math.h>
#include <string.h>

#include "codec/ecq_foretell.h"
#include "codec/estimate.h"

enum { CELLS = 16 };
#define DEAD 0.6	/* the encoder's thresholds, codec/ecq.c */
#define ROUND 0.45
#define ESCAPE 32767

struct ecq_foretell_cells {
	double mass[CELLS + 1], sum[CELLS + 1],
	    sum2[CELLS + 1];
	double bits, error;	/* of the values beyond the cells */
	double nonzero;
};

static double
ecq_foretell_edge(int k)
{
	return k == 0 ? 0 : k == 1 ? DEAD : k - ROUND;
}

/* w values evenly between a and b, in steps */
static void
ecq_foretell_spread(struct ecq_foretell_cells *c, double a, double b, double w)
{
	double lo, hi, m;
	int k = (int)(a + ROUND);

	for (k = k > 0 ? k - 1 : 0; k <= CELLS; k++) {
		lo = fmax(a, ecq_foretell_edge(k));
		hi = fmin(b, k < CELLS ? ecq_foretell_edge(k + 1) : b);
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
ecq_foretell_cells(const struct estimate *m, double step, struct ecq_foretell_cells *c)
{
	double half = estimate_exp2(0.5 / ESTIMATE_PIECES), a, b, p;
	unsigned i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < m->points; i++) {
		a = m->x[i] / half / step;
		b = m->x[i] * half / step;
		if (a < CELLS - 1) {
			ecq_foretell_spread(c, a, b, m->w[i]);
			continue;
		}
		c->nonzero += m->w[i];
		if (a > ESCAPE) {
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
ecq_foretell_rate(const struct estimate *m, double step)
{
	struct ecq_foretell_cells c;
	double bits;
	int k;

	if (m->max < DEAD * step)
		return 0;
	ecq_foretell_cells(m, step, &c);
	bits = c.bits + c.nonzero;
	for (k = 0; k <= CELLS; k++) {
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
ecq_foretell_error(const struct estimate *m, double step)
{
	struct ecq_foretell_cells c;
	double sum;
	int k;

	if (m->max < DEAD * step)
		return m->sumsq;
	ecq_foretell_cells(m, step, &c);
	sum = c.error + c.sum2[0];
	for (k = 1; k <= CELLS; k++)
		if (c.mass[k] > 0)
			sum += c.sum2[k] - c.sum[k] * c.sum[k] / c.mass[k];
	return fmin(sum * step * step, m->sumsq);
}

void
ecq_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error)
{
	if (!(plan->arg > 0))
		return;
	*rate = ecq_foretell_rate(m, (double)plan->arg);
	*error = ecq_foretell_error(m, (double)plan->arg);
}
