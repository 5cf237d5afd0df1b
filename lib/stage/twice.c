#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/plan_text.h"
#include "format/values.h"
#include "stage/chooser.h"
#include "stage/twice.h"
#include "sync/fit.h"

static const struct codec_plan twice_none = { CODEC_NONE, 0, 0 };

/* ---- reading ---- */

/* One pass over the shard's groups: for fit, or (f NULL) for what the stream
 * does not say of them. */
static int
twice_pass(void *arg, int (*want)(const struct fit *, uint32_t),
    int (*each)(struct fit *, uint32_t, const float *, size_t, struct err *),
    struct fit *f, struct err *e)
{
	struct chooser *c = arg;
	struct reader *in = c->to.in;
	const struct record *rec;
	size_t n, i, len;
	int r, k;

	if ((r = reader_rewind(in, e)) < 0)
		return r;
	while ((k = reader_next(in, e)) > 0 && k != READER_SEND) {
		if (k != READER_DATA)
			continue;
		rec = reader_records(in, &n);
		for (i = 0; i < n; i++) {
			if (f != NULL ? !want(f, rec[i].group) :
			    (c->survey.have[rec[i].group] & SURVEY_STAT) != 0)
				continue;
			if ((r = values_decode(in, &rec[i], c->x, c->cap, &len,
			    e)) < 0 || (r = f != NULL ?
			    each(f, rec[i].group, c->x, len, e) :
			    chooser_stat(c, rec[i].group, c->x, len, e)) < 0)
				return r;
		}
	}
	return k < 0 ? k : 0;
}

/* The first pass: what the annotations say, and what they do not. */
static int
twice_survey(struct chooser *c, struct err *e)
{
	struct reader *in = c->to.in;
	int r;

	if ((r = reader_mark(in, (size_t)c->memory, e)) < 0)
		return r;
	while ((r = reader_next(in, e)) > 0 && r != READER_SEND)
		if ((r = survey_event(&c->survey, in, r, e)) < 0)
			return r;
	if (r < 0 || (survey_lacks(&c->survey) &&
	    (r = twice_pass(c, NULL, NULL, NULL, e)) < 0))
		return r;
	return chooser_room(c, reader_schema(in)->ngroups, e);
}

/* ---- writing ---- */

/* The shard's frames behind their plan. */
static int
twice_write(struct chooser *c, int again, struct err *e)
{
	struct reader *in = c->to.in;
	int r, k;

	if ((r = planned_shard(&c->to, e)) < 0 || (r = planned_groups(&c->to,
	    0, c->plan, reader_schema(in)->ngroups, e)) < 0 ||
	    (again && (r = reader_rewind(in, e)) < 0))
		return r;
	while ((k = reader_next(in, e)) > 0 && k != READER_SEND)
		if ((r = planned_frame(&c->to, k, e)) < 0)
			return r;
	if (again)
		reader_unmark(in);
	return k < 0 ? k : planned_send(&c->to, e);
}

/* ---- the knapsack ---- */

static void
twice_ctx(void *arg, uint32_t g, struct codec_ctx *ctx)
{
	const struct chooser *c = arg;

	values_ctx(reader_schema(c->to.in), reader_shard(c->to.in), g, ctx);
}

/* The coded shard's bytes, as chosen. */
static uint64_t
twice_size(void *arg, const struct fit *f)
{
	const struct chooser *c = arg;
	struct size z = c->size;
	struct codec_plan p;
	uint32_t g;

	for (g = 0; g < f->n; g++)
		if ((p = fit_choice(f, g)).codec != CODEC_NONE)
			chooser_add(&z, g, &p, fit_body(f, g));
	return size_send(&z) + c->survey.notes;
}

static void
twice_found(struct chooser *c, const struct fit *f)
{
	struct chooser_found *o = &c->found;
	uint32_t g;

	o->bytes = f->bytes;
	o->sent = f->sent;
	o->relaxed = f->relaxed;
	o->res = f->res;
	o->dist = f->res.dist;
	for (g = 0; g < c->survey.n; g++)
		o->energy += (double)c->survey.score[g] *
		    (double)c->survey.stat[g].sumsq;
	memcpy(c->plan, f->plan, f->n * sizeof(*c->plan));
}

int
twice_budget(struct chooser *c, struct err *e)
{
	struct fit f;
	int r;

	memset(&f, 0, sizeof(f));
	if ((r = twice_survey(c, e)) < 0 || (r = chooser_budget(c, e)) < 0)
		return r;
	f.n = c->survey.n;
	f.stat = c->survey.stat;
	f.weight = c->survey.score;
	f.dense = c->dense;
	f.budget = c->budget;
	f.arg = c;
	f.pass = twice_pass;
	f.ctx = twice_ctx;
	f.size = twice_size;
	r = fit_plan(&f, c->level, c->m, c->ladder, e);
	if (r == 0)
		twice_found(c, &f);
	fit_release(&f);
	return r < 0 ? r : twice_write(c, 1, e);
}

/* ---- a share, a plan ---- */

int
twice_share(struct chooser *c, const struct twice_share *s, struct err *e)
{
	uint32_t g, n = reader_schema(c->to.in)->ngroups;
	uint8_t *chosen = alloc_get(n, 1, e), *some = alloc_get(n, 1, e);
	int r = -ERR_SYS;

	if (chosen != NULL && some != NULL && (r = twice_survey(c, e)) == 0 &&
	    (r = select_share(c->survey.score, n, s->share, chosen, e)) == 0 &&
	    (r = select_share(c->survey.score, n, s->rest_share, some,
	    e)) == 0)
		for (g = 0; g < n; g++) {
			c->plan[g] = chosen[g] ? s->keep : some[g] ?
			    s->rest : twice_none;
			c->found.sent += chosen[g];
		}
	alloc_free(chosen);
	alloc_free(some);
	return r < 0 ? r : twice_write(c, 1, e);
}

int
twice_given(struct chooser *c, const struct plan_text *t, struct err *e)
{
	uint32_t g, all = reader_schema(c->to.in)->ngroups;
	int r;

	if (t->n > all)
		return err_set(e, ERR_DATA, "mismatch: the plan has %zu "
		    "groups, the shard %lu", t->n, (unsigned long)all);
	if ((r = chooser_room(c, all, e)) < 0)
		return r;
	for (g = 0; g < all; g++)
		c->plan[g] = g < t->n ? t->p[g] : twice_none;
	return twice_write(c, 0, e);
}
