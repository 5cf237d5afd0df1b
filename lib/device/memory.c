#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "device/memory.h"
#include "format/reader.h"
#include "format/values.h"
#include "format/writer.h"
#include "pipe/filter.h"

#define MEMORY_FILE "memory"

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
memory_list(const struct memory *h, const char *key, double *v, size_t n, struct err *e)
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
	return i == n && *p == '\0' ? 1 : err_set(e, ERR_DATA, "corrupt: key %s in "
	    "file '%s' is '%.60s', expected %zu numbers: remove that file", key,
	    h->file, text_get(&h->kv, key), n);
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

/* Add a row of n zeros. */
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
memory_put(struct memory *h, const char *name, const float *x, size_t n, struct err *e)
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

int
memory_need(const struct memory *h, const char *name, size_t n,
    const float **x, struct err *e)
{
	return (*x = memory_row(h, name, n)) != NULL ? 0 : err_set(e, ERR_DATA,
	    "mismatch: row '%s' of %zu numbers is absent from '%s' of the state, "
	    "which another version of ace wrote: remove that file to begin anew",
	    name, n, h->file);
}

/* ---- one memory, read ---- */

static int
memory_values(struct memory *h, struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	struct values v = VALUES_INIT;
	struct schema_span span;
	size_t i;
	int k = 0;

	for (i = 0; i < sc->n && k == 0; i++)
		if (memory_add(h, sc->t[i].name, (size_t)sc->t[i].numel, e) == NULL)
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
			r = err_set(e, ERR_DATA, "corrupt: key %s in '%s/%s' is "
			    "'%.40s', expected 0 or more", key, s->dir, h.file, text);
	}
	memory_release(&h);
	return r;
}

/* ---- one memory, written ---- */

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

/* Write the memory as a shard with the given name. */
static int
memory_write(const struct memory *h, struct writer *w, const char *name, struct err *e)
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
	    (k = text_set(&s.kv, MEMORY_KEY, name, e)) == 0)
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

/* ---- the file of a state ---- */

#define MEMORY_BEFORE ".before"
enum { MEMORY_NAME = 64 };

/* Return the name of the file that holds a memory. */
static const char *
memory_file(const char *name)
{
	return strcmp(name, MEMORY_LINK) == 0 || strcmp(name, MEMORY_RESTART) == 0 ||
	    strcmp(name, MEMORY_FEEDBACK) == 0 ? name : MEMORY_FILE;
}

/* Set *name to the name of the memory at which r stands. If it has no name, leave *name
 * unchanged: a file with a single memory need not name it. */
static int
memory_name(const struct reader *r, const char **name, struct err *e)
{
	const char *own;
	const struct shard *sh = reader_shard(r);

	if (sh->kind != SHARD_HISTORY)
		return err_set(e, ERR_DATA, "corrupt: the shard is not of kind history");
	if ((own = text_get(&sh->kv, MEMORY_KEY)) != NULL)
		*name = own;
	return *name != NULL ? 0 : err_set(e, ERR_DATA, "corrupt: a history has no name");
}

/* Read the whole file, so that its end is verified, even if only one memory is needed. */
static int
memory_find(struct memory *h, struct reader *r, const char *name, struct err *e)
{
	const char *at;
	int k, found = 0;

	while ((k = reader_to_shard(r, e)) > 0) {
		at = memory_file(name) == name ? name : NULL;
		if ((k = memory_name(r, &at, e)) < 0)
			return k;
		if (strcmp(at, name) != 0)
			continue;
		if (found)
			return err_set(e, ERR_DATA, "corrupt: two histories are "
			    "named '%s'", name);
		if ((k = memory_read(h, r, e)) < 0)
			return k;
		found = 1;
	}
	return k < 0 ? k : found;
}

int
memory_load(struct memory *h, const struct statedir *s, const char *name, struct err *e)
{
	const char *file = memory_file(name);
	char *path = statedir_path(s, file, e);
	struct reader *r = NULL;
	int k;

	*h = (struct memory)MEMORY_INIT;
	if (path == NULL)
		return -ERR_SYS;
	if ((k = reader_kept(&r, path, NULL, e)) > 0)
		k = memory_find(h, r, name, e);
	if (k < 0)
		memory_release(h);
	if (k == -ERR_DATA && e != NULL && e->kind == ERR_TRUNCATED) {
		/* a power cut may have truncated the file, which is not synced */
		err_clear(e);
		k = 0;
	}
	if (k == -ERR_DATA)
		k = err_file(e, k, path);
	h->file = file;
	reader_free(r);
	alloc_free(path);
	return k;
}

int
memory_before(struct memory *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e)
{
	char before[MEMORY_NAME];
	int k = memory_load(h, s, name, e);

	if (k <= 0 || h->step != step)
		return k;
	memory_release(h);
	(void)snprintf(before, sizeof(before), "%s" MEMORY_BEFORE, name);
	if ((k = memory_load(h, s, before, e)) > 0 && h->step == step) {
		memory_release(h);
		k = 0;
	}
	return k;
}

/* ---- what is to be saved ---- */

static void
memory_part_release(struct memory_part *p)
{
	alloc_free(p->name);
	memory_release(&p->h);
}

void
memory_release_all(struct memories *m)
{
	while (m->n > 0)
		memory_part_release(&m->p[--m->n]);
	alloc_free(m->p);
	*m = (struct memories){ 0 };
}

/* Move the contents of h to m, where they replace a memory of the same name. */
static int
memories_put(struct memories *m, const char *name, struct memory *h, struct err *e)
{
	struct memory_part new = { alloc_dup(name, e), *h };
	size_t i = 0;

	if (new.name == NULL || alloc_grow(&m->p, &m->cap, m->n + 1,
	    sizeof(*m->p), e) < 0) {
		alloc_free(new.name);
		return -ERR_SYS;
	}
	*h = (struct memory)MEMORY_INIT;
	while (i < m->n && strcmp(m->p[i].name, name) < 0)
		i++;
	if (i < m->n && strcmp(m->p[i].name, name) == 0)
		memory_part_release(&m->p[i]);
	else {
		memmove(&m->p[i + 1], &m->p[i], (m->n - i) * sizeof(*m->p));
		m->n++;
	}
	m->p[i] = new;
	return 0;
}

/* Merge old and new memories, both in order of name. */
static int
memory_merge(struct memories *m, struct reader *r, struct writer *w, struct err *e)
{
	const char *name;
	size_t i = 0;
	int k, c;

	do {
		name = NULL;
		if ((k = r != NULL ? reader_to_shard(r, e) : 0) < 0 ||
		    (k > 0 && (k = memory_name(r, &name, e)) < 0))
			return k;
		for (c = -1; i < m->n && c < 0; i += c <= 0) {
			c = name != NULL ? strcmp(m->p[i].name, name) : -1;
			if (c <= 0 && (k = memory_write(&m->p[i].h, w,
			    m->p[i].name, e)) < 0)
				return k;
		}
		if (name != NULL && c != 0 && (k = filter_copy(r, w, e)) < 0)
			return k;
	} while (name != NULL);
	return 0;
}

static int
memory_lock(const struct statedir *s, int *fd, struct err *e)
{
	char *path = statedir_path(s, MEMORY_FILE ".lock", e);
	int r = path != NULL ? fd_lock(path, LOCK_EX, fd, e) : -ERR_SYS;

	alloc_free(path);
	return r;
}

static int
memory_renew(const char *path, struct memories *m, int merge, struct err *e)
{
	struct reader *r = NULL;
	struct writer *w = NULL;
	int k = 0;

	if ((!merge || (k = reader_kept(&r, path, NULL, e)) >= 0) &&
	    (k = writer_file(&w, path, "state", e)) == 0 &&
	    (k = memory_merge(m, r, w, e)) == 0)
		k = writer_end(w, IO_SYNC_RENAME, e);
	reader_free(r);
	writer_free(w);
	return k;
}

/* Write m to the file and release m. Begin an unreadable file anew: a power cut may leave
 * one, and callers that need its contents have already refused it. A file with a single
 * memory has only one writer and needs no lock. */
static int
memory_commit(const struct statedir *s, const char *file, struct memories *m,
    struct err *e)
{
	const int shared = strcmp(file, MEMORY_FILE) == 0;
	char *path = statedir_path(s, file, e);
	int r = -ERR_SYS, fd = -1;

	if (path != NULL && (!shared || (r = memory_lock(s, &fd, e)) == 0) &&
	    (r = memory_renew(path, m, shared, e)) == -ERR_DATA) {
		err_clear(e);
		r = memory_renew(path, m, 0, e);
	}
	if (fd >= 0)
		(void)close(fd);
	memory_release_all(m);
	alloc_free(path);
	return r;
}

int
memory_flush(const struct statedir *s, struct err *e)
{
	return s->later == NULL || s->later->n == 0 ? 0 :
	    memory_commit(s, MEMORY_FILE, s->later, e);
}

/* Save h, and the older memory `before' unless it is NULL. On success both are empty. */
static int
memory_put_away(struct memory *h, struct memory *before,
    const struct statedir *s, const char *name, struct err *e)
{
	const char *file = memory_file(name);
	struct memories now = { 0 }, *m = s->later != NULL &&
	    strcmp(file, MEMORY_FILE) == 0 ? s->later : &now;
	char old[MEMORY_NAME];
	int r;

	(void)snprintf(old, sizeof(old), "%s" MEMORY_BEFORE, name);
	if ((r = memories_put(m, name, h, e)) == 0 && before != NULL)
		r = memories_put(m, old, before, e);
	if (r == 0 && m == &now)
		r = memory_commit(s, file, m, e);
	memory_release_all(&now);
	return r;
}

/* Set run, device and step of the memory to those of the shard. */
static int
memory_of(struct memory *h, const struct shard *sh, struct err *e)
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
memory_save(struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e)
{
	int r = sh != NULL ? memory_of(h, sh, e) : 0;

	if (r == 0)
		r = memory_put_away(h, NULL, s, name, e);
	memory_release(h);
	return r;
}

int
memory_save_again(struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e)
{
	struct memory before;
	int r;

	if ((r = memory_of(h, sh, e)) == 0 &&
	    (r = memory_before(&before, s, name, sh->step, e)) >= 0) {
		r = memory_put_away(h, r > 0 ? &before : NULL, s, name, e);
		memory_release(&before);
	}
	memory_release(h);
	return r;
}
