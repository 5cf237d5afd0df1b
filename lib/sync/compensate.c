#include <string.h>

#include "sync/compensate.h"

static void
compensate_copy(float *to, const float *from, size_t n)
{
	if (from != NULL)
		memcpy(to, from, n * sizeof(*to));
	else
		memset(to, 0, n * sizeof(*to));
}

void
compensate_target(const struct compensate *c,
    const struct compensate_from *from, size_t n, float *a, float *u)
{
	size_t i;

	compensate_copy(a, from->g, n);
	if (c->kind == COMPENSATE_MOMENTUM) {
		if (from->u != NULL)
			c->kern->add_scaled(a, a, c->m, from->u, n);
		memcpy(u, a, n * sizeof(*u));
	} else if (c->kind != COMPENSATE_EF) {
		compensate_copy(u, from->u, n);
	}
	if (from->e != NULL)
		c->kern->add_scaled(a, a, c->gamma, from->e, n);
	for (i = 0; i < from->nback; i++)
		c->kern->add_scaled(a, a, 1, from->back[i], n);
}

void
compensate_settle(const struct compensate *c, float *a, float *u,
    const float *dec, size_t n)
{
	size_t i;

	switch (c->kind) {
	case COMPENSATE_MOMENTUM:
		/* clear u where values were sent (momentum factor masking) */
		for (i = 0; i < n && dec != NULL; i++)
			if (dec[i] != 0)
				u[i] = 0;
		break;
	case COMPENSATE_CACHE:
		if (dec != NULL)
			memcpy(u, dec, n * sizeof(*u));
		for (i = 0; i < n && dec == NULL; i++)
			u[i] *= c->rho;
		dec = u;
		break;
	default:
		break;
	}
	if (dec != NULL)
		c->kern->sub(a, a, dec, n);
}

void
compensate_receive(const struct compensate *c, const float *h, int sent,
    float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n && !sent; i++)
		x[i] = h[i] * c->rho;
}
