#include "base/err.h"
#include "base/pool.h"
#include "format/values.h"
#include "stage/coding.h"
#include "stage/rate.h"

int
coding_open(struct coding *c, struct pool *pool, struct rate *rate,
    struct err *e)
{
	const size_t threads = pool_size(pool);

	*c = (struct coding){ .pool = pool, .rate = rate };
	/* two for each thread, as they do not take the same time */
	c->size = threads == 1 ? 1 : 2 * threads;
	c->w = alloc_get(c->size, sizeof(*c->w), e);
	return c->w != NULL ? 0 : -ERR_SYS;
}

static void
coding_clear(struct coding *c)
{
	size_t i;

	for (i = 0; c->w != NULL && i < c->size; i++) {
		alloc_free(c->w[i].room);
		c->w[i].room = NULL;
	}
	c->cap = 0;
}

void
coding_close(struct coding *c)
{
	size_t i;

	coding_clear(c);
	for (i = 0; c->w != NULL && i < c->size; i++)
		buf_release(&c->w[i].body);
	alloc_free(c->w);
	*c = (struct coding){ .w = NULL };
}

int
coding_begin(struct coding *c, size_t n, struct err *e)
{
	size_t i, cap;
	int r;

	c->n = 0;
	if (n <= c->cap)
		return 0;
	coding_clear(c);
	for (i = 0; i < c->size; i++)
		if ((r = alloc_grow(&c->w[i].room, (cap = 0, &cap), 3 * n,
		    sizeof(float), e)) < 0)
			return r;
	c->cap = n;
	return 0;
}

struct coding_group *
coding_slot(struct coding *c)
{
	struct coding_group *w = &c->w[c->n];

	w->acc = w->room;
	w->u = w->acc + c->cap;
	w->dec = w->u + c->cap;
	return w;
}

int
coding_add(struct coding *c)
{
	const struct codec_plan *p = &c->w[c->n++].plan;

	/* one that looks at the shard before is coded alone */
	return c->n == c->size || codec_after(p);
}

static int
coding_one(void *arg, unsigned who, size_t i, struct err *e)
{
	const struct coding *c = arg;
	struct coding_group *w = &c->w[i];
	struct codec_ctx ctx;

	(void)who;
	if (!w->made) {
		w->sent = rate_encode(c->rate, w->group, &w->plan, w->acc,
		    w->n, NULL, &w->body, &w->param, w->dec, e);
		return w->sent < 0 ? w->sent : 0;
	}
	if (w->sent == 0)
		return 0;
	values_ctx(c->rate->schema, c->rate->shard, w->group, &ctx);
	return codec_again(&w->plan, &ctx, w->acc, &w->seen, w->param,
	    w->body.p, w->body.n, w->dec, w->n, e);
}

int
coding_run(struct coding *c, int (*settle)(void *arg,
    struct coding_group *w, struct err *e), void *arg, struct err *e)
{
	size_t i;
	int r = pool_run(c->pool, c->n, coding_one, c, e);

	for (i = 0; i < c->n && r == 0; i++)
		r = settle(arg, &c->w[i], e);
	c->n = 0;
	return r;
}
