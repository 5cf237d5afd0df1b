#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "device/memory.h"
#include "format/values.h"
#include "stage/chooser.h"
#include "stage/flow.h"
#include "stage/window.h"
#include "sync/fit.h"
#include "sync/once.h"

#define FLOW_FILE "select"	/* in the state directory */
enum {
	FLOW_FRAME = 200,	/* bytes a frame of the coded shard may cost */
	FLOW_AHEAD = 8 << 20,	/* bytes of values that are held */
	FLOW_GROUPS = 4096	/* and groups */
};

struct flow {
	struct chooser *c;
	struct once *once;
	uint64_t reserve;		/* for dense groups to come */
	struct window w;		/* what passed and is undecided */
	int begun;
};

/* ---- the price in the state ---- */

static int
flow_load(struct flow *f, struct err *e)
{
	struct memory h = MEMORY_INIT;
	const float *row;
	int r;

	if (f->c->state == NULL)
		return 0;
	r = memory_load(&h, f->c->state, FLOW_FILE, e);
	/* of another model or other levels it is only a worse beginning */
	row = memory_row(&h, "price", PRICE_NUMBERS);
	if (r > 0 && row != NULL)
		r = price_put(&f->once->price, row, e);
	memory_release(&h);
	return r < 0 ? r : 0;
}

static int
flow_save(struct flow *f, const char *tool, struct err *e)
{
	struct memory h = MEMORY_INIT;
	float *row;
	int r = -ERR_SYS;

	if (f->c->state == NULL)
		return 0;
	if ((row = alloc_get(PRICE_NUMBERS, sizeof(*row), e)) != NULL) {
		price_get(&f->once->price, row);
		r = memory_put(&h, "price", row, PRICE_NUMBERS, e);
	}
	if (r == 0)
		r = memory_save(&h, f->c->state, FLOW_FILE,
		    reader_shard(f->c->to.in), tool, e);
	alloc_free(row);
	memory_release(&h);
	return r;
}

int
flow_new(struct flow **out, struct chooser *c, struct err *e)
{
	struct flow *f;
	int r;

	if ((*out = f = alloc_get(1, sizeof(*f), e)) == NULL)
		return -ERR_SYS;
	f->c = c;
	r = once_new(&f->once, c->level, c->m, c->ladder, e);
	return r < 0 ? r : flow_load(f, e);
}

void
flow_free(struct flow *f)
{
	if (f == NULL)
		return;
	once_free(f->once);
	window_release(&f->w);
	alloc_free(f);
}

/* ---- a shard ---- */

static size_t
flow_ahead(const struct flow *f)
{
	return f->c->memory < FLOW_AHEAD ? (size_t)f->c->memory : FLOW_AHEAD;
}

/* At the first data: what comes before it may still say the budget. */
static int
flow_begin(struct flow *f, struct err *e)
{
	struct chooser *c = f->c;
	const struct schema *sc = reader_schema(c->to.in);
	struct schema_span span;
	struct size z;
	uint64_t fixed;
	uint32_t g;
	int r;

	if (f->begun)
		return 0;
	f->begun = 1;
	if ((r = chooser_budget(c, e)) < 0)
		return r;
	z = c->size;
	fixed = size_send(&z) + c->survey.notes + FLOW_FRAME;
	for (f->reserve = g = 0; g < sc->ngroups; g++) {
		schema_span(sc, g, &span);
		if (c->dense[g])
			f->reserve += once_least(f->once, span.n);
	}
	if (f->reserve + fixed > c->budget && 4 * sc->total > flow_ahead(f)) {
		f->reserve = 0;			/* too few: none is dense */
		memset(c->dense, 0, sc->ngroups);
	}
	once_begin(f->once, c->budget > fixed ? (double)(c->budget - fixed) :
	    0, (double)sc->total);
	return 0;
}

static int
flow_stat(struct flow *f, size_t i, struct err *e)
{
	const struct window_group *g = &f->w.g[i];

	return (f->c->survey.have[g->group] & SURVEY_STAT) != 0 ? 0 :
	    chooser_stat(f->c, g->group, window_values(&f->w, i), g->n, e);
}

/* ---- group by group, at a price ---- */

struct flow_one {
	struct flow *f;
	uint32_t group;
};

/* 1 when the shard keeps its budget with this body added. */
static int
flow_fits(void *arg, const struct codec_plan *p, size_t body)
{
	const struct flow_one *o = arg;
	const struct chooser *c = o->f->c;
	struct size z = c->size;

	chooser_add(&z, o->group, p, body);
	return size_send(&z) + c->survey.notes + o->f->reserve <= c->budget;
}

static void
flow_once(const struct flow *f, size_t i, struct once_group *in)
{
	const struct chooser *c = f->c;
	uint32_t g = f->w.g[i].group;

	in->stat = &c->survey.stat[g];
	in->weight = (double)c->survey.score[g];
	in->dense = c->dense[g];
	values_ctx(reader_schema(c->to.in), reader_shard(c->to.in), g,
	    &in->ctx);
	in->x = window_values(&f->w, i);
	in->n = f->w.g[i].n;
	in->fits = flow_fits;
}

/* All that is held, now that its annotations are known. */
static int
flow_look(struct flow *f, struct err *e)
{
	struct once_group in;
	size_t i;
	int r;

	for (i = 0; i < f->w.n; i++) {
		if (f->w.g[i].looked)
			continue;
		if ((r = flow_stat(f, i, e)) < 0)
			return r;
		flow_once(f, i, &in);
		once_look(f->once, &in, &f->w.g[i].own);
		f->w.g[i].looked = 1;
	}
	return 0;
}

static int
flow_group(struct flow *f, size_t i, struct codec_plan *plan, struct err *e)
{
	struct chooser *c = f->c;
	struct flow_one o = { f, f->w.g[i].group };
	struct once_group in;
	int r;

	flow_once(f, i, &in);
	in.arg = &o;
	if (in.dense)
		f->reserve -= once_least(f->once, in.n);
	if ((r = once_group(f->once, &in, &f->w.g[i].own, e)) < 0)
		return r;
	*plan = f->once->plan;
	if (plan->codec != CODEC_NONE)
		chooser_add(&c->size, o.group, plan, f->once->body);
	return 0;
}

/* The plans c->plan of the oldest k: out with them. */
static int
flow_put(struct flow *f, size_t k, struct err *e)
{
	const struct window_group *g = f->w.g;
	size_t i, from = 0;
	int r;

	for (i = 0; i < k; i++) {
		if (i + 1 < k && g[i + 1].group == g[i].group + 1)
			continue;
		if ((r = planned_groups(&f->c->to, g[from].group,
		    f->c->plan + from, (uint32_t)(i + 1 - from), e)) < 0)
			return r;
		from = i + 1;
	}
	window_drop(&f->w, k);
	return 0;
}

/* What is held above the limit is decided, and a quarter more, so that plans
 * come in long runs. */
static int
flow_decide(struct flow *f, struct err *e)
{
	size_t most = flow_ahead(f), k = 0;
	int r;

	if (f->w.values.n <= most && f->w.n <= FLOW_GROUPS)
		return 0;
	if ((r = flow_look(f, e)) < 0 ||
	    (r = chooser_room(f->c, f->w.n, e)) < 0)
		return r;
	for (; k < f->w.n && (f->w.values.n - f->w.g[k].at > most / 4 * 3 ||
	    f->w.n - k > FLOW_GROUPS / 4 * 3); k++)
		if ((r = flow_group(f, k, &f->c->plan[k], e)) < 0)
			return r;
	return flow_put(f, k, e);
}

/* ---- the last ones, together ---- */

static int
flow_pass(void *arg, int (*want)(const struct fit *, uint32_t),
    int (*each)(struct fit *, uint32_t, const float *, size_t, struct err *),
    struct fit *fit, struct err *e)
{
	const struct flow *f = arg;
	uint32_t i;
	int r;

	for (i = 0; i < fit->n; i++)
		if (want(fit, i) && (r = each(fit, i, window_values(&f->w, i),
		    f->w.g[i].n, e)) < 0)
			return r;
	return 0;
}

static void
flow_ctx(void *arg, uint32_t i, struct codec_ctx *ctx)
{
	const struct flow *f = arg;

	values_ctx(reader_schema(f->c->to.in), reader_shard(f->c->to.in),
	    f->w.g[i].group, ctx);
}

static uint64_t
flow_size(void *arg, const struct fit *fit)
{
	const struct flow *f = arg;
	struct size z = f->c->size;
	struct codec_plan p;
	uint32_t i;

	for (i = 0; i < fit->n; i++)
		if ((p = fit_choice(fit, i)).codec != CODEC_NONE)
			chooser_add(&z, f->w.g[i].group, &p, fit_body(fit, i));
	return size_send(&z) + f->c->survey.notes;
}

struct flow_tail {
	struct stat_group *stat;
	float *weight;
	uint8_t *dense;
};

static int
flow_fit(struct flow *f, const struct flow_tail *t, struct err *e)
{
	const struct survey *s = &f->c->survey;
	struct fit fit;
	size_t i;
	int r;

	for (i = 0; i < f->w.n; i++) {
		t->stat[i] = s->stat[f->w.g[i].group];
		t->weight[i] = s->score[f->w.g[i].group];
		t->dense[i] = f->c->dense[f->w.g[i].group];
		f->once->energy += (double)t->weight[i] *
		    (double)t->stat[i].sumsq;
	}
	memset(&fit, 0, sizeof(fit));
	fit.n = f->w.n;
	fit.stat = t->stat;
	fit.weight = t->weight;
	fit.dense = t->dense;
	fit.budget = f->c->budget;
	fit.arg = f;
	fit.pass = flow_pass;
	fit.ctx = flow_ctx;
	fit.size = flow_size;
	if ((r = fit_plan(&fit, f->c->level, f->c->m, f->c->ladder,
	    e)) == 0) {
		if (fit.n != 0)
			memcpy(f->c->plan, fit.plan,
			    fit.n * sizeof(*fit.plan));
		f->once->dist += fit.res.dist;
		f->c->found.bytes = fit.bytes;
	}
	fit_release(&fit);
	return r;
}

/* What is held at the end: with what is left of the budget, as in two passes,
 * which a shard that was held whole has therefore had. */
static int
flow_tail(struct flow *f, struct err *e)
{
	struct flow_tail t;
	size_t n = f->w.n;
	int r;

	if ((r = flow_look(f, e)) < 0 || (r = chooser_room(f->c, n, e)) < 0)
		return r;
	t.stat = alloc_get(n, sizeof(*t.stat), e);
	t.weight = alloc_get(n, sizeof(*t.weight), e);
	t.dense = alloc_get(n, 1, e);
	r = -ERR_SYS;
	if (t.stat != NULL && t.weight != NULL && t.dense != NULL)
		r = flow_fit(f, &t, e);
	alloc_free(t.stat);
	alloc_free(t.weight);
	alloc_free(t.dense);
	return r < 0 ? r : flow_put(f, n, e);
}

/* ---- the stream ---- */

static int
flow_data(struct flow *f, struct err *e)
{
	struct chooser *c = f->c;
	const struct record *rec;
	size_t n, i;
	int r;

	if ((r = flow_begin(f, e)) < 0 || (r = flow_decide(f, e)) < 0 ||
	    (r = planned_frame(&c->to, READER_DATA, e)) < 0)
		return r;
	rec = reader_records(c->to.in, &n);
	for (i = 0; i < n; i++)
		if ((r = window_add(&f->w, c->to.in, &rec[i], c->cap, e)) < 0)
			return r;
	return 0;
}

static int
flow_end(struct flow *f, struct err *e)
{
	struct chooser *c = f->c;
	int r;

	if ((r = flow_begin(f, e)) < 0 || (r = flow_decide(f, e)) < 0 ||
	    (r = flow_tail(f, e)) < 0)
		return r;
	price_end(&f->once->price);
	c->found.dist = f->once->dist;
	c->found.energy = f->once->energy;
	return planned_send(&c->to, e);
}

int
flow_shard(struct flow *f, const char *tool, struct err *e)
{
	struct chooser *c = f->c;
	int r, k;

	f->begun = 0;
	window_drop(&f->w, f->w.n);
	if ((r = planned_shard(&c->to, e)) < 0)
		return r;
	while ((k = reader_next(c->to.in, e)) > 0 && k != READER_SEND)
		if ((k == READER_DATA && (r = flow_data(f, e)) < 0) ||
		    (k == READER_NOTE && (r = planned_frame(&c->to, k,
		    e)) < 0) ||
		    (r = survey_event(&c->survey, c->to.in, k, e)) < 0)
			return r;
	if (k < 0 || (r = flow_end(f, e)) < 0)
		return k < 0 ? k : r;
	return flow_save(f, tool, e);
}
