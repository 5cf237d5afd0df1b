/* safetensors: a hand-made file, and headers that are wrong. */
#include "base/bytes.h"
#include "format/text.h"

#include "files.h"

#define ENTRY(name, dtype, shape, begin, end) "\"" name "\":{\"dtype\":\"" \
    dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

/* A header with the tensor `a', and one with a tensor of one value. */
#define A(dtype, shape, begin, end) "{" ENTRY("a", dtype, shape, begin, end) "}"
#define NAMED(name) "{" ENTRY(name, "F32", "[1]", "0", "4") "}"

/* Make a file in b: length, header, then n bytes 0, 1, 2, ...; return its size in bytes. */
static size_t
make(unsigned char *b, const char *header, size_t n)
{
	size_t len = strlen(header), i;

	bytes_set64(b, len);
	memcpy(b + 8, header, len);
	for (i = 0; i < n; i++)
		b[8 + len + i] = (unsigned char)i;
	return 8 + len + n;
}

static void
put(const char *header, size_t n)
{
	static unsigned char b[1 << 16];

	files_put("f.safetensors", b, make(b, header, n));
}

/* The schema has the order of the data, whatever the order in the header. */
TEST(test_order)
{
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	const struct schema *sc;
	float x[8];
	int r;

	put("{" ENTRY("last", "F32", "[1]", "12", "16") ","
	    ENTRY("none", "F64", "[3,0]", "12", "12") ","
	    "\"__metadata__\":{\"format\":\"pt\",\"Odd Key\":\"dropped\"},"
	    ENTRY("f\\u00fc", "F16", "[2,2]", "4", "12") ","
	    ENTRY("first", "BF16", "[2]", "0", "4") "}  \n", 16);
	r = files_read(&s, FORMAT_SAFETENSORS, "f.safetensors", NULL, x, 8, &e);
	sc = s != NULL ? format_schema(s) : NULL;
	ok(r == 0, "a good file: %s", ERR_MSG(&e));
	if (r < 0)
		return;
	ok(sc->n == 4 && strcmp(sc->t[0].name, "first") == 0 &&
	    strcmp(sc->t[1].name, "f\xc3\xbc") == 0 &&
	    strcmp(sc->t[2].name, "none") == 0 &&
	    strcmp(sc->t[3].name, "last") == 0, "tensors in order of data");
	ok(sc->t[0].dtype == SCHEMA_BF16 && sc->t[1].dtype == SCHEMA_F16 &&
	    sc->t[1].ndim == 2 && sc->t[2].numel == 0 && sc->total == 7,
	    "with their shapes and dtypes");
	ok(bytes_u32(x[0]) == 0x01000000 && bytes_u32(x[1]) == 0x03020000 &&
	    bytes_u32(x[6]) == 0x0f0e0d0c, "values as they lie");
	ok(format_note(s)->n == 1 &&
	    strcmp(text_get(format_note(s), "safetensors.format"), "pt") == 0,
	    "metadata is carried where it can be");
	format_close(s);
}

static const struct {
	const char *header;
	size_t data;
	const char *word, *about;
} bad[] = {
	{ "", 0, "corrupt", "an empty header" },
	{ "[]", 0, "corrupt", "not a JSON object" },
	{ "{", 0, "corrupt", "not closed" },
	{ "{}x", 0, "corrupt", "text after the object" },
	{ "{}{}", 0, "corrupt", "two objects" },
	{ "{\"a\"}", 0, "corrupt", "no value" },
	{ "{,}", 0, "corrupt", "only a comma" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4") ",}", 4, "corrupt",
	    "a comma too many" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4")
	    ENTRY("b", "F32", "[0]", "4", "4") "}", 4, "corrupt",
	    "a comma too few" },
	{ "{\"a\":5}", 0, "corrupt", "an entry that is a number" },
	{ "{\"a\":{}}", 0, "corrupt", "an entry without anything" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4") ","
	    ENTRY("a", "F32", "[1]", "4", "8") "}", 8, "corrupt",
	    "two tensors of one name" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4") ","
	    ENTRY("\\u0061", "F32", "[1]", "4", "8") "}", 8, "corrupt",
	    "and one of them disguised" },
	{ "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],"
	    "\"data_offsets\":[0,4]}}", 4, "corrupt", "a key twice" },
	{ "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, "corrupt",
	    "a metadata key twice" },
	{ "{\"__metadata__\":{\"a\":1}}", 0, "corrupt",
	    "metadata that is no string" },
	{ "{\"__metadata__\":7}", 0, "corrupt", "metadata that is no object" },
	{ A("F8_E8M0", "[4]", "0", "4"), 4, "unsupported", "a dtype we do not have" },
	{ A("f32", "[1]", "0", "4"), 4, "unsupported", "a dtype in lower case" },
	{ NAMED("a\\nb"), 4, "unsupported", "a name with a line feed" },
	{ NAMED("\\u001b[2J"), 4, "unsupported", "a name that clears the screen" },
	{ NAMED(""), 4, "unsupported", "an empty name" },
	{ NAMED("a\\u0000b"), 4, "corrupt", "a name with a zero" },
	{ NAMED("a\xff"), 4, "corrupt", "a name that is no UTF-8" },
	{ A("F32", "[2]", "0", "4"), 4, "corrupt", "a shape larger than the bytes" },
	{ A("F32", "[1]", "0", "8"), 8, "corrupt", "bytes for more than the shape" },
	{ A("F32", "[1]", "4", "0"), 4, "corrupt", "an end before the beginning" },
	{ A("F32", "[-1]", "0", "4"), 4, "corrupt", "a negative dimension" },
	{ A("F32", "[1.0]", "0", "4"), 4, "corrupt", "a broken dimension" },
	{ A("F32", "1", "0", "4"), 4, "corrupt", "a shape that is a number" },
	{ A("F32", "[1]", "-4", "0"), 4, "corrupt", "a negative offset" },
	{ A("F32", "[4294967296,4294967296]", "0", "0"), 0, "limit", "2^64 elements" },
	{ A("F64", "[2305843009213693952]", "0", "0"), 0, "limit", "2^64 bytes" },
	{ A("F32", "[0,9223372036854775807,9223372036854775807]", "0", "4"), 4, "corrupt",
	    "zero times much is zero" },
	{ A("F32", "[99999999999999999999]", "0", "4"), 4,
	    "corrupt", "a number beyond 2^63" },
	{ A("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4"), 4, "limit", "nine dimensions" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4") ","
	    ENTRY("b", "F32", "[1]", "8", "12") "}", 12, "corrupt", "a hole" },
	{ A("F32", "[1]", "4", "8"), 8, "corrupt", "a hole at the front" },
	{ "{" ENTRY("a", "F32", "[2]", "0", "8") ","
	    ENTRY("b", "F32", "[1]", "4", "8") "}", 8, "corrupt",
	    "an overlap" },
	{ "{" ENTRY("a", "F32", "[1]", "0", "4") ","
	    ENTRY("b", "F32", "[1]", "0", "4") "}", 4, "corrupt",
	    "one place for two" },
	{ A("F32", "[1]", "0", "4"), 5, "corrupt", "a byte after the last tensor" },
	{ A("F32", "[1]", "0", "4"), 3, "truncated", "a byte missing" },
	{ A("F32", "[1000000000]", "0", "4000000000"), 4,
	    "truncated", "4 GB that are not there" }
};

TEST(test_bad)
{
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(bad[i].header, bad[i].data);
		files_refused(FORMAT_SAFETENSORS, "f.safetensors", bad[i].word,
		    bad[i].about);
	}
}

TEST(test_length)
{
	static const struct {
		uint64_t len;
		const char *word;
	} t[] = {
		{ 99, "truncated" }, { 100000000, "truncated" },
		{ 100000001, "limit" }, { UINT64_MAX, "limit" },
		{ 0, "corrupt" }, { 1, "corrupt" }
	};
	unsigned char b[64];
	char about[64];
	size_t i, n = make(b, "{}", 0);

	for (i = 0; i < n; i++) {
		(void)snprintf(about, sizeof(about), "cut at %zu", i);
		files_put("f.safetensors", b, i);
		files_refused(FORMAT_SAFETENSORS, "f.safetensors", "truncated",
		    about);
	}
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		(void)snprintf(about, sizeof(about), "a header length of %llu",
		    (unsigned long long)t[i].len);
		bytes_set64(b, t[i].len);
		files_put("f.safetensors", b, n);
		files_refused(FORMAT_SAFETENSORS, "f.safetensors", t[i].word,
		    about);
	}
}

/* Check that a header of head, n times `again', and tail is refused; word: the kind of error. */
static void
test_large(const char *head, const char *again, size_t n, const char *tail,
    const char *word, const char *about)
{
	size_t len = strlen(head) + n * strlen(again) + strlen(tail), i;
	char *p = malloc(len + 9), *q;

	if (p == NULL)
		abort();
	bytes_set64((unsigned char *)p, len);
	q = stpcpy(p + 8, head);
	for (i = 0; i < n; i++)
		q = stpcpy(q, again);
	(void)stpcpy(q, tail);
	files_put("f.safetensors", p, len + 8);
	free(p);
	files_refused(FORMAT_SAFETENSORS, "f.safetensors", word, about);
}

/* The name of tensor i: names have several lengths. */
static void
name_of(char name[32], size_t i)
{
	(void)snprintf(name, 32, "w%0*zu", (int)(i % 11) + 6, i);
}

/* Write a file of n tensors without values, and read it; return as files_read. */
static int
read_many(struct format_source **s, size_t n, struct err *e)
{
	char *p = calloc(n + 1, 128), *q, name[32];
	size_t i;

	if (p == NULL)
		abort();
	q = p + 8;
	for (i = 0; i < n; i++) {
		name_of(name, i);
		q += sprintf(q, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[0],"
		    "\"data_offsets\":[0,0]}", i == 0 ? '{' : ',', name);
	}
	*q++ = '}';
	bytes_set64((unsigned char *)p, (uint64_t)(q - p - 8));
	files_put("f.safetensors", p, (size_t)(q - p));
	free(p);
	return files_read(s, FORMAT_SAFETENSORS, "f.safetensors", NULL, NULL, 0, e);
}

/* A header larger than the read window, and one tensor more than the limit. */
TEST(test_many)
{
	enum { N = 40000 };
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	size_t i, wrong = 0;
	char name[32];
	int r = read_many(&s, N, &e);

	for (i = 0; r == 0 && i < N; i++) {
		name_of(name, i);
		wrong += strcmp(format_schema(s)->t[i].name, name) != 0;
	}
	ok(r == 0 && format_schema(s)->n == N && wrong == 0,
	    "40,000 tensors, 2.6 MB of header: %s", ERR_MSG(&e));
	format_close(s);
	s = NULL;
	ok(read_many(&s, 131073, &e) == -ERR_DATA && strcmp(ERR_MSG(&e), "limit: "
	    "'f.safetensors' has more than 131072 tensors") == 0, "%s", ERR_MSG(&e));
	format_close(s);
}

/* The first sixteen metadata entries with values of up to 256 bytes are kept. */
TEST(test_metadata)
{
	char text[4096], key[32], value[258];
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	size_t n = 0, i;
	int r;

	memset(value, 'v', 257);
	value[257] = '\0';
	n += (size_t)sprintf(text, "{\"__metadata__\":{\"longer\":\"%s\"",
	    value);
	value[256] = '\0';
	n += (size_t)sprintf(text + n, ",\"most\":\"%s\"", value);
	for (i = 0; i < 16; i++)
		n += (size_t)sprintf(text + n, ",\"key.%02zu\":\"%zu\"", i, i);
	(void)strcpy(text + n, "}}");
	put(text, 0);
	r = files_read(&s, FORMAT_SAFETENSORS, "f.safetensors", NULL, NULL, 0,
	    &e);
	ok(r == 0 && format_note(s)->n == 16 && text_get(format_note(s),
	    "safetensors.longer") == NULL, "one of 257 is left out: %s",
	    ERR_MSG(&e));
	ok(r == 0 && text_get(format_note(s), "safetensors.most") != NULL &&
	    strcmp(text_get(format_note(s), "safetensors.most"), value) == 0,
	    "one of 256 is kept");
	for (i = 0; r == 0 && i < 16; i++) {
		(void)sprintf(key, "safetensors.key.%02zu", i);
		if ((text_get(format_note(s), key) != NULL) != (i < 15))
			break;
	}
	ok(i == 16, "and the first sixteen in all");
	format_close(s);
}

int
main(void)
{
	run_tests();
	test_large("{\"a\":", "[", 100000, "}", "corrupt", "deep nesting");
	test_large("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,0],"
	    "\"shape\":", "[", 3000, "0}}", "corrupt", "deep inside an entry");
	test_large("{\"a\":{\"shape\":[", "0,", 4000000, "0]}}", "limit",
	    "an entry of 8 MB");
	test_large("{\"", "a", 4000000, "\":{}}", "limit", "a name of 4 MB");
	test_large("{\"__metadata__\":{\"a\":\"", "a", 4000000, "\"}}", "limit",
	    "a note of 4 MB");
	test_large("{", " ", 4000000, "\"a\":1}", "corrupt", "4 MB of blanks");
	test_large("", "{\"a\":", 100000, "1", "limit", "objects in objects");
	return done_testing();
}
