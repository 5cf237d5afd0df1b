/* npy heads are parsed strictly; files in both byte orders are read. */
#include "base/bytes.h"
#include "files/format_impl.h"
#include "files/npy.h"

#include "../test.h"
#include "files.h"

#define REST "'fortran_order': False, 'shape': (3,)}\n"

TEST(test_parse_good)
{
	static const struct {
		const char *text;
		unsigned dtype, swap, ndim;
		uint64_t last;
	} t[] = {
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n",
		    SCHEMA_F32, 0, 2, 4 },
		{ "{\"shape\": (7,),\"descr\":\"<f8\",\"fortran_order\":True}\n",
		    SCHEMA_F64, 0, 1, 7 },
		{ "{'descr': '>i8', 'fortran_order': False, 'shape': ()}\n",
		    SCHEMA_I64, 1, 0, 0 },
		{ "{'descr': '<f2', 'fortran_order': False, 'shape': (0, 5L)}\n",
		    SCHEMA_F16, 0, 2, 5 },
		{ " { 'descr' : '<i4' , 'fortran_order' : False , "
		    "'shape' : ( 1 , 1 , 1 , 1 , 1 , 1 , 1 , 9 , ) , } \n",
		    SCHEMA_I32, 0, 8, 9 },
		{ "{'descr': '|u1', " REST, SCHEMA_U8, 0, 1, 3 },
		{ "{'descr': '|b1', " REST, SCHEMA_BOOL, 0, 1, 3 },
		{ "{'descr': '|i1', " REST, SCHEMA_I8, 0, 1, 3 },
		{ "{'descr': '>i2', " REST, SCHEMA_I16, 1, 1, 3 }
	};
	struct npy_head h;
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		e = (struct err)ERR_INIT;
		r = npy_parse(&h, t[i].text, strlen(t[i].text), "'t'", &e);
		ok(r == 0 && h.t.dtype == t[i].dtype && h.swap == t[i].swap &&
		    h.t.ndim == t[i].ndim &&
		    (h.t.ndim == 0 || h.t.dim[h.t.ndim - 1] == t[i].last),
		    "head %zu: %s", i, ERR_MSG(&e));
	}
}

/* Check that a head is refused with a message that begins with `word'. */
static void
refused(const char *text, const char *word)
{
	struct npy_head h;
	struct err e = ERR_INIT;

	ok(npy_parse(&h, text, strlen(text), "'t'", &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), word, strlen(word)) == 0, "%s: %s", word, ERR_MSG(&e));
}

TEST(test_parse_bad)
{
	static const char *const bad[] = {
		"", "\n", "{}\n", "{'descr': '<f4'}\n", "{'descr': '<f4', " REST "x\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
		"{'descr': '<f4', 'descr': '<f4', " REST,
		"{'descr': '<f4', 'more': 1, " REST,
		"{'descr': '<f4' " REST, "{'descr' '<f4', " REST,
		"{'descr': <f4, " REST, "{'descr': '\\x3cf4', " REST,
		"{'descr': __import__('os').abort(), " REST,
		"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': [3,]}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (03,)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3,,)}\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3,\n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (1e3,)}\n"
	}, *const beyond[] = {
		"{'descr': '<f4', 'fortran_order': False, "
		    "'shape': (99999999999999999999999,)}\n",
		"{'descr': '<f4', 'fortran_order': False, "
		    "'shape': (1,1,1,1,1,1,1,1,1)}\n"
	}, *const other[] = {
		"'|O'", "'O'", "[('a', '<f4'), ('b', 'O')]", "'<c8'", "'|c1'", "'<u4'",
		"'|V2'", "'=f3'", "'|f4'", "'|i2'", "'f5'", "'<f16'", "'|S7'", "'<M8[ns]'"
	};
	char text[128];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i], "corrupt: ");
	for (i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
		refused(beyond[i], "limit: ");
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		(void)snprintf(text, sizeof(text), "{'descr': %s, " REST, other[i]);
		refused(text, i > 1 ? "unsupported: 't' " :
		    "unsupported: 't' holds pickled");
	}
}

/* Make a file in b, with n bytes of data after the dict; return its size in bytes. */
static size_t
make(unsigned char *b, unsigned version, const char *dict, const void *data,
    size_t n)
{
	size_t head = strlen(dict), at = version == 1 ? 10 : 12;

	memcpy(b, "\x93NUMPY\0\0\0\0\0\0", 12);
	b[6] = (unsigned char)version;
	if (version == 1)
		bytes_set16(b + 8, (uint16_t)head);
	else
		bytes_set32(b + 8, (uint32_t)head);
	memcpy(b + at, dict, head);
	memcpy(b + at + head, data, n);
	return at + head + n;
}

TEST(test_versions)
{
	/* big-endian f16: {{0, 1, 2}, {3, 4, 5}} */
	static const unsigned char half[] = { 0, 0, 0x3c, 0, 0x40, 0, 0x42, 0,
		0x44, 0, 0x45, 0 };
	unsigned char b[512];
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	const struct schema *sc;
	unsigned v;
	float x[6];
	size_t n;
	int r;

	for (v = 1; v <= 3; v++) {
		static const char dict[] = "{'descr': '>f2', 'fortran_order': "
		    "False, 'shape': (2, 3)}\n";

		n = make(b, v, dict, half, 12);
		files_put("f.npy", b, n);
		r = files_read(&s, FORMAT_NPY, "f.npy", NULL, x, 6, &e);
		sc = s != NULL ? format_schema(s) : NULL;
		ok(r == 0 && sc->n == 1 && strcmp(sc->t[0].name, "data") == 0 &&
		    sc->t[0].dtype == SCHEMA_F16 && sc->t[0].dim[1] == 3 &&
		    x[0] == 0 && x[1] == 1 && x[2] == 2 && x[3] == 3 &&
		    x[4] == 4 && x[5] == 5,
		    "version %u, big-endian: %s", v, ERR_MSG(&e));
		format_close(s);
	}
}

TEST(test_files)
{
	static const char dict[] =
	    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n";
	unsigned char b[512];
	float x[2] = { 1, 2 };
	size_t n = make(b, 1, dict, x, 8), i;

	for (i = 0; i < n; i++) {
		char about[32];

		(void)snprintf(about, sizeof(about), "cut at %zu", i);
		files_put("f.npy", b, i);
		files_refused(FORMAT_NPY, "f.npy", "truncated", about);
	}
	b[n] = 0;
	files_put("f.npy", b, n + 1);
	files_refused(FORMAT_NPY, "f.npy", "corrupt", "one byte more");
	b[0]++;
	files_put("f.npy", b, n);
	files_refused(FORMAT_NPY, "f.npy", "corrupt", "another magic");
	(void)make(b, 4, dict, x, 8);
	files_put("f.npy", b, n);
	files_refused(FORMAT_NPY, "f.npy", "unsupported", "version 4");
	(void)make(b, 2, dict, x, 8);
	memset(b + 8, 0xff, 4);
	files_put("f.npy", b, n);
	files_refused(FORMAT_NPY, "f.npy", "limit", "a head of 4 GiB");
	n = make(b, 1, "{'descr': '<f4', 'fortran_order': True, "
	    "'shape': (2, 2)}\n", x, 8);
	files_put("f.npy", b, n);
	files_refused(FORMAT_NPY, "f.npy", "unsupported", "Fortran order");
}

/* The head of numpy.save(numpy.float32([[1, 2]])) by numpy 1.24, without the padding that
 * later versions leave for appending. */
TEST(test_make)
{
	static const char want[] = "\x93NUMPY\x01\0v\0{'descr': '<f4', "
	    "'fortran_order': False, 'shape': (1, 2), }";
	struct schema_tensor t;
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;

	memset(&t, 0, sizeof(t));
	t.ndim = 2;
	t.dim[0] = 1;
	t.dim[1] = 2;
	ok(npy_make(&b, &t, SCHEMA_F32, &e) == 0 && b.n == 128 && b.p[127] == '\n' &&
	    b.p[126] == ' ' && memcmp(b.p, want, sizeof(want) - 1) == 0,
	    "a head as numpy writes it");
	buf_release(&b);
}
