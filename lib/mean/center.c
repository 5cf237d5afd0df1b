#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "device/dense.h"
#include "mean/center.h"

static const char *const center_file[2] = { "center.0", "center.1" };

void
center_keep(struct center *c, char *dir, enum io_sync sync)
{
	c->dir.dir = dir;
	c->dir.durable = sync == IO_SYNC_FULL;
	c->sync = sync;
}

void
center_release(struct center *c)
{
	alloc_free(c->x);
	alloc_free(c->next);
	alloc_free(c->dir.dir);
	*c = (struct center)CENTER_INIT;
}

/* ---- files ---- */

/* Opens file k; its step, or 0 and d->r NULL where there is none. */
static int
center_open(const struct center *c, int k, struct dense *d, uint64_t *step,
    struct err *e)
{
	int r = dense_open(d, &c->dir, center_file[k], SHARD_HISTORY, e);

	*step = r == 0 && d->r != NULL ? reader_shard(d->r)->step : 0;
	return r;
}

/* Reads the newer of the files of steps before sh's into c->x. */
static int
center_load(struct center *c, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	struct schema_span span;
	struct dense d[2] = { { .r = NULL }, { .r = NULL } };
	uint64_t step[2];
	const float *x;
	uint32_t g;
	int k, use = -1, r = 0;

	for (k = 0; k < 2 && r == 0; k++) {
		if ((r = center_open(c, k, &d[k], &step[k], e)) == 0 &&
		    d[k].r != NULL && step[k] < sh->step &&
		    memcmp(reader_schema(d[k].r)->id, sc->id, sizeof(sc->id)) == 0 &&
		    (use < 0 || step[k] > step[use]))
			use = k;
	}
	for (g = 0; use >= 0 && g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		if ((r = dense_group(&d[use], g, &x, e)) == 0 && x != NULL)
			memcpy(c->x + sc->t[span.tensor].base + span.offset, x,
			    span.n * sizeof(*x));
	}
	c->known = use >= 0;
	c->newest = use >= 0 ? use : 1;
	for (k = 0; k < 2; k++)
		dense_close(&d[k]);
	return r;
}

static int
center_save(struct center *c, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	struct schema_span span;
	struct writer *w = NULL;
	uint32_t g;
	int r = dense_create(&w, &c->dir, center_file[!c->newest], sh,
	    SHARD_HISTORY, NULL, sc, e);

	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		r = dense_put(w, g, c->x + sc->t[span.tensor].base + span.offset,
		    span.n, e);
	}
	if (r == 0 && (r = writer_send(w, NULL, e)) == 0)
		r = writer_end(w, c->sync, e);
	writer_free(w);
	if (r == 0)
		c->newest = !c->newest;
	return r;
}

/* ---- a step ---- */

int
center_begin(struct center *c, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	const size_t n = (size_t)sc->total;
	const int same = c->values == sc->total && c->x != NULL &&
	    memcmp(c->model, sc->id, sizeof(c->model)) == 0;

	if (!same) {
		if (c->cap < n || c->x == NULL) {
			alloc_free(c->x);
			alloc_free(c->next);
			c->cap = 0;
			c->next = NULL;
			c->x = alloc_get(n + 1, sizeof(*c->x), e);
			if (c->x == NULL || (c->next = alloc_get(n + 1,
			    sizeof(*c->next), e)) == NULL)
				return -ERR_SYS;
			c->cap = n;
		}
		c->values = sc->total;
		memcpy(c->model, sc->id, sizeof(c->model));
		memset(c->x, 0, n * sizeof(*c->x));
		c->known = 0;
		if (c->dir.dir != NULL) {
			int r = center_load(c, sh, sc, e);

			if (r < 0) {
				c->values = 0;
				c->bad = 1;
				return r;
			}
		}
	}
	memset(c->next, 0, n * sizeof(*c->next));
	return 0;
}

const float *
center_group(const struct center *c, uint64_t first)
{
	return c->known ? c->x + first : NULL;
}

void
center_put(struct center *c, uint64_t first, const float *y, size_t n)
{
	memcpy(c->next + first, y, n * sizeof(*y));
}

int
center_commit(struct center *c, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	float *x = c->x;

	c->x = c->next;
	c->next = x;
	c->known = 1;
	return c->dir.dir != NULL ? center_save(c, sh, sc, e) : 0;
}
