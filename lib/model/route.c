#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "model/route.h"

int
route_add(struct routes *x, const struct route *w, struct err *e)
{
	int r = alloc_grow(&x->p, &x->cap, x->n + 1, sizeof(*x->p), e);

	if (r == 0)
		x->p[x->n++] = *w;
	return r;
}

void
route_release(struct routes *x)
{
	alloc_free(x->p);
	memset(x, 0, sizeof(*x));
}

/* If the path to i through k takes fewer bytes, use it and return 1; else return 0. */
static int
route_shorter(struct routes *x, size_t i, size_t k)
{
	struct route *w = &x->p[i];
	const struct route *p = &x->p[k];

	if (w->whole || p->cost >= UINT64_MAX - w->bytes ||
	    p->cost + w->bytes >= w->cost ||
	    memcmp(p->after, w->before, MODEL_HASH) != 0)
		return 0;
	w->cost = p->cost + w->bytes;
	w->prior = k;
	return 1;
}

/* Bellman-Ford. One pass is enough if each patch follows in x->p the patches that it
 * continues. All costs are positive, so a shortest path has at most x->n items. */
void
route_find(struct routes *x, const unsigned char *from)
{
	struct route *w;
	size_t i, k, round;
	int more = 1;

	for (i = 0; i < x->n; i++) {
		w = &x->p[i];
		w->prior = ROUTE_FIRST;
		w->cost = w->whole || (from != NULL &&
		    memcmp(w->before, from, MODEL_HASH) == 0) ? w->bytes : UINT64_MAX;
	}
	for (round = 0; more && round < x->n; round++)
		for (more = 0, i = 0; i < x->n; i++)
			for (k = 0; k < x->n; k++)
				more |= route_shorter(x, i, k);
}

int
route_list(const struct routes *x, size_t last, size_t **list, size_t *n, struct err *e)
{
	size_t i;

	for (*n = 0, i = last; i != ROUTE_FIRST; i = x->p[i].prior)
		++*n;
	if ((*list = alloc_get(*n, sizeof(**list), e)) == NULL)
		return -ERR_SYS;
	for (i = last, last = *n; last > 0; i = x->p[i].prior)
		(*list)[--last] = i;
	return 0;
}
