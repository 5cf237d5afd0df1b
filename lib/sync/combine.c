#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "sync/combine.h"

int
combine_room(struct combine *c, size_t cap, struct err *e)
{
	if (cap <= c->cap)
		return 0;
	combine_release(c);
	c->acc = alloc_get(cap, sizeof(*c->acc), e);
	c->y = alloc_get(cap, sizeof(*c->y), e);
	if (c->acc == NULL || c->y == NULL)
		return -ERR_SYS;
	c->cap = cap;
	return 0;
}

void
combine_release(struct combine *c)
{
	alloc_free(c->acc);
	alloc_free(c->y);
	*c = (struct combine){ .kern = c->kern };
}

void
combine_begin(struct combine *c, size_t n)
{
	c->n = n;
	memset(c->acc, 0, n * sizeof(*c->acc));
}

void
combine_add(struct combine *c, double f, const float *x)
{
	c->kern->axpy64(c->acc, f, x, c->n);
}

void
combine_add_some(struct combine *c, double f, const uint32_t *pos,
    const float *x, size_t k)
{
	size_t i;

	for (i = 0; i < k; i++)
		c->acc[pos[i]] += f * (double)x[i];
}

void
combine_less(struct combine *c, double d, const struct combine *b, double f)
{
	size_t k;

	for (k = 0; k < c->n; k++)
		c->acc[k] = c->acc[k] / d - b->acc[k] / f;
}

const float *
combine_round(struct combine *c, double d)
{
	size_t k;

	if (d < 1 || d > 1)
		for (k = 0; k < c->n; k++)
			c->acc[k] /= d;
	c->kern->narrow(c->y, c->acc, c->n);
	return c->kern->first_nonfinite(c->y, c->n) == c->n ? c->y : NULL;
}
