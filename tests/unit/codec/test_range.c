
#include "../tap.h"
#include "base/rng.h"
#include "codec/range.h"

enum { N = 100000, CONTEXTS = 5 };

static unsigned char body[4 * N];

/* Return the value of decision i and its context. */
static int
decision(uint32_t seed, uint32_t i, unsigned *ctx)
{
	static const uint32_t p[CONTEXTS] = {
		1u << 31, 1u << 28, 1u << 20, 0xffff0000, 0
	};
	uint32_t r[4];

	rng_block(seed, 0, 0, i, r);
	*ctx = seed % 7 == 0 ? 4 : r[0] % CONTEXTS;
	return r[1] < p[*ctx];
}

static long
put(uint32_t seed, uint32_t n)
{
	struct range_bit b[CONTEXTS];
	struct range_put w;
	unsigned ctx;
	uint32_t i;
	int bit;

	range_start(b, CONTEXTS);
	w = range_put_start(body);
	for (i = 0; i < n; i++) {
		bit = decision(seed, i, &ctx);
		range_put_even(&w, b + ctx, bit);
	}
	return (long)range_put_end(w);
}

/* Write the code, *end bytes long, and the bytes after it up to len. */
static int
get(uint32_t seed, uint32_t n, size_t len, size_t *end)
{
	struct range_bit b[CONTEXTS];
	struct range_get r;
	unsigned ctx;
	uint32_t i;
	int good = 1;

	range_start(b, CONTEXTS);
	r = range_get_start(body, len);
	for (i = 0; i < n && good; i++) {
		int bit = decision(seed, i, &ctx);

		good = (i % 2 ? range_get_even(&r, b + ctx) :
		    range_get_bit(&r, b + ctx)) == bit;
	}
	*end = range_get_end(r);
	return good;
}

/* Return the bits of n draws with probability p above their entropy. */
static double
excess(double p, uint32_t n)
{
	struct range_bit b;
	struct range_put w;
	uint32_t r[4], i, ones = 0;
	double q;
	int bit;

	range_start(&b, 1);
	w = range_put_start(body);
	for (i = 0; i < n; i++) {
		rng_block(77, 0, 0, i, r);
		bit = r[0] < p * 4294967296.0;
		ones += (uint32_t)bit;
		range_put_even(&w, &b, bit);
	}
	q = (double)ones / n;
	return 8.0 * (double)range_put_end(w) / n +
	    q * log2(q) + (1 - q) * log2(1 - q);
}

int
main(void)
{
	uint32_t seed, n;
	size_t len, end;
	int good = 1, ends = 1;

	for (seed = 0; seed < 60; seed++) {
		n = seed < 40 ? seed * seed : N;
		len = (size_t)put(seed, n);
		good &= get(seed, n, len, &end);
		ends &= end == len;
		memset(body + len, seed % 2 ? 0xff : 0, 16);
		good &= get(seed, n, len + 16, &end);
		ends &= end == len;
	}
	ok(good, "what was put is got, %u sequences, whatever follows", seed);
	ok(ends, "and the end is found");
	len = (size_t)put(5, 1000);
	body[len - 1] ^= 1;
	(void)get(5, 1000, len, &end);
	ok(end != len, "another last bit is seen");
	(void)get(5, 1000, len / 2, &end);
	ok(end > len / 2, "half of it is read without harm");
	ok(excess(0.5, N) < 0.004, "p = 0.5: %.5f bit over", excess(0.5, N));
	ok(excess(0.1, N) < 0.004, "p = 0.1: %.5f bit over", excess(0.1, N));
	ok(excess(0.01, N) < 0.003, "p = 0.01: %.5f bit over",
	    excess(0.01, N));
	return done_testing();
}
