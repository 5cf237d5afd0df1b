
#include "../test.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "codec/rans.h"

enum { N = 65536 };

static unsigned char s[N], back[N], body[2 * N + 4096];

static size_t
count_all(uint32_t count[RANS_SYMBOLS], size_t n, double *bits)
{
	size_t i;

	memset(count, 0, RANS_SYMBOLS * sizeof(*count));
	for (i = 0; i < n; i++)
		count[s[i]]++;
	for (i = 0, *bits = 0; i < RANS_SYMBOLS; i++)
		if (count[i] != 0)
			*bits -= count[i] * log2((double)count[i] / (double)n);
	return n;
}

/* Code and decode n bytes, uniform if shape > 31, else geometric over 32 - shape values. *entropy:
 * bits per byte; *guess: estimated size. Return the bits above the entropy, or -1 on failure. */
static double
trip(size_t n, unsigned shape, double *entropy, size_t *guess)
{
	uint32_t count[RANS_SYMBOLS], r[4];
	struct bytes b = BYTES(body, 0);
	double bits;
	size_t i;

	for (i = 0; i < n; i++) {
		rng_block(3, shape, 0, (uint32_t)i, r);
		s[i] = shape > 31 ? (unsigned char)r[0] : (unsigned char)(127 +
		    __builtin_clz(r[0] | 1u << shape));
	}
	(void)count_all(count, n, &bits);
	b.n = rans_put(body, s, n, count);
	memset(back, 0x55, n);
	*entropy = bits / (double)n;
	*guess = rans_estimate(count, n);
	if (b.n > rans_bound(n) || rans_get(&b, back, n) < 0 || b.at != b.n ||
	    memcmp(s, back, n) != 0)
		return -1;
	return (double)b.n * 8 - bits;
}

/* Return rans_get's result for a table of one symbol with count 4096, or nearly, and the four
 * final states; state `off' is one too large. */
static int
single(const char *table, size_t len, int off)
{
	struct bytes b = BYTES(body, len + 16);
	int i;

	memcpy(body, table, len);
	for (i = 0; i < 4; i++)
		bytes_set32(body + len + 4 * i, 0x10000u + (i == off));
	return rans_get(&b, back, 9);
}

TEST(test_lies)
{
	/* good, as counts of 256 symbols: a zero and six more, 4096, a zero and 247 more */
	static const char good[] = "\0\6\x80\x20\0\xf7\1";
	static const char less[] = "\0\6\xff\x1f\0\xf7\1";
	static const char two[] = "\0\6\x80\x20\1\0\xf6\1";
	static const char more[] = "\0\6\x80\x20\0\xf8\1";
	struct bytes b = BYTES(body, 25);
	int i, bad = 0;

	ok(single(good, 7, -1) == 0 && back[0] == 7 && back[8] == 7,
	    "one symbol by hand");
	for (i = 0; i < 4; i++)
		bad += single(good, 7, i) < 0;
	ok(bad == 4, "each of the four states ends where the encoder began");
	ok(single(less, 7, -1) < 0 && single(two, 8, -1) < 0,
	    "counts that do not sum to 4096");
	ok(single(more, 7, -1) < 0, "more counts than symbols");
	(void)single(good, 7, -1);
	memset(body + 23, 0, 2);
	ok(rans_get(&b, back, 9) < 0, "one word too many");
	b = (struct bytes)BYTES(body, 24);
	ok(rans_get(&b, back, 9) < 0, "half a word");
}

TEST(test_codes)
{
	unsigned shape;
	double over, entropy;
	size_t n, guess, i;
	struct bytes b;
	int good = 1;

	for (shape = 1; shape < 34; shape += 8) {
		over = trip(N, shape, &entropy, &guess);
		ok(over >= 0 && over < 0.01 * entropy * (double)N + 6000,
		    "%.2f bits a symbol, %.0f bits over", entropy, over);
		ok(fabs((double)guess * 8 - (entropy * (double)N + over)) <
		    0.01 * (double)N * entropy + 4000, "the estimate, %zu bytes", guess);
	}
	for (n = 1; n < 300; n++)
		good &= trip(n, 20, &entropy, &guess) >= 0;
	ok(good, "every length up to 300");
	/* a single symbol has probability 1 and costs only the table and the states */
	memset(s, 7, N);
	{
		uint32_t count[RANS_SYMBOLS] = { 0 };

		count[7] = N;
		n = rans_put(body, s, N, count);
		b = (struct bytes)BYTES(body, n);
		ok(n < 30 && rans_get(&b, back, N) == 0 &&
		    memcmp(s, back, N) == 0, "one symbol: %zu bytes", n);
	}
	(void)trip(1000, 20, &entropy, &guess);
	for (i = 0, good = 1; i < 200; i++) {
		b = (struct bytes)BYTES(body, i);
		good &= rans_get(&b, back, 1000) < 0;
	}
	ok(good, "a stream that is cut");
}
