/* npz: a file of numpy's, truncated and with flipped bits everywhere; hand-made zips that
 * are wrong. */
#include <locale.h>

#include "base/bytes.h"

#include "../test.h"
#include "files.h"

/*
 * By numpy 1.24.2: numpy.savez_compressed(f,
 * w=numpy.arange(6, dtype='<f4').reshape(2, 3) / 4, b=numpy.array([1.5, -2],
 * dtype='<f8'))
 */
static const unsigned char numpy[] = {
	0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00,
	0x00, 0x21, 0x00, 0x0a, 0x9c, 0x00, 0xa4, 0x56, 0x00, 0x00, 0x00,
	0x98, 0x00, 0x00, 0x00, 0x05, 0x00, 0x14, 0x00, 0x77, 0x2e, 0x6e,
	0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0x98, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x56, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x9b, 0xec, 0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50, 0xc6, 0x50,
	0xad, 0x9e, 0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e,
	0x93, 0x66, 0xa2, 0xae, 0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52,
	0x94, 0x98, 0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a, 0x12, 0x77, 0x4b,
	0xcc, 0x29, 0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02,
	0xf9, 0x1a, 0x46, 0x3a, 0x0a, 0xc6, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a,
	0x64, 0x03, 0x2e, 0x06, 0x30, 0x68, 0xb0, 0x03, 0x12, 0xf6, 0x0c,
	0x0c, 0x0e, 0x40, 0xdc, 0x00, 0xc4, 0x0b, 0xec, 0x01, 0x50, 0x4b,
	0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21,
	0x00, 0xb0, 0x98, 0xc5, 0x41, 0x4d, 0x00, 0x00, 0x00, 0x90, 0x00,
	0x00, 0x00, 0x05, 0x00, 0x14, 0x00, 0x62, 0x2e, 0x6e, 0x70, 0x79,
	0x01, 0x00, 0x10, 0x00, 0x90, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x4d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9b, 0xec,
	0x17, 0xea, 0x1b, 0x10, 0xc9, 0xc8, 0x50, 0xc6, 0x50, 0xad, 0x9e,
	0x92, 0x5a, 0x9c, 0x5c, 0xa4, 0x6e, 0xa5, 0xa0, 0x6e, 0x93, 0x66,
	0xa1, 0xae, 0xa3, 0xa0, 0x9e, 0x96, 0x5f, 0x54, 0x52, 0x94, 0x98,
	0x17, 0x9f, 0x5f, 0x94, 0x92, 0x0a, 0x12, 0x77, 0x4b, 0xcc, 0x29,
	0x4e, 0x05, 0x8a, 0x17, 0x67, 0x24, 0x16, 0xa4, 0x02, 0xf9, 0x1a,
	0x46, 0x3a, 0x9a, 0x3a, 0x0a, 0xb5, 0x0a, 0x14, 0x00, 0x2e, 0x06,
	0x30, 0xf8, 0x61, 0x0f, 0xa1, 0x19, 0x0e, 0x00, 0x00, 0x50, 0x4b,
	0x01, 0x02, 0x14, 0x03, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00,
	0x00, 0x21, 0x00, 0x0a, 0x9c, 0x00, 0xa4, 0x56, 0x00, 0x00, 0x00,
	0x98, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00,
	0x77, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x01, 0x02, 0x14, 0x03,
	0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xb0,
	0x98, 0xc5, 0x41, 0x4d, 0x00, 0x00, 0x00, 0x90, 0x00, 0x00, 0x00,
	0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x80, 0x01, 0x8d, 0x00, 0x00, 0x00, 0x62, 0x2e, 0x6e, 0x70,
	0x79, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
	0x02, 0x00, 0x66, 0x00, 0x00, 0x00, 0x11, 0x01, 0x00, 0x00, 0x00,
	0x00,
};

static int
is_numpy(const struct schema *sc, const float *x)
{
	static const float want[] = { 0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, -2 };

	return sc->n == 2 && strcmp(sc->t[0].name, "w") == 0 &&
	    sc->t[0].dtype == SCHEMA_F32 && sc->t[0].dim[1] == 3 &&
	    strcmp(sc->t[1].name, "b") == 0 &&
	    sc->t[1].dtype == SCHEMA_F64 && sc->total == 8 &&
	    memcmp(x, want, sizeof(want)) == 0;
}

TEST(test_numpy)
{
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	float x[8] = { 0 };
	int r;

	files_put("f.npz", numpy, sizeof(numpy));
	r = files_read(&s, FORMAT_NPZ, "f.npz", NULL, x, 8, &e);
	ok(r == 0 && is_numpy(format_schema(s), x), "what numpy wrote: %s",
	    ERR_MSG(&e));
	format_close(s);
}

TEST(test_cut)
{
	struct format_source *s;
	struct err e;
	size_t i, bad = 0;
	float x[8];

	for (i = 0; i < sizeof(numpy); i++) {
		files_put("f.npz", numpy, i);
		e = (struct err)ERR_INIT;
		bad += files_read(&s, FORMAT_NPZ, "f.npz", NULL, x, 8, &e) !=
		    -ERR_DATA || strncmp(ERR_MSG(&e), "truncated: ", 11) != 0;
		format_close(s);
	}
	ok(bad == 0, "every cut is truncated (%zu are not)", bad);
}

/* A file with a flipped bit is refused, or read with the right values. */
TEST(test_flip)
{
	unsigned char b[sizeof(numpy)];
	size_t i, wrong = 0, other = 0, good = 0, refused = 0;
	struct format_source *s;
	struct err e;
	float x[8];
	int r;

	for (i = 0; i < 8 * sizeof(numpy); i++) {
		memcpy(b, numpy, sizeof(b));
		b[i / 8] ^= (unsigned char)(1u << i % 8);
		files_put("f.npz", b, sizeof(b));
		e = (struct err)ERR_INIT;
		r = files_read(&s, FORMAT_NPZ, "f.npz", NULL, x, 8, &e);
		if (r == -ERR_DATA)
			refused++;
		else if (r < 0)
			other++;
		else if (is_numpy(format_schema(s), x))
			good++;
		else if (format_schema(s)->total != 8 ||
		    memcmp(x, (float[8]){ 0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f,
		    -2 }, sizeof(x)) != 0)
			wrong++;
		format_close(s);
	}
	ok(wrong == 0 && other == 0 && refused > good,
	    "every flipped bit: %zu refused, %zu harmless, %zu wrong, %zu "
	    "system errors", refused, good, wrong, other);
}

/* ---- zips made by hand: stored entries with any fault ---- */

struct zip {
	unsigned char b[1 << 16], dir[1 << 15];
	size_t n, ndir, entries;
};

static uint32_t
crc32_of(const unsigned char *p, size_t n)
{
	uint32_t c = 0xffffffff;
	size_t i;
	int k;

	for (i = 0; i < n; i++)
		for (c ^= p[i], k = 0; k < 8; k++)
			c = (c & 1) != 0 ? c >> 1 ^ 0xedb88320 : c >> 1;
	return ~c;
}

struct zip_entry {
	const char *name;
	const char *dict;	/* dict of the npy head; NULL: none, its length is 0 */
	size_t data;		/* bytes after the dict */
	unsigned flags, method;	/* zip flags: bit 0 encrypted, bit 11 UTF-8 */
	uint32_t mode;		/* Unix mode, 0: none */
	uint32_t crc;		/* flipped bits of the right CRC */
};

static void
zip_add(struct zip *z, const struct zip_entry *t)
{
	unsigned char npy[4096] = "\x93NUMPY\1", h[46];
	size_t n = 10, len = strlen(t->name), at = z->n, i;

	if (t->dict != NULL) {
		bytes_set16(npy + 8, (uint16_t)strlen(t->dict));
		memcpy(npy + 10, t->dict, strlen(t->dict));
		n += strlen(t->dict);
	}
	for (i = 0; i < t->data; i++)
		npy[n++] = (unsigned char)(i % 4 == 3 ? 0x3f : 0);
	memset(h, 0, sizeof(h));
	memcpy(h, "PK\1\2", 4);
	bytes_set16(h + 4, 3 << 8 | 20);
	bytes_set16(h + 6, 20);
	bytes_set16(h + 8, (uint16_t)t->flags);
	bytes_set16(h + 10, (uint16_t)t->method);
	bytes_set32(h + 12, 0x00210000);
	bytes_set32(h + 16, crc32_of(npy, n) ^ t->crc);
	bytes_set32(h + 20, (uint32_t)n);
	bytes_set32(h + 24, (uint32_t)n);
	bytes_set16(h + 28, (uint16_t)len);
	bytes_set32(h + 38, t->mode << 16);
	bytes_set32(h + 42, (uint32_t)at);
	memcpy(z->dir + z->ndir, h, 46);
	memcpy(z->dir + z->ndir + 46, t->name, len);
	z->ndir += 46 + len;
	z->entries++;
	memcpy(z->b + at, "PK\3\4", 4);		/* the local header */
	memcpy(z->b + at + 4, h + 6, 26);
	bytes_set16(z->b + at + 28, 0);
	memcpy(z->b + at + 30, t->name, len);
	memcpy(z->b + at + 30 + len, npy, n);
	z->n = at + 30 + len + n;
}

static size_t
zip_end(struct zip *z)
{
	unsigned char h[22];

	memset(h, 0, sizeof(h));
	memcpy(h, "PK\5\6", 4);
	bytes_set16(h + 8, (uint16_t)z->entries);
	bytes_set16(h + 10, (uint16_t)z->entries);
	bytes_set32(h + 12, (uint32_t)z->ndir);
	bytes_set32(h + 16, (uint32_t)z->n);
	memcpy(z->b + z->n, z->dir, z->ndir);
	memcpy(z->b + z->n + z->ndir, h, 22);
	return z->n + z->ndir + 22;
}

#define F4 "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n"
#define OBJECT "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}\n"

static const struct {
	struct zip_entry t;
	const char *word, *about;
} bad[] = {
	{ { "a.npy", OBJECT, 8, 0, 0, 0, 0 }, "unsupported", "a pickled object" },
	{ { "a.txt", F4, 8, 0, 0, 0, 0 }, "unsupported", "an entry a.txt" },
	{ { ".npy", F4, 8, 0, 0, 0, 0 }, "unsupported", "no name" },
	{ { "a.npy/", F4, 0, 0, 0, 0, 0 }, "unsupported", "a directory" },
	{ { "a.npy", F4, 8, 0, 0, 0120777, 0 }, "unsupported", "a symbolic link" },
	{ { "a.npy", F4, 8, 1, 0, 0, 0 }, "unsupported", "encrypted" },
	{ { "a.npy", F4, 8, 0, 97, 0, 0 }, "unsupported", "a compression nobody has" },
	{ { "a.npy", F4, 8, 0, 0, 0, 1 }, "corrupt", "a wrong CRC" },
	{ { "a.npy", F4, 7, 0, 0, 0, 0 }, "truncated", "a byte too few" },
	{ { "a.npy", F4, 9, 0, 0, 0, 0 }, "corrupt", "a byte too many" },
	{ { "a.npy", NULL, 0, 0, 0, 0, 0 }, "corrupt", "no head" },
	{ { "a\x1b[2J.npy", F4, 8, 0, 0, 0, 0 }, "unsupported",
	    "a name that clears the screen" },
	{ { "a\xff.npy", F4, 8, 0, 0, 0, 0 }, "unsupported", "a name that is no UTF-8" },
	{ { "a\xff.npy", F4, 8, 1 << 11, 0, 0, 0 }, "corrupt", "a name that says it is" }
};

TEST(test_bad)
{
	static struct zip z;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&z, 0, sizeof(z));
		zip_add(&z, &bad[i].t);
		files_put("f.npz", z.b, zip_end(&z));
		files_refused(FORMAT_NPZ, "f.npz", bad[i].word, bad[i].about);
	}
}

/* The first n bytes of a zip must be refused, with a message that begins with word. */
static void
refused(const struct zip *z, size_t n, const char *word, const char *about)
{
	files_put("f.npz", z->b, n);
	files_refused(FORMAT_NPZ, "f.npz", word, about);
}

/* Make a zip of entries a and b, or of a alone if b is NULL. Return its size in bytes. */
static size_t
two(struct zip *z, const struct zip_entry *a, const struct zip_entry *b)
{
	memset(z, 0, sizeof(*z));
	zip_add(z, a);
	if (b != NULL)
		zip_add(z, b);
	return zip_end(z);
}

TEST(test_structure)
{
	static const struct zip_entry a = { "a.npy", F4, 8, 0, 0, 0, 0 },
	    b = { "b.npy", F4, 8, 0, 0, 0, 0 };
	static char name[300];
	const struct zip_entry longer = { name, F4, 8, 0, 0, 0, 0 };
	static struct zip z;
	size_t n;

	refused(&z, two(&z, &a, &a), "corrupt", "two of one name");
	(void)two(&z, &a, &b);
	bytes_set32(z.dir + z.ndir - 5 - 4, 0);
	refused(&z, zip_end(&z), "corrupt", "two at one place");
	(void)two(&z, &a, NULL);
	z.entries = 2;
	refused(&z, zip_end(&z), "corrupt", "two entries, one there");
	memset(name, 'n', 256);
	(void)strcpy(name + 256, ".npy");
	refused(&z, two(&z, &longer, NULL), "limit", "a name of 256 bytes");
	n = two(&z, &a, NULL);
	refused(&z, n + 1, "truncated", "a byte at the end");
	z.b[n - 2] = 1;
	refused(&z, n, "truncated", "a comment that is not there");
	z.b[n - 2] = 0;
	bytes_set32(z.b + n - 6, 0);
	refused(&z, n, "corrupt", "directory elsewhere");
	bytes_set32(z.b + n - 10, 17 << 20);
	bytes_set32(z.b + n - 6, 100);
	memset(z.b, 0, 4);
	refused(&z, n, "corrupt", "no zip");
}

#define HEAD(type, shape) "{'descr': '" type "', 'fortran_order': " \
    "False, 'shape': (" shape "}\n"	/* all of the same length */

/* The file is read twice: changes between the two readings are refused. */
TEST(test_changed)
{
	static const struct { const char *name, *dict, *about; } to[] = {
		{ "b.npy", HEAD("<f4", "2,) "), "another name" },
		{ "a.npy", HEAD("<i4", "2,) "), "another type" },
		{ "a.npy", HEAD("<f4", "1,2)"), "another rank" },
		{ "a.npy", HEAD(">f4", "2,) "), "another byte order" },
		{ "a.npy", HEAD("<f4", "3,) "), "another length" }
	};
	static const struct zip_entry a = { "a.npy", HEAD("<f4", "2,) "), 8, 0, 0, 0, 0 };
	struct zip_entry b = a;
	static const struct format_opts none;
	static struct zip z, y;
	struct format_source *s;
	struct err e;
	float x[3];
	size_t i;
	int r;

	zip_add(&z, &a);
	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		files_put("f.npz", z.b, zip_end(&z));
		e = (struct err)ERR_INIT;
		s = NULL;
		r = format_open(&s, FORMAT_NPZ, "f.npz", &none, &e);
		memset(&y, 0, sizeof(y));
		b.name = to[i].name;
		b.dict = to[i].dict;
		zip_add(&y, &b);
		files_put("f.npz", y.b, zip_end(&y));
		r = r < 0 ? r : format_read(s, x, 2, &e);
		ok(r == -ERR_DATA && strcmp(ERR_MSG(&e), "mismatch: 'f.npz' "
		    "changed while it was read: try again when nothing writes it") == 0,
		    "%s: %s", to[i].about, ERR_MSG(&e));
		format_close(s);
	}
}

/* A zip64 file is read; one with a wrong end record or locator is refused. */
TEST(test_zip64)
{
	static const struct zip_entry a = { "a.npy", F4, 8, 0, 0, 0, 0 };
	unsigned char r[56] = "PK\6\6", l[20] = "PK\6\7", end[22];
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	static struct zip z;
	float x[2] = { 0 };
	size_t n, at;

	zip_add(&z, &a);
	n = zip_end(&z);
	at = n - 22;
	memcpy(end, z.b + at, 22);
	bytes_set64(r + 4, 44);
	bytes_set16(r + 12, 45);
	bytes_set16(r + 14, 45);
	bytes_set64(r + 24, 1);
	bytes_set64(r + 32, 1);
	bytes_set64(r + 40, z.ndir);
	bytes_set64(r + 48, z.n);
	bytes_set64(l + 8, at);
	bytes_set32(l + 16, 1);
	memset(end + 8, 0xff, 12);
	memcpy(z.b + at, r, 56);
	memcpy(z.b + at + 56, l, 20);
	memcpy(z.b + at + 76, end, 22);
	n = at + 98;
	files_put("f.npz", z.b, n);
	ok(files_read(&s, FORMAT_NPZ, "f.npz", NULL, x, 2, &e) == 0 &&
	    x[0] == 0.5f && x[1] == 0.5f, "is read: %s", ERR_MSG(&e));
	format_close(s);
	z.b[at + 4]++;
	refused(&z, n, "corrupt", "a record of another length");
	z.b[at + 4]--;
	bytes_set64(z.b + at + 32, 2);
	refused(&z, n, "corrupt", "two entries, one there");
	bytes_set64(z.b + at + 32, 1);
	bytes_set64(z.b + at + 56 + 8, at + 1);
	refused(&z, n, "corrupt", "a record elsewhere");
}

/* A file with a directory of 17 MiB, mostly a hole, is refused. */
TEST(test_large)
{
	unsigned char h[22] = "PK\5\6";
	FILE *f;

	bytes_set16(h + 10, 1);
	bytes_set32(h + 12, 17 << 20);
	bytes_set32(h + 16, 4);
	f = fopen("f.npz", "wb");
	if (f == NULL || fwrite("PK\3\4", 1, 4, f) != 4 ||
	    fseek(f, 4 + (17 << 20), SEEK_SET) != 0 ||
	    fwrite(h, 1, 22, f) != 22 || fclose(f) != 0)
		abort();
	files_refused(FORMAT_NPZ, "f.npz", "limit", "a directory of 17 MiB");
}

/* Names do not depend on the locale. */
TEST(test_name)
{
	static const char *const locales[] = { "C", "C.UTF-8" };
	static const struct zip_entry t[] = {
		{ "b/\xc3\xbc.npy", F4, 8, 1 << 11, 0, 0, 0 },
		{ "b/\xe2\x82\xac.npy", F4, 8, 0, 0, 0, 0 }
	};
	struct format_source *s;
	static struct zip z;
	struct err e;
	float x[4];
	size_t i;
	int r;

	zip_add(&z, &t[0]);
	zip_add(&z, &t[1]);
	files_put("f.npz", z.b, zip_end(&z));
	for (i = 0; i < 2; i++) {
		(void)setlocale(LC_ALL, locales[i]);
		e = (struct err)ERR_INIT;
		r = files_read(&s, FORMAT_NPZ, "f.npz", NULL, x, 4, &e);
		ok(r == 0 && format_schema(s)->n == 2 &&
		    strcmp(format_schema(s)->t[0].name, "b/\xc3\xbc") == 0 &&
		    strcmp(format_schema(s)->t[1].name, "b/\xe2\x82\xac") == 0 &&
		    x[0] == 0.5f, "names in locale %s: %s", locales[i], ERR_MSG(&e));
		format_close(s);
	}
	(void)setlocale(LC_ALL, "C");
}
