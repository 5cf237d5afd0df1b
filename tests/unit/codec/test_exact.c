/*
 * Codec exact: words of every form come back, with old words and without; small changes
 * take few bytes; invalid bodies are refused.
 */
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "codec/exact_bits.h"
#include "kern/kern.h"
#include "trip.h"

enum { N = 70000 };

static unsigned char old[8 * N], new[8 * N], got[8 * N];
static struct buf body;

static uint64_t
random64(uint32_t seed, uint32_t i)
{
	uint32_t r[4];

	rng_block(seed, 1, 0, i, r);
	return (uint64_t)r[0] << 32 | r[1];
}

/* Set old and new to n words: normal values as f32, bf16 or f64; random bits otherwise. */
static void
weights(unsigned form, size_t n, double sigma)
{
	size_t i, size = exact_size(form);
	uint64_t v;
	double x;

	for (i = 0; i < n; i++) {
		v = random64(3, (uint32_t)i);
		x = sigma * normal(7, 0, 0, (uint32_t)i);
		if (form == EXACT_F32 || form == EXACT_BF16)
			v = bytes_u32((float)x) >> (form == EXACT_BF16 ? 16 : 0);
		else if (form == EXACT_F64)
			memcpy(&v, &x, sizeof(v));
		else
			v >>= 64 - 8 * size;
		memcpy(old + i * size, &v, size);
	}
	memcpy(new, old, n * size);
}

/* Change about one in m words: the lowest bit or (anything 1) all bits. */
static void
change(size_t n, size_t size, size_t m, int anything)
{
	size_t i;
	uint64_t v;

	for (i = 0; i < n; i++) {
		v = random64(5, (uint32_t)i);
		if (v % m != 0)
			continue;
		if (anything)
			memcpy(new + i * size, &v, size);
		else
			new[i * size] ^= 1;
	}
}

static int
differ(size_t size, size_t n)
{
	size_t i;
	int k = 0;

	for (i = 0; i < n; i++)
		k += memcmp(old + i * size, new + i * size, size) != 0;
	return k;
}

static int
there_and_back(unsigned form, size_t n, int with)
{
	struct err e = ERR_INIT;
	size_t size = exact_size(form);
	uint8_t param;
	int r;

	body.n = 0;
	r = exact_put(form, with ? old : NULL, new, n, &body, &param, &e);
	if (r < 0 || body.n > exact_bound(form, n) ||
	    r != (with ? differ(size, n) : (int)n))
		return 0;
	if (r == 0)
		return memcmp(old, new, n * size) == 0 && (with || n == 0);
	memset(got, 0x55, n * size);
	r = exact_get(param, form, with ? old : NULL, body.p, body.n, got, n, &e);
	if (r < 0) {
		(void)printf("# form %u, %zu words: %s\n", form, n, ERR_MSG(&e));
		return 0;
	}
	if (memcmp(got, new, n * size) != 0)
		return 0;
	/* in place */
	memcpy(got, old, n * size);
	return exact_get(param, form, got, body.p, body.n, got, n, &e) == 0 &&
	    memcmp(got, new, n * size) == 0;
}

TEST(forms)
{
	static const size_t m[] = { 1, 2, 7, 100, 5000, 1000000 };
	static const size_t some[] = { 0, 1, 2, 7, 8, 15, 16, 17, 63, 300, 4097, N };
	unsigned form, i, k, with, any, good;

	for (form = 0; form < EXACT_NFORM; form++) {
		good = 1;
		for (k = 0; k < sizeof(some) / sizeof(*some); k++)
			for (i = 0; i < 6; i++)
				for (any = 0; any < 2; any++) {
					weights(form, some[k], 0.02);
					change(some[k], exact_size(form), m[i],
					    (int)any);
					for (with = 0; with < 2; with++)
						good &= (unsigned)there_and_back(
						    form, some[k], (int)with);
				}
		ok(good, "form %u: the same words, given others and whole", form);
	}
}

/* Change bf16 weights by normal numbers of standard deviation `rate', and code the changes.
 * Return the bytes of the code, and set *changed to the number of weights that differ. */
static size_t
step(double rate, size_t *changed)
{
	size_t i;
	double x, y;
	uint32_t u;
	uint8_t param;

	for (i = *changed = 0; i < N; i++) {
		x = 0.02 * normal(1, 0, 0, (uint32_t)i);
		y = x + rate * normal(2, 0, 0, (uint32_t)i);
		u = bytes_u32((float)x) + 0x8000;
		bytes_set16(old + 2 * i, (uint16_t)(u >> 16));
		u = bytes_u32((float)y) + 0x8000;
		bytes_set16(new + 2 * i, (uint16_t)(u >> 16));
		*changed += memcmp(old + 2 * i, new + 2 * i, 2) != 0;
	}
	body.n = 0;
	return exact_put(EXACT_BF16, old, new, N, &body, &param, NULL) ==
	    (int)*changed ? body.n : SIZE_MAX;
}

/* Return the bytes of a code that does not use exponents: the entropy of which k of N words
 * change, and one bit per changed word for the direction. */
static double
blind(size_t k)
{
	double p = (double)k / (double)N;

	return -((double)k * log2(p) + (double)(N - k) * log2(1 - p)) / 8 + (double)k / 8;
}

TEST(few_bytes)
{
	size_t k, n;

	n = step(1e-6, &k);
	ok(k > 0 && (double)n < 0.87 * blind(k), "rate 1e-6: %zu changed, %zu bytes", k, n);
	n = step(1e-5, &k);
	ok(n < 2 * N / 17, "rate 1e-5: %zu changed, %zu bytes", k, n);
	weights(EXACT_INT8, N, 0);
	change(N, 1, 1000, 0);
	ok(there_and_back(EXACT_INT8, N, 1) && body.n < 170,
	    "one byte in a thousand: %zu bytes", body.n);
}

/* Bytes hold two values: change lower halves, then upper ones in every second of these bytes. */
TEST(halves)
{
	struct err e = ERR_INIT;
	size_t i, k, below;
	uint8_t param;

	weights(EXACT_INT8, N, 0);
	change(N, 1, 100, 0);
	ok(there_and_back(EXACT_INT8, N, 1), "changes in lower halves");
	below = body.n;
	for (i = k = 0; i < N; i++)
		if (new[i] != old[i] && k++ % 2 == 0)
			new[i] = old[i] ^ 0x10;
	ok(there_and_back(EXACT_INT8, N, 1), "halves of bytes come back");
	ok(body.n < below + k / 4, "for a bit or so each, which half: %zu changes, "
	    "%zu bytes, %zu", k, body.n, below);
	body.n = 0;
	ok(exact_put(EXACT_INT8, old, new, N, &body, &param, &e) == (int)k &&
	    param == (EXACT_HALVES | EXACT_GIVEN), "the parameter says that halves are coded");
	ok(exact_get(param, EXACT_F8E4M3, old, body.p, body.n, got, N, &e) ==
	    -ERR_DATA && e.kind == ERR_MISMATCH, "which bytes of another type lack");
	err_clear(&e);
	for (i = k = 0; i < N; i++)
		if (i % 61 == 0)
			new[i] = old[i] ^ (unsigned char)(k++ % 16 << 4 | 1);
	ok(there_and_back(EXACT_INT8, N, 1), "each half to each other one");
	body.n = 0;
	ok(exact_put(EXACT_INT8, old, new, N, &body, &param, &e) > 0 &&
	    param == EXACT_GIVEN + EXACT_INT8, "whole bytes, as both halves change");
	for (i = k = 0; i < N; i++)
		if (i % 61 == 0)
			new[i] = old[i] ^ (unsigned char)((1 + k++ % 15) << 4);
	ok(there_and_back(EXACT_INT8, N, 1), "the upper one to each other one");
	body.n = 0;
	ok(exact_put(EXACT_INT8, old, new, N, &body, &param, &e) > 0 &&
	    param == (EXACT_HALVES | EXACT_GIVEN), "coded as halves, of which one changes");
	err_clear(&e);
	ok(exact_get(EXACT_HALVES, EXACT_INT8, old, body.p, body.n, got, N,
	    &e) == -ERR_DATA && e.kind == ERR_MISMATCH, "halves need old words");
}

/* Words with a common scale change together: 8 adjacent words in each 4096. */
TEST(close_ones)
{
	size_t i, k;

	weights(EXACT_INT8, N, 0);
	for (i = k = 0; i < N; i++)
		if (i % 4096 < 8) {
			new[i] ^= 1;
			k++;
		}
	ok(there_and_back(EXACT_INT8, N, 1) && 8 * body.n < 7 * k,
	    "%zu close to another one take %zu bytes", k, body.n);
}

TEST(never_more_than_whole)
{
	size_t whole;
	unsigned form;
	int good = 1;

	for (form = 0; form < EXACT_NFORM; form++) {
		weights(form, N, 0.02);
		memset(new, 0, N * exact_size(form));
		good &= there_and_back(form, N, 0);
		whole = body.n;
		good &= there_and_back(form, N, 1) && body.n <= whole;
		change(N, exact_size(form), 1, 1);
		good &= there_and_back(form, N, 0);
		whole = body.n;
		good &= there_and_back(form, N, 1) && body.n <= whole;
	}
	ok(good, "everything changes, to 0 or to anything: as many bytes as whole");
}

/* The example of ace-stream(5). */
TEST(example)
{
	static const uint16_t a[] = { 0x3f80, 0x3f80, 0x0001, 0xbf80 };
	static const uint16_t b[] = { 0x3f80, 0x3f81, 0x0001, 0xbf80 };
	static const unsigned char is[] = { 0x03, 0x8c, 0x05, 0,
	    0x01, 0x20, 0x0f, 0xe0 };
	size_t i;
	uint8_t param;

	for (i = 0; i < 4; i++) {
		bytes_set16(old + 2 * i, a[i]);
		bytes_set16(new + 2 * i, b[i]);
	}
	body.n = 0;
	ok(exact_put(EXACT_BF16, old, new, 4, &body, &param, NULL) == 1 &&
	    param == (EXACT_BF16 | EXACT_GIVEN) && body.n == sizeof(is) &&
	    memcmp(body.p, is, sizeof(is)) == 0, "the bytes of the page");
}

TEST(refused)
{
	struct err e = ERR_INIT;
	uint8_t param;
	size_t i, bad = 0, bit;
	int r;

	weights(EXACT_BF16, 3000, 0.02);
	change(3000, 2, 30, 0);
	body.n = 0;
	(void)exact_put(EXACT_BF16, old, new, 3000, &body, &param, NULL);
	ok(exact_get(param, EXACT_F16, old, body.p, body.n, got, 3000, &e) ==
	    -ERR_DATA && e.kind == ERR_MISMATCH, "another form of the words is a mismatch");
	err_clear(&e);
	ok(exact_get(param, EXACT_BF16, NULL, body.p, body.n, got, 3000, &e) ==
	    -ERR_DATA && e.kind == ERR_MISMATCH, "without old words it is a mismatch");
	for (i = 0; i < body.n; i++)
		bad += exact_get(param, EXACT_BF16, old, body.p, i, got, 3000,
		    NULL) != -ERR_DATA;
	ok(bad == 0, "a body cut at any byte is corrupt");
	if (buf_put(&body, "", 1, NULL) == 0)
		ok(exact_get(param, EXACT_BF16, old, body.p, body.n, got, 3000,
		    NULL) == -ERR_DATA, "a body with one more byte is corrupt");
	body.n--;
	for (i = bad = 0; i < body.n; i++)
		for (bit = 0; bit < 8; bit++) {
			body.p[i] ^= (unsigned char)(1 << bit);
			r = exact_get(param, EXACT_BF16, old, body.p, body.n,
			    got, 3000, NULL);
			bad += r != 0 && r != -ERR_DATA;
			body.p[i] ^= (unsigned char)(1 << bit);
		}
	ok(bad == 0, "a bit of it flipped: it is something else, or corrupt");
}

/* Decode the body is[len], given n old bf16 words that all equal `bits'. Return the result
 * of exact_get. */
static int
reads(uint16_t bits, size_t n, const unsigned char *is, size_t len)
{
	size_t i;

	for (i = 0; i < n; i++)
		bytes_set16(old + 2 * i, bits);
	return exact_get(EXACT_BF16 | EXACT_GIVEN, EXACT_BF16, old, is, len, got, n,
	    NULL);
}
#define READS(bits, n, ...) reads(bits, n, (const unsigned char[]){ __VA_ARGS__ }, \
	sizeof((const unsigned char[]){ __VA_ARGS__ }))

/* Bodies with wrong heads and ends.  A body is the final state and the bits, whose last byte
 * is read first. */
#define STATE 0, 0, 1, 0
TEST(lies)
{
	ok(READS(0x3f80, 3, STATE, 0x10, 0x0f, 0xe0) == 0 &&
	    READS(0x3f80, 3, STATE, 0x10, 0x2f, 0xe0) == -ERR_DATA,
	    "levels up to the last exponent of the type");
	ok(READS(0x0001, 3, STATE, 0x1f, 0xa0, 0) == 0 &&
	    READS(0x0001, 3, STATE, 0x1f, 0xc0, 0) == -ERR_DATA,
	    "254 levels at most");
	ok(READS(0x3f80, 3, STATE, 0, 0x0f, 0xe0) == 0 &&
	    READS(0x3f80, 3, STATE, 0, 0, 0x0f, 0xe0) == -ERR_DATA,
	    "more bytes than are decoded");
	ok(READS(0x3f80, 3, 0, 1, 0, 0x0f, 0xe0) == -ERR_DATA &&
	    READS(0x3f80, 3, 0xe0) == -ERR_DATA, "fewer bytes than are decoded");
	ok(READS(0x3f80, 3, 1, 0, 1, 0, 0, 0x0f, 0xe0) == -ERR_DATA,
	    "a final state of the decoder that is not the first state");
	ok(READS(0x3f80, 3, STATE, 0x80, 0x0f, 0xe0) == -ERR_DATA,
	    "other bits in the last byte");
	ok(READS(0x3f80, 3, STATE, 0, 0x60, 0x0f, 0xe0) == -ERR_DATA,
	    "more changes than words");
	ok(READS(0x4000, 3, STATE, 0x20, 0x0f, 0xe0) == -ERR_DATA,
	    "more changes than words of a level");
}

/* More exponents than levels: the first level covers all lower exponents. */
TEST(more_exponents_than_levels)
{
	weights(EXACT_INT64, N, 0);	/* any bits */
	change(N, 8, 2, 0);
	ok(there_and_back(EXACT_F64, N, 1), "2,048 exponents, 254 levels");
}

/* Three words for each of 253 exponents change only their sign: the uncoded bits of the
 * changes would take more bytes than the words. */
TEST(bits_longer_than_words)
{
	enum { FEW = 3 * 253 };
	uint32_t i, u;

	for (i = 0; i < FEW; i++) {
		u = (i / 3 + 1) << 23 | (uint32_t)(random64(11, i) & 0x7fffff);
		bytes_set32(old + 4 * i, u);
		bytes_set32(new + 4 * i, u ^ 0x80000000);
	}
	ok(there_and_back(EXACT_F32, FEW, 1), "one bit per word would not save bytes");
}

TEST(as_a_codec)
{
	static float x[N], y[N];
	struct codec_plan plan = { CODEC_EXACT, 0, 0 };
	struct codec_ctx ctx = { 0, 0, 0, 1, 0 };
	struct err e = ERR_INIT;
	uint8_t param;
	size_t i;

	for (i = 0; i < N; i++)
		x[i] = (float)normal(1, 0, 0, (uint32_t)i);
	body.n = 0;
	ok(codec_encode(&plan, &ctx, x, N, &body, &param, &e) == 0 &&
	    codec_decode(CODEC_EXACT, param, &ctx, body.p, body.n, y, N, &e) ==
	    0 && memcmp(x, y, sizeof(x)) == 0, "f32 are exact");
	ok(codec_decode(CODEC_EXACT, EXACT_BF16, &ctx, body.p, body.n, y, N,
	    &e) == -ERR_DATA && e.kind == ERR_MISMATCH, "other words are for ace-patch");
	bytes_put_f32(new, x, N);	/* ace-diff appends the same bytes */
	ok(exact_put(EXACT_F32, NULL, new, N, &body, &param, NULL) == N &&
	    memcmp(body.p, body.p + body.n / 2, body.n / 2) == 0, "as in a whole model");
}

/* Write bits beyond the end of a buffer, and read bits beyond the end of a body. */
TEST(bits_beyond)
{
	unsigned char bits[24] = { [12] = 0xee, [14] = 0xff, [15] = 0xff, [16] = 0x0f };
	struct bits_put b = { bits, bits + 4, 0, 0 };
	struct bits_get g = { bits + 16, 2, 0 }, h = { bits + 17, 1, 0 };
	unsigned i;

	for (i = 0; i < 100; i++)
		bits_put(&b, ~(uint64_t)0, 13);
	ok(b.p == bits + 4 && bits[12] == 0xee, "bits beyond the buffer are not written");
	ok(bits_get(&g, 20) == 0xffff && bits_get(&g, 56) == 0 && g.at == 76,
	    "bits beyond the end are read as 0");
	ok(bits_get_count(&h, 4) > 4, "a number above the most, for others to refuse");
}

/* Check marks, marked and ranked (kern.h) of every kernel table: all lengths below 200 and
 * some up to 9000. */
TEST(marks)
{
	enum { LONG = 9000 };
	const struct kern *const *k;
	uint64_t mark[LONG / 64 + 1];
	uint32_t before[LONG / 64 + 2], sum, place[LONG], every;
	unsigned char *p;
	size_t n, i, m;
	int good;

	for (k = kern_list(); *k != NULL; k++) {
		good = 1;
		for (n = 0; n <= LONG; n += n < 200 ? 1 : 1100) {
			p = malloc(n + 1);	/* so that a sanitizer sees reads beyond */
			for (i = 0; i < n; i++)
				p[i] = (unsigned char)(random64(9, (uint32_t)i) % 3 * 127);
			(*k)->marks(mark, before, p, n, 254);
			for (i = sum = 0; i < n; i++) {
				good &= i % 64 != 0 || before[i / 64] == sum;
				good &= (int)(mark[i / 64] >> i % 64 & 1) == (p[i] == 254);
				sum += p[i] == 254;
			}
			good &= before[(n + 63) / 64] == sum;
			good &= n % 64 == 0 || mark[n / 64] >> n % 64 == 0;
			for (every = 1; every < 600; every += every < 9 ? 1 : 500) {
				for (m = 0; m * every < sum; m++)
					place[m] = (uint32_t)m * every;
				(*k)->marked(place, m, mark, before, n);
				for (i = m = 0, sum = 0; i < n; i++)
					if (p[i] == 254 && sum++ % every == 0)
						good &= place[m++] == i;
				(*k)->ranked(place, m, mark, before);
				for (i = 0; i < m; i++)
					good &= place[i] == i * every;
			}
			free(p);
		}
		ok(good, "%s: which bytes are some value", (*k)->name);
	}
}
