#include <math.h>

#include "sync/replan.h"

#define REPLAN_LEAST 0.01	/* least contraction: smaller ones are raised to it */
#define REPLAN_ODD 1.5		/* a sample beyond this factor of the estimate is far off */

/* Add a measured sample.  From the second in a row on that is far off on the same side, move
 * the estimate to the sample (whole = 1), or half way to it in logarithms (whole = 0). */
static void
replan_mean(struct replan_mean *m, double x, int whole)
{
	const double gain = 1 - exp2(-1.0 / REPLAN_HALF);
	const double off = m->v > 0 ? x / m->v : 0;

	if (off >= REPLAN_ODD)
		m->odd = m->odd > 0 ? m->odd + 1 : 1;
	else if (off <= 1 / REPLAN_ODD)
		m->odd = m->odd < 0 ? m->odd - 1 : -1;
	else
		m->odd = 0;
	if (!(m->v > 0) || (whole && fabs(m->odd) >= 2)) {
		m->v = x;
		m->odd = 0;
	} else if (fabs(m->odd) >= 2) {
		m->v = sqrt(m->v * x);
	} else if (m->odd == 0) {	/* not an outlier; ignore a single one */
		m->v = exp(log(m->v) + gain * (log(x) - log(m->v)));
	}
}

static void
replan_rate(struct replan_mean *m, double x, int given)
{
	if (!(x > 0))
		return;
	if (given)
		*m = (struct replan_mean){ x, 0 };
	else
		replan_mean(m, x, 1);
}

/* Add a sample of the cost of compression. The nominal value counts as the first sample,
 * because one shard says little about later ones, particularly early in a run. */
static void
replan_price(struct replan *t, double x)
{
	if (!(t->kc.v > 0))
		t->kc.v = t->planned != 0 ? t->from[2] : ((struct deco)DECO_INIT).kc;
	replan_mean(&t->kc, x, 0);
}

/* Return the latency sample that came `back' samples before the newest one. */
static double
replan_newest(const struct replan *t, int back)
{
	return t->latency[(int)fmod(t->nlatency - 1 - back, REPLAN_WINDOW)];
}

static void
replan_latency_see(struct replan *t, double x, int given)
{
	const int n = (int)fmin(t->nlatency + 1, REPLAN_WINDOW);
	double least = INFINITY, most = 0, two;
	int i;

	if (!given) {
		t->latency[(int)fmod(t->nlatency, REPLAN_WINDOW)] = x;
		t->nlatency++;
		for (i = 2; i < n; i++) {
			least = fmin(least, replan_newest(t, i));
			most = fmax(most, replan_newest(t, i));
		}
		two = n < 4 ? 0 : fmin(replan_newest(t, 0), replan_newest(t, 1));
		if (!(two > REPLAN_ODD * most && two - most > most - least))
			return;
		x = two;
	}
	t->latency[0] = x;
	t->nlatency = 1;
}

void
replan_see(struct replan *t, const struct replan_sample *s)
{
	double alpha = fmin(fmax(s->alpha, REPLAN_LEAST), 1 - 1e-9);
	/* share 0: nothing was sent, because the planned share was too small */
	double share = s->share > 0 ? s->share : t->planned * t->delta;

	replan_rate(&t->bandwidth, s->bandwidth, s->given & REPLAN_BANDWIDTH);
	replan_rate(&t->compute, s->compute, s->given & REPLAN_COMPUTE);
	/* if nearly everything was sent, the measurement is meaningless */
	if (s->alpha >= 0 && share > 0 && share < 0.9)
		replan_price(t, REPLAN_KC * (1 - alpha) / alpha * share / (1 - share));
	if (s->latency >= 0)
		replan_latency_see(t, s->latency, s->given & REPLAN_LATENCY);
	t->age++;
}

double
replan_latency(const struct replan *t)
{
	int i, n = t->nlatency < (double)REPLAN_WINDOW ? (int)t->nlatency : REPLAN_WINDOW;
	double least = INFINITY;

	for (i = 0; i < n; i++)
		least = fmin(least, t->latency[i]);
	return n > 0 ? least : -1;
}

static int
replan_moved(double now, double was)
{
	return fabs(now - was) > REPLAN_MOVED * was;
}

/* Return the time to the target, by which plans are compared. */
static double
replan_cost(const struct deco *d, struct deco_plan p)
{
	return deco_time(d, p) * deco_steps(d, p);
}

int
replan_plan(struct replan *t, struct deco *d, struct err *e)
{
	struct deco_plan old = { (int)t->tau, t->delta }, p;
	double gain;
	int r;

	d->bandwidth = t->bandwidth.v;
	d->compute = t->compute.v;
	d->latency = replan_latency(t);
	d->kc = t->kc.v > 0 ? t->kc.v : d->kc;
	if ((r = deco_check(d, e)) < 0)
		return r;
	if (t->planned != 0 && t->age < REPLAN_EVERY &&
	    !replan_moved(d->bandwidth, t->from[0]) &&
	    !replan_moved(d->compute, t->from[1]) &&
	    !replan_moved(d->kc, t->from[2]) && !replan_moved(d->latency, t->from[3]))
		return 0;
	t->age = 0;
	t->from[0] = d->bandwidth;
	t->from[1] = d->compute;
	t->from[2] = d->kc;
	t->from[3] = d->latency;
	p = deco_best(d);
	gain = p.tau != old.tau ? REPLAN_GAIN : REPLAN_GAIN / 3;
	if (t->planned != 0 && !(replan_cost(d, p) < (1 - gain) * replan_cost(d, old)))
		return 0;
	t->planned = 1;
	t->tau = p.tau;
	t->delta = p.delta;
	return 1;
}

int
replan_check(const struct replan *t)
{
	const double *v = (const double *)t;
	int i;

	for (i = 0; i < REPLAN_NUMBERS; i++)
		if (!(fabs(v[i]) <= 1e300))
			return -1;
	for (i = 0; i < REPLAN_WINDOW; i++)
		if (t->latency[i] < 0)
			return -1;
	return floor(t->tau) == t->tau && floor(t->nlatency) == t->nlatency &&
	    t->bandwidth.v >= 0 && t->compute.v >= 0 && t->kc.v >= 0 &&
	    t->nlatency >= 0 && t->nlatency < 1e15 && t->tau >= 0 &&
	    t->tau <= (double)DECO_MOST && t->delta > 0 && t->delta <= 1 ? 0 : -1;
}
