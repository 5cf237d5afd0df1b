#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "device/memory.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"

int
memory_put_list(struct memory *h, const char *key, const double *v, size_t n,
    struct err *e)
{
	struct buf b = BUF_INIT;
	char text[32];
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		(void)snprintf(text, sizeof(text), "%s%.17g",
		    i == 0 ? "" : " ", v[i]);
		r = buf_put(&b, text, strlen(text) + (i + 1 == n), e);
	}
	if (r == 0 && n > 0)
		r = text_set(&h->kv, key, (const char *)b.p, e);
	buf_release(&b);
	return r;
}

int
memory_list(const struct memory *h, const char *key, double *v, size_t n,
    struct err *e)
{
	const char *p = text_get(&h->kv, key);
	char *end = NULL;
	size_t i;

	if (p == NULL)
		return 0;
	for (i = 0; i < n; i++, p = end) {
		v[i] = strtod(p, &end);
		if (end == p)
			break;
	}
	return i == n && *p == '\0' ? 1 :
	    err_set(e, ERR_DATA, "corrupt: %s", key);
}

void
memory_release(struct memory *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		alloc_free(h->row[i].name);
		alloc_free(h->row[i].x);
	}
	alloc_free(h->row);
	text_release(&h->kv);
	*h = (struct memory)MEMORY_INIT;
}

/* A row of n zeros. */
static float *
memory_add(struct memory *h, const char *name, size_t n, struct err *e)
{
	struct memory_row *r;

	if (alloc_grow(&h->row, &h->cap, h->n + 1, sizeof(*h->row), e) < 0)
		return NULL;
	r = &h->row[h->n];
	r->name = alloc_dup(name, e);
	r->x = alloc_get(n, sizeof(*r->x), e);
	r->n = n;
	h->n++;
	return r->name != NULL ? r->x : NULL;
}

int
memory_put(struct memory *h, const char *name, const float *x, size_t n,
    struct err *e)
{
	float *to = memory_add(h, name, n, e);

	if (to == NULL)
		return -ERR_SYS;
	memcpy(to, x, n * sizeof(*x));
	return 0;
}

const float *
memory_row(const struct memory *h, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (strcmp(h->row[i].name, name) == 0)
			return h->row[i].n == n ? h->row[i].x : NULL;
	return NULL;
}

/* ---- reading ---- */

static int
memory_values(struct memory *h, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	struct values v = VALUES_INIT;
	struct schema_span span;
	size_t i;
	int k = 0;

	for (i = 0; i < sc->n && k == 0; i++)
		if (memory_add(h, sc->t[i].name, (size_t)sc->t[i].numel,
		    e) == NULL)
			k = -ERR_SYS;
	if (k == 0)
		k = values_begin(&v, r, e);
	while (k >= 0 && (k = values_next(&v, e)) > 0) {
		schema_span(sc, v.group, &span);
		memcpy(h->row[span.tensor].x + span.offset, v.x,
		    v.n * sizeof(*v.x));
	}
	values_release(&v);
	return k;
}

int
memory_read(struct memory *h, struct reader *r, struct err *e)
{
	const struct shard *sh = reader_shard(r);
	int k;

	*h = (struct memory)MEMORY_INIT;
	h->step = sh->step;
	memcpy(h->run, sh->run, SHARD_ID);
	memcpy(h->device, sh->device, SHARD_ID);
	if ((k = text_copy(&h->kv, &sh->kv, e)) == 0 &&
	    (k = text_set(&h->kv, MEMORY_KEY, NULL, e)) == 0)
		k = memory_values(h, r, e);
	if (k < 0)
		memory_release(h);
	return k;
}

int
memory_number(const struct statedir *s, const char *file, const char *key,
    double *v, struct err *e)
{
	struct memory h = MEMORY_INIT;
	const char *text;
	int r = memory_load(&h, s, file, e);

	if (r > 0) {
		text = text_get(&h.kv, key);
		r = text != NULL;
		if (text != NULL && num_f64(v, text, 0, 1e300, key, NULL) < 0)
			r = err_set(e, ERR_DATA, "corrupt: %s in '%s/%s'", key,
			    s->dir, h.file);
	}
	memory_release(&h);
	return r;
}

/* ---- writing ---- */

static int
memory_schema(const struct memory *h, struct schema *sc, struct err *e)
{
	struct schema_tensor t;
	size_t i;
	int k;

	for (i = 0; i < h->n; i++) {
		memset(&t, 0, sizeof(t));
		t.name = h->row[i].name;
		t.dtype = SCHEMA_F32;
		t.ndim = 1;
		t.dim[0] = h->row[i].n;
		if ((k = schema_add(sc, &t, e)) < 0)
			return k;
	}
	return schema_finish(sc, e);
}

int
memory_write(const struct memory *h, struct writer *w, const char *name,
    struct err *e)
{
	struct schema sc = SCHEMA_INIT;
	struct schema_span span;
	struct shard s;
	uint32_t g;
	int k;

	shard_init(&s);
	s.kind = SHARD_HISTORY;
	s.step = h->step;
	memcpy(s.run, h->run, SHARD_ID);
	memcpy(s.device, h->device, SHARD_ID);
	if ((k = memory_schema(h, &sc, e)) == 0 &&
	    (k = text_copy(&s.kv, &h->kv, e)) == 0 &&
	    (name == NULL || (k = text_set(&s.kv, MEMORY_KEY, name, e)) == 0))
		k = writer_shard(w, &s, &sc, e);
	for (g = 0; k >= 0 && g < sc.ngroups; g++) {
		schema_span(&sc, g, &span);
		k = writer_values(w, g, h->row[span.tensor].x + span.offset,
		    span.n, e);
	}
	if (k >= 0)
		k = writer_send(w, NULL, e);
	shard_release(&s);
	schema_release(&sc);
	return k;
}
