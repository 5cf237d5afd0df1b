#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/io.h"
#include "files/dtype.h"
#include "files/format.h"
#include "files/gguf.h"
#include "format/ggml.h"
#include "format/text.h"

enum {
	GGUF_NESTED = 7,	/* most arrays around a value */
	GGUF_PIECE = 4096,
	GGUF_ALIGN = 32		/* alignment if the metadata does not give it */
};
#define GGUF_ALIGNMENT "general.alignment"

/* Types of metadata values. */
enum {
	GGUF_U32 = 4, GGUF_STRING = 8, GGUF_ARRAY = 9, GGUF_NTYPE = 13
};
static const uint8_t gguf_bytes[GGUF_NTYPE] = {
	1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
};

struct gguf {
	struct io *io;
	const char *path;
	uint64_t size, align;
	struct hash_sum *sum;	/* hash of the value that is being read */
	/* current key or tensor, for messages */
	char what[64 + SCHEMA_MAX_NAME];
	struct gguf_span {
		uint64_t at, bytes;
		struct schema_tensor t;
	} *span;
	size_t n, cap;
};

static uint64_t
gguf_left(const struct gguf *g)
{
	return io_bytes(g->io) < g->size ? g->size - io_bytes(g->io) : 0;
}

static int
gguf_bad(const struct gguf *g, const char *why, struct err *e)
{
	return err_data(e, io_bytes(g->io), "corrupt: %s of '%s' %s", g->what,
	    g->path, why);
}

static int
gguf_take(struct gguf *g, void *p, size_t n, struct err *e)
{
	size_t got;
	int r = io_read(g->io, p, n, &got, e);

	if (r == 0 && got < n)
		return err_data(e, io_bytes(g->io), "truncated: '%s' ends inside %s",
		    g->path, g->what);
	if (r == 0 && g->sum != NULL)
		hash_sum_add(g->sum, p, n);
	return r;
}

/* Read a number of n bytes. */
static int
gguf_number(struct gguf *g, size_t n, uint64_t *v, struct err *e)
{
	unsigned char b[8] = { 0 };
	int r = gguf_take(g, b, n, e);

	*v = r == 0 ? bytes_le64(b) : 0;
	return r;
}

/* Read a name of at most max bytes; name has room for max + 1. */
static int
gguf_name(struct gguf *g, char *name, size_t max, struct err *e)
{
	uint64_t n;
	int r = gguf_number(g, 8, &n, e);

	if (r < 0)
		return r;
	if (n == 0 || n > max)
		return err_data(e, io_bytes(g->io), "limit: the name of %s of '%s' "
		    "has %llu bytes, expected 1 to %zu", g->what, g->path,
		    (unsigned long long)n, max);
	if ((r = gguf_take(g, name, (size_t)n, e)) < 0)
		return r;
	name[n] = '\0';
	return strlen(name) == n && text_clean(name, (size_t)n) ? 0 :
	    gguf_bad(g, "has a name that is not text", e);
}

/* ---- metadata ---- */

/* Hash n values of `size' bytes without storing them; the file must have all of them. */
static int
gguf_pass(struct gguf *g, uint64_t n, size_t size, struct err *e)
{
	unsigned char b[GGUF_PIECE];
	size_t k;
	int r = 0;

	if (n > gguf_left(g) / size)
		return gguf_bad(g, "is longer than the rest of the file", e);
	for (n *= size; n > 0 && r == 0; n -= k) {
		k = n < sizeof(b) ? (size_t)n : sizeof(b);
		r = gguf_take(g, b, k, e);
	}
	return r;
}

static int
gguf_string(struct gguf *g, struct err *e)
{
	uint64_t n;
	int r = gguf_number(g, 8, &n, e);

	return r < 0 ? r : gguf_pass(g, n, 1, e);
}

/* Read n values of a type; depth: the number of arrays around them. */
static int
gguf_values(struct gguf *g, uint64_t type, uint64_t n, unsigned depth, struct err *e)
{
	uint64_t inner, count;
	int r = 0;

	if (n > 0 && type >= GGUF_NTYPE)
		return err_after(e, gguf_bad(g, "has a value of unknown type", e), " %llu",
		    (unsigned long long)type);
	if (n > 0 && gguf_bytes[type] != 0)
		return gguf_pass(g, n, gguf_bytes[type], e);
	for (; n > 0 && r == 0; n--) {
		if (type == GGUF_STRING)
			r = gguf_string(g, e);
		else if (depth == GGUF_NESTED)
			r = gguf_bad(g, "nests arrays too deeply", e);
		else if ((r = gguf_number(g, 4, &inner, e)) == 0 &&
		    (r = gguf_number(g, 8, &count, e)) == 0)
			r = gguf_values(g, inner, count, depth + 1, e);
	}
	return r;
}

static int
gguf_align(struct gguf *g, uint64_t type, struct err *e)
{
	uint64_t a;
	int r;

	if (type != GGUF_U32)
		return gguf_bad(g, "is not a u32", e);
	if ((r = gguf_number(g, 4, &a, e)) < 0)
		return r;
	if (a == 0 || (a & (a - 1)) != 0)
		return err_after(e, gguf_bad(g, "is not a power of two", e), ": %llu",
		    (unsigned long long)a);
	g->align = a;
	return 0;
}

static int
gguf_key(struct gguf *g, struct gguf_keys *keys, struct err *e)
{
	char name[GGUF_KEY + 1];
	unsigned char b[4];
	uint64_t type;
	int r;

	if ((r = gguf_name(g, name, GGUF_KEY, e)) < 0)
		return r;
	(void)snprintf(g->what, sizeof(g->what), "key '%.160s'", name);
	if ((r = gguf_number(g, 4, &type, e)) < 0)
		return r;
	if (strcmp(name, GGUF_ALIGNMENT) == 0 && g->align == 0)
		return gguf_align(g, type, e);
	if (strcmp(name, GGUF_ALIGNMENT) == 0)
		return gguf_bad(g, "occurs twice", e);
	if ((r = alloc_grow(&keys->p, &keys->cap, keys->n + 1, sizeof(*keys->p),
	    e)) < 0)
		return r;
	if (g->sum == NULL && (g->sum = hash_sum_new(e)) == NULL)
		return -ERR_SYS;
	bytes_set32(b, (uint32_t)type);
	hash_sum_reset(g->sum);
	hash_sum_add(g->sum, b, sizeof(b));
	if ((r = gguf_values(g, type, 1, 0, e)) < 0)
		return r;
	hash_sum_get(g->sum, keys->p[keys->n].hash);
	if ((keys->p[keys->n].name = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	keys->n++;
	return 0;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct gguf_key *)a)->name,
	    ((const struct gguf_key *)b)->name);
}

static int
gguf_metadata(struct gguf *g, uint64_t n, struct gguf_keys *keys, struct err *e)
{
	uint64_t i;
	size_t k;
	int r = 0;

	if (n > GGUF_KEYS)
		return err_set(e, ERR_DATA, "limit: '%s' has %llu keys, at most "
		    "%d", g->path, (unsigned long long)n, GGUF_KEYS);
	for (i = 0; i < n && r == 0; i++) {
		(void)snprintf(g->what, sizeof(g->what), "key %llu",
		    (unsigned long long)i);
		r = gguf_key(g, keys, e);
	}
	if (r < 0 || keys->n == 0)
		return r;
	qsort(keys->p, keys->n, sizeof(*keys->p), by_key);
	for (k = 1; k < keys->n; k++)
		if (strcmp(keys->p[k].name, keys->p[k - 1].name) == 0)
			return err_set(e, ERR_DATA, "corrupt: key '%.160s' occurs "
			    "twice in '%s'", keys->p[k].name, g->path);
	return 0;
}

const char *
gguf_differs(const struct gguf_keys *a, const struct gguf_keys *b)
{
	size_t i;
	int c;

	for (i = 0; i < a->n || i < b->n; i++) {
		c = i == a->n ? 1 : i == b->n ? -1 : strcmp(a->p[i].name, b->p[i].name);
		if (c != 0)
			return c < 0 ? a->p[i].name : b->p[i].name;
		if (memcmp(a->p[i].hash, b->p[i].hash, sizeof(a->p[i].hash)) != 0)
			return a->p[i].name;
	}
	return NULL;
}

void
gguf_release(struct gguf_keys *keys)
{
	size_t i;

	for (i = 0; i < keys->n; i++)
		alloc_free(keys->p[i].name);
	alloc_free(keys->p);
	*keys = (struct gguf_keys){ NULL, 0, 0 };
}

/* ---- tensors ---- */

/* Read the shape; store the innermost dimension last. */
static int
gguf_shape(struct gguf *g, struct schema_tensor *t, struct err *e)
{
	uint64_t n;
	int r = gguf_number(g, 4, &n, e);

	if (r < 0)
		return r;
	if (n > SCHEMA_MAX_DIM)
		return err_data(e, io_bytes(g->io), "limit: %s of '%s' has %lu "
		    "dimensions, at most %d", g->what, g->path,
		    (unsigned long)n, SCHEMA_MAX_DIM);
	t->ndim = (uint8_t)n;
	while (n-- > 0)
		if ((r = gguf_number(g, 8, &t->dim[n], e)) < 0)
			return r;
	return 0;
}

/* Set the dtype. If the type has blocks, the last dimension then counts bytes. */
static int
gguf_dtype(struct gguf *g, struct schema_tensor *t, struct err *e)
{
	const struct ggml_type *type;
	uint64_t n, *row;
	int r = gguf_number(g, 4, &n, e);

	if (r < 0)
		return r;
	if ((type = ggml_type(n)) == NULL)
		return err_data(e, io_bytes(g->io), "unsupported: %s of '%s' has "
		    "unknown type %lu", g->what, g->path, (unsigned long)n);
	if (type->values == 1) {	/* a plain type has the same name here */
		while (strcmp(schema_dtype_name(t->dtype), type->name) != 0)
			t->dtype++;
		return 0;
	}
	t->dtype = SCHEMA_U8;
	row = t->ndim > 0 ? &t->dim[t->ndim - 1] : NULL;
	if (row == NULL || *row % type->values != 0)
		return err_after(e, gguf_bad(g, "has rows that are not whole blocks", e),
		    " of %u values (%s)", (unsigned)type->values, type->name);
	if (*row > SCHEMA_MAX_TOTAL)
		return err_set(e, ERR_DATA, "limit: %s of '%s' has rows of more "
		    "than 2^40 values", g->what, g->path);
	*row = *row / type->values * type->bytes;
	t->kind = GGML_KIND + (uint32_t)n;
	return 0;
}

/* Compute the size of the tensor's data; the file must be long enough. */
static int
gguf_long(struct gguf *g, struct gguf_span *s, struct err *e)
{
	unsigned d;

	s->bytes = dtype_size(s->t.dtype);
	for (d = 0; d < s->t.ndim; d++)
		if (s->t.dim[d] == 0)
			s->bytes = 0;
	for (d = 0; d < s->t.ndim && s->bytes != 0; d++) {
		if (s->t.dim[d] > g->size / s->bytes)
			return gguf_bad(g, "ends after the end of the file", e);
		s->bytes *= s->t.dim[d];
	}
	if (s->at > g->size || s->bytes > g->size - s->at)
		return gguf_bad(g, "ends after the end of the file", e);
	return s->at % g->align == 0 ? 0 : err_after(e, gguf_bad(g, "does not "
	    "begin at a multiple of", e), " %llu bytes", (unsigned long long)g->align);
}

static int
gguf_tensor(struct gguf *g, struct err *e)
{
	char name[SCHEMA_MAX_NAME + 1];
	struct gguf_span *s;
	int r;

	if ((r = gguf_name(g, name, SCHEMA_MAX_NAME, e)) < 0 ||
	    (r = alloc_grow(&g->span, &g->cap, g->n + 1, sizeof(*g->span), e)) < 0)
		return r;
	(void)snprintf(g->what, sizeof(g->what), "tensor '%s'", name);
	s = &g->span[g->n];
	memset(s, 0, sizeof(*s));
	if ((r = gguf_shape(g, &s->t, e)) < 0 || (r = gguf_dtype(g, &s->t, e)) < 0 ||
	    (r = gguf_number(g, 8, &s->at, e)) < 0 || (r = gguf_long(g, s, e)) < 0)
		return r;
	if ((s->t.name = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	g->n++;
	return 0;
}

static int
by_place(const void *a, const void *b)
{
	const struct gguf_span *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;	/* empty ones first */
}

static uint64_t
gguf_up(const struct gguf *g, uint64_t at)
{
	return (at + g->align - 1) / g->align * g->align;
}

/* Check that tensors follow each other to the end of the file; data begins at
 * `base'. */
static int
gguf_place(struct gguf *g, uint64_t base, struct err *e)
{
	uint64_t at = 0, end = 0;
	size_t i;

	if (g->n > 1)
		qsort(g->span, g->n, sizeof(*g->span), by_place);
	for (i = 0; i < g->n; i++) {
		const struct gguf_span *s = &g->span[i];

		if (s->at != at)
			return err_set(e, ERR_DATA, "corrupt: '%s' has %s before "
			    "tensor '%s'", g->path, s->at > at ? "a hole" :
			    "an overlap", s->t.name);
		end = s->at + s->bytes;
		at = gguf_up(g, end);
		if (s->bytes > 0 && base + end > g->size)
			return err_set(e, ERR_DATA, "truncated: '%s' ends inside "
			    "tensor '%s'", g->path, s->t.name);
	}
	if (g->size > base && g->size - base > at)
		return err_set(e, ERR_DATA, "corrupt: '%s' has %llu bytes "
		    "after its last tensor", g->path,
		    (unsigned long long)(g->size - base - at));
	return 0;
}

static int
gguf_tensors(struct gguf *g, uint64_t n, gguf_tensor_fn *fn, void *arg, struct err *e)
{
	uint64_t i, base;
	size_t k;
	int r = 0;

	if (n > FORMAT_MAX_TENSORS)
		return err_set(e, ERR_DATA, "limit: '%s' has %llu tensors, at most "
		    "%d", g->path, (unsigned long long)n, FORMAT_MAX_TENSORS);
	for (i = 0; i < n && r == 0; i++) {
		(void)snprintf(g->what, sizeof(g->what), "tensor %llu",
		    (unsigned long long)i);
		r = gguf_tensor(g, e);
	}
	base = gguf_up(g, io_bytes(g->io));
	if (r == 0)
		r = gguf_place(g, base, e);
	for (k = 0; k < g->n && r == 0; k++)
		r = fn(arg, &g->span[k].t, base + g->span[k].at, e);
	return r;
}

/* ---- the file ---- */

enum { GGUF_HEAD = 24 };

int
gguf_is(int fd, const char *path, struct err *e)
{
	char b[4];
	size_t got;
	int r = fd_read_at(fd, 0, b, sizeof(b), &got, path, e);

	return r < 0 ? r : got == sizeof(b) && memcmp(b, "GGUF", 4) == 0;
}

static int
gguf_head(struct gguf *g, uint64_t *tensors, uint64_t *keys, struct err *e)
{
	unsigned char b[GGUF_HEAD];
	uint32_t version;
	int r;

	(void)strcpy(g->what, "its head");
	if ((r = gguf_take(g, b, sizeof(b), e)) < 0)
		return r;
	version = bytes_le32(b + 4);
	*tensors = bytes_le64(b + 8);
	*keys = bytes_le64(b + 16);
	if (version != 0 && (version & 0xffff) == 0)
		return err_set(e, ERR_DATA, "unsupported: '%s' is a big-endian GGUF "
		    "file, expected little-endian", g->path);
	return version == 2 || version == 3 ? 0 : err_set(e, ERR_DATA,
	    "unsupported: '%s' has GGUF version %lu, expected 2 or 3", g->path,
	    (unsigned long)version);
}

int
gguf_read(int fd, const char *path, uint64_t size, struct gguf_keys *keys,
    gguf_tensor_fn *fn, void *arg, struct err *e)
{
	struct gguf g = { .path = path, .size = size };
	uint64_t tensors = 0, n = 0;
	size_t i;
	int r;

	if ((r = io_open_at(&g.io, fd, 0, path, e)) == 0 &&
	    (r = gguf_head(&g, &tensors, &n, e)) == 0)
		r = gguf_metadata(&g, n, keys, e);
	hash_sum_free(g.sum);
	g.sum = NULL;
	if (g.align == 0)
		g.align = GGUF_ALIGN;
	if (r == 0)
		r = gguf_tensors(&g, tensors, fn, arg, e);
	for (i = 0; i < g.n; i++)
		alloc_free(g.span[i].t.name);
	alloc_free(g.span);
	io_free(g.io);
	return r;
}
