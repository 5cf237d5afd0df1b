#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/rng.h"
#include "sync/cluster.h"
#include "sync/sketch.h"

#define SEED ((uint64_t)0x736b65746368)	/* stored sketches depend on it: never change it */

int
sketch_begin(struct sketch *s, size_t k, struct err *e)
{
	if (k != s->k) {
		alloc_free(s->row);
		alloc_free(s->of);
		s->k = 0;
		s->row = alloc_get(k * SKETCH_M, sizeof(*s->row), e);
		s->of = alloc_get(k, sizeof(*s->of), e);
		if (s->row == NULL || s->of == NULL)
			return -ERR_SYS;
		s->k = k;
	}
	memset(s->row, 0, k * SKETCH_M * sizeof(*s->row));
	memset(s->of, 0, k * sizeof(*s->of));
	s->clusters = 0;
	return 0;
}

void
sketch_release(struct sketch *s)
{
	alloc_free(s->row);
	alloc_free(s->of);
	alloc_free(s->place);
	memset(s, 0, sizeof(*s));
}

int
sketch_group(struct sketch *s, uint32_t group, size_t n, struct err *e)
{
	size_t blocks = (n + 3) / 4;
	int r = alloc_grow(&s->place, &s->cap, 4 * blocks, sizeof(*s->place), e);

	if (r < 0)
		return r;
	rng_fill(SEED ^ s->seed, 0, group, 0, s->place, blocks);
	s->n = n;
	return 0;
}

void
sketch_add(struct sketch *s, size_t i, const float *x)
{
	double *row = s->row + i * SKETCH_M;
	size_t j;

	for (j = 0; j < s->n; j++) {
		const double v = (double)x[j];

		row[s->place[j] % SKETCH_M] += s->place[j] >> 31 ? -v : v;
	}
}

int
sketch_judge(struct sketch *s, double theta, struct err *e)
{
	double *dist = NULL;
	size_t *group = NULL;
	size_t i, n = 0;
	int r = 0;

	if (s->k > CLUSTER_GROUP)
		return err_set(e, ERR_REFUSED, "cannot cluster %zu contributions, expected at most "
		    "%d: leave --cluster out", s->k, (int)CLUSTER_GROUP);
	for (i = 0; i < s->k; i++)
		if (s->of[i] != SKETCH_NONE)
			memmove(s->row + n++ * SKETCH_M, s->row + i * SKETCH_M,
			    SKETCH_M * sizeof(*s->row));
	if (n == 0)
		return 0;
	dist = alloc_get(n * n, sizeof(*dist), e);
	group = alloc_get(n, sizeof(*group), e);
	if (dist == NULL || group == NULL) {
		r = -ERR_SYS;
		goto out;
	}
	cluster_cosine(s->row, n, SKETCH_M, dist);
	if ((r = cluster_linkage(dist, n, theta, group, &s->clusters, e)) < 0)
		goto out;
	for (i = n = 0; i < s->k; i++)
		if (s->of[i] != SKETCH_NONE)
			s->of[i] = group[n++];
out:
	alloc_free(dist);
	alloc_free(group);
	return r;
}
