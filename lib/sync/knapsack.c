#include <math.h>

#include "base/alloc.h"
#include "base/err.h"
#include "codec/estimate.h"
#include "sync/knapsack.h"
#include "sync/select.h"

/* One level of one group; a group without values is not sent. */
static void
knapsack_level(const struct allot *a, size_t g, const struct estimate *m,
    const struct codec_plan *p, struct select_level *l)
{
	double error;
	int64_t body;

	codec_foretell(p, m, &body, &error);
	if (body < 0)
		body = (int64_t)codec_bound(p, (size_t)m->n);
	l->rate = error >= 0 && a->stat[g].nonzero > 0 ?
	    allot_cost((size_t)body) : -1;
	l->dist = (double)a->weight[g] * error;
}

static void
knapsack_rows(const struct allot *a, int floor, struct select_level *level)
{
	struct select_level *row;
	struct codec_ctx ctx;
	struct estimate m;
	size_t g, i, can;

	for (g = 0; g < a->n; g++) {
		a->ctx(a->arg, (uint32_t)g, &ctx);
		estimate_init(&m, &a->stat[g], &ctx);
		row = level + g * (a->m + 1);
		row[0].rate = 0;
		row[0].dist = (double)a->weight[g] * (double)a->stat[g].sumsq;
		for (can = i = 0; i < a->m; i++) {
			knapsack_level(a, g, &m, &a->other[i], &row[i + 1]);
			can += codec_dense(&a->other[i]) &&
			    row[i + 1].rate >= 0 && isfinite(row[i + 1].dist);
		}
		if (!floor || !a->dense[g] || can == 0)
			continue;
		row[0].rate = -1;
		for (i = 0; i < a->m; i++)
			if (!codec_dense(&a->other[i]))
				row[i + 1].rate = -1;
	}
}

static int
knapsack_solve(struct allot *a, struct select_level *level, uint8_t *choice,
    struct err *e)
{
	const struct codec_plan none = { CODEC_NONE, 0, 0 };
	int64_t room = a->budget < 0 ? 0 : a->budget < 9e18 ?
	    (int64_t)a->budget : INT64_MAX;
	struct select_result res;
	size_t g;
	int r;

	a->floor = 1;
	knapsack_rows(a, 1, level);
	r = select_budget(level, a->n, a->m + 1, room, SELECT_AUTO, choice,
	    &res, e);
	if (r == 1) {		/* too little to keep all that dense */
		a->floor = 0;
		knapsack_rows(a, 0, level);
		r = select_budget(level, a->n, a->m + 1, room, SELECT_AUTO,
		    choice, &res, e);
	}
	if (r < 0)
		return r;
	a->step = 0;
	a->price = res.lambda;
	a->bytes = (double)res.rate;
	a->dist = res.dist;
	a->sent = 0;
	a->energy = 0;
	for (g = 0; g < a->n; g++) {
		a->energy += (double)a->weight[g] * (double)a->stat[g].sumsq;
		a->plan[g] = choice[g] == 0 ? none : a->other[choice[g] - 1];
		a->sent += choice[g] != 0;
	}
	return 0;
}

int
knapsack_plan(struct allot *a, struct err *e)
{
	struct select_level *level = alloc_get(a->n, (a->m + 1) *
	    sizeof(*level), e);
	uint8_t *choice = alloc_get(a->n, 1, e);
	int r = -ERR_SYS;

	if (level != NULL && choice != NULL)
		r = knapsack_solve(a, level, choice, e);
	alloc_free(level);
	alloc_free(choice);
	return r;
}
