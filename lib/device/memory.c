#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
memory_open(struct reader **r, const char *path, struct err *e)
{
	struct io *io;
	int k = io_open_kept(&io, path, e);

	if (k <= 0)
		return k;
	k = reader_open(r, io, NULL, e);
	return k < 0 ? k : 1;
}

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

static int
memory_read(struct memory *h, struct reader *r, struct err *e)
{
	int k = reader_to_shard(r, e);

	if (k == 0 || (k > 0 && reader_shard(r)->kind != SHARD_HISTORY))
		k = err_set(e, ERR_DATA, "corrupt: no history");
	if (k >= 0)
		h->step = reader_shard(r)->step;
	if (k < 0 || (k = text_copy(&h->kv, &reader_shard(r)->kv, e)) < 0 ||
	    (k = memory_values(h, r, e)) < 0)
		return k;
	if ((k = reader_next(r, e)) > 0)
		k = err_set(e, ERR_DATA, "corrupt: more than one history");
	return k;
}

int
memory_load(struct memory *h, const struct statedir *s, const char *name,
    struct err *e)
{
	char *path = statedir_path(s, name, e);
	struct reader *r = NULL;
	int k;

	*h = (struct memory)MEMORY_INIT;
	if (path == NULL)
		return -ERR_SYS;
	if ((k = memory_open(&r, path, e)) > 0 &&
	    (k = memory_read(h, r, e)) == 0)
		k = 1;
	if (k == -ERR_DATA)
		k = err_file(e, k, path);
	if (k < 0)
		memory_release(h);
	reader_free(r);
	alloc_free(path);
	return k;
}

/* "score.before": not in the way of those names that end with a step */
#define MEMORY_BEFORE ".before"
enum { MEMORY_NAME = 64 };

int
memory_before(struct memory *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e)
{
	char before[MEMORY_NAME];
	int k = memory_load(h, s, name, e);

	if (k < 0 || (k > 0 && h->step != step))
		return k;
	memory_release(h);
	(void)snprintf(before, sizeof(before), "%s" MEMORY_BEFORE, name);
	if ((k = memory_load(h, s, before, e)) > 0 && h->step == step) {
		memory_release(h);
		k = 0;
	}
	return k;
}

int
memory_turn(const struct statedir *s, const char *name, struct err *e)
{
	char before[MEMORY_NAME], *from, *to;
	int k = -ERR_SYS;

	(void)snprintf(before, sizeof(before), "%s" MEMORY_BEFORE, name);
	from = statedir_path(s, name, e);
	to = statedir_path(s, before, e);
	if (from != NULL && to != NULL) {
		/* where there are no links a step that comes again counts
		 * twice, which costs quality and no more */
		(void)unlink(to);
		k = link(from, to) == 0 || errno == EPERM ||
		    errno == EOPNOTSUPP ? 0 : err_sys(e, "'%s'", to);
	}
	alloc_free(from);
	alloc_free(to);
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
			    s->dir, file);
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

static int
memory_write(const struct memory *h, struct writer *w, const struct shard *of,
    struct err *e)
{
	struct schema sc = SCHEMA_INIT;
	struct schema_span span;
	struct shard s;
	uint32_t g;
	int k;

	shard_init(&s);
	if ((k = memory_schema(h, &sc, e)) < 0 ||
	    (k = text_copy(&s.kv, &h->kv, e)) < 0)
		goto out;
	s.kind = SHARD_HISTORY;
	if (of != NULL) {
		k = shard_same(&s, of, e);
		s.step = of->step;
	}
	if (k == 0)
		k = writer_shard(w, &s, &sc, e);
	for (g = 0; k >= 0 && g < sc.ngroups; g++) {
		schema_span(&sc, g, &span);
		k = writer_values(w, g, h->row[span.tensor].x + span.offset,
		    span.n, e);
	}
	if (k >= 0 && (k = writer_send(w, NULL, e)) >= 0)
		k = writer_end(w, IO_SYNC_RENAME, e);
out:
	shard_release(&s);
	schema_release(&sc);
	return k;
}

int
memory_save(const struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, const char *tool, struct err *e)
{
	char *path = statedir_path(s, name, e);
	struct writer *w = NULL;
	int k = -ERR_SYS;

	if (path != NULL && (k = writer_file(&w, path, tool, e)) == 0)
		k = memory_write(h, w, sh, e);
	writer_free(w);
	alloc_free(path);
	return k;
}
