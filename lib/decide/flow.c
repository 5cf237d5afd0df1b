#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "decide/chooser.h"
#include "decide/flow.h"
#include "state/history.h"
#include "stream/values.h"
#include "sync/once.h"

#define FLOW_FILE "select"	/* in the state directory */
enum { FLOW_FRAME = 200 };	/* bytes a frame of the coded shard may cost */

struct flow {
	struct chooser *c;
	struct once *once;
	uint64_t reserve;		/* for dense groups to come */
	uint32_t *group;		/* of the frame that passed */
	size_t n, group_cap;
	struct buf values;		/* theirs */
	int begun;
};

/* ---- the price in the state ---- */

static int
flow_load(struct flow *f, struct err *e)
{
	struct history h = HISTORY_INIT;
	const float *row;
	int r;

	if (f->c->state == NULL)
		return 0;
	r = history_load(&h, f->c->state, FLOW_FILE, e);
	/* of another model or other levels it is only a worse beginning */
	row = history_row(&h, "price", PRICE_NUMBERS);
	if (r > 0 && row != NULL)
		r = price_put(&f->once->price, row, e);
	history_release(&h);
	return r < 0 ? r : 0;
}

static int
flow_save(struct flow *f, const char *tool, struct err *e)
{
	struct history h = HISTORY_INIT;
	float *row;
	int r = -ERR_SYS;

	if (f->c->state == NULL)
		return 0;
	if ((row = alloc_get(PRICE_NUMBERS, sizeof(*row), e)) != NULL) {
		price_get(&f->once->price, row);
		r = history_put(&h, "price", row, PRICE_NUMBERS, e);
	}
	if (r == 0)
		r = history_save(&h, f->c->state, FLOW_FILE,
		    reader_shard(f->c->to.in), tool, e);
	alloc_free(row);
	history_release(&h);
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
	alloc_free(f->group);
	buf_release(&f->values);
	alloc_free(f);
}

/* ---- a shard ---- */

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
	if (f->reserve + fixed > c->budget) {
		f->reserve = 0;			/* too few: none is dense */
		memset(c->dense, 0, sc->ngroups);
	}
	once_begin(f->once, c->budget > fixed ? (double)(c->budget - fixed) :
	    0, (double)sc->total);
	return 0;
}

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

static int
flow_group(struct flow *f, uint32_t g, const float *v, size_t n,
    struct codec_plan *plan, struct err *e)
{
	struct chooser *c = f->c;
	struct flow_one o = { f, g };
	struct once_group in;
	int r;

	if ((c->survey.have[g] & SURVEY_STAT) == 0 &&
	    (r = chooser_stat(c, g, v, n, e)) < 0)
		return r;
	if (c->dense[g])
		f->reserve -= once_least(f->once, n);
	in.stat = &c->survey.stat[g];
	in.weight = (double)c->survey.score[g];
	in.dense = c->dense[g];
	values_ctx(reader_schema(c->to.in), reader_shard(c->to.in), g,
	    &in.ctx);
	in.x = v;
	in.n = n;
	in.fits = flow_fits;
	in.arg = &o;
	if ((r = once_group(f->once, &in, e)) < 0)
		return r;
	*plan = f->once->plan;
	if (plan->codec != CODEC_NONE)
		chooser_add(&c->size, g, plan, f->once->body);
	return 0;
}

/* The frame that passed, now that its annotations are known. */
static int
flow_flush(struct flow *f, struct err *e)
{
	const float *v = (const float *)(void *)f->values.p;
	struct chooser *c = f->c;
	struct schema_span span;
	size_t i, from = 0;
	int r;

	for (i = 0; i < f->n; i++) {
		schema_span(reader_schema(c->to.in), f->group[i], &span);
		if ((r = flow_group(f, f->group[i], v, span.n, &c->plan[i],
		    e)) < 0)
			return r;
		v += span.n;
		if (i + 1 < f->n && f->group[i + 1] == f->group[i] + 1)
			continue;
		if ((r = planned_groups(&c->to, f->group[from],
		    c->plan + from, (uint32_t)(i + 1 - from), e)) < 0)
			return r;
		from = i + 1;
	}
	f->n = 0;
	f->values.n = 0;
	return 0;
}

static int
flow_data(struct flow *f, struct err *e)
{
	struct chooser *c = f->c;
	const struct record *rec;
	size_t n, i, len;
	int r;

	if ((r = flow_begin(f, e)) < 0 || (r = flow_flush(f, e)) < 0 ||
	    (r = planned_frame(&c->to, READER_DATA, e)) < 0)
		return r;
	rec = reader_records(c->to.in, &n);
	if ((r = alloc_grow(&f->group, &f->group_cap, n, sizeof(*f->group),
	    e)) < 0 || (r = chooser_room(c, n, e)) < 0)
		return r;
	for (i = 0; i < n; i++) {
		if ((r = buf_room(&f->values, 4 * c->cap, e)) < 0 ||
		    (r = values_decode(c->to.in, &rec[i], (float *)(void *)
		    (f->values.p + f->values.n), c->cap, &len, e)) < 0)
			return r;
		f->values.n += 4 * len;
		f->group[f->n++] = rec[i].group;
	}
	return 0;
}

static int
flow_end(struct flow *f, struct err *e)
{
	struct chooser *c = f->c;
	int r;

	if ((r = flow_begin(f, e)) < 0 || (r = flow_flush(f, e)) < 0)
		return r;
	price_end(&f->once->price);
	c->found.bytes = size_send(&c->size) + c->survey.notes;
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
	f->n = 0;
	f->values.n = 0;
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
