#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/magic.h"
#include "files/format_impl.h"
#include "files/npy.h"

/* A text that is being parsed: the next character and the end. */
struct npy_text {
	const char *p, *end;
	const char *what;
};

static int
npy_bad(const struct npy_text *t, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: the head of %s is not that of an npy "
	    "array", t->what);
}

static void
npy_space(struct npy_text *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t' ||
	    *t->p == '\n' || *t->p == '\r'))
		t->p++;
}

/* Skip blanks, then c if it is the next character.  Return 1 if it was, else 0. */
static int
npy_char(struct npy_text *t, char c)
{
	npy_space(t);
	if (t->p == t->end || *t->p != c)
		return 0;
	t->p++;
	return 1;
}

static int
npy_word(struct npy_text *t, const char *word)
{
	size_t n = strlen(word);

	npy_space(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
		return 0;
	t->p += n;
	return 1;
}

/* Parse 'text' or "text", without escapes. */
static int
npy_string(struct npy_text *t, char *out, size_t cap, struct err *e)
{
	size_t n = 0;
	char quote;

	npy_space(t);
	if (t->p == t->end || (*t->p != '\'' && *t->p != '"'))
		return npy_bad(t, e);
	quote = *t->p++;
	while (t->p < t->end && *t->p != quote && *t->p != '\\' &&
	    *t->p != '\n' && n < cap - 1)
		out[n++] = *t->p++;
	if (t->p == t->end || *t->p++ != quote)
		return npy_bad(t, e);
	out[n] = '\0';
	return 0;
}

static int
npy_int(struct npy_text *t, uint64_t *out, struct err *e)
{
	const char *from;
	uint64_t v = 0;

	npy_space(t);
	from = t->p;
	while (t->p < t->end && *t->p >= '0' && *t->p <= '9') {
		if (v > (SCHEMA_MAX_TOTAL - (uint64_t)(*t->p - '0')) / 10)
			return err_set(e, ERR_DATA,
			    "limit: a dimension of %s is above 2^40", t->what);
		v = v * 10 + (uint64_t)(*t->p++ - '0');
	}
	if (t->p == from || (*from == '0' && t->p != from + 1))
		return npy_bad(t, e);
	if (t->p < t->end && *t->p == 'L')	/* Python 2 wrote numbers with L */
		t->p++;
	*out = v;
	return 0;
}

/* Parse (), (3,), (3, 4) or (3, 4,); (3) is a number in Python. */
static int
npy_shape(struct npy_text *t, struct npy_head *h, struct err *e)
{
	int r, comma = 0;

	h->t.ndim = 0;
	if (!npy_char(t, '('))
		return npy_bad(t, e);
	while (!npy_char(t, ')')) {
		if (h->t.ndim != 0 && !comma)
			return npy_bad(t, e);
		if (h->t.ndim == SCHEMA_MAX_DIM)
			return err_set(e, ERR_DATA, "limit: %s has more than "
			    "%d dimensions", t->what, SCHEMA_MAX_DIM);
		if ((r = npy_int(t, &h->t.dim[h->t.ndim++], e)) < 0)
			return r;
		comma = npy_char(t, ',');
	}
	return h->t.ndim == 1 && !comma ? npy_bad(t, e) : 0;
}

static int
npy_descr(struct npy_text *t, struct npy_head *h, struct err *e)
{
	static const struct {
		const char *name, *word;
		uint8_t dtype;
	} known[] = {
		{ "f4", "float32", SCHEMA_F32 }, { "f2", "float16", SCHEMA_F16 },
		{ "f8", "float64", SCHEMA_F64 }, { "i4", "int32", SCHEMA_I32 },
		{ "i8", "int64", SCHEMA_I64 }, { "u1", "uint8", SCHEMA_U8 },
		{ "b1", "bool", SCHEMA_BOOL }, { "i1", "int8", SCHEMA_I8 },
		{ "i2", "int16", SCHEMA_I16 }
	};
	const char *name;
	char s[24];
	size_t i;
	int r;

	if (npy_char(t, '['))
		return err_set(e, ERR_DATA,
		    "unsupported: %s has a structured dtype: save each field as an "
		    "array", t->what);
	if ((r = npy_string(t, s, sizeof(s), e)) < 0)
		return r;
	if (strchr(s, 'O') != NULL)
		return err_set(e, ERR_DATA, "unsupported: %s holds pickled Python "
		    "objects (dtype '%s'): save an array of numbers", t->what, s);
	/* no byte order, or "=", means little-endian */
	name = s + (s[0] != '\0' && strchr("<>=|", s[0]) != NULL);
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((strcmp(name, known[i].name) == 0 && (s[0] != '|' ||
		    known[i].name[1] == '1')) || strcmp(s, known[i].word) == 0) {
			h->t.dtype = known[i].dtype;
			if (s[0] == '>')
				h->swap = 1;
			return 0;
		}
	return err_set(e, ERR_DATA, "unsupported: %s has dtype '%s': save it as "
	    "float32", t->what, s);
}

/* Parse one key and its value. seen has a bit per key found so far. */
static int
npy_pair(struct npy_text *t, struct npy_head *h, unsigned *seen, struct err *e)
{
	static const char *const keys[] = { "descr", "fortran_order", "shape" };
	char key[16];
	unsigned k;
	int r;

	if ((r = npy_string(t, key, sizeof(key), e)) < 0)
		return r;
	for (k = 0; k < 3 && strcmp(key, keys[k]) != 0; k++)
		continue;
	if (k == 3 || (*seen & 1u << k) != 0 || !npy_char(t, ':'))
		return npy_bad(t, e);
	*seen |= 1u << k;
	if (k == 0)
		return npy_descr(t, h, e);
	if (k == 2)
		return npy_shape(t, h, e);
	if (npy_word(t, "True"))
		h->fortran = 1;
	else if (!npy_word(t, "False"))
		return npy_bad(t, e);
	return 0;
}

int
npy_parse(struct npy_head *h, const char *text, size_t n, const char *what,
    struct err *e)
{
	struct npy_text t = { text, text + n, what };
	unsigned seen = 0, d, wide = 0;
	int r, empty = 0;

	memset(h, 0, sizeof(*h));
	if (n == 0 || text[n - 1] != '\n' || !npy_char(&t, '{'))
		return npy_bad(&t, e);
	while (!npy_char(&t, '}')) {
		if ((r = npy_pair(&t, h, &seen, e)) < 0)
			return r;
		if (npy_char(&t, ','))
			continue;
		if (!npy_char(&t, '}'))
			return npy_bad(&t, e);
		break;
	}
	npy_space(&t);
	if (seen != 7 || t.p != t.end)
		return npy_bad(&t, e);
	/* C and Fortran order are the same if at most one dimension exceeds 1 */
	for (d = 0; d < h->t.ndim; d++) {
		wide += h->t.dim[d] != 1;
		empty |= h->t.dim[d] == 0;
	}
	if (h->fortran && wide > 1 && !empty)
		return err_set(e, ERR_DATA, "unsupported: %s is in Fortran "
		    "order: save it in C order (numpy.ascontiguousarray)", what);
	return 0;
}

static int
npy_exact(npy_get *get, void *from, void *p, size_t n, const char *what, struct err *e)
{
	size_t got = 0;
	int r = get(from, p, n, &got, e);

	if (r < 0 || got == n)
		return r;
	return err_set(e, ERR_DATA, "truncated: %s ends inside its head", what);
}

int
npy_read(struct npy_head *h, npy_get *get, void *from, const char *what, struct err *e)
{
	unsigned char b[12];
	char *text;
	size_t n;
	int r;

	if ((r = npy_exact(get, from, b, 10, what, e)) < 0)
		return r;
	if (memcmp(b, "\x93NUMPY", 6) != 0)
		return err_set(e, ERR_DATA, "corrupt: %s is not an npy array", what);
	if (b[6] < 1 || b[6] > 3 || b[7] != 0)
		return err_set(e, ERR_DATA, "unsupported: %s has npy version %u.%u, "
		    "expected 1.0, 2.0 or 3.0", what, b[6], b[7]);
	n = bytes_le16(b + 8);
	if (b[6] > 1) {
		if ((r = npy_exact(get, from, b + 10, 2, what, e)) < 0)
			return r;
		n = bytes_le32(b + 8);
	}
	if (n > NPY_MAX_HEAD)
		return err_set(e, ERR_DATA, "limit: the head of %s has %zu bytes, "
		    "expected at most %d", what, n, NPY_MAX_HEAD);
	if ((text = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	if ((r = npy_exact(get, from, text, n, what, e)) == 0)
		r = npy_parse(h, text, n, what, e);
	alloc_free(text);
	return r;
}

int
npy_has(unsigned dtype)
{
	return dtype != SCHEMA_BF16 && dtype != SCHEMA_F8E4M3 && dtype != SCHEMA_F8E5M2;
}

int
npy_make(struct buf *out, const struct schema_tensor *t, unsigned dtype, struct err *e)
{
	static const char *const descr[SCHEMA_NDTYPE] = {
		"<f4", "<f2", "<f4", "<f8", "<i4", "<i8", "|u1", "|b1", "<f4",
		"<f4", "|i1", "<i2", NULL, NULL, NULL, NULL, NULL
	};
	char s[512];
	size_t n, pad;
	unsigned d;
	int r;

	n = (size_t)snprintf(s, sizeof(s),
	    "{'descr': '%s', 'fortran_order': False, 'shape': (", descr[dtype]);
	for (d = 0; d < t->ndim; d++)
		n += (size_t)snprintf(s + n, sizeof(s) - n, "%llu%s",
		    (unsigned long long)t->dim[d],
		    d + 1 < t->ndim ? ", " : t->ndim == 1 ? "," : "");
	n += (size_t)snprintf(s + n, sizeof(s) - n, "), }");
	pad = 63 - (10 + n) % 64;
	memset(s + n, ' ', pad);
	n += pad;
	s[n++] = '\n';
	if ((r = buf_put(out, "\x93NUMPY\x01\0\0\0", 10, e)) < 0)
		return r;
	bytes_set16(out->p + out->n - 2, (uint16_t)n);
	return buf_put(out, s, n, e);
}

/* ---- a .npy file: one tensor, streamed ---- */

static int
npy_from_io(void *from, void *p, size_t n, size_t *got, struct err *e)
{
	return io_read(from, p, n, got, e);
}

static int
npy_open(struct format_source *s, const struct format_opts *o, struct err *e)
{
	unsigned char p[MAGIC_SIZE] = { 0 };
	struct npy_head h;
	char what[512];
	size_t got;
	int r;

	(void)snprintf(what, sizeof(what), "'%.500s'", s->name);
	if ((r = io_open(&s->io, s->path, e)) < 0 ||
	    (r = io_peek(s->io, p, sizeof(p), &got, e)) < 0)
		return r;
	if (got >= 6 && memcmp(p, "\x93NUMPY", 6) != 0)
		return format_strange(s, "an npy array", p, got, e);
	if ((r = npy_read(&h, npy_from_io, s->io, what, e)) < 0)
		return r;
	if ((s->swap = alloc_get(1, 1, e)) == NULL)
		return -ERR_SYS;
	s->swap[0] = h.swap;
	return format_add(s, &h.t, o->name != NULL ? o->name : "data", e);
}

const struct backend_in npy_in = {
	npy_open, NULL, format_take, NULL, format_last, NULL
};

static int
npy_create(struct format_sink *s, struct err *e)
{
	struct buf b = BUF_INIT;
	int r;

	if (s->schema->n != 1)
		return err_set(e, ERR_DATA, "unsupported: npy holds one tensor, not %zu: "
		    "choose one with --tensor, or use -f npz", s->schema->n);
	if (!npy_has(s->dtype[0]))
		s->dtype[0] = SCHEMA_F32;
	if ((r = npy_make(&b, &s->schema->t[0], s->dtype[0], e)) == 0)
		r = io_write(s->io, b.p, b.n, e);
	buf_release(&b);
	return r;
}

const struct backend_out npy_out = {
	npy_create, NULL, format_write_raw, NULL, NULL, NULL
};
