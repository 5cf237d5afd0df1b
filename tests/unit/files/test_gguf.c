/* GGUF made by hand: every type, both versions, texts that are kept, tensors in
 * the order of their data, and where the data begins. */
#include "base/alloc.h"
#include "base/bytes.h"
#include "format/text.h"

#include "files.h"

static struct buf b;
static struct err e;

static void
put(const void *p, size_t n)
{
	if (buf_put(&b, p, n, NULL) < 0)
		abort();
}

static void
u32(uint32_t v)
{
	unsigned char p[4];

	bytes_set32(p, v);
	put(p, 4);
}

static void
u64(uint64_t v)
{
	unsigned char p[8];

	bytes_set64(p, v);
	put(p, 8);
}

static void
text(const char *s)
{
	u64(strlen(s));
	put(s, strlen(s));
}

static void
head(uint32_t version, uint64_t tensors, uint64_t pairs)
{
	b.n = 0;
	put("GGUF", 4);
	u32(version);
	u64(tensors);
	u64(pairs);
}

/* A tensor of one dimension, of ggml's type, its data at so many bytes. */
static void
tensor(const char *name, uint64_t n, uint32_t type, uint64_t at)
{
	text(name);
	u32(1);
	u64(n);
	u32(type);
	u64(at);
}

/* Zeros up to a multiple. */
static void
align(size_t to)
{
	while (b.n % to != 0)
		put("", 1);
}

static struct format_source *
opened(float *x, size_t cap)
{
	struct format_source *s = NULL;
	int r;

	err_clear(&e);
	files_put("f.gguf", b.p, b.n);
	if ((r = files_read(&s, FORMAT_GGUF, "f.gguf", NULL, x, cap, &e)) == 0)
		return s;
	format_close(s);
	return NULL;
}

static void
refused(const char *want)
{
	float x[64];
	struct format_source *s = opened(x, 64);

	ok(s == NULL && e.code == ERR_DATA && strstr(ERR_MSG(&e), want) != NULL,
	    "%s", s == NULL ? ERR_MSG(&e) : want);
	format_close(s);
}

static void
test_types(void)
{
	static const struct {
		uint32_t type;
		unsigned dtype;
		size_t size;
		unsigned char two[8];	/* the number 2 */
	} t[] = {
		{ 0, SCHEMA_F32, 4, { 0, 0, 0, 0x40 } },
		{ 1, SCHEMA_F16, 2, { 0, 0x40 } },
		{ 24, SCHEMA_I8, 1, { 2 } }, { 25, SCHEMA_I16, 2, { 2 } },
		{ 26, SCHEMA_I32, 4, { 2 } }, { 27, SCHEMA_I64, 8, { 2 } },
		{ 28, SCHEMA_F64, 8, { 0, 0, 0, 0, 0, 0, 0, 0x40 } },
		{ 30, SCHEMA_BF16, 2, { 0, 0x40 } }
	};
	struct format_source *s;
	float x[1] = { 0 };
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		head(2 + i % 2, 1, 0);
		tensor("w", 1, t[i].type, 0);
		align(32);
		put(t[i].two, t[i].size);
		s = opened(x, 1);
		ok(s != NULL && x[0] == 2 &&
		    format_schema(s)->t[0].dtype == t[i].dtype,
		    "%s, version %d: %s", schema_dtype_name(t[i].dtype),
		    (int)(2 + i % 2), ERR_MSG(&e));
		format_close(s);
	}
	head(1, 0, 0);
	refused("is GGUF of version 1");
	head(4, 0, 0);
	refused("is a later GGUF than version 3");
	head(3u << 24, 0, 0);
	refused("is a big-endian GGUF file");
}

/* The file's order is that of the data; empty tensors take no place. */
static void
test_order(void)
{
	const float v[3] = { 1, 2, 3 };
	struct format_source *s;
	const struct schema *sc;
	float x[3] = { 0 };

	head(3, 3, 0);
	tensor("second", 2, 0, 32);
	tensor("none", 0, 0, 32);
	tensor("first", 1, 0, 0);
	align(32);
	put(v, 4);
	align(32);
	put(v + 1, 8);
	align(32);
	s = opened(x, 3);
	sc = s != NULL ? format_schema(s) : NULL;
	ok(s != NULL && sc->n == 3 && strcmp(sc->t[0].name, "first") == 0 &&
	    strcmp(sc->t[1].name, "none") == 0 &&
	    strcmp(sc->t[2].name, "second") == 0 &&
	    memcmp(x, v, sizeof(v)) == 0, "in the order of the data: %s",
	    ERR_MSG(&e));
	format_close(s);
	put("", 1);
	refused("goes on after its last value");
}

/* Eight dimensions, the fastest first. */
static void
test_shape(void)
{
	struct format_source *s;
	float x[6];
	unsigned i;

	head(3, 1, 0);
	text("w");
	u32(8);
	for (i = 0; i < 8; i++)
		u64(i == 0 ? 3 : i == 1 ? 2 : 1);
	u32(0);
	u64(0);
	align(32);
	for (i = 0; i < 6; i++)
		u32(0);
	s = opened(x, 6);
	ok(s != NULL && format_schema(s)->t[0].ndim == 8 &&
	    format_schema(s)->t[0].dim[7] == 3 &&
	    format_schema(s)->t[0].dim[6] == 2 &&
	    format_schema(s)->t[0].dim[0] == 1, "eight dimensions, turned "
	    "round: %s", ERR_MSG(&e));
	format_close(s);
}

/* general.alignment says where the data and each tensor begin. */
static void
aligned(uint32_t to, const char *want)
{
	const float v[2] = { 5, 6 };
	struct format_source *s;
	float x[2] = { 0 };

	head(3, 2, 1);
	text("general.alignment");
	u32(4);
	u32(to);
	tensor("a", 1, 0, 0);
	tensor("b", 1, 0, to);
	if (want != NULL) {
		refused(want);
		return;
	}
	align(to);
	put(v, 4);
	align(to);
	put(v + 1, 4);
	align(to);
	s = opened(x, 2);
	ok(s != NULL && memcmp(x, v, sizeof(v)) == 0,
	    "an alignment of %lu: %s", (unsigned long)to, ERR_MSG(&e));
	format_close(s);
}

static const char *
kept(const struct format_source *s, const char *key)
{
	const char *v = s != NULL ? text_get(format_note(s), key) : NULL;

	return v != NULL ? v : "";
}

static void
test_texts(void)
{
	char most[1025];
	struct format_source *s;

	memset(most, 'm', 1024);
	most[1024] = '\0';
	head(3, 0, 6);
	text("general.long");
	u32(8);
	text(most);
	most[1023] = '\0';
	text("general.most");
	u32(8);
	text(most);
	text("general.empty");
	u32(8);
	text("");
	text("general.count");
	u32(4);
	u32(7);
	text("other.name");
	u32(8);
	text("no");
	text("general.name");
	u32(8);
	text("tiny");
	s = opened(NULL, 0);
	ok(s != NULL && format_note(s)->n == 2 &&
	    strcmp(kept(s, "gguf.general.name"), "tiny") == 0,
	    "texts of the group general are kept: %s", ERR_MSG(&e));
	ok(strcmp(kept(s, "gguf.general.most"), most) == 0,
	    "up to 1023 bytes");
	format_close(s);
}

static void
test_names(void)
{
	char name[257];
	struct format_source *s;
	int n;

	memset(name, 'n', 256);
	for (n = 256; n >= 255; n--) {
		name[n] = '\0';
		head(3, 1, 0);
		tensor(name, 0, 0, 0);
		align(32);
		if (n == 256) {
			refused("limit: the name of a tensor in 'f.gguf' has "
			    "256 bytes");
			continue;
		}
		s = opened(NULL, 0);
		ok(s != NULL && strcmp(format_schema(s)->t[0].name, name) == 0,
		    "a name of 255 bytes: %s", ERR_MSG(&e));
		format_close(s);
	}
}

/* As many tensors as there may be, and one more. */
static void
test_many(void)
{
	struct format_source *s;
	char name[16];
	int n, i;

	for (n = 131073; n >= 131072; n--) {
		head(3, (uint64_t)n, 0);
		for (i = 0; i < n; i++) {
			(void)snprintf(name, sizeof(name), "%d", i);
			tensor(name, 0, 0, 0);
		}
		align(32);
		if (n == 131073) {
			refused("limit: 'f.gguf' has more than 131072 tensors");
			continue;
		}
		s = opened(NULL, 0);
		ok(s != NULL && format_schema(s)->n == 131072,
		    "131072 tensors: %s", ERR_MSG(&e));
		format_close(s);
	}
}

int
main(void)
{
	static const char *const names[] = { "f.gguf", NULL };
	char dir[32];

	files_enter(dir);
	test_types();
	test_order();
	test_shape();
	aligned(8, NULL);
	aligned(64, NULL);
	aligned(1 << 20, NULL);
	aligned(0, "has an alignment of 0");
	aligned(36, "has an alignment of 36");
	aligned((1 << 20) + 8, "has an alignment of 1048584");
	test_texts();
	test_names();
	test_many();
	buf_release(&b);
	files_leave(dir, names);
	return done_testing();
}
