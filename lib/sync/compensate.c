#include <string.h>

#include "sync/compensate.h"

void
compensate_target(const struct kern *k, float gamma,
    const struct compensate_from *from, size_t n, float *a)
{
	size_t i;

	if (from->g != NULL)
		memcpy(a, from->g, n * sizeof(*a));
	else
		memset(a, 0, n * sizeof(*a));
	if (from->e != NULL)
		k->add_scaled(a, a, gamma, from->e, n);
	for (i = 0; i < from->nback; i++)
		k->add_scaled(a, a, 1, from->back[i], n);
}

void
compensate_absent(float rho, const float *h, float *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		r[i] = h[i] * rho;
}
