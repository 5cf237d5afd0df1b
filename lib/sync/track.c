#include <math.h>

#include "base/err.h"
#include "sync/track.h"

#define TRACK_LEAST 0.01	/* contraction that is believed */
#define TRACK_ODD 1.5		/* times the estimate, or a part of it */

static void
track_mean(struct track_mean *m, double x)
{
	double off, gain = 1 - exp2(-1.0 / TRACK_HALF);

	if (!(x > 0))
		return;
	off = m->v > 0 ? x / m->v : 0;
	if (off >= TRACK_ODD)
		m->odd = m->odd > 0 ? m->odd + 1 : 1;
	else if (off <= 1 / TRACK_ODD)
		m->odd = m->odd < 0 ? m->odd - 1 : -1;
	else
		m->odd = 0;
	if (!(m->v > 0) || fabs(m->odd) >= 2) {
		m->v = x;
		m->odd = 0;
	} else if (m->odd == 0) {	/* one that is far off may be nothing */
		m->v *= pow(off, gain);
	}
}

void
track_see(struct track *t, const struct track_sample *s)
{
	double alpha = fmin(fmax(s->alpha, TRACK_LEAST), 1 - 1e-9);
	/* nothing was sent: what was planned was too little */
	double share = s->share > 0 ? s->share : t->planned * t->delta;

	track_mean(&t->bandwidth, s->bandwidth);
	track_mean(&t->compute, s->compute);
	/* near d = 1 the measure says nothing */
	if (s->alpha >= 0 && share > 0 && share < 0.9)
		track_mean(&t->kc, TRACK_KC * (1 - alpha) / alpha * share /
		    (1 - share));
	if (s->latency >= 0) {
		t->latency[(int)fmod(t->nlatency, TRACK_WINDOW)] = s->latency;
		t->nlatency++;
	}
	t->age++;
}

double
track_latency(const struct track *t)
{
	int i, n = t->nlatency < TRACK_WINDOW ? (int)t->nlatency : TRACK_WINDOW;
	double least = INFINITY;

	for (i = 0; i < n; i++)
		least = fmin(least, t->latency[i]);
	return n > 0 ? least : -1;
}

static int
track_moved(double now, double was)
{
	return fabs(now - was) > TRACK_MOVED * was;
}

/* What a plan is compared by; a term may be infinite, the time is not. */
static double
track_cost(const struct deco *d, struct deco_plan p, int rule)
{
	return deco_time(d, p) * (rule == TRACK_TTA ? deco_steps(d, p) :
	    1 + deco_phi(d, (enum deco_phi)rule, p));
}

int
track_plan(struct track *t, struct deco *d, int rule, struct err *e)
{
	struct deco_plan old = { (int)t->tau, t->delta }, p;
	int r;

	d->bandwidth = t->bandwidth.v;
	d->compute = t->compute.v;
	d->latency = track_latency(t);
	d->kc = t->kc.v > 0 ? t->kc.v : d->kc;
	if ((r = deco_check(d, e)) < 0)
		return r;
	if (t->planned != 0 && t->age < TRACK_EVERY &&
	    !track_moved(d->bandwidth, t->from[0]) &&
	    !track_moved(d->compute, t->from[1]) &&
	    !track_moved(d->kc, t->from[2]) &&
	    !track_moved(d->latency, t->from[3]))
		return 0;
	t->age = 0;
	t->from[0] = d->bandwidth;
	t->from[1] = d->compute;
	t->from[2] = d->kc;
	t->from[3] = d->latency;
	if (rule == TRACK_TTA)
		p = deco_best(d);
	else
		(void)deco_bubbles(d, (enum deco_phi)rule, &p);
	if (t->planned != 0 && !(track_cost(d, p, rule) <
	    (1 - TRACK_GAIN) * track_cost(d, old, rule)))
		return 0;
	t->planned = 1;
	t->tau = p.tau;
	t->delta = p.delta;
	return 1;
}

int
track_check(const struct track *t)
{
	const double *v = (const double *)t;
	int i;

	for (i = 0; i < TRACK_NUMBERS; i++)
		if (!(fabs(v[i]) <= 1e300))
			return -1;
	for (i = 0; i < TRACK_WINDOW; i++)
		if (t->latency[i] < 0)
			return -1;
	return floor(t->tau) == t->tau && floor(t->nlatency) == t->nlatency &&
	    t->bandwidth.v >= 0 && t->compute.v >= 0 && t->kc.v >= 0 &&
	    t->nlatency >= 0 && t->nlatency < 1e15 && t->tau >= 0 &&
	    t->tau <= DECO_MOST && t->delta > 0 && t->delta <= 1 ? 0 : -1;
}
