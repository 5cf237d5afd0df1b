#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "device/dense.h"
#include "mean/center.h"

static const char *const center_file[2] = { "past.0", "past.1" };
static const char center_seed[] = "past.seed";

#define CENTER_KEEP 0.9f		/* B of mean/center.h */
#define CENTER_LEAST 0.01f	/* with less mass a device is forgotten */

#define CENTER_LOUD 3		/* most clipping radii that a step adds to a device's mean */

enum { CENTER_VALUES = sizeof(struct center_row) / sizeof(float) };

/* Append a row of zeros. */
static struct center_row *
center_more(struct center_rows *l, struct err *e)
{
	if (alloc_grow(&l->row, &l->cap, l->n + 1, sizeof(*l->row), e) < 0)
		return NULL;
	l->row[l->n] = (struct center_row){ .mass = 0 };
	return &l->row[l->n++];
}

void
center_release(struct center *p)
{
	alloc_free(p->dir.dir);
	alloc_free(p->values);
	alloc_free(p->last.row);
	alloc_free(p->next.row);
	alloc_free(p->device);
	sketch_release(&p->now);
	*p = (struct center)CENTER_INIT;
}

/* ---- files ---- */

int
center_keep(struct center *p, const char *dir, enum io_sync sync, struct err *e)
{
	p->dir.durable = sync == IO_SYNC_FULL;
	p->sync = sync;
	return (p->dir.dir = alloc_dup(dir, e)) != NULL ? 0 : -ERR_SYS;
}

static int
center_read(struct dense *d, float *all, struct err *e)
{
	const struct schema *sc = reader_schema(d->r);
	struct schema_span span;
	const float *x;
	uint32_t g;
	int r = 0;

	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		if ((r = dense_group(d, g, &x, e)) == 0 && x != NULL)
			memcpy(all + span.first, x, span.n * sizeof(*x));
	}
	return r;
}

/* Read the center and then the rows from the two shards of a file. */
static int
center_read_both(struct center *p, struct dense *d, struct err *e)
{
	const struct schema *sc;
	int r = center_read(d, p->center, e);

	if (r == 0 && (r = values_next(&d->v, e)) == 0 &&
	    (r = reader_to_shard(d->r, e)) == 0)
		r = err_set(e, ERR_DATA, "corrupt: the state of rule center has no "
		    "rows of devices");
	if (r < 0)
		return reader_blame(d->r, r, e);
	sc = reader_schema(d->r);
	if (sc->group_size != CENTER_VALUES || sc->total % CENTER_VALUES != 0)
		return err_set(e, ERR_DATA, "corrupt: '%s' is not the state of rule "
		    "center", reader_name(d->r));
	p->last.n = (size_t)sc->ngroups;
	if ((r = alloc_grow(&p->last.row, &p->last.cap, p->last.n,
	    sizeof(*p->last.row), e)) < 0 ||
	    (r = values_begin(&d->v, d->r, e)) < 0)
		return r;
	memset(p->last.row, 0, p->last.n * sizeof(*p->last.row));
	return center_read(d, (float *)p->last.row, e);
}

/* Read the memory from the file of model sc with the newest step before sh's, if there is one. */
static int
center_load(struct center *p, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	struct dense d[2] = { { .r = NULL }, { .r = NULL } };
	const char *seed;
	uint64_t step[2];
	int k, use = -1, r = 0;

	for (k = 0; k < 2 && r == 0; k++) {
		r = dense_open(&d[k], &p->dir, center_file[k], SHARD_HISTORY, NULL, e);
		if (r < 0 || d[k].r == NULL)
			continue;
		step[k] = reader_shard(d[k].r)->step;
		if (step[k] < sh->step && memcmp(reader_schema(d[k].r)->id, sc->id,
		    sizeof(sc->id)) == 0 && (use < 0 || step[k] > step[use]))
			use = k;
	}
	if (r == 0 && use >= 0) {
		seed = text_get(&reader_shard(d[use].r)->kv, center_seed);
		p->seed = strtoull(seed != NULL ? seed : "0", NULL, 16);
		p->known = 1;
		r = center_read_both(p, &d[use], e);
	}
	p->newest = use >= 0 ? use : 1;
	for (k = 0; k < 2; k++)
		dense_close(&d[k]);
	return r;
}

static int
center_write(struct writer *w, const struct schema *sc, const float *all, struct err *e)
{
	struct schema_span span;
	uint32_t g;
	int r = 0;

	for (g = 0; g < sc->ngroups && r == 0; g++) {
		schema_span(sc, g, &span);
		r = dense_put(w, g, all + span.first, span.n, e);
	}
	return r < 0 ? r : writer_send(w, NULL, e);
}

static int
center_write_rows(const struct center *p, struct writer *w, const struct shard *sh,
    struct err *e)
{
	const struct schema_tensor t = { .name = (char[]){ "devices" },
		.dtype = SCHEMA_F32, .ndim = 2, .dim = { p->last.n, CENTER_VALUES } };
	struct schema table = SCHEMA_INIT;
	struct shard s;
	int r;

	shard_init(&s);
	s.kind = SHARD_HISTORY;
	s.step = sh->step;
	table.group_size = CENTER_VALUES;
	if ((r = schema_add(&table, &t, e)) == 0 &&
	    (r = schema_finish(&table, e)) == 0 &&
	    (r = shard_same(&s, sh, e)) == 0 &&
	    (r = writer_shard(w, &s, &table, e)) == 0)
		r = center_write(w, &table, (const float *)p->last.row, e);
	schema_release(&table);
	shard_release(&s);
	return r;
}

static int
center_save(struct center *p, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct writer *w = NULL;
	int r;

	if ((r = text_setf(&kv, center_seed, e, "%llx",
	    (unsigned long long)p->seed)) == 0 &&
	    (r = dense_create(&w, &p->dir, center_file[!p->newest], sh,
	    SHARD_HISTORY, &kv, sc, e)) == 0 &&
	    (r = center_write(w, sc, p->center, e)) == 0 &&
	    (r = center_write_rows(p, w, sh, e)) == 0)
		r = writer_end(w, p->sync, e);
	writer_free(w);
	text_release(&kv);
	if (r == 0)
		p->newest = !p->newest;
	return r;
}

/* ---- a step ---- */

/* Begin with the model sc: with zeros, or with the memory of earlier steps in p->dir. */
static int
center_model(struct center *p, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	const size_t n = (size_t)sc->total;
	int r = alloc_grow(&p->values, &p->cap, 2 * n, sizeof(*p->values), e);

	p->known = 0;
	p->last.n = 0;
	if (r < 0)
		return r;
	memset(p->values, 0, 2 * n * sizeof(*p->values));
	p->center = p->values;
	p->made = p->values + n;
	if (p->dir.dir != NULL && (r = center_load(p, sh, sc, e)) < 0) {
		p->bad = 1;
		return r != -ERR_DATA ? r : err_after(e, r, " (remove past.0 and past.1 in "
		    "'%.80s': then the rule begins anew)", p->dir.dir);
	}
	return p->last.n != 0 || center_more(&p->last, e) != NULL ? 0 : -ERR_SYS;
}

int
center_begin(struct center *p, const struct shard *sh, const struct schema *sc,
    size_t k, struct err *e)
{
	int r = 0;

	if (!p->begun || memcmp(p->model, sc->id, sizeof(p->model)) != 0) {
		r = center_model(p, sh, sc, e);
		memcpy(p->model, sc->id, sizeof(p->model));
		p->begun = r == 0;
	}
	if (r < 0 || (r = alloc_grow(&p->device, &p->device_cap, k,
	    sizeof(*p->device), e)) < 0)
		return r;
	memset(p->made, 0, (size_t)sc->total * sizeof(*p->made));
	p->k = k;
	p->now.seed = p->seed;
	return p->known ? sketch_begin(&p->now, k + 1, e) : 0;
}

const float *
center_of(const struct center *p, uint64_t first)
{
	return p->known ? p->center + first : NULL;
}

void
center_make(struct center *p, uint64_t first, const float *y, size_t n)
{
	memcpy(p->made + first, y, n * sizeof(*y));
}

void
center_device(struct center *p, size_t i, const struct shard *sh)
{
	float *v = p->device[i].v;
	size_t j;

	for (j = 0; j < SHARD_ID / 2; j++)	/* big-endian, to keep the order of ids */
		v[j] = (float)(sh->device[2 * j] << 8 | sh->device[2 * j + 1]);
}

int
center_group(struct center *p, uint32_t group, size_t n, struct err *e)
{
	return p->known ? sketch_group(&p->now, group, n, e) : 0;
}

void
center_add(struct center *p, size_t i, const float *x)
{
	if (p->known)
		sketch_add(&p->now, i, x);
}

static int
center_by_id(const struct center_id *a, const struct center_id *b)
{
	size_t j = 0;

	while (j + 1 < SHARD_ID / 2 && a->v[j] == b->v[j])
		j++;
	return (a->v[j] > b->v[j]) - (a->v[j] < b->v[j]);
}

/* Set a row to the row of the step before, decayed by CENTER_KEEP.  If little mass would be
 * left, set only the device. */
static void
center_older(struct center_row *to, const struct center_row *from)
{
	size_t j;

	to->device = from->device;
	if (from->mass * CENTER_KEEP < CENTER_LEAST)
		return;
	to->mass = from->mass * CENTER_KEEP;
	for (j = 0; j < SKETCH_M; j++)
		to->u[j] = from->u[j] * CENTER_KEEP;
}

/* Add the sketch c + scale (x - c) to a row, with the mass 1 - CENTER_KEEP. */
static void
center_put(struct center_row *to, const double *c, const double *x, double scale)
{
	size_t j;

	for (j = 0; j < SKETCH_M; j++)
		to->u[j] += (float)((1 - (double)CENTER_KEEP) *
		    (c[j] + scale * (x[j] - c[j])));
	to->mass += 1 - CENTER_KEEP;
}

static double
center_far2(const struct center_row *a, const struct center_row *b)
{
	double d, s = 0;
	size_t j;

	for (j = 0; j < SKETCH_M; j++) {
		d = (double)a->u[j] / (double)a->mass -
		    (double)b->u[j] / (double)b->mass;
		s += d * d;
	}
	return s;
}

/* Make p->next, the rows after this step, from p->last and the contributions that count, and
 * set the contributions' far2.  All are sorted by device.  A device whose id is zeros keeps no
 * row. */
static int
center_next(struct center *p, struct robust_step *t, struct err *e)
{
	static const struct center_id nobody;
	const double *const c = p->known ? p->now.row + p->k * SKETCH_M : NULL;
	struct center_row *row;
	size_t i = 0, k = 0;
	int order;

	p->next.n = 0;
	while (i < p->last.n || k < p->k) {
		order = i == 0 || k == p->k ? -1 : i == p->last.n ? 1 :
		    center_by_id(&p->last.row[i].device, &p->device[k]);
		if ((row = center_more(&p->next, e)) == NULL)
			return -ERR_SYS;
		if (order <= 0)
			center_older(row, &p->last.row[i++]);
		else
			row->device = p->device[k];
		if (p->next.n == 1 && p->known)
			center_put(row, c, c, 1);
		if (order >= 0 && p->known && robust_counts(&t->one[k])) {
			center_put(row, c, p->now.row + k * SKETCH_M,
			    fmin(1, CENTER_LOUD * t->one[k].scale));
			t->one[k].far2 = center_far2(row, &p->next.row[0]);
		}
		k += order >= 0;
		if (p->next.n > 1 && (row->mass <= 0 ||
		    center_by_id(&row->device, &nobody) == 0))
			p->next.n--;
	}
	return 0;
}

/* ---- a step's end ---- */

/* Derive the seed of the sketch's places from the norms of the first step's shards. */
static uint64_t
center_places(const struct center *p, const struct robust_step *t)
{
	unsigned char all[16];
	uint64_t seed = 0;
	size_t i;

	for (i = 0; i < p->k; i++) {
		bytes_set64(all, seed);
		bytes_set_f64(all + 8, t->one[i].norm2);
		seed = hash_64(all, sizeof(all));
	}
	return seed;
}

int
center_judge(struct center *p, struct robust_step *t, struct err *e)
{
	int r;

	if (!p->known)
		p->seed = center_places(p, t);
	if ((r = center_next(p, t, e)) == 0 && p->known)
		robust_past(t);
	return r;
}

int
center_commit(struct center *p, const struct shard *sh, const struct schema *sc,
    struct err *e)
{
	const struct center_rows last = p->last;
	float *const center = p->center;

	p->last = p->next;
	p->next = last;
	p->center = p->made;
	p->made = center;
	p->known = 1;
	return p->dir.dir != NULL ? center_save(p, sh, sc, e) : 0;
}
