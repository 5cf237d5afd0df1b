#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "files/format.h"
#include "model/model.h"
#include "model/parts.h"
#include "model/slice.h"

struct parts {
	const struct model *m;
	const char *path;
	struct slice *slice;		/* [tensors] */
	uint64_t (*of)[SCHEMA_MAX_DIM];	/* [tensors] shapes of the whole tensors; NULL:
					 * those of the model are whole */
};

/* Store the slice of one entry of the index. */
static int
parts_take(void *arg, const struct format_slice *s, struct err *e)
{
	struct parts *x = arg;
	const struct schema_tensor *t = x->m->schema.t;
	const uint64_t *dim = x->of != NULL ? s->shape : s->of;
	const ssize_t lo = model_find(x->m, s->name);

	if (lo < 0)
		return x->of == NULL ? 0 : err_set(e, ERR_DATA, "mismatch: tensor "
		    "'%.160s' of '%s' is not in '%s'", s->name, x->path, x->m->path);
	if (s->ndim != t[lo].ndim ||
	    memcmp(dim, t[lo].dim, t[lo].ndim * sizeof(*dim)) != 0)
		return err_set(e, ERR_DATA, "mismatch: tensor '%.160s' of '%s' has "
		    "another shape than '%s' says", s->name, x->m->path, x->path);
	memcpy(x->slice[lo].off, s->offset, sizeof(s->offset));
	memcpy(x->slice[lo].len, s->shape, sizeof(s->shape));
	if (x->of != NULL)
		memcpy(x->of[lo], s->of, sizeof(s->of));
	return 0;
}

/* Read the index; a tensor that it does not name is whole. */
static int
parts_read(struct parts *x, uint64_t rank[2], struct err *e)
{
	const struct schema *sc = &x->m->schema;
	size_t i;

	if ((x->slice = alloc_get(sc->n, sizeof(*x->slice), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < sc->n; i++) {
		slice_whole(&sc->t[i], &x->slice[i]);
		if (x->of != NULL)
			memcpy(x->of[i], sc->t[i].dim, sizeof(x->of[i]));
	}
	rank[0] = rank[1] = 0;
	return safetensors_slices(x->path, rank, parts_take, x, e);
}

int
parts_model(struct model *m, const char *path, uint64_t rank[2], struct err *e)
{
	struct parts x = { .m = m, .path = path };
	struct schema sc = SCHEMA_INIT;
	struct schema_tensor t;
	size_t i;
	int r = 0;

	if ((x.of = alloc_get(m->schema.n, sizeof(*x.of), e)) == NULL)
		return -ERR_SYS;
	r = parts_read(&x, rank, e);
	sc.group_size = MODEL_GROUP;
	for (i = 0; r == 0 && i < m->schema.n; i++) {
		t = m->schema.t[i];
		memcpy(t.dim, x.of[i], sizeof(t.dim));
		if ((r = schema_add(&sc, &t, e)) == 0)
			r = slice_check(&x.slice[i], &sc.t[i], e);
	}
	if (r == 0)
		r = schema_finish(&sc, e);
	schema_release(r == 0 ? &m->schema : &sc);
	if (r == 0)
		m->schema = sc;
	m->slice = x.slice;
	alloc_free(x.of);
	return r;
}

int
parts_for(const struct model *m, const char *path, struct slice **out, struct err *e)
{
	struct parts x = { .m = m, .path = path };
	uint64_t rank[2];
	size_t i;
	int r = parts_read(&x, rank, e);

	for (i = 0; r == 0 && i < m->schema.n; i++)
		if ((r = slice_check(&x.slice[i], &m->schema.t[i], e)) == 0)
			x.slice[i] = slice_common(&x.slice[i], &m->slice[i]);
	*out = x.slice;
	return r;
}
