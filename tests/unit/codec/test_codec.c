/*
 * Properties of every codec: names, bounds, sizes, exactness, and damaged bodies. A single
 * codec's properties are in its own test. ACE_DAMAGE=N tries only every N-th body.
 */
#include "../../normal.h"
#include "../tap.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "kern/kern.h"

enum { MAXN = 5000 };

static const char *const specs[] = {
	"f32", "f16", "exact", "q8", "sign",
	"topk:0.01", "topk:0.5", "topk:1", "topk:0.2:q2", "topk:0.05:mag",
	 "chunk:64/4096:q2", "chunk:1/16",
	"qsgd:1", "qsgd:127",
	"ecq:0.004", "ecq:0.001", "ecq:1e-05",
	"tcq:0.004", "tcq:0.0006", "tcq:1e-05", "tcq:1e-38",
	"lowrank:2", "lowrank:64", "nonzero", NULL
};

static const struct codec_ctx ctx = { 7, 3, 11, 64, 128 };
static uint32_t every = 1;

/* Kinds of test data; kind_name names them. */
enum { GAUSS, TAILS, SPARSE, ZERO, EQUAL, SUBNORMAL, OUTLIER, HUGE_ALL, BITS,
	KINDS };
static const char *const kind_name[] = {
	"gaussian", "heavy tails", "sparse", "zero", "equal", "subnormal",
	"one outlier", "huge", "any finite bits"
};

static float
value(int kind, uint32_t i)
{
	uint32_t r[4];

	rng_block(17, 0, (uint32_t)kind, i, r);
	switch (kind) {
	case GAUSS:
		return 1e-3f * (float)normal(99, 0, 0, i);
	case TAILS:
		return 1e-4f * (float)normal(99, 0, 0, i) *
		    expf(2 * (float)normal(99, 0, 0, i + 1000000));
	case SPARSE:
		return r[0] % 50 == 0 ? (float)normal(99, 0, 0, i) : 0.0f;
	case ZERO:
		return r[0] % 2 ? -0.0f : 0.0f;
	case EQUAL:
		return -0.3f;
	case SUBNORMAL:
		return bytes_f32(r[0] & 0x807fffff);
	case OUTLIER:
		return i == 5 ? 3e38f : 1e-3f * (float)normal(99, 0, 0, i);
	case HUGE_ALL:
		return bytes_f32((r[0] & 0x80ffffff) | 0x7e000000);
	default:
		return (r[0] >> 23 & 255) == 255 ? 0.0f : bytes_f32(r[0]);
	}
}

static void
fill(float *x, size_t n, int kind)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = value(kind, (uint32_t)i);
}

/* Encode x and decode it into y; return the length of the body, or -1 if that fails, the body
 * exceeds codec_bound, or the encoder reports other values than y. */
static long
trip(const char *spec, const float *x, float *y, size_t n, struct buf *out)
{
	struct codec_plan p;
	struct err e = ERR_INIT;
	float *shown = malloc(4 * n + 1);
	uint8_t param;
	int good = shown != NULL;

	memset(shown, 0x55, 4 * n);
	out->n = 0;
	if (codec_parse(spec, &p, &e) < 0 ||
	    codec_encode_after(&p, &ctx, NULL, x, n, NULL, out, &param,
	    shown, &e) < 0 || out->n > codec_bound(&p, n) ||
	    codec_decode(p.codec, param, &ctx, out->p, out->n, y, n, &e) < 0) {
		(void)printf("# %s, %zu values: %s\n", spec, n, ERR_MSG(&e));
		good = 0;
	} else if (memcmp(shown, y, 4 * n) != 0) {
		(void)printf("# %s, %zu values: the encoder tells others\n",
		    spec, n);
		good = 0;
	}
	free(shown);
	if (!good)
		return -1;
	return (long)out->n;
}

static double
nmse(const float *x, const float *y, size_t n)
{
	double d = 0, s = 0, t;
	size_t i;

	for (i = 0; i < n; i++) {
		t = (double)x[i] - (double)y[i];
		d += t * t;
		s += (double)x[i] * (double)x[i];
	}
	return s > 0 ? d / s : d;
}

/* Return 1 if the difference of a value and its decoded value must be exact in f32. */
static int
is_exact(uint32_t codec)
{
	return codec == CODEC_F32 || codec == CODEC_F16 || codec == CODEC_EXACT;
}

/* Data of each size and kind decode to finite values; zeros, gaussian values and heavy tails
 * with an NMSE below 1.05, except in qsgd. */
static void
test_sizes(const char *spec)
{
	static const size_t size[] = {
		0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, MAXN
	};
	static float x[MAXN], y[MAXN];
	struct buf out = BUF_INIT;
	size_t i, j;
	int kind, good, exact;
	struct codec_plan p;

	(void)codec_parse(spec, &p, NULL);
	exact = is_exact(p.codec);
	for (kind = 0; kind < KINDS; kind++) {
		good = 1;
		for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
			fill(x, size[i], kind);
			for (j = 0; j < MAXN; j++)
				y[j] = NAN;
			good &= trip(spec, x, y, size[i], &out) >= 0;
			for (j = size[i]; j < MAXN; j++)
				good &= y[j] != y[j];
			for (j = 0; j < size[i]; j++)
				good &= isfinite(y[j]) != 0;
			for (j = 0; exact && j < size[i]; j++)
				good &= (double)(x[j] - y[j]) ==
				    (double)x[j] - (double)y[j];
			if ((kind == ZERO || kind == GAUSS || kind == TAILS) &&
			    p.codec != CODEC_QSGD)
				good &= nmse(x, y, size[i]) < 1.05;
		}
		ok(good, "%s: every size of %s%s", spec, kind_name[kind],
		    exact ? ", x - y exact" : "");
	}
	buf_release(&out);
}

/*
 * Limits of the bytes for zeros and for equal values, and of the errors of equal values
 * and of one huge value among small ones.  sign has the largest error for the huge value,
 * since it decodes all values of a block to one magnitude.
 */
TEST(test_hard)
{
	static const struct {
		const char *spec;
		long zero, equal;	/* bytes for 5000 zeros, 5000 equal values */
		double equal_nmse, outlier_nmse;
	} want[] = {
		{ "f32", 20000, 20000, 0, 0 },
		{ "exact", 700, 8, 0, 0 },
		{ "q8", 5314, 5314, 1e-5, 1e-5 },
		{ "sign", 665, 665, 1e-5, 1.01 },
		{ "topk:1", 1, 5019, 1e-7, 1e-7 },
		{ "topk:0.2:q2", 1, 390, 0.801, 1e-5 },
		{ "chunk:64/4096:q2", 1, 60, 0.99, 1e-5 },
		{ "qsgd:127", 4, 480, 0.06, 1e-9 },
		{ "ecq:0.001", 0, 4, 0, 1e-9 },
		{ "tcq:0.001", 0, 4, 0, 1e-9 },
		{ "lowrank:2", 0, 574, 1e-4, 1e-5 },
	};
	static float x[MAXN], y[MAXN];
	struct buf out = BUF_INIT;
	long zero, equal;
	double e, o;
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		fill(x, MAXN, ZERO);
		zero = trip(want[i].spec, x, y, MAXN, &out);
		fill(x, MAXN, EQUAL);
		equal = trip(want[i].spec, x, y, MAXN, &out);
		e = nmse(x, y, MAXN);
		fill(x, MAXN, OUTLIER);
		(void)trip(want[i].spec, x, y, MAXN, &out);
		o = nmse(x, y, MAXN);
		ok(zero >= 0 && zero <= want[i].zero && equal > 0 &&
		    equal <= want[i].equal && e <= want[i].equal_nmse &&
		    o <= want[i].outlier_nmse, "%s: zeros in %ld bytes, equal "
		    "ones in %ld, NMSE %.2g, with one huge %.2g", want[i].spec,
		    zero, equal, e, o);
	}
	buf_release(&out);
}

static void
test_tables(const char *spec)
{
	static float x[MAXN], y[MAXN], z[MAXN];
	struct buf a = BUF_INIT, b = BUF_INIT;
	const struct kern *const *l;
	int kind, good = 1;

	for (kind = 0; kind < KINDS; kind++) {
		fill(x, MAXN, kind);
		(void)setenv("ACE_KERNEL", "ref", 1);
		good &= trip(spec, x, y, MAXN, &a) >= 0;
		for (l = kern_list(); *l != NULL; l++) {
			(void)setenv("ACE_KERNEL", (*l)->name, 1);
			good &= trip(spec, x, z, MAXN, &b) >= 0;
			good &= a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
			good &= memcmp(y, z, sizeof(y)) == 0;
		}
	}
	unsetenv("ACE_KERNEL");
	ok(good, "%s: the same bytes from every kernel table", spec);
	buf_release(&a);
	buf_release(&b);
}

static int
said_why(int r, const struct err *e)
{
	return r == 0 || (r == -3 && (strncmp(ERR_MSG(e), "corrupt", 7) == 0 ||
	    strncmp(ERR_MSG(e), "mismatch", 8) == 0 ||
	    strncmp(ERR_MSG(e), "unsupported", 11) == 0));
}

/* Decode a damaged copy of the body, in memory of exactly its length. Return 1 if it decodes,
 * or is refused with a message that says why. */
static int
decode_damaged(const struct codec_plan *p, uint8_t param, const struct buf *b,
    uint32_t seed, float *y, size_t n)
{
	struct err e = ERR_INIT;
	uint32_t r[4], i, flips;
	size_t len = b->n, at;
	unsigned char *copy;
	int res, good;

	rng_block(seed, 1, 1, 0, r);
	if (r[0] % 4 == 0)
		len = r[1] % (b->n + 1);
	else if (r[0] % 4 == 1)
		len = b->n + r[1] % 9;
	copy = malloc(len != 0 ? len : 1);
	if (copy == NULL)
		return 0;
	memset(copy, (int)(r[2] & 255), len);
	memcpy(copy, b->p, len < b->n ? len : b->n);
	flips = r[2] >> 8 & 7;
	for (i = 0; i < flips && len != 0; i++) {
		rng_block(seed, 1, 2, i, r);
		at = r[3] % 3 == 0 && len > 8 ? r[0] % 8 : r[0] % len;
		copy[at] = (unsigned char)(r[3] % 5 == 0 ? r[1] :
		    copy[at] ^ (1u << r[2] % 8));
	}
	res = codec_decode(p->codec, param, &ctx, copy, len, y, n, &e);
	good = said_why(res, &e);
	free(copy);
	return good;
}

static void
test_damage(const char *spec)
{
	static const size_t size[] = { 1, 33, 300, 2000 };
	struct buf b = BUF_INIT;
	struct codec_plan p;
	uint32_t seed, k;
	float *x, *y;
	uint8_t param;
	size_t i, n;
	int good = 1;

	(void)codec_parse(spec, &p, NULL);
	for (i = 0; i < 8; i++) {
		n = size[i % 4];
		x = malloc(n * sizeof(*x));
		y = malloc(n * sizeof(*y));
		if (x == NULL || y == NULL)
			exit(1);
		fill(x, n, i < 4 ? GAUSS : SPARSE);
		b.n = 0;
		good &= codec_encode(&p, &ctx, x, n, &b, &param, NULL) == 0;
		for (seed = 0; seed < 1500; seed += every)
			good &= decode_damaged(&p, param, &b, seed, y, n);
		/* damaged bodies with other parameters */
		for (k = 0; k < 256; k += every)
			good &= decode_damaged(&p, (uint8_t)k, &b, k, y, n);
		free(x);
		free(y);
	}
	ok(good, "%s: damaged bodies decode, or give an error message", spec);
	buf_release(&b);
}

TEST(test_names)
{
	static const char *const bad[] = {
		"lowrank", "lowrank:0", "lowrank:65", "lowrank:1.5",
		"lowrank:4:q8", "topk:0.1:q4", "topk:0.1:", "topk::q2", "chunk", "chunk:64",
		"chunk:0/64", "chunk:2.5/64", "chunk:64/4000", "chunk:65/64",
		"chunk:1/2097152", "topk:0.1:sample",
		"topk:0.1:rice", "threshold:1", "tern", "nonzero:1",
		"", "f33", "f32:1", "F32", "none:1", "f32 ", ":", "topk",
		"topk:0", "topk:1.5", "topk:-1", "topk:x", "topk:nan", "topk:101%",
		"topk:0%", "topk:%", "qsgd", "qsgd:0", "qsgd:128", "qsgd:2.5",
		"lossless", "bf16", "q4", "exact:bf16", "exact:",
		"lowrank:0.5", "qsgd:0.5", "qsgd:126.5", "qsgd:4:mse", "chunk:1/8", "chunk:4/1",
		"chunk:1/16:q8", "topk:1000%", "topk:1:q2:f32", "none:", "q8:", "sign:1",
		"ecq:1.1e30", "ecq:nan", "ecq:1:mse",
		"ecq", "ecq:0", "ecq:-1", "ecq:inf",
		"tcq", "tcq:0", "tcq:-1", "tcq:inf", NULL
	};
	struct codec_plan p, again;
	struct err e;
	char s[CODEC_TEXT];
	uint32_t r[4];
	size_t i;
	int good;

	for (i = 0; specs[i] != NULL; i++)
		ok(codec_parse(specs[i], &p, NULL) == 0 &&
		    strcmp(codec_format(&p, s), specs[i]) == 0,
		    "%s parses and is written %s", specs[i], s);
	for (i = 0, good = 1; i < 2000; i++) {
		rng_block(5, 0, 0, (uint32_t)i, r);
		p = (struct codec_plan){ CODEC_ECQ, 0,
		    ldexpf((float)(r[0] >> 8 | 1u << 23), (int)(r[1] % 60) - 70) };
		again = p;
		good &= codec_parse(codec_format(&p, s), &again, NULL) == 0 &&
		    memcmp(&again.arg, &p.arg, sizeof(p.arg)) == 0;
	}
	ok(good, "a step is written so that it is read as the same f32");
	ok(codec_parse("none", &p, NULL) == 0 && p.codec == CODEC_NONE &&
	    strcmp(codec_format(&p, s), "none") == 0, "none");
	for (i = 0; bad[i] != NULL; i++) {
		memset(&e, 0, sizeof(e));
		ok(codec_parse(bad[i], &p, &e) == -ERR_USAGE && ERR_MSG(&e)[0],
		    "refused: %s", ERR_MSG(&e));
	}
	ok(codec_name(CODEC_F16) != NULL && codec_name(200) == NULL,
	    "codec_name");
}

/* The text of a codec's plan: several spellings of one plan, and the largest parameters. */
TEST(test_written)
{
	static const char *const same[][2] = {
		{ "topk:100%", "topk:1" }, { "topk:12.5%", "topk:0.125" },
		{ "topk:0.5%:q2", "topk:0.005:q2" },
		{ "topk:0.0000000000000001%", "topk:1e-18" },
		{ "topk:0.1:f16", "topk:0.1" },
		{ "topk:0.1:mag:q2", "topk:0.1:q2" },
		{ "ecq:1e30", "ecq:1e+30" },
		{ "chunk:16/16", "chunk:16/16" },
		{ "chunk:1048576/1048576", "chunk:1048576/1048576" },
		{ "chunk:1/1048576", "chunk:1/1048576" },
		{ "lowrank:1", "lowrank:1" }
	};
	struct codec_plan p = { 77, 0, 0 };
	char s[CODEC_TEXT];
	size_t i;

	ok(strcmp(codec_format(&p, s), "codec-77") == 0,
	    "a number nobody has is written as one: %s", s);
	for (i = 0; i < sizeof(same) / sizeof(*same); i++)
		ok(codec_parse(same[i][0], &p, NULL) == 0 &&
		    strcmp(codec_format(&p, s), same[i][1]) == 0,
		    "%s is %s", same[i][0], s);
	for (i = 0; i < CODEC_MAX; i++)
		if (codec_exact((uint32_t)i) != (i == CODEC_F32 ||
		    i == CODEC_NONZERO || i == CODEC_EXACT))
			break;
	ok(i == CODEC_MAX, "f32, nonzero and exact are exact");
	ok(strcmp(codec_name(CODEC_NONE), "none") == 0 &&
	    strcmp(codec_name(CODEC_TOPK), "topk") == 0, "names");
}

/* Plans with an unknown codec, or with a parameter that their codec refuses, are refused. */
TEST(test_parameters)
{
	static const struct codec_plan wrong[] = {
		{ 10, 0, 0 }, { 12, 0, 0 }, { 13, 0, 0 }, { 14, 0, 1 },
		{ 2, 0, 0 }, { 3, 0, 0 }, { 5, 0, 0 },
		{ CODEC_LOWRANK, 0, 0 }, { CODEC_QSGD, 0, 0 }, { CODEC_QSGD, 128, 0 },
		{ 200, 0, 0 }
	};
	const float x[3] = { 1, 2, 3 };
	struct buf b = BUF_INIT;
	uint8_t param;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err e = ERR_INIT;

		ok(codec_encode(&wrong[i], &ctx, x, 3, &b, &param, &e) ==
		    -ERR_USAGE && b.n == 0, "refused: %s", ERR_MSG(&e));
	}
	buf_release(&b);
}

/* Values that are not finite are refused, with and without statistics given. */
TEST(test_not_finite)
{
	static const float bad[] = { NAN, INFINITY, -INFINITY };
	enum { N = 64 };
	struct codec_plan p;
	struct kern_stat seen;
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	float x[N];
	uint8_t param;
	size_t i, k, wrong;

	for (i = 0; specs[i] != NULL; i++) {
		for (wrong = k = 0; k < 6; k++) {
			fill(x, N, GAUSS);
			x[7 * k + 3] = bad[k % 3];
			kern_get(NULL)->stat(x, N, &seen);
			err_clear(&e);
			wrong += codec_parse(specs[i], &p, NULL) < 0 ||
			    codec_encode_after(&p, &ctx, NULL, x, N,
			    k < 3 ? &seen : NULL, &b, &param, NULL, &e) !=
			    -ERR_DATA || e.kind != ERR_LIMIT || b.n != 0;
		}
		ok(wrong == 0, "%s: %s", specs[i], ERR_MSG(&e));
	}
	buf_release(&b);
}

TEST(test_refusals)
{
	struct codec_plan p = { CODEC_F32, 0, 0 };
	struct buf b = BUF_INIT;
	struct err e = ERR_INIT;
	float x[2] = { 1, -INFINITY };
	uint8_t param;

	ok(codec_encode(&p, &ctx, x, 1, &b, &param, &e) == 0 && b.n == 4 &&
	    codec_encode(&p, &ctx, x, 2, &b, &param, NULL) < 0 && b.n == 4 &&
	    codec_encode(&p, &ctx, x, 1, &b, &param, &e) == 0 && b.n == 8,
	    "what is refused leaves nothing behind what was there");
	memset(&e, 0, sizeof(e));
	ok(codec_decode(99, 0, &ctx, NULL, 0, x, 0, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "unsupported", 11) == 0, "%s", ERR_MSG(&e));
	memset(&e, 0, sizeof(e));
	ok(codec_decode(CODEC_F32, 9, &ctx, NULL, 0, x, 0, &e) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), "unsupported", 11) == 0, "%s", ERR_MSG(&e));
	buf_release(&b);
}

int
main(void)
{
	const char *n = getenv("ACE_DAMAGE");
	size_t i;

	every = n != NULL ? (uint32_t)strtoul(n, NULL, 10) : 1;
	every += every == 0;
	run_tests();
	for (i = 0; specs[i] != NULL; i++) {
		test_sizes(specs[i]);
		test_tables(specs[i]);
		test_damage(specs[i]);
	}
	return done_testing();
}
