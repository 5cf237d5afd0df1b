/*
 * GGUF, versions 2 and 3: tensors of plain numbers are read, in the order of
 * their data; the quantised types of ggml are refused by name.  Layout:
 *
 *   "GGUF", u32 version, u64 tensors, u64 pairs
 *   pair:   string key, u32 type, value
 *   tensor: string name, u32 rank, u64 dim[rank] (the fastest first), u32 type,
 *           u64 offset
 *   zeros up to a multiple of the alignment, then the data; offsets count from
 *   there and are multiples of the alignment, which is 32 or what the pair
 *   general.alignment says
 *   string: u64 length, bytes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "files/backend.h"
#include "files/dtype.h"

enum {
	GGUF_ALIGN = 32, GGUF_ALIGN_MOST = 1 << 20,
	GGUF_KEY = 256, GGUF_DEPTH = 4,
	GGUF_U32 = 4, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9,
	GGUF_VALUE = 1024	/* bytes of a text that is kept */
};

#define GGUF_NOTE "gguf."

/* ggml's numbers of types; dtype < 0: refused. */
static const struct gguf_type {
	uint32_t id;
	int dtype;
	const char *name;
} gguf_types[] = {
	{ 0, SCHEMA_F32, "F32" }, { 1, SCHEMA_F16, "F16" },
	{ 30, SCHEMA_BF16, "BF16" }, { 28, SCHEMA_F64, "F64" },
	{ 24, SCHEMA_I8, "I8" }, { 25, SCHEMA_I16, "I16" },
	{ 26, SCHEMA_I32, "I32" }, { 27, SCHEMA_I64, "I64" },
	{ 2, -1, "Q4_0" }, { 3, -1, "Q4_1" }, { 6, -1, "Q5_0" },
	{ 7, -1, "Q5_1" }, { 8, -1, "Q8_0" }, { 9, -1, "Q8_1" },
	{ 10, -1, "Q2_K" }, { 11, -1, "Q3_K" }, { 12, -1, "Q4_K" },
	{ 13, -1, "Q5_K" }, { 14, -1, "Q6_K" }, { 15, -1, "Q8_K" },
	{ 16, -1, "IQ2_XXS" }, { 17, -1, "IQ2_XS" }, { 18, -1, "IQ3_XXS" },
	{ 19, -1, "IQ1_S" }, { 20, -1, "IQ4_NL" }, { 21, -1, "IQ3_S" },
	{ 22, -1, "IQ2_S" }, { 23, -1, "IQ4_XS" }, { 29, -1, "IQ1_M" },
	{ 34, -1, "TQ1_0" }, { 35, -1, "TQ2_0" }, { 39, -1, "MXFP4" }
};

struct gguf_place {
	uint64_t at, bytes;	/* from where the data begins */
	struct schema_tensor t;	/* its name is allocated */
};

struct gguf {
	uint64_t align, data;	/* where the data begins, in the file */
	struct gguf_place *p;	/* [n] */
	size_t n, cap;
};

/* ---- what it is made of ---- */

static int
gguf_get(struct format_source *s, void *p, size_t n, struct err *e)
{
	size_t got;
	int r = io_read(s->io, p, n, &got, e);

	if (r < 0 || got == n)
		return r;
	return err_data(e, io_bytes(s->io), "truncated: '%s' ends before its "
	    "data", s->name);
}

static int
gguf_u32(struct format_source *s, uint32_t *v, struct err *e)
{
	unsigned char b[4];
	int r = gguf_get(s, b, 4, e);

	*v = r == 0 ? bytes_le32(b) : 0;
	return r;
}

static int
gguf_u64(struct format_source *s, uint64_t *v, struct err *e)
{
	unsigned char b[8];
	int r = gguf_get(s, b, 8, e);

	*v = r == 0 ? bytes_le64(b) : 0;
	return r;
}

static int
gguf_skip(struct format_source *s, uint64_t n, struct err *e)
{
	size_t k;
	int r = 0;

	for (; n != 0 && r == 0; n -= k) {
		k = n < BACKEND_CHUNK ? (size_t)n : BACKEND_CHUNK;
		r = gguf_get(s, s->raw, k, e);
	}
	return r;
}

/* A string; of one that has no room in text only the length is kept, and text
 * is "". */
static int
gguf_string(struct format_source *s, char *text, size_t room, uint64_t *len,
    struct err *e)
{
	int r = gguf_u64(s, len, e);

	text[0] = '\0';
	if (r < 0)
		return r;
	if (*len >= room)
		return gguf_skip(s, *len, e);
	if ((r = gguf_get(s, text, (size_t)*len, e)) == 0)
		text[*len] = '\0';
	return r;
}

/* ---- pairs ---- */

/* Bytes of a value of a fixed size, or 0. */
static uint64_t
gguf_width(uint32_t type)
{
	static const unsigned char width[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8,
	    8, 8 };

	return type < sizeof(width) ? width[type] : 0;
}

static int
gguf_pass(struct format_source *s, uint32_t type, int depth, struct err *e)
{
	uint64_t n, i, width = gguf_width(type);
	char none[1];
	uint32_t of;
	int r;

	if (width != 0)
		return gguf_skip(s, width, e);
	if (type == GGUF_STRING)
		return gguf_string(s, none, 0, &n, e);
	if (type != GGUF_ARRAY || depth == GGUF_DEPTH)
		return err_data(e, io_bytes(s->io), "corrupt: '%s' has a value "
		    "of type %lu", s->name, (unsigned long)type);
	if ((r = gguf_u32(s, &of, e)) < 0 || (r = gguf_u64(s, &n, e)) < 0)
		return r;
	width = gguf_width(of);
	if (width != 0 && n <= UINT64_MAX / 8)
		return gguf_skip(s, n * width, e);
	for (i = 0; i < n && r == 0; i++)
		r = gguf_pass(s, of, depth + 1, e);
	return r;
}

/* Texts of the group general are kept as notes, others are passed over. */
static int
gguf_pair(struct format_source *s, struct gguf *g, struct err *e)
{
	char key[GGUF_KEY], name[GGUF_KEY + sizeof(GGUF_NOTE)], v[GGUF_VALUE];
	uint64_t len;
	uint32_t type, align;
	int r;

	if ((r = gguf_string(s, key, sizeof(key), &len, e)) < 0 ||
	    (r = gguf_u32(s, &type, e)) < 0)
		return r;
	if (strcmp(key, "general.alignment") == 0 && type == GGUF_U32) {
		if ((r = gguf_u32(s, &align, e)) < 0)
			return r;
		g->align = align;
		if (align == 0 || align > GGUF_ALIGN_MOST || align % 8 != 0)
			return err_set(e, ERR_DATA, "corrupt: '%s' has an "
			    "alignment of %lu", s->name, (unsigned long)align);
		return 0;
	}
	if (strncmp(key, "general.", 8) != 0 || type != GGUF_STRING)
		return gguf_pass(s, type, 0, e);
	if ((r = gguf_string(s, v, sizeof(v), &len, e)) < 0)
		return r;
	(void)snprintf(name, sizeof(name), GGUF_NOTE "%s", key);
	/* one that a stream cannot carry is left out */
	if (len != 0 && v[0] != '\0')
		(void)text_set(&s->note, name, v, NULL);
	return 0;
}

/* ---- tensors ---- */

static int
gguf_dtype(struct format_source *s, struct schema_tensor *t, const char *name,
    uint32_t type, struct err *e)
{
	size_t i;

	for (i = 0; i < sizeof(gguf_types) / sizeof(gguf_types[0]); i++) {
		if (gguf_types[i].id != type)
			continue;
		if (gguf_types[i].dtype < 0)
			return err_set(e, ERR_DATA, "unsupported: tensor '%s' "
			    "in '%s' is quantised, %s (a GGUF file of F32, F16 "
			    "or BF16 is read)", name, s->name,
			    gguf_types[i].name);
		t->dtype = (uint8_t)gguf_types[i].dtype;
		return 0;
	}
	return err_set(e, ERR_DATA, "unsupported: tensor '%s' in '%s' has type "
	    "%lu of ggml", name, s->name, (unsigned long)type);
}

static int
gguf_tensor(struct format_source *s, struct gguf *g, struct err *e)
{
	char name[SCHEMA_MAX_NAME + 1];
	struct gguf_place p;
	uint32_t rank, type, i;
	uint64_t len, n = 1;
	int r;

	memset(&p, 0, sizeof(p));
	if ((r = gguf_string(s, name, sizeof(name), &len, e)) < 0 ||
	    (r = gguf_u32(s, &rank, e)) < 0)
		return r;
	if (len != strlen(name) || len == 0)
		return err_set(e, ERR_DATA, "limit: the name of a tensor in '%s' "
		    "has %llu bytes, or a zero in it", s->name,
		    (unsigned long long)len);
	if (rank > SCHEMA_MAX_DIM)
		return err_set(e, ERR_DATA, "limit: tensor '%s' in '%s' has %lu "
		    "dimensions", name, s->name, (unsigned long)rank);
	p.t.ndim = (uint8_t)rank;
	for (i = 0; i < rank; i++) {
		if ((r = gguf_u64(s, &p.t.dim[rank - 1 - i], e)) < 0)
			return r;
		if (p.t.dim[rank - 1 - i] != 0 &&
		    n > SCHEMA_MAX_TOTAL / p.t.dim[rank - 1 - i])
			return err_set(e, ERR_DATA, "limit: tensor '%s' in '%s' "
			    "is too large", name, s->name);
		n *= p.t.dim[rank - 1 - i];
	}
	if ((r = gguf_u32(s, &type, e)) < 0 ||
	    (r = gguf_u64(s, &p.at, e)) < 0 ||
	    (r = gguf_dtype(s, &p.t, name, type, e)) < 0)
		return r;
	p.bytes = n * dtype_size(p.t.dtype);
	if (g->n == FORMAT_MAX_TENSORS)
		return err_set(e, ERR_DATA, "limit: '%s' has more than %d "
		    "tensors", s->name, FORMAT_MAX_TENSORS);
	if ((r = alloc_grow(&g->p, &g->cap, g->n + 1, sizeof(*g->p), e)) < 0 ||
	    (p.t.name = alloc_dup(name, e)) == NULL)
		return -ERR_SYS;
	g->p[g->n++] = p;
	return 0;
}

static int
gguf_by_place(const void *pa, const void *pb)
{
	const struct gguf_place *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	/* one without values takes no place */
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* The schema in the order of the data. */
static int
gguf_order(struct format_source *s, struct gguf *g, struct err *e)
{
	uint64_t at = 0;
	size_t i;
	int r = 0;

	if (g->n > 1)
		qsort(g->p, g->n, sizeof(*g->p), gguf_by_place);
	for (i = 0; i < g->n && r == 0; i++) {
		struct gguf_place *p = &g->p[i];

		if (p->at % g->align != 0 || p->at < at ||
		    p->at - at >= g->align)
			return err_set(e, ERR_DATA, "corrupt: '%s' has %s before "
			    "tensor '%s'", s->name, p->at < at ? "an overlap" :
			    "a hole", p->t.name);
		at = p->at + p->bytes;
		r = backend_add(s, &(struct schema_tensor){ .dtype = p->t.dtype,
		    .ndim = p->t.ndim, .dim = { p->t.dim[0], p->t.dim[1],
		    p->t.dim[2], p->t.dim[3], p->t.dim[4], p->t.dim[5],
		    p->t.dim[6], p->t.dim[7] } }, p->t.name, e);
		alloc_free(p->t.name);		/* the schema has it */
		p->t.name = NULL;
	}
	return r;
}

/* ---- the file ---- */

static int
gguf_head(struct format_source *s, uint64_t *tensors, uint64_t *pairs,
    struct err *e)
{
	unsigned char b[8];
	uint32_t version;
	int r;

	if ((r = gguf_get(s, b, sizeof(b), e)) < 0)
		return r;
	if (memcmp(b, "GGUF", 4) != 0)
		return err_set(e, ERR_DATA, "corrupt: '%s' is no GGUF file",
		    s->name);
	version = bytes_le32(b + 4);
	if (version != 2 && version != 3)
		return err_set(e, ERR_DATA, "unsupported: '%s' is %s", s->name,
		    version == 1 ? "GGUF of version 1" : (version & 0xffff) == 0 ?
		    "a big-endian GGUF file" : "a later GGUF than version 3");
	if ((r = gguf_u64(s, tensors, e)) == 0)
		r = gguf_u64(s, pairs, e);
	return r;
}

static int
gguf_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	struct gguf *g = alloc_get(1, sizeof(*g), e);
	uint64_t tensors, pairs, i;
	int r;

	(void)o;
	if ((s->own = g) == NULL)
		return -ERR_SYS;
	g->align = GGUF_ALIGN;
	if ((r = io_open(&s->io, s->path, e)) < 0 ||
	    (r = gguf_head(s, &tensors, &pairs, e)) < 0)
		return r;
	for (i = 0; i < pairs && r == 0; i++)
		r = gguf_pair(s, g, e);
	for (i = 0; i < tensors && r == 0; i++)
		r = gguf_tensor(s, g, e);
	if (r == 0)
		r = gguf_order(s, g, e);
	if (r == 0)
		g->data = (io_bytes(s->io) + g->align - 1) / g->align *
		    g->align;
	return r;
}

static int
gguf_begin(struct format_source *s, struct err *e)
{
	const struct gguf *g = s->own;

	return gguf_skip(s, g->data + g->p[s->cur].at - io_bytes(s->io), e);
}

/* Up to the alignment the file may go on. */
static int
gguf_finish(struct format_source *s, struct err *e)
{
	const struct gguf *g = s->own;
	uint64_t n = (g->align - io_bytes(s->io) % g->align) % g->align;
	size_t got, k;
	int r;

	for (; n != 0; n -= k) {
		k = n < BACKEND_CHUNK ? (size_t)n : BACKEND_CHUNK;
		if ((r = io_read(s->io, s->raw, k, &got, e)) < 0 || got < k)
			return r;
	}
	return backend_last(s, e);
}

static void
gguf_close(struct format_source *s)
{
	struct gguf *g = s->own;
	size_t i;

	if (g == NULL)
		return;
	for (i = 0; i < g->n; i++)
		alloc_free(g->p[i].t.name);
	alloc_free(g->p);
	alloc_free(g);
}

const struct backend_in gguf_in = {
	gguf_open, gguf_begin, backend_take, NULL, gguf_finish, gguf_close
};
