/*
 * safetensors: a length, a JSON header, the data of all tensors without holes or
 * overlaps. The header is read in pieces and passed to jansson entry by entry, so that a
 * long or hostile header takes little memory.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/magic.h"
#include "files/format_impl.h"
#include "files/dtype.h"

enum {
	SAFETENSORS_MAX_HEADER = 100000000,	/* the reference's limit */
	SAFETENSORS_WINDOW = 1 << 20,
	SAFETENSORS_ENTRY = 4096,	/* limit on bytes of one name or one entry */
	SAFETENSORS_NOTES = 16,		/* limit on metadata pairs that are kept */
	SAFETENSORS_NOTE = 256		/* limit on bytes of a metadata value */
};
#define SAFETENSORS_META "__metadata__"
#define SAFETENSORS_PREFIX "safetensors."	/* prefix of the metadata's keys in a shard */

static const char *const safetensors_dtype[SCHEMA_NDTYPE] = {
	"F32", "F16", "BF16", "F64", "I32", "I64", "U8", "BOOL", "F8_E4M3",
	"F8_E5M2", "I8", "I16", "F8_E8M0", "F4", "U16", "U32", "U64"
};

/* ---- the header, through a window ---- */

struct safetensors_text {
	struct format_source *s;
	const struct format_opts *o;	/* NULL: the text is an index */
	char *p;		/* SAFETENSORS_WINDOW bytes */
	size_t at, have;	/* p[at] is the next byte; p has `have' bytes */
	uint64_t left;		/* bytes of the header after the window */
	uint64_t base;		/* position of p[0] in the file */
};

/* Position of a tensor's data, in bytes after the header; `end' is exclusive. */
struct safetensors_span {
	uint64_t begin, end;
	size_t tensor;
};
struct safetensors_spans {
	struct safetensors_span *p;
	size_t n, cap;
};

static int
safetensors_bad(const struct safetensors_text *t, const char *why, struct err *e)
{
	return err_file(e, err_data(e, t->base + t->at, "corrupt: %s: %s",
	    t->o != NULL ? "header" : "index", why), t->s->name);
}

/* If less than half of the window is left, read more of the header. */
static int
safetensors_fill(struct safetensors_text *t, struct err *e)
{
	size_t n, got;
	int r;

	if (t->left == 0 || t->have - t->at >= SAFETENSORS_WINDOW / 2)
		return 0;
	memmove(t->p, t->p + t->at, t->have - t->at);
	t->base += t->at;
	t->have -= t->at;
	t->at = 0;
	n = SAFETENSORS_WINDOW - t->have;
	if (n > t->left)
		n = (size_t)t->left;
	if ((r = io_read(t->s->io, t->p + t->have, n, &got, e)) < 0)
		return r;
	if (got < n)
		return err_data(e, io_bytes(t->s->io),
		    "truncated: '%s' ends inside its header", t->s->name);
	t->have += n;
	t->left -= n;
	return 0;
}

/* Skip blanks and set *c to the next character without consuming it; 0 at the end. */
static int
safetensors_peek(struct safetensors_text *t, char *c, struct err *e)
{
	int r;

	for (;; t->at++) {
		if (t->at == t->have && (r = safetensors_fill(t, e)) < 0)
			return r;
		*c = '\0';
		if (t->at == t->have)
			return 0;
		*c = t->p[t->at];
		if (*c != ' ' && *c != '\t' && *c != '\n' && *c != '\r')
			return 0;
	}
}

static int
safetensors_want(struct safetensors_text *t, char want, struct err *e)
{
	char c, why[] = "'?' expected";
	int r = safetensors_peek(t, &c, e);

	if (r < 0)
		return r;
	if (c != want) {
		why[1] = want;
		return safetensors_bad(t, why, e);
	}
	t->at++;
	return 0;
}

/* Refuse text after the object that is the whole header or index. */
static int
safetensors_end(struct safetensors_text *t, struct err *e)
{
	char c;
	int r = safetensors_peek(t, &c, e);

	return r < 0 || (t->at == t->have && t->left == 0) ? r :
	    safetensors_bad(t, "text follows the last entry", e);
}

/* Parse one JSON value that begins with `first', of at most max bytes. */
static int
safetensors_json(struct safetensors_text *t, char first, size_t max,
    json_t **out, struct err *e)
{
	json_error_t je;
	size_t n;
	char c;
	int r;

	*out = NULL;
	if ((r = safetensors_peek(t, &c, e)) < 0 || (r = safetensors_fill(t, e)) < 0)
		return r;
	if (c != first)
		return safetensors_bad(t, first == '"' ? "expected a string" :
		    "expected an object", e);
	n = t->have - t->at < max ? t->have - t->at : max;
	*out = json_loadb(t->p + t->at, n, JSON_REJECT_DUPLICATES |
	    JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &je);
	if (*out != NULL) {
		t->at += (size_t)je.position;
		return 0;
	}
	if (json_error_code(&je) == json_error_out_of_memory)
		return err_set(e, ERR_SYS, "out of memory");
	if (t->left + (t->have - t->at) > n && (size_t)je.position + 16 > n)
		return err_data(e, t->base + t->at, "limit: '%s' has "
		    "an entry of more than %zu bytes", t->s->name, n);
	t->at += (size_t)je.position;
	return safetensors_bad(t, je.text, e);
}

static int
safetensors_any(struct safetensors_text *t, json_t **out, struct err *e)
{
	char c;
	int r = safetensors_peek(t, &c, e);

	*out = NULL;
	return r < 0 ? r : safetensors_json(t, c, SAFETENSORS_WINDOW / 2, out, e);
}

/* Parse the next key of an object, its first key if first is 1; *key is NULL after the last. */
static int
safetensors_key(struct safetensors_text *t, int first, json_t **key, struct err *e)
{
	char c;
	int r = safetensors_peek(t, &c, e);

	*key = NULL;
	if (r < 0)
		return r;
	if (c == '}') {
		t->at++;
		return 0;
	}
	if (!first && (r = safetensors_want(t, ',', e)) < 0)
		return r;
	if ((r = safetensors_json(t, '"', SAFETENSORS_ENTRY, key, e)) < 0)
		return r;
	if ((r = safetensors_want(t, ':', e)) < 0) {
		json_decref(*key);
		*key = NULL;
	}
	return r;
}

/* Call fn for each pair of texts in an object. Fail at a value of more than max bytes. */
static int
safetensors_pairs(struct safetensors_text *t, size_t max, format_pair_fn *fn,
    void *arg, struct err *e)
{
	json_t *key, *value;
	int first = 1, r = safetensors_want(t, '{', e);

	while (r == 0 && (r = safetensors_key(t, first, &key, e)) == 0 && key != NULL) {
		r = safetensors_json(t, '"', max, &value, e);
		if (r == 0)
			r = fn(arg, json_string_value(key),
			    json_string_value(value), e);
		json_decref(key);
		json_decref(value);
		first = 0;
	}
	return r;
}

/* ---- the contents of the header ---- */

/* Keep up to SAFETENSORS_NOTES pairs whose keys and values a stream can hold and whose
 * values are short, and count the others. */
static int
safetensors_note(struct format_source *s, const char *key, const char *value,
    struct err *e)
{
	char k[TEXT_MAX_KEY + 1];
	int n = snprintf(k, sizeof(k), SAFETENSORS_PREFIX "%s", key);

	if (n < 0 || (size_t)n >= sizeof(k) || key[0] == '\0' ||
	    strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789._-") !=
	    strlen(key) || s->note.n >= SAFETENSORS_NOTES ||
	    strlen(value) > SAFETENSORS_NOTE || !text_clean(value, strlen(value))) {
		s->unnoted++;
		return 0;
	}
	if (text_get(&s->note, k) != NULL)
		return err_set(e, ERR_DATA, "corrupt: header of '%s': metadata key "
		    "'%s' occurs twice", s->name, key);
	return text_set(&s->note, k, value, e);
}

static int
safetensors_metadata(void *arg, const char *key, const char *value, struct err *e)
{
	const struct safetensors_text *t = arg;
	int r = t->o->pair != NULL ? t->o->pair(t->o->arg, key, value, e) : 0;

	return r == 0 ? safetensors_note(t->s, key, value, e) : r;
}

/* Read a JSON array of at most cap non-negative integers into v. Return their number, or
 * -1 for anything else. */
static int
safetensors_numbers(const json_t *a, uint64_t *v, size_t cap)
{
	size_t i, n = json_array_size(a);
	const json_t *x;

	if (!json_is_array(a) || n > cap)
		return -1;
	for (i = 0; i < n; i++) {
		x = json_array_get(a, i);
		if (!json_is_integer(x) || json_integer_value(x) < 0)
			return -1;
		v[i] = (uint64_t)json_integer_value(x);
	}
	return (int)n;
}

/* Append a tensor's position to s; tensor SIZE_MAX: the user has excluded it. */
static int
safetensors_span(struct safetensors_spans *s, const uint64_t at[2], size_t tensor,
    struct err *e)
{
	int r = alloc_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p), e);

	if (r == 0)
		s->p[s->n++] = (struct safetensors_span){ at[0], at[1], tensor };
	return r;
}

static int
safetensors_tensor(struct safetensors_text *t, const char *name,
    const json_t *entry, struct safetensors_spans *spans, struct err *e)
{
	const char *dtype = json_string_value(json_object_get(entry, "dtype"));
	const json_t *shape = json_object_get(entry, "shape");
	struct schema *sc = &t->s->schema;
	struct schema_tensor d;
	uint64_t span[2], size;
	int n, r;

	memset(&d, 0, sizeof(d));
	if (dtype == NULL || safetensors_numbers(
	    json_object_get(entry, "data_offsets"), span, 2) != 2 || span[0] > span[1])
		return err_set(e, ERR_DATA, "corrupt: tensor '%s' in '%s' needs %s",
		    name, t->s->name, dtype == NULL ? "a text as dtype" : "two whole "
		    "numbers as data_offsets, where it begins and then where it ends");
	while (d.dtype < SCHEMA_NDTYPE &&
	    strcmp(dtype, safetensors_dtype[d.dtype]) != 0)
		d.dtype++;
	if (!format_wants(t->s, name))
		return safetensors_span(spans, span, SIZE_MAX, e);
	if (d.dtype == SCHEMA_NDTYPE || (schema_bits(d.dtype) && !t->o->bits))
		return err_set(e, ERR_DATA, "unsupported: tensor '%s' in '%s' has dtype "
		    "'%.32s', which %s: convert it to F32", name, t->s->name, dtype,
		    d.dtype == SCHEMA_NDTYPE ? "cannot be read" :
		    "only ace-diff and ace-patch read");
	if (json_array_size(shape) > SCHEMA_MAX_DIM)
		return err_set(e, ERR_DATA, "limit: tensor '%s' in '%s' has "
		    "%zu dimensions, expected at most %d", name, t->s->name,
		    json_array_size(shape), SCHEMA_MAX_DIM);
	if ((n = safetensors_numbers(shape, d.dim, SCHEMA_MAX_DIM)) < 0)
		return err_set(e, ERR_DATA, "corrupt: the shape of tensor '%s' in "
		    "'%s' is not a list of whole numbers", name, t->s->name);
	d.ndim = (uint8_t)n;
	if ((r = format_add(t->s, &d, name, e)) < 0)
		return r;
	size = dtype_bytes(d.dtype, sc->t[sc->n - 1].numel);
	if (span[1] - span[0] != size)
		return err_set(e, ERR_DATA, "corrupt: tensor '%s' in '%s' has %llu B "
		    "(data_offsets %llu,%llu), but its shape needs %llu B", name, t->s->name,
		    (unsigned long long)(span[1] - span[0]), (unsigned long long)span[0],
		    (unsigned long long)span[1], (unsigned long long)size);
	return safetensors_span(spans, span, sc->n - 1, e);
}

/* Parse the metadata, which may be null. */
static int
safetensors_notes(struct safetensors_text *t, struct err *e)
{
	json_t *none;
	char c;
	int r = safetensors_peek(t, &c, e);

	if (r < 0 || c != 'n')
		return r < 0 ? r : safetensors_pairs(t, SAFETENSORS_WINDOW,
		    safetensors_metadata, t, e);
	r = safetensors_any(t, &none, e);
	json_decref(none);
	return r;
}

static int
safetensors_walk(struct safetensors_text *t, struct safetensors_spans *spans,
    struct err *e)
{
	json_t *key, *entry;
	int first = 1, metas = 0, r = safetensors_want(t, '{', e);

	while (r == 0 && (r = safetensors_key(t, first, &key, e)) == 0 && key != NULL) {
		entry = NULL;
		if (strcmp(json_string_value(key), SAFETENSORS_META) == 0)
			r = metas++ == 0 ? safetensors_notes(t, e) :
			    safetensors_bad(t, SAFETENSORS_META " occurs twice", e);
		else if ((r = safetensors_json(t, '{', SAFETENSORS_ENTRY,
		    &entry, e)) == 0)
			r = safetensors_tensor(t, json_string_value(key), entry,
			    spans, e);
		json_decref(key);
		json_decref(entry);
		first = 0;
	}
	return r == 0 ? safetensors_end(t, e) : r;
}

/* ---- order ---- */

static int
safetensors_by_place(const void *a, const void *b)
{
	const struct safetensors_span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)		/* empty tensors come first */
		return x->end < y->end ? -1 : 1;
	return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* Sort the schema by the position of the data and, if tensors may be excluded, set s->gap.
 * Refuse holes and overlaps. */
static int
safetensors_order(struct format_source *s, struct safetensors_spans *spans,
    struct err *e)
{
	struct schema to = SCHEMA_INIT, *from = &s->schema;
	uint64_t at = 0;
	size_t i, k = 0, moved = 0;
	int r = 0;

	if (s->only != NULL &&
	    (s->gap = alloc_get(from->n + 1, sizeof(*s->gap), e)) == NULL)
		return -ERR_SYS;

	if (spans->n > 1)
		qsort(spans->p, spans->n, sizeof(*spans->p), safetensors_by_place);
	for (i = 0; i < spans->n; i++) {
		const struct safetensors_span *p = &spans->p[i];
		const int named = p->tensor != SIZE_MAX;

		if (!named && p->begin == at)
			s->gap[k] += p->end - p->begin;
		else
			moved += p->tensor != k++;
		if (p->begin != at)
			return err_set(e, ERR_DATA, "corrupt: '%s' has %s in its data: %s%s%s "
			    "begins at byte %llu, expected %llu%s", s->name,
			    p->begin > at ? "a hole" : "an overlap",
			    named ? "tensor '" : "a tensor", named ? from->t[p->tensor].name :
			    "", named ? "'" : "", (unsigned long long)p->begin,
			    (unsigned long long)at, at > 0 ? ", the end of the one before" : "");
		at = p->end;
	}
	to.group_size = from->group_size;
	for (i = 0; moved != 0 && i < spans->n && r == 0; i++) {
		struct schema_tensor *t = &from->t[spans->p[i].tensor];

		if (spans->p[i].tensor == SIZE_MAX)
			continue;
		r = schema_add(&to, t, e);
		alloc_free(t->name);
		t->name = NULL;
	}
	if (moved != 0) {
		schema_release(from);
		*from = to;
	}
	return r;
}

/* Refuse a file of another format. If the first 8 bytes are those of another format or an
 * impossible length (wrong), read more bytes to decide. */
static int
safetensors_other(struct format_source *s, const unsigned char b[8], int wrong,
    struct err *e)
{
	unsigned char p[MAGIC_SIZE] = { 0 };
	size_t got;
	int r;

	if (!wrong && magic_name(b, 8) == NULL)
		return 0;
	memcpy(p, b, 8);
	if ((r = io_peek(s->io, p + 8, sizeof(p) - 8, &got, e)) < 0)
		return r;
	/* '{' after the length: a safetensors file, whose length may be wrong */
	return p[8] == '{' || (!wrong && magic_name(p, 8 + got) == NULL) ? 0 :
	    format_strange(s, "a safetensors file", p, 8 + got, e);
}

static int
safetensors_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	struct safetensors_text t = { s, o, NULL, 0, 0, 0, 0 };
	struct safetensors_spans spans = { NULL, 0, 0 };
	unsigned char b[8];
	size_t got;
	int r;

	if ((!s->many && (r = io_open(&s->io, s->path, e)) < 0) ||
	    (r = io_read(s->io, b, 8, &got, e)) < 0)
		return r;
	if ((s->none = s->many && got == 0))
		return 0;
	if (got < 8)
		return err_set(e, ERR_DATA, "truncated: '%s' has %zu of the 8 bytes with which a "
		    "safetensors file begins", s->name, got);
	t.left = bytes_le64(b);
	t.base = io_bytes(s->io);
	if ((r = safetensors_other(s, b, t.left < 2 || t.left > SAFETENSORS_MAX_HEADER,
	    e)) < 0)
		return r == -ERR_DATA && s->path == NULL && o->guessed && !s->many ?
		    err_after(e, r, "; without -f, standard input is read as "
		    "safetensors") : r;
	if (t.left > SAFETENSORS_MAX_HEADER)
		return err_set(e, ERR_DATA, "limit: the header of '%s' has %llu "
		    "bytes, expected at most %d", s->name, (unsigned long long)t.left,
		    SAFETENSORS_MAX_HEADER);
	if ((t.p = alloc_get(SAFETENSORS_WINDOW, 1, e)) == NULL)
		return -ERR_SYS;
	s->where = t.base + t.left;
	if ((r = safetensors_walk(&t, &spans, e)) == 0)
		r = safetensors_order(s, &spans, e);
	alloc_free(t.p);
	alloc_free(spans.p);
	return r;
}

/* ---- the index of many files ---- */

/* Parse the index, an object, and call fn for each pair of its object weight_map. */
static int
safetensors_index_of(struct safetensors_text *t, format_pair_fn *fn, void *arg,
    struct err *e)
{
	json_t *key, *value;
	int first = 1, maps = 0;
	int r = safetensors_want(t, '{', e);

	while (r == 0 && (r = safetensors_key(t, first, &key, e)) == 0 && key != NULL) {
		value = NULL;
		if (strcmp(json_string_value(key), "weight_map") == 0)
			r = maps++ == 0 ? safetensors_pairs(t, SAFETENSORS_ENTRY,
			    fn, arg, e) : safetensors_bad(t, "\"weight_map\" occurs "
			    "twice", e);
		else
			r = safetensors_any(t, &value, e);
		json_decref(key);
		json_decref(value);
		first = 0;
	}
	if (r == 0 && maps == 0)
		return safetensors_bad(t, "\"weight_map\" is absent", e);
	return r == 0 ? safetensors_end(t, e) : r;
}

int
safetensors_index(const char *path, format_pair_fn *fn, void *arg, struct err *e)
{
	struct format_source s = { .name = path };
	struct safetensors_text t = { .s = &s };
	int r = io_open_file(&s.io, path, e);

	if (r < 0)
		return r;
	t.left = io_size(s.io);
	if (t.left > SAFETENSORS_MAX_HEADER)
		r = err_set(e, ERR_DATA, "limit: index '%s' has %llu bytes, expected at most %d",
		    path, (unsigned long long)t.left, SAFETENSORS_MAX_HEADER);
	else if ((t.p = alloc_get(SAFETENSORS_WINDOW, 1, e)) == NULL)
		r = -ERR_SYS;
	else
		r = safetensors_index_of(&t, fn, arg, e);
	alloc_free(t.p);
	io_free(s.io);
	return r;
}

/* Skip the data of excluded tensors before tensor s->cur. */
static int
safetensors_begin(struct format_source *s, struct err *e)
{
	uint64_t left = s->gap != NULL ? s->gap[s->cur] : 0;
	size_t n, got = 1;
	int r = 0;

	for (; left != 0 && r == 0 && got != 0; left -= got) {
		n = left < BACKEND_CHUNK ? (size_t)left : BACKEND_CHUNK;
		r = io_read(s->io, s->raw, n, &got, e);
	}
	return r < 0 || left == 0 ? r : err_data(e, io_bytes(s->io), "truncated: "
	    "'%s' ends inside a tensor that --tensor excludes", s->name);
}

static int
safetensors_finish(struct format_source *s, struct err *e)
{
	int r = safetensors_begin(s, e);

	return r < 0 ? r : format_last(s, e);
}

const struct backend_in safetensors_in = {
	safetensors_open, safetensors_begin, format_take, NULL, safetensors_finish,
	NULL
};

/* ---- writing ---- */

/* Append s as a JSON string with its quotes. */
static int
safetensors_quote(struct buf *b, const char *s, struct err *e)
{
	json_t *j = json_string(s);
	char *text = j != NULL ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
	int r;

	if (text == NULL)
		r = err_set(e, ERR_SYS, "out of memory");
	else
		r = buf_puts(b, text, e);
	free(text);
	json_decref(j);
	return r;
}

static int
safetensors_put_notes(struct buf *b, const struct text_kv *kv, struct err *e)
{
	const char *sep = "\"" SAFETENSORS_META "\":{";
	size_t i, k = strlen(SAFETENSORS_PREFIX);
	int r = 0, any = 0;

	for (i = 0; kv != NULL && i < kv->n && r == 0; i++) {
		if (strncmp(kv->p[i].key, SAFETENSORS_PREFIX, k) != 0)
			continue;
		if ((r = buf_puts(b, sep, e)) == 0 &&
		    (r = safetensors_quote(b, kv->p[i].key + k, e)) == 0 &&
		    (r = buf_puts(b, ":", e)) == 0)
			r = safetensors_quote(b, kv->p[i].value, e);
		sep = ",";
		any = 1;
	}
	return any && r == 0 ? buf_puts(b, "}", e) : r;
}

/* Append a tensor's entry in the table. Its data begins at *at; set *at to the data's end. */
static int
safetensors_put_tensor(struct buf *b, const struct schema_tensor *t,
    unsigned dtype, uint64_t *at, struct err *e)
{
	char text[96 + 21 * SCHEMA_MAX_DIM];
	uint64_t end = *at + t->numel * dtype_size(dtype);
	int n, r;
	unsigned d;

	if (strcmp(t->name, SAFETENSORS_META) == 0)
		return err_set(e, ERR_DATA, "unsupported: a tensor is named '" SAFETENSORS_META
		    "', which safetensors reserves: rename the tensor, or use -f npz "
		    "without --many");
	if ((r = safetensors_quote(b, t->name, e)) < 0)
		return r;
	n = snprintf(text, sizeof(text), ":{\"dtype\":\"%s\",\"shape\":[",
	    safetensors_dtype[dtype]);
	for (d = 0; d < t->ndim; d++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%llu",
		    d != 0 ? "," : "", (unsigned long long)t->dim[d]);
	(void)snprintf(text + n, sizeof(text) - (size_t)n,
	    "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
	    (unsigned long long)end);
	*at = end;
	return buf_puts(b, text, e);
}

/* Add the header's length to *size, and write the header if `write' is 1. */
static int
safetensors_header(struct format_sink *s, int write, uint64_t *size, struct err *e)
{
	struct buf b = BUF_INIT;
	uint64_t at = 0;
	size_t i;
	int r;

	if ((r = buf_puts(&b, "{", e)) == 0)
		r = safetensors_put_notes(&b, s->opts->note, e);
	for (i = 0; i < s->schema->n && r == 0; i++) {
		if (*size + b.n > 1)
			r = buf_puts(&b, ",", e);
		if (r == 0)
			r = safetensors_put_tensor(&b, &s->schema->t[i],
			    s->dtype[i], &at, e);
		if (r == 0 && write)
			r = io_write(s->io, b.p, b.n, e);
		*size += b.n;
		b.n = 0;
	}
	if (r == 0 && (r = buf_puts(&b, "}", e)) == 0 && write)
		r = io_write(s->io, b.p, b.n, e);
	*size += b.n;
	buf_release(&b);
	return r;
}

/* The length precedes the header, so the header is made twice, first only to count its
 * bytes. It is never held in memory. */
static int
safetensors_create(struct format_sink *s, struct err *e)
{
	static const char blanks[8] = "        ";
	uint64_t n = 0, again = 0;
	unsigned char head[8];
	size_t pad;
	int r = safetensors_header(s, 0, &n, e);

	if (r < 0)
		return r;
	pad = (size_t)(-n % 8);			/* the data begins at a multiple of 8 */
	if (n + pad > SAFETENSORS_MAX_HEADER)
		return err_set(e, ERR_DATA, "limit: the safetensors header would have "
		    "%llu bytes, expected at most %d: use -f npz without --many",
		    (unsigned long long)n, SAFETENSORS_MAX_HEADER);
	bytes_set64(head, n + pad);
	if ((r = io_write(s->io, head, 8, e)) == 0 &&
	    (r = safetensors_header(s, 1, &again, e)) == 0)
		r = io_write(s->io, blanks, pad, e);
	return r;
}

const struct backend_out safetensors_out = {
	safetensors_create, NULL, format_write_raw, NULL, NULL, NULL
};
