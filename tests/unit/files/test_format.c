/* The file formats that ace writes: values read back are those written, bit for bit. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "files/dtype.h"

#include "files.h"

enum { TOTAL = 100000 };

static struct schema schema = SCHEMA_INIT;
static float value[TOTAL], back[TOTAL];

static void
add(struct schema *sc, const char *name, unsigned dtype, unsigned ndim,
    uint64_t a, uint64_t b)
{
	struct schema_tensor t;
	char copy[64];

	memset(&t, 0, sizeof(t));
	(void)snprintf(copy, sizeof(copy), "%s", name);
	t.name = copy;
	t.dtype = (uint8_t)dtype;
	t.ndim = (uint8_t)ndim;
	t.dim[0] = a;
	t.dim[1] = b;
	schema_guess(&t);
	if (schema_add(sc, &t, NULL) < 0)
		abort();
}

/* Fill tensors with values that their dtype holds exactly, using all bits. */
static void
fill(const struct schema *sc)
{
	unsigned char b[8];
	uint64_t i, lost = 0;
	uint32_t u[4];
	size_t k;

	for (k = 0; k < sc->n; k++)
		for (i = 0; i < sc->t[k].numel; i++) {
			rng_block(7, 0, (uint32_t)k, (uint32_t)i, u);
			bytes_set32(b, u[0]);
			bytes_set32(b + 4, u[1]);
			if (sc->t[k].dtype == SCHEMA_F64)
				bytes_set64(b, (uint64_t)(0x3fe00000 |
				    (u[0] & 0x800fffff)) << 32 |
				    (u[1] & 0xe0000000));
			if (sc->t[k].dtype >= SCHEMA_I32)
				bytes_set64(b, (uint64_t)((int64_t)(u[0] %
				    0x1ffffff) - 0xffffff));
			(void)dtype_to_f32(sc->t[k].dtype, 0, b,
			    &value[sc->t[k].base + i], 1, &lost);
		}
}

TEST(make_schema)
{
	add(&schema, "odd.f16", SCHEMA_F16, 1, 3, 0);
	add(&schema, "wide.f32", SCHEMA_F32, 2, 70, 1000);
	add(&schema, "scalar", SCHEMA_F32, 0, 0, 0);
	add(&schema, "none", SCHEMA_I32, 2, 0, 5);
	add(&schema, "d/\xc3\xbc \"quoted\\\"", SCHEMA_F64, 2, 40, 50);
	add(&schema, "b", SCHEMA_BF16, 1, 777, 0);
	add(&schema, "i", SCHEMA_I32, 1, 200, 0);
	add(&schema, "l", SCHEMA_I64, 1, 200, 0);
	add(&schema, "last none", SCHEMA_F32, 1, 0, 0);
	if (schema_finish(&schema, NULL) < 0 || schema.total > TOTAL)
		abort();
	fill(&schema);
}

/* Read in pieces of sizes unrelated to the file's own. */
static int
read_pieces(struct format_source *s, size_t total, struct err *e)
{
	size_t at = 0, n, k = 1;
	int r = 0;

	for (; at < total && r == 0; at += n) {
		n = total - at < k ? total - at : k;
		r = format_read(s, back + at, n, e);
		k = k * 3 % 10007;
	}
	return r < 0 ? r : format_end(s, e);
}

static void
round_trip(enum format_id f, const struct schema *sc,
    const struct format_sink_opts *o, const char *about)
{
	struct format_opts in = { .name = sc->t[0].name };
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	char why[256] = "";
	int r = files_write(f, "f", sc, value, o, &e), bf16 = 0;
	size_t i;

	memset(back, 0xa5, sizeof(back));
	if (f == FORMAT_RAW)
		memcpy(in.dim, sc->t[0].dim, sizeof(in.dim));
	in.ndim = sc->t[0].ndim;
	if (r == 0 && (r = format_open(&s, f, "f", &in, &e)) == 0)
		r = read_pieces(s, (size_t)sc->total, &e);
	ok(r == 0, "%s: %s", about, ERR_MSG(&e));
	if (r < 0)
		return;
	ok(memcmp(value, back, (size_t)sc->total * sizeof(*back)) == 0 &&
	    format_rounded(s) == 0, "every bit of every value");
	for (i = 0; i < sc->n; i++)
		bf16 |= sc->t[i].dtype == SCHEMA_BF16;
	if (f == FORMAT_SAFETENSORS || !bf16)
		ok(schema_diff(sc, format_schema(s), why) == 0,
		    "names, shapes and dtypes %s", why);
	format_close(s);
}

TEST(test_round_trips)
{
	struct schema one = SCHEMA_INIT, ints = SCHEMA_INIT;
	struct stat a, b;

	round_trip(FORMAT_SAFETENSORS, &schema, NULL, "safetensors");
	round_trip(FORMAT_NPZ, &schema, NULL, "npz, stored");
	add(&one, "only", SCHEMA_F32, 2, 300, 300);
	if (schema_finish(&one, NULL) < 0 || stat("f", &a) != 0)
		abort();
	fill(&one);
	round_trip(FORMAT_NPY, &one, NULL, "npy");
	round_trip(FORMAT_RAW, &one, NULL, "raw");
	ok(stat("f", &b) == 0 && b.st_size == 4 * 300 * 300, "a raw file has only the values");
	schema_release(&one);
	add(&ints, "a", SCHEMA_I64, 1, 90000, 0);
	if (schema_finish(&ints, NULL) < 0)
		abort();
	fill(&ints);
	round_trip(FORMAT_NPZ, &ints, NULL, "integers");
	schema_release(&ints);
}

/* The same values give the same npz file in every time zone. */
TEST(test_same)
{
	static unsigned char a[1 << 20], b[1 << 20];
	static const char *const zones[] = { "UTC", "Asia/Tokyo", "EST5EDT" };
	size_t i, n = 0, m;
	struct err e = ERR_INIT;

	fill(&schema);
	for (i = 0; i < 3; i++) {
		(void)setenv("TZ", zones[i], 1);
		if (files_write(FORMAT_NPZ, "f", &schema, value, NULL, &e) < 0)
			abort();
		m = files_get("f", i == 0 ? a : b, sizeof(a));
		if (i == 0)
			n = m;
		else
			ok(m == n && memcmp(a, b, n) == 0,
			    "the same npz in time zone %s", zones[i]);
	}
}

static void
refuse_write(enum format_id f, const struct schema *sc, const char *about)
{
	struct err e = ERR_INIT;
	int r = files_write(f, "refused", sc, value, NULL, &e);

	ok(r == -ERR_DATA && strncmp(ERR_MSG(&e), "unsupported: ", 13) == 0 &&
	    access("refused", F_OK) != 0, "%s: %s", about,
	    r == 0 ? "was written" : ERR_MSG(&e));
}

TEST(test_refused)
{
	struct schema h = SCHEMA_INIT, m = SCHEMA_INIT;
	unsigned i;

	add(&h, "h", SCHEMA_F16, 1, 2, 0);
	if (schema_finish(&h, NULL) < 0)
		abort();
	value[0] = 1;
	value[1] = 70000;
	for (i = FORMAT_SAFETENSORS; i <= FORMAT_NPY; i++)
		refuse_write((enum format_id)i, &h, "70000 as f16");
	refuse_write(FORMAT_NPY, &schema, "nine tensors in an npy");
	add(&m, "__metadata__", SCHEMA_F32, 1, 1, 0);
	if (schema_finish(&m, NULL) < 0)
		abort();
	refuse_write(FORMAT_SAFETENSORS, &m, "a tensor called __metadata__");
	schema_release(&h);
	schema_release(&m);
	add(&m, "../w", SCHEMA_F32, 1, 1, 0);
	if (schema_finish(&m, NULL) < 0)
		abort();
	refuse_write(FORMAT_NPZ, &m, "an entry that leaves its folder");
	schema_release(&m);
}

/* Raw values on standard input are read from its current position. */
TEST(test_middle)
{
	static const float v[4] = { 1, 2, 3, 4 };
	static const struct format_opts none;
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	float x[2] = { 0 };
	int fd, was = dup(STDIN_FILENO);

	files_put("f", v, sizeof(v));
	fd = open("f", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || lseek(fd, 8, SEEK_SET) != 8 || dup2(fd, STDIN_FILENO) < 0)
		abort();
	ok(format_open(&s, FORMAT_RAW, NULL, &none, &e) == 0 &&
	    format_schema(s)->total == 2 && format_read(s, x, 2, &e) == 0 &&
	    format_end(s, &e) == 0 && x[0] == 3 && x[1] == 4,
	    "a file from its middle on: %s", ERR_MSG(&e));
	format_close(s);
	(void)close(fd);
	if (was < 0 || dup2(was, STDIN_FILENO) < 0 || close(was) < 0)
		(void)close(STDIN_FILENO);
}

/* The index in an error counts from the tensor's first value. */
TEST(test_far)
{
	enum { N = 90000, AT = 80000 };
	struct schema sc = SCHEMA_INIT;
	struct format_source *s = NULL;
	struct err e = ERR_INIT;
	unsigned char d[8];
	size_t i;
	FILE *f;

	add(&sc, "a", SCHEMA_F16, 1, 10, 0);
	add(&sc, "h", SCHEMA_F16, 1, N, 0);
	if (schema_finish(&sc, NULL) < 0)
		abort();
	memset(value, 0, sizeof(value));
	value[10 + AT] = -70000;
	ok(files_write(FORMAT_SAFETENSORS, "refused", &sc, value, NULL, &e) ==
	    -ERR_DATA && strcmp(ERR_MSG(&e), "unsupported: tensor 'h' at index 80000: "
	    "-70000 does not fit f16: write f32 with --f32") == 0, "written: %s", ERR_MSG(&e));
	schema_release(&sc);
	add(&sc, "w", SCHEMA_F64, 1, N, 0);
	err_clear(&e);
	value[10 + AT] = 0;
	if (schema_finish(&sc, NULL) < 0 || files_write(FORMAT_NPY, "f", &sc,
	    value, NULL, &e) < 0 || (f = fopen("f", "r+b")) == NULL)
		abort();
	for (i = 0; i < 8; i++)
		d[i] = i < 6 ? 0x99 : i == 6 ? 0xb9 : 0x3f;	/* just below 0.1 */
	if (fseek(f, -8 * (N - AT), SEEK_END) != 0 ||
	    fwrite(d, 1, 8, f) != 8 || fclose(f) != 0)
		abort();
	ok(files_read(&s, FORMAT_NPY, "f", NULL, back, TOTAL, &e) ==
	    -ERR_DATA && strstr(ERR_MSG(&e), "tensor 'data' at index 80000 in 'f': "
	    "f64 0.0999") != NULL, "read: %s", ERR_MSG(&e));
	format_close(s);
	schema_release(&sc);
}

TEST(test_guess)
{
	ok(format_guess("a/b.safetensors") == FORMAT_SAFETENSORS &&
	    format_guess("b.npz") == FORMAT_NPZ &&
	    format_guess("b.npy") == FORMAT_NPY &&
	    format_guess("b.raw") == FORMAT_RAW &&
	    format_guess("b.f32") == FORMAT_RAW && format_guess("b") == -1 &&
	    format_guess("b.bin") == FORMAT_RAW &&
	    format_guess(".npz") == -1 && format_guess("npz") == -1 &&
	    format_guess(NULL) == -1, "formats by the ends of names");
}

int
main(void)
{
	run_tests();
	schema_release(&schema);
	return done_testing();
}
