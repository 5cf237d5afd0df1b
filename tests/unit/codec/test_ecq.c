/*
 * ECQ compared with its bounds: Shannon's for normal values, the order-0 entropy of its
 * symbols, and the savings if rows and columns have different scales.
 */
#include "../tap.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"

enum { N = 65536, COLS = 512 };

static float x[N], y[N];
static struct buf out;

static double
normal(uint32_t key, uint32_t i)
{
	uint32_t r[4];

	rng_block(31, 0, key, i, r);
	return sqrt(-2 * log((r[0] + 1.0) / 4294967297.0)) *
	    cos(6.283185307179586 * r[1] / 4294967296.0);
}

struct result {
	double bits, nmse, entropy;	/* bits per value */
};

static int
up(const void *a, const void *b)
{
	uint32_t u, v;

	memcpy(&u, a, 4);
	memcpy(&v, b, 4);
	return u < v ? -1 : u > v;
}

/*
 * Return the adaptive code length of the symbols by Krichevsky and Trofimov: for K
 * symbols, of which the i-th occurs n_i times among n,
 * -log2 (prod_i G(n_i + 1/2) / G(1/2)) G(K/2) / G(n + K/2)
 */
static double
entropy(void)
{
	static float s[N];
	double bits = 0, k = 0;
	size_t i, j;

	memcpy(s, y, sizeof(s));
	qsort(s, N, sizeof(*s), up);
	for (i = 0; i < N; i = j, k++) {
		for (j = i; j < N && up(s + i, s + j) == 0; j++)
			;
		bits -= lgamma((double)(j - i) + 0.5) - lgamma(0.5);
	}
	return (bits + lgamma((double)N + k / 2) - lgamma(k / 2)) / log(2) / (double)N;
}

static int
run(double step, uint32_t cols, struct result *r)
{
	struct codec_plan p = { CODEC_ECQ, 0, (float)step };
	struct codec_ctx ctx = { 1, 2, 3, cols, 0 };
	struct err e = ERR_INIT;
	double d = 0, s = 0, t;
	uint8_t param;
	size_t i;

	out.n = 0;
	if (codec_encode(&p, &ctx, x, N, &out, &param, &e) < 0 ||
	    codec_decode(p.codec, param, &ctx, out.p, out.n, y, N, &e) < 0) {
		(void)printf("# %s\n", ERR_MSG(&e));
		return -1;
	}
	for (i = 0; i < N; i++) {
		t = (double)x[i] - (double)y[i];
		d += t * t;
		s += (double)x[i] * (double)x[i];
	}
	r->bits = 8.0 * (double)out.n / (double)N;
	r->nmse = d / s;
	return 0;
}

/* Find the step that takes `bits' per value. */
static int
at_bits(double bits, uint32_t cols, struct result *r)
{
	double lo = 1e-6, hi = 1e3, step;
	int i;

	for (i = 0; i < 30; i++) {
		step = sqrt(lo * hi);
		if (run(step, cols, r) < 0)
			return -1;
		if (r->bits > bits)
			lo = step;
		else
			hi = step;
	}
	r->entropy = entropy();
	return 0;
}

TEST(test_normal)
{
	static const double rate[] = { 0.1, 0.25, 0.5, 1, 2, 3, 4 };
	struct result r;
	double gap;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(1e-3 * normal(1, (uint32_t)i));
	for (i = 0; i < 7; i++) {
		if (!ok(at_bits(rate[i], COLS, &r) == 0, "%g bit", rate[i]))
			continue;
		gap = r.bits - 0.5 * log2(1 / r.nmse);
		ok(gap < 0.28, "normal, %.3f bit: NMSE %.4g, %.3f bit over "
		    "Shannon's bound", r.bits, r.nmse, gap);
		ok(r.bits < 1.01 * r.entropy, "%.2f %% over the entropy",
		    100 * (r.bits / r.entropy - 1));
	}
}

/* Rows and columns of different scales, as in a matrix's gradient. */
TEST(test_matrix)
{
	struct result with, without;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(normal(2, (uint32_t)i) *
		    exp(normal(3, (uint32_t)i / COLS) +
		    normal(4, (uint32_t)i % COLS)));
	ok(at_bits(0.5, COLS, &with) == 0 && at_bits(0.5, 1, &without) == 0,
	    "with columns and without");
	ok(with.bits < 0.85 * with.entropy,
	    "a matrix takes %.1f %% less than its entropy",
	    100 * (1 - with.bits / with.entropy));
	ok(with.nmse < 0.85 * without.nmse, "NMSE %.4f, without columns %.4f",
	    with.nmse, without.nmse);
}

/* Columns whose scales differ by factors of thousands: the coder must not start small
 * columns at the mean of all values. */
TEST(test_columns)
{
	struct result r;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(normal(5, (uint32_t)i) *
		    exp(3 * normal(6, (uint32_t)i % COLS)));
	ok(at_bits(3, COLS, &r) == 0, "unlike columns");
	ok(r.bits < 0.80 * r.entropy, "unlike columns take %.1f %% less than "
	    "their entropy", 100 * (1 - r.bits / r.entropy));
}

TEST(test_small)
{
	struct result r;
	int good;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)(1e-3 * normal(1, (uint32_t)i));
	ok(run(0.1, COLS, &r) == 0 && out.n == 0, "all in the dead zone: empty");
	x[77] = 3e38f;
	good = run(0.1, COLS, &r) == 0 && y[77] == 3e38f;
	ok(good && out.n < 80, "one huge value: exact, %zu bytes", out.n);
	x[78] = -1e38f;
	good = run(1e-3, COLS, &r) == 0 && y[78] == -1e38f;
	ok(good && fabsf(y[100] - x[100]) < 1e-3f && out.n < N * 22 / 80,
	    "two among many: the others keep their bits, %zu bytes", out.n);
	for (i = 0; i < N; i++)
		x[i] = 1e20f * (float)normal(5, (uint32_t)i);
	ok(run(1e-9, COLS, &r) == 0 && out.n == 3 + 4 * N && r.nmse == 0,
	    "a step far too small: as they are");
	memset(x, 0, sizeof(x));
	ok(run(1e-9, COLS, &r) == 0 && out.n == 0, "zeros: empty");
	for (i = 0; i < N; i++)
		x[i] = -0.3f;
	ok(run(1e-2, COLS, &r) == 0 && out.n == 4 && r.nmse == 0,
	    "all equal: one value");
	for (i = 0; i < N; i++)
		x[i] = i / 4096 % 4 == 3 ? 1.0f : 0.0f;
	good = run(0.5, COLS, &r) == 0 && r.nmse == 0;
	ok(good && out.n < N / 4 / 8 + 450,
	    "stripes that are there or not, but for the sign: %zu bytes",
	    out.n);
}

static int
decode(const unsigned char *p, size_t len, size_t n)
{
	struct codec_ctx ctx = { 1, 2, 3, COLS, 0 };
	struct err e = ERR_INIT;

	return codec_decode(CODEC_ECQ, 0, &ctx, p, len, y, n, &e);
}

TEST(test_lies)
{
	/* step 1, deltas 0, the mode from the left, level 20, symbols up to 3, one state,
	 * then nothing: a code of zeros */
	unsigned char b[64] = { 0x00, 0x80, 0x3f, 0, 0, 64 + 20, 3 };

	ok(decode(b, 0, 100) == 0, "empty");
	ok(decode(b, 1, 100) < 0 && decode(b, 2, 100) < 0 &&
	    decode(b, 6, 100) < 0, "cut in the header");
	ok(decode(b, 7, 100) < 0, "no code");
	b[5] = 43;
	ok(decode(b, 64, 100) < 0, "no such level");
	b[5] = 192 + 20;
	ok(decode(b, 64, 100) < 0, "no such mode");
	b[5] = 128 + 20;
	ok(decode(b, 64, 100) < 0, "rows of %d, and 100 values", COLS);
	b[5] = 64 + 20;
	b[6] = 0;
	ok(decode(b, 64, 100) < 0, "no symbols");
	b[6] = 5 << 4 | 3;
	ok(decode(b, 64, 100) < 0, "32 states");
	b[6] = 15;
	b[7] = 15;
	ok(decode(b, 64, 100) < 0, "escapes without end");
	b[6] = 3;
	b[7] = 0;
	b[2] = 0x00;
	b[1] = 0x01;
	ok(decode(b, 8, 100) < 0, "a step too small");
	b[2] = 0x7f;
	ok(decode(b, 8, 100) < 0, "a step that is infinite");
	b[2] = 0xbf;
	b[1] = 0x80;
	ok(decode(b, 8, 100) < 0, "a step below 0");
	memset(b, 0, 3);
	ok(decode(b, 63, 100) < 0, "stored, too short");
	b[1] = 0x80;
	b[2] = 0x3f;
	memset(b + 7, 0xff, 57);
	ok(decode(b, 64, 100) < 0, "noise");
	b[5] = 20;
	ok(decode(b, 64, 100) < 0, "and plain");
	b[6] = 4 << 4 | 3;
	ok(decode(b, 64, 100) < 0, "and 16 states");
}

/* The initial probabilities of the tables, by the rule in ace-stream(5). */
TEST(test_table)
{
	double u, v;
	int c, bad = 0;

	for (c = 0; c < KERN_ECQ_CONTEXTS; c++) {
		u = exp2(c / 2.0 - 39 / 4.0);
		v = u + sqrt(u) / 8;
		bad += kern_ecq_some[c] != (uint16_t)lrint(65536 * v / (1 + v));
	}
	ok(bad == 0, "where the tables begin");
}

/* All kernel tables make the same body and decode it to the same values. */
static void
same(const char *what, double step, uint32_t cols, size_t n, uint64_t offset)
{
	struct codec_plan p = { CODEC_ECQ, 0, (float)step };
	struct codec_ctx ctx = { 1, 2, 3, cols, offset };
	const struct kern *const *l = kern_list();
	static struct buf ref;
	static float z[N];
	struct err e = ERR_INIT;
	int i, j, good = 1;
	uint8_t param;

	for (i = 0; l[i] != NULL; i++) {
		(void)setenv("ACE_KERNEL", l[i]->name, 1);
		out.n = 0;
		good &= codec_encode(&p, &ctx, x, n, &out, &param, &e) == 0;
		if (i == 0) {
			ref.n = 0;
			good &= buf_put(&ref, out.p, out.n, &e) == 0;
		}
		good &= out.n == ref.n && memcmp(out.p, ref.p, out.n) == 0;
		for (j = 0; l[j] != NULL; j++) {
			(void)setenv("ACE_KERNEL", l[j]->name, 1);
			good &= codec_decode(p.codec, param, &ctx, out.p,
			    out.n, y, n, &e) == 0;
			if (i + j == 0)
				memcpy(z, y, n * sizeof(*y));
			good &= memcmp(y, z, n * sizeof(*y)) == 0;
		}
	}
	(void)unsetenv("ACE_KERNEL");
	ok(good, "%s, %zu values in rows of %u, step %g: %zu bytes, the same "
	    "in %d tables", what, n, (unsigned)cols, step, ref.n, i);
	if (cols == 1 && n == 16)
		buf_release(&ref);
}

/* With a byte changed, all kernel tables refuse a body or decode it alike. */
TEST(test_changed)
{
	struct codec_plan p = { CODEC_ECQ, 0, 1 };
	struct codec_ctx ctx = { 1, 2, 3, 96, 0 };
	const struct kern *const *l = kern_list();
	static float z[N];
	struct err e = ERR_INIT;
	int i, t, r, first = 0, good = 1, refused = 0;
	unsigned char *body;
	size_t len, n = 9999;
	uint8_t param;

	for (i = 0; i < N; i++)
		x[i] = (float)normal(6, (uint32_t)i);
	for (i = 0; i < 400; i++) {
		p.arg = i % 4 == 3 ? 0.01f : (float)(1 << i % 4);
		out.n = 0;
		good &= codec_encode(&p, &ctx, x, n, &out, &param, &e) == 0;
		len = out.n;
		body = malloc(len);	/* allocated to its last byte, so that a
					 * sanitizer sees reads beyond it */
		if (body == NULL)
			break;
		memcpy(body, out.p, len);
		body[i % 2 ? (size_t)i % 16 : (size_t)i * 7919 % len] ^=
		    (unsigned char)(1 << i % 8);
		for (t = 0; l[t] != NULL; t++) {
			(void)setenv("ACE_KERNEL", l[t]->name, 1);
			r = codec_decode(p.codec, 0, &ctx, body, len, y, n, &e);
			if (t == 0) {
				first = r;
				refused += r < 0;
				memcpy(z, y, n * sizeof(*y));
			}
			good &= r == first && (r < 0 ||
			    memcmp(y, z, n * sizeof(*y)) == 0);
		}
		free(body);
	}
	(void)unsetenv("ACE_KERNEL");
	ok(good && refused > 200, "a bit changed: alike in all tables, %d "
	    "refused", refused);
}

TEST(test_tables)
{
	static const uint32_t cols[] = { 512, 96, 7, 1000, 1 };
	static const size_t n[] = { N, 5000, 2049, 333, 16 };
	static const double step[] = { 4, 1, 0.1, 0.001 };
	size_t i, j;

	for (i = 0; i < N; i++)
		x[i] = (float)(normal(7, (uint32_t)i) *
		    exp(normal(8, (uint32_t)i / 96) +
		    2 * normal(9, (uint32_t)i % 96)));
	x[3] = 1e9f;
	for (i = 0; i < 5; i++)
		for (j = 0; j < 4; j++)
			same("a matrix", step[j], cols[i], n[i], 11 * i);
	for (i = 0; i < N; i++)
		x[i] = (float)normal(1, (uint32_t)i);
	for (i = 0; i < 5; i++)
		for (j = 0; j < 4; j++)
			same("normal", step[j], cols[i], n[i], 0);
}

/* Requantising without decoding gives the same bits, signs of zeros included. */
TEST(test_again)
{
	static const double step[] = { 30, 4, 1, 0.1, 0.001, 1e-5 };
	static const size_t n[] = { N, 5001, 2049, 333, 17, 3, 1 };
	struct codec_ctx ctx = { 1, 2, 3, 96, 5 };
	static float z[N];
	struct codec_plan p;
	unsigned wrong = 0, failed = 0, all = 0;
	size_t i, j, k;
	uint8_t param;

	for (k = 0; k < 4; k++) {
		for (i = 0; i < N; i++)
			x[i] = k == 3 ? -2.5f : (float)(normal(7, (uint32_t)i) *
			    (k == 0 ? 1 : exp(normal(8, (uint32_t)i / 96))));
		x[2] = k == 2 ? -3e9f : x[2];	/* beyond the range of the quantiser */
		for (i = 0; i < 6; i++)
			for (j = 0; j < 7; j++, all++) {
				p = (struct codec_plan){ CODEC_ECQ, 0,
				    (float)step[i] };
				out.n = 0;
				memset(y, 255, sizeof(y));
				memset(z, 255, sizeof(z));
				failed += codec_encode(&p, &ctx, x, n[j], &out,
				    &param, NULL) < 0 || codec_decode(CODEC_ECQ,
				    param, &ctx, out.p, out.n, y, n[j], NULL) < 0 ||
				    codec_again(&p, &ctx, x, NULL, param, out.p,
				    out.n, z, n[j], NULL) < 0;
				wrong += memcmp(y, z, sizeof(y)) != 0;
			}
	}
	ok(failed == 0 && wrong == 0, "%u codes: what they say is known without "
	    "decoding (%u failed, %u differ)", all, failed, wrong);
}

int
main(void)
{
	run_tests();
	buf_release(&out);
	return done_testing();
}
