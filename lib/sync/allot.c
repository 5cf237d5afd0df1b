#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "sync/allot.h"
#include "sync/estimate.h"

int
allot_new(struct allot **out, const struct codec_plan *plan, size_t m, size_t n,
    struct err *e)
{
	struct allot *a;
	size_t l;

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
	a->fix = alloc_get(m, sizeof(*a->fix), e);
	if (a->level == NULL || a->known == NULL || a->weight == NULL ||
	    a->choice == NULL || a->told == NULL || a->was == NULL ||
	    a->fix == NULL) {
		allot_free(a);
		return -ERR_SYS;
	}
	for (l = 0; l < m; l++)
		a->fix[l][0] = a->fix[l][1] = 1;
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
	alloc_free(a->fix);
	alloc_free(a);
}

void
allot_reset(struct allot *a)
{
	size_t l;

	for (l = 0; l < a->m; l++) {
		a->fix[l][0] = a->fix[l][1] = 1;
		a->told[l][0] = a->told[l][1] = 0;
		a->was[l][0] = a->was[l][1] = 0;
	}
	a->solved = 0;
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

int
allot_dense(const struct codec_plan *p)
{
	switch (p->codec) {
	case CODEC_F32:
	case CODEC_F16:
	case CODEC_BF16:
	case CODEC_LOSSLESS:
	case CODEC_Q8:
	case CODEC_I64:
		return 1;
	default:
		return 0;
	}
}

static void
allot_level(struct allot *a, size_t g, size_t l, const struct estimate *m)
{
	struct select_level *v = &a->level[g * a->m + l];
	uint8_t *known = &a->known[g * a->m + l];
	const struct codec_plan *p = &a->plan[l];
	int64_t body = estimate_rate(m, p);
	double error = estimate_error(m, p);

	v->rate = -1;
	v->dist = 0;
	*known = ALLOT_BARRED;
	if (isinf(error))
		return;
	*known = ALLOT_BLIND;
	if (body < 0 || error < 0)
		return;
	*known = p->codec == CODEC_NONE ? ALLOT_EXACT : ALLOT_FORETOLD;
	v->rate = p->codec == CODEC_NONE ? 0 :
	    (int64_t)ceil((double)allot_cost((size_t)body) * a->fix[l][0]);
	v->dist = a->weight[g] * error * a->fix[l][1];
}

void
allot_group(struct allot *a, size_t g, const struct stat_group *stat,
    double weight, int dense)
{
	struct estimate m;
	size_t l, can = 0;

	a->weight[g] = weight;
	a->choice[g] = 0;
	estimate_init(&m, stat);
	for (l = 0; l < a->m; l++) {
		allot_level(a, g, l, &m);
		if (l > 0 && stat->nonzero == 0) {
			a->known[g * a->m + l] = ALLOT_BARRED;
			a->level[g * a->m + l].rate = -1;
		}
		can += allot_dense(&a->plan[l]) &&
		    a->known[g * a->m + l] != ALLOT_BARRED;
	}
	for (l = 0; dense && can > 0 && l < a->m; l++)
		if (!allot_dense(&a->plan[l])) {
			a->known[g * a->m + l] = ALLOT_BARRED;
			a->level[g * a->m + l].rate = -1;
		}
}

int
allot_solve(struct allot *a, int64_t budget, struct err *e)
{
	size_t g;
	int r;

	r = select_budget(a->level, a->n, a->m, budget, SELECT_AUTO, a->choice,
	    &a->res, e);
	a->solved = 1;
	for (a->unknown = g = 0; r >= 0 && g < a->n; g++)
		a->unknown += a->known[g * a->m + a->choice[g]] != ALLOT_EXACT;
	return r;
}

/* eight groups, evenly spread */
static int
allot_probe(const struct allot *a, size_t g)
{
	size_t stride = (a->n + 7) / 8;

	return g % (stride > 0 ? stride : 1) == 0;
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
		    (k[l] == ALLOT_FORETOLD && allot_probe(a, g)))
			return (int)l;
	return -1;
}

void
allot_measured(struct allot *a, size_t g, size_t l, size_t body, double error)
{
	struct select_level *v = &a->level[g * a->m + l];
	uint8_t *known = &a->known[g * a->m + l];

	if (*known == ALLOT_FORETOLD) {
		a->was[l][0] += (double)v->rate;
		a->was[l][1] += v->dist;
		a->told[l][0] += (double)allot_cost(body);
		a->told[l][1] += a->weight[g] * error;
	}
	v->rate = allot_cost(body);
	v->dist = a->weight[g] * error;
	*known = ALLOT_EXACT;
}

static void
allot_scale(struct allot *a, size_t l, const double f[2])
{
	size_t g;

	for (g = 0; g < a->n; g++) {
		struct select_level *v = &a->level[g * a->m + l];

		if (a->known[g * a->m + l] != ALLOT_FORETOLD)
			continue;
		v->rate = (int64_t)ceil((double)v->rate * f[0]);
		v->dist *= f[1];
	}
}

void
allot_learn(struct allot *a)
{
	double f[2];
	size_t l;
	int i;

	for (l = 0; l < a->m; l++) {
		for (i = 0; i < 2; i++) {
			f[i] = a->was[l][i] > 0 ? a->told[l][i] / a->was[l][i] :
			    1;
			f[i] = f[i] < 0.05 ? 0.05 : f[i] > 20 ? 20 : f[i];
			a->told[l][i] = a->was[l][i] = 0;
			a->fix[l][i] *= f[i];
		}
		if (estimate_fixed(&a->plan[l]))
			f[0] = a->fix[l][0] = 1;
		allot_scale(a, l, f);
	}
}

void
allot_settle(struct allot *a)
{
	size_t i;

	for (i = 0; i < a->n * a->m; i++)
		if (a->known[i] != ALLOT_EXACT &&
		    !estimate_fixed(&a->plan[i % a->m])) {
			a->known[i] = ALLOT_BARRED;
			a->level[i].rate = -1;
		}
}
