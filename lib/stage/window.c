#include <string.h>

#include "format/values.h"
#include "stage/window.h"

int
window_add(struct window *w, const struct reader *r, const struct record *rec,
    size_t most, struct err *e)
{
	struct window_group *g;
	int k;

	if ((k = buf_room(&w->values, most * sizeof(float), e)) < 0 ||
	    (k = alloc_grow(&w->g, &w->cap, w->n + 1, sizeof(*w->g), e)) < 0)
		return k;
	g = &w->g[w->n];
	g->group = rec->group;
	g->at = w->values.n;
	g->looked = 0;
	if ((k = values_decode(r, rec, (float *)(void *)(w->values.p + g->at),
	    most, &g->n, e)) < 0)
		return k;
	w->values.n += g->n * sizeof(float);
	w->n++;
	return 0;
}

const float *
window_values(const struct window *w, size_t i)
{
	return (const float *)(const void *)(w->values.p + w->g[i].at);
}

void
window_drop(struct window *w, size_t k)
{
	size_t from = k < w->n ? w->g[k].at : w->values.n, i;

	if (k == 0)
		return;
	memmove(w->g, w->g + k, (w->n - k) * sizeof(*w->g));
	w->n -= k;
	w->values.n -= from;
	memmove(w->values.p, w->values.p + from, w->values.n);
	for (i = 0; i < w->n; i++)
		w->g[i].at -= from;
}

void
window_release(struct window *w)
{
	alloc_free(w->g);
	buf_release(&w->values);
	w->g = NULL;
	w->n = w->cap = 0;
}
