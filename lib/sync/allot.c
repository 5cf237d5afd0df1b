#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/elem.h"
#include "base/err.h"
#include "sync/allot.h"
#include "codec/estimate.h"

enum {
	ALLOT_PROBES = 8,	/* groups whose levels are all measured */
	ALLOT_LADDERS = 64,	/* and some of whose steps are */
	ALLOT_STRIDE = 6	/* every so many of a ladder's */
};

int
allot_new(struct allot **out, const struct codec_plan *plan, size_t m, size_t n,
    struct err *e)
{
	struct allot *a;

	if (m == 0 || m > SELECT_LEVELS || plan[0].codec != CODEC_NONE)
		return err_set(e, ERR_USAGE, "1 to %d levels, the first none",
		    SELECT_LEVELS);
	if ((a = alloc_get(1, sizeof(*a), e)) == NULL)
		return -ERR_SYS;
	a->plan = plan;
	a->m = m;
	a->n = n;
	a->level = alloc_get(n, m * sizeof(*a->level), e);
	a->known = alloc_get(n, m, e);
	a->weight = alloc_get(n, sizeof(*a->weight), e);
	a->choice = alloc_get(n, 1, e);
	a->told = alloc_get(m, sizeof(*a->told), e);
	a->was = alloc_get(m, sizeof(*a->was), e);
	a->scale = alloc_get(n, sizeof(*a->scale), e);
	a->own = alloc_get(n, sizeof(*a->own), e);
	if (a->level == NULL || a->known == NULL || a->weight == NULL ||
	    a->choice == NULL || a->told == NULL || a->was == NULL ||
	    a->scale == NULL || a->own == NULL) {
		allot_free(a);
		return -ERR_SYS;
	}
	*out = a;
	return 0;
}

void
allot_free(struct allot *a)
{
	if (a == NULL)
		return;
	alloc_free(a->level);
	alloc_free(a->known);
	alloc_free(a->weight);
	alloc_free(a->choice);
	alloc_free(a->told);
	alloc_free(a->was);
	alloc_free(a->scale);
	alloc_free(a->own);
	alloc_free(a);
}

void
allot_reset(struct allot *a)
{
	size_t l;

	for (l = 0; l < a->m; l++) {
		a->told[l][0] = a->told[l][1] = 0;
		a->was[l][0] = a->was[l][1] = 0;
	}
	a->solved = 0;
}

static int
allot_ladder(const struct allot *a, size_t l)
{
	return l >= a->scaled && l < a->scaled_end;
}

struct codec_plan
allot_plan(const struct allot *a, size_t g, size_t l)
{
	struct codec_plan p = a->plan[l];

	if (allot_ladder(a, l))
		p.arg = (float)((double)p.arg * a->scale[g]);
	return p;
}

int64_t
allot_cost(size_t body)
{
	unsigned char p[10];

	return (int64_t)(body + 2 + bytes_set_varint(p, body));
}

size_t
allot_body(const struct allot *a, size_t g)
{
	int64_t rate = a->level[g * a->m + a->choice[g]].rate, b = rate - 3;

	if (rate <= 3)
		return 0;
	while (b > 0 && allot_cost((size_t)b) > rate)
		b--;
	return (size_t)b;
}

static void
allot_level(struct allot *a, size_t g, size_t l, const struct estimate *m)
{
	struct select_level *v = &a->level[g * a->m + l];
	uint8_t *known = &a->known[g * a->m + l];
	const struct codec_plan pl = allot_plan(a, g, l), *p = &pl;
	int64_t body;
	double error;

	codec_foretell(p, m, &body, &error);
	v->rate = -1;
	v->dist = 0;
	*known = ALLOT_BARRED;
	if (isinf(error))
		return;
	*known = ALLOT_BLIND;
	if (body < 0 || error < 0)
		return;
	*known = p->codec == CODEC_NONE ? ALLOT_EXACT : ALLOT_FORETOLD;
	v->rate = p->codec == CODEC_NONE ? 0 : allot_cost((size_t)body);
	v->dist = a->weight[g] * error;
}

void
allot_group(struct allot *a, size_t g, const struct stat_group *stat,
    double weight, double scale, int dense, const struct codec_ctx *ctx)
{
	struct estimate m;
	size_t l, can = 0;

	a->weight[g] = weight;
	a->scale[g] = scale;
	a->own[g][0] = a->own[g][1] = 1;
	a->choice[g] = 0;
	estimate_init(&m, stat, ctx);
	for (l = 0; l < a->m; l++) {
		allot_level(a, g, l, &m);
		if (l > 0 && stat->nonzero == 0) {
			a->known[g * a->m + l] = ALLOT_BARRED;
			a->level[g * a->m + l].rate = -1;
		}
		can += codec_dense(&a->plan[l]) &&
		    a->known[g * a->m + l] != ALLOT_BARRED;
	}
	for (l = 0; dense && can > 0 && l < a->m; l++)
		if (!codec_dense(&a->plan[l])) {
			a->known[g * a->m + l] = ALLOT_BARRED;
			a->level[g * a->m + l].rate = -1;
		}
}

int
allot_solve(struct allot *a, int64_t budget, enum select_effort effort,
    struct err *e)
{
	size_t g;
	int r;

	r = select_budget(a->level, a->n, a->m, budget, effort, a->choice,
	    &a->res, e);
	a->solved = 1;
	for (a->unknown = g = 0; r >= 0 && g < a->n; g++)
		a->unknown += a->known[g * a->m + a->choice[g]] != ALLOT_EXACT;
	return r;
}

/* Groups evenly spread, up to so many. */
static int
allot_some(const struct allot *a, size_t g, size_t most)
{
	size_t stride = (a->n + most - 1) / most;

	return g % (stride > 0 ? stride : 1) == 0;
}

static int
allot_probe(const struct allot *a, size_t g, size_t l)
{
	return allot_ladder(a, l) ? allot_some(a, g, ALLOT_LADDERS) &&
	    (l - a->scaled) % ALLOT_STRIDE == ALLOT_STRIDE / 2 :
	    allot_some(a, g, ALLOT_PROBES);
}

int
allot_wants(const struct allot *a, size_t g)
{
	const uint8_t *k = a->known + g * a->m;
	size_t l;

	if (a->solved)
		return k[a->choice[g]] == ALLOT_EXACT ? -1 : a->choice[g];
	for (l = 0; l < a->m; l++)
		if (k[l] == ALLOT_BLIND ||
		    (k[l] == ALLOT_FORETOLD && allot_probe(a, g, l)))
			return (int)l;
	return -1;
}

/* Of group g, level l is f[0] times the bytes and f[1] times the error that
 * were foretold: so will its other levels of the same codec be. */
static void
allot_alike(struct allot *a, size_t g, size_t l, const double f[2])
{
	size_t i;

	for (i = 0; i < a->m; i++) {
		struct select_level *v = &a->level[g * a->m + i];

		if (a->known[g * a->m + i] != ALLOT_FORETOLD ||
		    a->plan[i].codec != a->plan[l].codec)
			continue;
		if (!codec_fixed(&a->plan[i]))
			v->rate = (int64_t)ceil((double)v->rate * f[0]);
		v->dist *= f[1];
	}
}

static double
allot_factor(double told, double was)
{
	double f = was > 0 ? told / was : 1;

	return f < 0.05 ? 0.05 : f > 20 ? 20 : f;
}

/* Of group g's ladder, step l was measured at f[] times what was thought of it:
 * so were the steps after it, and less and less so those down to the one that
 * was measured before. */
static void
allot_bend(struct allot *a, size_t g, size_t l, const double f[2])
{
	size_t i;
	double part;

	for (i = a->scaled; i < a->scaled_end; i++) {
		struct select_level *v = &a->level[g * a->m + i];

		if (a->known[g * a->m + i] != ALLOT_FORETOLD)
			continue;
		part = l < a->scaled + ALLOT_STRIDE || i >= l ? 1 :
		    i + ALLOT_STRIDE <= l ? 0 :
		    1 - (double)(l - i) / ALLOT_STRIDE;
		v->rate = (int64_t)ceil((double)v->rate *
		    elem_exp(part * elem_log(f[0])));
		v->dist *= elem_exp(part * elem_log(f[1]));
	}
	a->own[g][0] *= f[0];
	a->own[g][1] *= f[1];
}

void
allot_measured(struct allot *a, size_t g, size_t l, size_t body, double error)
{
	struct select_level *v = &a->level[g * a->m + l];
	uint8_t *known = &a->known[g * a->m + l];
	struct select_level was = *v;
	double f[2];

	v->rate = allot_cost(body);
	v->dist = a->weight[g] * error;
	if (*known == ALLOT_FORETOLD && a->solved) {
		f[0] = allot_factor((double)v->rate, (double)was.rate);
		f[1] = allot_factor(v->dist, was.dist);
		*known = ALLOT_EXACT;
		allot_alike(a, g, l, f);
	} else if (*known == ALLOT_FORETOLD) {
		a->was[l][0] += (double)was.rate / a->own[g][0];
		a->was[l][1] += was.dist / a->own[g][1];
		a->told[l][0] += (double)v->rate;
		a->told[l][1] += v->dist;
		*known = ALLOT_EXACT;
		f[0] = allot_factor((double)v->rate, (double)was.rate);
		f[1] = allot_factor(v->dist, was.dist);
		if (allot_ladder(a, l))
			allot_bend(a, g, l, f);
	}
	*known = ALLOT_EXACT;
}

static void
allot_scale(struct allot *a, size_t l, const double f[2])
{
	size_t g;

	for (g = 0; g < a->n; g++) {
		struct select_level *v = &a->level[g * a->m + l];

		if (a->known[g * a->m + l] != ALLOT_FORETOLD ||
		    (allot_ladder(a, l) && allot_some(a, g, ALLOT_LADDERS)))
			continue;
		v->rate = (int64_t)ceil((double)v->rate * f[0]);
		v->dist *= f[1];
	}
}

/* Of levels from .. to before. */
static void
allot_learn_of(struct allot *a, size_t from, size_t to)
{
	double told[2] = { 0, 0 }, was[2] = { 0, 0 }, f[2];
	size_t l;
	int i;

	for (l = from; l < to; l++)
		for (i = 0; i < 2; i++) {
			told[i] += a->told[l][i];
			was[i] += a->was[l][i];
			a->told[l][i] = a->was[l][i] = 0;
		}
	for (i = 0; i < 2; i++)
		f[i] = allot_factor(told[i], was[i]);
	if (codec_fixed(&a->plan[from]))
		f[0] = 1;
	for (l = from; l < to; l++)
		allot_scale(a, l, f);
}

void
allot_learn(struct allot *a)
{
	size_t l;

	for (l = 0; l < a->m; l++)
		if (!allot_ladder(a, l))
			allot_learn_of(a, l, l + 1);
	if (a->scaled < a->scaled_end)
		allot_learn_of(a, a->scaled, a->scaled_end);
}

void
allot_settle(struct allot *a)
{
	size_t i;

	for (i = 0; i < a->n * a->m; i++)
		if (a->known[i] != ALLOT_EXACT &&
		    !codec_fixed(&a->plan[i % a->m])) {
			a->known[i] = ALLOT_BARRED;
			a->level[i].rate = -1;
		}
}

/* ---- one step for all ---- */

static double
allot_bytes(const struct stat_group *stat, const float *weight, size_t n,
    double step)
{
	struct codec_plan p = { CODEC_ECQ, 0, 0 };
	size_t stride = (n + 255) / 256, g;
	struct estimate m;
	double bytes = 0, seen = 0, all = 0;

	for (g = 0; g < n; g++) {
		all += (double)stat[g].n;
		if (g % stride != 0)
			continue;
		seen += (double)stat[g].n;
		if (stat[g].nonzero == 0 || !(weight[g] > 0))
			continue;
		estimate_init(&m, &stat[g], NULL);
		p.arg = (float)(step / sqrt((double)weight[g]));
		bytes += (double)codec_rate(&p, &m);
	}
	return seen > 0 ? bytes * all / seen : 0;
}

double
allot_step(const struct stat_group *stat, const float *weight, size_t n,
    double budget)
{
	double lo = HUGE_VAL, hi = 0, v;
	size_t g;
	int i;

	for (g = 0; g < n; g++) {
		if (stat[g].nonzero == 0 || !(weight[g] > 0))
			continue;
		v = (double)stat[g].max_abs * sqrt((double)weight[g]);
		hi = v > hi ? v : hi;
		lo = v < lo ? v : lo;
	}
	if (!(hi > 0))
		return 1;
	hi *= 2;		/* at which all is zero */
	lo *= 1e-6;		/* at which f32 costs no more */
	for (i = 0; i < 24 && hi > 1.02 * lo; i++) {
		v = sqrt(lo * hi);
		if (allot_bytes(stat, weight, n, v) > budget)
			lo = v;
		else
			hi = v;
	}
	return hi;
}
