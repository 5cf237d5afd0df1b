#include <string.h>

#include "base/alloc.h"
#include "format/values.h"
#include "stage/chooser.h"

static void
chooser_roles(struct chooser *c, const struct schema *sc)
{
	size_t t;

	for (t = 0; t < sc->n; t++)
		if (sc->t[t].ngroups != 0)
			memset(c->dense + sc->t[t].group, !c->no_roles &&
			    (sc->t[t].roles & SCHEMA_ROLE_DENSE) != 0,
			    sc->t[t].ngroups);
}

int
chooser_begin(struct chooser *c, struct err *e)
{
	const struct schema *sc = reader_schema(c->to.in);
	int r;

	memset(&c->found, 0, sizeof(c->found));
	if ((r = alloc_grow(&c->x, &c->cap, sc->group_size, sizeof(*c->x),
	    e)) < 0 || (r = alloc_grow(&c->dense, &c->dense_cap, sc->ngroups,
	    1, e)) < 0 || (r = survey_begin(&c->survey, sc->ngroups, e)) < 0)
		return r;
	chooser_roles(c, sc);
	return 0;
}

int
chooser_room(struct chooser *c, size_t n, struct err *e)
{
	return alloc_grow(&c->plan, &c->plan_cap, n, sizeof(*c->plan), e);
}

int
chooser_held(const struct chooser *c)
{
	uint64_t total = reader_schema(c->to.in)->total;

	return reader_can_seek(c->to.in) || (total <= c->memory / 5 &&
	    4 * total + total / 16 + (1 << 20) <= c->memory);
}

int
chooser_budget(struct chooser *c, struct err *e)
{
	int r = budget_find(&c->want, c->to.in, &c->survey, c->state,
	    &c->budget, e);

	c->found.budget = c->budget;
	return r < 0 ? r : size_shard(&c->size, reader_shard(c->to.in), e);
}

int
chooser_stat(struct chooser *c, uint32_t g, const float *x, size_t n,
    struct err *e)
{
	size_t bad = survey_values(&c->survey, g, x, n);

	return bad != 0 ? values_refuse(c->to.in, g, bad - 1, e) : 0;
}

void
chooser_add(struct size *z, uint32_t g, const struct codec_plan *p, size_t len)
{
	int param = codec_param(p);

	/* one that only coding tells: as if it were another than the last */
	size_record(z, g, param < 0 ? (uint8_t)~z->param : (uint8_t)param, len);
}

void
chooser_release(struct chooser *c)
{
	survey_release(&c->survey);
	alloc_free(c->dense);
	alloc_free(c->plan);
	alloc_free(c->x);
	planned_release(&c->to);
}
