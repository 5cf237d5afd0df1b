/* GGUF: with any bit of the head changed and at any cut, all accepted tensors lie in the
 * file without overlaps or holes. */
#include <fcntl.h>

#include "base/bytes.h"
#include "files/dtype.h"
#include "files/gguf.h"
#include "format/ggml.h"

#include "../test.h"
#include "files.h"

enum { TENSORS = 3, MOST = 64 };

/* The tensors that gguf_read reported. */
struct told {
	size_t n;
	uint64_t at[MOST], end[MOST];
	unsigned kind;
};

static int
tell(void *arg, const struct schema_tensor *t, uint64_t at, struct err *e)
{
	struct told *x = arg;
	uint64_t n = 1;
	unsigned d;

	(void)e;
	for (d = 0; d < t->ndim; d++)
		n *= t->dim[d];
	if (x->n == MOST)
		return 0;
	x->at[x->n] = at;
	x->end[x->n++] = at + dtype_bytes(t->dtype, n);
	x->kind = t->kind;
	return 0;
}

static unsigned char *
text(unsigned char *p, const char *s)
{
	bytes_set64(p, strlen(s));
	memcpy(p + 8, s, strlen(s));
	return p + 8 + strlen(s);
}

static unsigned char *
tensor(unsigned char *p, const char *name, uint64_t dim, uint32_t type, uint64_t at)
{
	p = text(p, name);
	bytes_set32(p, 1);
	bytes_set64(p + 4, dim);
	bytes_set32(p + 12, type);
	bytes_set64(p + 16, at);
	return p + 24;
}

/* Make a small file; *head: the length of its head. */
static size_t
make(unsigned char *b, size_t *head)
{
	unsigned char *p = b + 24;

	memset(b, 0, 512);
	memcpy(b, "GGUF\3", 5);
	b[8] = TENSORS;
	b[16] = 2;
	p = text(p, "a");
	bytes_set32(p, 9);			/* an array of strings */
	bytes_set32(p + 4, 8);
	bytes_set64(p + 8, 1);
	p = text(p + 16, "xyz");
	p = text(p, "b");
	bytes_set32(p, 0);
	p += 5;
	p = tensor(p, "t", 8, 0, 0);
	p = tensor(p, "u", 2, 30, 32);
	p = tensor(p, "v", 64, 39, 64);		/* mxfp4: 34 bytes */
	*head = (size_t)(p - b);
	return (*head + 31) / 32 * 32 + 64 + 34;
}

static int
reads(const unsigned char *b, size_t n, struct told *x, struct err *e)
{
	struct gguf_keys keys = { NULL, 0, 0 };
	int fd, r;

	files_put("f", b, n);
	memset(x, 0, sizeof(*x));
	fd = open("f", O_RDONLY);
	r = fd < 0 ? -1 : gguf_is(fd, "f", e) == 1 ?
	    gguf_read(fd, "f", n, &keys, tell, x, e) : -ERR_DATA;
	gguf_release(&keys);
	(void)close(fd);
	return r;
}

/* Check that the tensors follow each other inside the file. */
static int
lies_well(const struct told *x, size_t n)
{
	size_t i;

	for (i = 0; i < x->n; i++)
		if (x->end[i] < x->at[i] || x->end[i] > n ||
		    (i > 0 && x->at[i] < x->end[i - 1]))
			return 0;
	return 1;
}

TEST(test_all)
{
	unsigned char b[512];
	struct err e = ERR_INIT;
	struct told x;
	size_t head, n = make(b, &head), base = (head + 31) / 32 * 32;

	ok(reads(b, n, &x, &e) == 0 && x.n == 3, "a good file: %s", ERR_MSG(&e));
	ok(x.at[0] == base && x.end[0] == base + 32 && x.at[1] == base + 32 &&
	    x.end[1] == base + 36 && x.at[2] == base + 64 && x.end[2] == n,
	    "its tensors, with their offsets");
	ok(x.kind == GGML_KIND + 39, "the kind of tensors with blocks");
}

TEST(test_bits)
{
	unsigned char b[512];
	size_t head, n = make(b, &head), i, wrong = 0, taken = 0;
	struct told x;
	int r;

	for (i = 0; i < 8 * head; i++) {
		struct err e = ERR_INIT;

		b[i / 8] ^= (unsigned char)(1 << i % 8);
		r = reads(b, n, &x, &e);
		b[i / 8] ^= (unsigned char)(1 << i % 8);
		taken += r == 0;
		if (r != 0 ? r != -ERR_DATA : !lies_well(&x, n))
			wrong++;
	}
	ok(wrong == 0, "%zu of %zu bits are refused as bad data, or harmless",
	    8 * head - wrong, 8 * head);
	ok(taken > 0 && taken < 4 * head, "%zu are harmless", taken);
}

TEST(test_cut)
{
	unsigned char b[512];
	size_t head, n = make(b, &head), i, wrong = 0;
	struct told x;

	for (i = 0; i < n; i++) {
		struct err e = ERR_INIT;

		wrong += reads(b, i, &x, &e) != -ERR_DATA;
	}
	ok(wrong == 0, "%zu of %zu cuts are refused", n - wrong, n);
}

/* The types of enum ggml_type in ggml.h, by number, up to GGML_TYPE_COUNT; NULL:
 * removed. */
TEST(test_types)
{
	static const char *const ggml[] = {
	    "f32", "f16", "q4_0", "q4_1", NULL, NULL, "q5_0", "q5_1", "q8_0",
	    "q8_1", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "q8_K",
	    "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s",
	    "iq2_s", "iq4_xs", "i8", "i16", "i32", "i64", "f64", "iq1_m",
	    "bf16", NULL, NULL, NULL, "tq1_0", "tq2_0", NULL, NULL, NULL,
	    "mxfp4", "nvfp4", "q1_0", "q2_0"
	};
	enum { COUNT = sizeof(ggml) / sizeof(ggml[0]) };
	const struct ggml_type *t;
	unsigned n, plain = 0, blocks = 0;

	for (n = 0; n < COUNT; n++) {
		t = ggml_type(n);
		ok(ggml[n] == NULL ? t == NULL : t != NULL &&
		    strcmp(t->name, ggml[n]) == 0, "%u: %s", n, ggml[n] == NULL ?
		    "none" : ggml[n]);
		if (t != NULL && t->values == 1)
			plain++;
		else if (t != NULL)
			blocks += strcmp(schema_kind_name(GGML_KIND + n),
			    t->name) == 0;
	}
	ok(plain == 8 && blocks == 27, "%u plain types, %u of blocks", plain, blocks);
	ok(ggml_type(42)->values == 64 && ggml_type(42)->bytes == 18,
	    "q2_0: a scale and 64 values of two bits");
	ok(COUNT == 43 && ggml_type(COUNT) == NULL &&
	    ggml_type(UINT64_MAX) == NULL, "all other types are unknown");
}
