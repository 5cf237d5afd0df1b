#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "files/format.h"
#include "model/model.h"
#include "model/parts.h"
#include "model/slice.h"

struct parts {
	struct format_slice *p;		/* by name, which is ours */
	size_t n, cap;
	uint64_t rank[2];
};
#define PARTS_INIT { NULL, 0, 0, { 0, 0 } }

static int
parts_add(void *arg, const struct format_slice *s, struct err *e)
{
	struct parts *x = arg;
	int r = alloc_grow(&x->p, &x->cap, x->n + 1, sizeof(*x->p), e);

	if (r < 0)
		return r;
	x->p[x->n] = *s;
	x->p[x->n].name = alloc_dup(s->name, e);
	return x->p[x->n++].name != NULL ? 0 : -ERR_SYS;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct format_slice *)a)->name,
	    ((const struct format_slice *)b)->name);
}

static int
parts_open(struct parts *x, const char *path, struct err *e)
{
	size_t i;
	int r = safetensors_slices(path, x->rank, parts_add, x, e);

	if (r < 0)
		return r;
	if (x->n > 1)
		qsort(x->p, x->n, sizeof(*x->p), by_name);
	for (i = 1; i < x->n; i++)
		if (by_name(&x->p[i - 1], &x->p[i]) == 0)
			return err_set(e, ERR_DATA, "corrupt: '%s' names tensor "
			    "'%.160s' twice", path, x->p[i].name);
	return 0;
}

static void
parts_close(struct parts *x)
{
	size_t i;

	for (i = 0; i < x->n; i++)
		alloc_free((char *)(uintptr_t)x->p[i].name);
	alloc_free(x->p);
}

/* The slice of a tensor; dims: the shape that one of the two in the index has to have.
 * What it does not name is whole. */
static int
parts_slice(const struct format_slice *s, const struct schema_tensor *t,
    const uint64_t *dims, struct slice *out, struct err *e)
{
	if (s == NULL) {
		slice_whole(t, out);
		return 0;
	}
	if (s->ndim != t->ndim ||
	    memcmp(dims, t->dim, t->ndim * sizeof(*dims)) != 0)
		return err_set(e, ERR_DATA, "mismatch: tensor '%.160s' has not the "
		    "shape that the index says", t->name);
	memset(out, 0, sizeof(*out));
	memcpy(out->off, s->offset, sizeof(out->off));
	memcpy(out->len, s->shape, sizeof(out->len));
	return 0;
}

/* The tensor that a slice is of, as files have it. */
static int
parts_tensor(struct schema *sc, struct slice *out, const struct schema_tensor *t,
    const struct format_slice *s, struct err *e)
{
	struct schema_tensor whole = *t;
	int r = parts_slice(s, t, s != NULL ? s->shape : NULL, out, e);

	if (r < 0)
		return r;
	if (s != NULL)
		memcpy(whole.dim, s->of, sizeof(whole.dim));
	if ((r = schema_add(sc, &whole, e)) < 0 || s == NULL)
		return r;
	return slice_check(out, &sc->t[sc->n - 1], e);
}

int
parts_model(struct model *m, const char *path, uint64_t rank[2], struct err *e)
{
	struct schema sc = SCHEMA_INIT;
	struct parts x = PARTS_INIT;
	const struct format_slice *s;
	size_t i, k = 0;
	int r = parts_open(&x, path, e);

	if (r == 0 && m->gguf)
		r = err_set(e, ERR_DATA, "unsupported: '%s' is a GGUF file, which "
		    "has no slices", m->path);
	if (r == 0 && (m->slice = alloc_get(m->schema.n, sizeof(*m->slice),
	    e)) == NULL)
		r = -ERR_SYS;
	sc.group_size = MODEL_GROUP;
	for (i = 0; r == 0 && i < m->schema.n; i++) {
		s = k < x.n && strcmp(x.p[k].name, m->schema.t[i].name) == 0 ?
		    &x.p[k++] : NULL;
		r = parts_tensor(&sc, &m->slice[i], &m->schema.t[i], s, e);
	}
	if (r == 0 && k < x.n)
		r = err_set(e, ERR_DATA, "mismatch: tensor '%.160s' of '%s' is not "
		    "in '%s'", x.p[k].name, path, m->path);
	if (r == 0 && (r = schema_finish(&sc, e)) == 0) {
		schema_release(&m->schema);
		m->schema = sc;
		memcpy(rank, x.rank, sizeof(x.rank));
	} else
		schema_release(&sc);
	parts_close(&x);
	return r;
}

int
parts_for(const struct model *m, const char *path, struct slice **out,
    struct err *e)
{
	const struct schema_tensor *t;
	const struct format_slice *s;
	struct parts x = PARTS_INIT;
	struct slice theirs;
	size_t i, k = 0;
	int r = parts_open(&x, path, e);

	if (r == 0 && (*out = alloc_get(m->schema.n, sizeof(**out), e)) == NULL)
		r = -ERR_SYS;
	for (i = 0; r == 0 && i < m->schema.n; i++) {
		t = &m->schema.t[i];
		while (k < x.n && strcmp(x.p[k].name, t->name) < 0)
			k++;
		s = k < x.n && strcmp(x.p[k].name, t->name) == 0 ? &x.p[k] : NULL;
		if ((r = parts_slice(s, t, s != NULL ? s->of : NULL, &theirs,
		    e)) == 0 && (r = slice_check(&theirs, t, e)) == 0)
			slice_common(&theirs, &m->slice[i], t->ndim, &(*out)[i]);
	}
	parts_close(&x);
	return r;
}
