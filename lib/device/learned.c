#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "device/learned.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"

int
learned_put_list(struct learned *h, const char *key, const double *v, size_t n,
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
learned_list(const struct learned *h, const char *key, double *v, size_t n, struct err *e)
{
	const char *p = text_get(&h->kv, key);
	char *end = NULL;
	size_t i;

	if (p == NULL)
		return 0;
	for (i = 0; i < n; i++, p = end) {
		v[i] = strtod(p, &end);
		if (end == p || !isfinite(v[i]))
			break;
	}
	return i == n && *p == '\0' ? 1 : err_set(e, ERR_DATA, "corrupt: key %s in "
	    "'%s/%s' is '%.60s', expected %zu finite number%s: remove that file", key,
	    h->dir, h->file, text_get(&h->kv, key), n, n == 1 ? "" : "s");
}

void
learned_release(struct learned *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		alloc_free(h->row[i].name);
		alloc_free(h->row[i].x);
	}
	alloc_free(h->row);
	text_release(&h->kv);
	*h = (struct learned)LEARNED_INIT;
}

/* Add a row of n zeros. Return its numbers, or NULL without memory. */
static float *
learned_add(struct learned *h, const char *name, size_t n, struct err *e)
{
	struct learned_row *r;

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
learned_put(struct learned *h, const char *name, const float *x, size_t n, struct err *e)
{
	float *to = learned_add(h, name, n, e);

	if (to == NULL)
		return -ERR_SYS;
	memcpy(to, x, n * sizeof(*x));
	return 0;
}

const float *
learned_row(const struct learned *h, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (strcmp(h->row[i].name, name) == 0)
			return h->row[i].n == n ? h->row[i].x : NULL;
	return NULL;
}

int
learned_need(const struct learned *h, const char *name, size_t n,
    const float **x, struct err *e)
{
	return (*x = learned_row(h, name, n)) != NULL ? 0 : err_set(e, ERR_DATA,
	    "mismatch: row '%s' of %zu number%s is absent from '%s/%s': remove that file, to "
	    "begin anew", name, n, n == 1 ? "" : "s", h->dir, h->file);
}

/* ---- one memory, read ---- */

/* Return what to do about a damaged file.  LEARNED_RESTART has the incarnation: without it the
 * receiver would refuse the device's shards. */
static const char *
learned_remedy(const char *name)
{
	return strcmp(name, LEARNED_RESTART) == 0 ? " (ace-ack --restart begins without the file)" :
	    " (remove the file)";
}

static int
learned_values(struct learned *h, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	struct values v = VALUES_INIT;
	struct schema_span span;
	size_t i;
	int k = 0;

	for (i = 0; i < sc->n && k == 0; i++)
		if (learned_add(h, sc->t[i].name, (size_t)sc->t[i].numel, e) == NULL)
			k = -ERR_SYS;
	if (k == 0)
		k = values_begin(&v, r, e);
	while (k >= 0 && (k = values_next(&v, e)) > 0) {
		schema_span(sc, v.group, &span);
		memcpy(h->row[span.tensor].x + span.offset, v.x, v.n * sizeof(*v.x));
	}
	values_release(&v);
	return k;
}

/* Read the memory from the shard at which r stands. */
static int
learned_read(struct learned *h, struct reader *r, struct err *e)
{
	const struct shard *sh = reader_shard(r);
	int k;

	if (sh->kind != SHARD_HISTORY)
		return err_set(e, ERR_DATA, "corrupt: the shard has kind %s, expected history",
		    shard_kind_name(sh->kind));
	h->step = sh->step;
	memcpy(h->run, sh->run, SHARD_ID);
	memcpy(h->device, sh->device, SHARD_ID);
	k = text_copy(&h->kv, &sh->kv, e);
	return k < 0 ? k : learned_values(h, r, e);
}

/* Read the file's memories into h[2]: the memory, and the one before its step.  Return their
 * number, 0 if the file is absent or truncated.  Read the whole file, to verify its end. */
static int
learned_both(struct learned h[2], const struct statedir *s, const char *name,
    struct err *e)
{
	char path[STATE_PATH];
	struct reader *r = NULL;
	int k, n = 0;

	h[0] = h[1] = (struct learned)LEARNED_INIT;
	if ((k = reader_kept(&r, statedir_path(s, name, path), NULL, e)) > 0)
		while ((k = reader_to_shard(r, e)) > 0 &&
		    (k = n < 2 ? learned_read(&h[n++], r, e) : err_set(e, ERR_DATA,
		    "corrupt: the file has more than two shards")) >= 0)
			continue;
	if (k < 0) {
		learned_release(&h[0]);
		learned_release(&h[1]);
		n = 0;
	}
	if (k == -ERR_DATA && e != NULL && e->kind == ERR_TRUNCATED) {
		/* a power cut may have truncated the file, which is not synced */
		err_clear(e);
		k = 0;
	}
	if (k == -ERR_DATA)
		k = err_after(e, err_file(e, k, path), "%s", learned_remedy(name));
	h[0].dir = h[1].dir = s->dir;
	h[0].file = h[1].file = name;
	reader_free(r);
	return k < 0 ? k : n;
}

int
learned_load(struct learned *h, const struct statedir *s, const char *name, struct err *e)
{
	return learned_before(h, s, name, UINT64_MAX, e);
}

int
learned_before(struct learned *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e)
{
	struct learned both[2];
	int k = learned_both(both, s, name, e), old = k > 0 && both[0].step == step;

	*h = both[old];
	learned_release(&both[!old]);
	return k <= 0 ? k : k > old;
}

int
learned_number(const struct statedir *s, const char *file, const char *key,
    double *v, struct err *e)
{
	struct learned h = LEARNED_INIT;
	const char *text;
	int r = learned_load(&h, s, file, e);

	if (r > 0) {
		text = text_get(&h.kv, key);
		r = text != NULL;
		if (text != NULL && num_f64(v, text, 0, 1e300, key, NULL) < 0)
			r = err_set(e, ERR_DATA, "corrupt: key %s in '%s/%s' is '%.40s', expected "
			    "a number from 0 on%s", key, s->dir, h.file, text,
			    learned_remedy(file));
	}
	learned_release(&h);
	return r;
}

/* ---- one memory, written ---- */

static int
learned_schema(const struct learned *h, struct schema *sc, struct err *e)
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
learned_write(const struct learned *h, struct writer *w, struct err *e)
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
	if ((k = learned_schema(h, &sc, e)) == 0 &&
	    (k = text_copy(&s.kv, &h->kv, e)) == 0)
		k = writer_shard(w, &s, &sc, e);
	for (g = 0; k >= 0 && g < sc.ngroups; g++) {
		schema_span(&sc, g, &span);
		k = writer_values(w, g, h->row[span.tensor].x + span.offset, span.n, e);
	}
	if (k >= 0)
		k = writer_send(w, NULL, e);
	shard_release(&s);
	schema_release(&sc);
	return k;
}

/* Write a file with the memory h and, unless it is NULL, the older memory `before'. */
static int
learned_file(const struct learned *h, const struct learned *before,
    const struct statedir *s, const char *name, enum io_sync sync, struct err *e)
{
	char path[STATE_PATH];
	struct writer *w = NULL;
	int k = writer_file(&w, statedir_path(s, name, path), "state", e);

	if (k == 0 && (k = learned_write(h, w, e)) == 0 && before != NULL)
		k = learned_write(before, w, e);
	if (k == 0)
		k = writer_end(w, sync, e);
	writer_free(w);
	return k;
}

/* Copy the run, device and step of the shard to the memory. */
static int
learned_of(struct learned *h, const struct shard *sh, struct err *e)
{
	struct shard of;
	int r;

	shard_init(&of);
	of.kv = h->kv;
	r = shard_same(&of, sh, e);
	h->kv = of.kv;
	memcpy(h->run, of.run, SHARD_ID);
	memcpy(h->device, of.device, SHARD_ID);
	h->step = sh->step;
	return r;
}

int
learned_save(struct learned *h, const struct statedir *s, const char *name,
    const struct shard *sh, enum io_sync sync, struct err *e)
{
	int r = sh != NULL ? learned_of(h, sh, e) : 0;

	if (r == 0)
		r = learned_file(h, NULL, s, name, sync, e);
	learned_release(h);
	return r;
}

int
learned_save_again(struct learned *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e)
{
	struct err old = ERR_INIT;
	struct learned before;
	int r;

	if ((r = learned_of(h, sh, e)) == 0) {
		r = learned_before(&before, s, name, sh->step, &old);
		r = r < 0 && r != -ERR_DATA ? err_move(e, &old) :
		    learned_file(h, r > 0 ? &before : NULL, s, name, IO_SYNC_RENAME, e);
		learned_release(&before);
	}
	learned_release(h);
	return r;
}
