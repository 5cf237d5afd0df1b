#include "../test.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "codec/rice.h"

enum { N = 20000 };

static uint32_t v[N];
static unsigned char body[8 * N];

/* Code v[n], numbers up to most, for this mean, and read them back; return bits per number, or -1
 * if that fails. */
static double
trip(size_t n, uint64_t mean, uint32_t most)
{
	struct bits w = { .p = body };
	struct rice g = rice_start(mean, most);
	struct bytes b = BYTES(body, 0);
	struct rice_in in;
	size_t i, bad = 0;

	for (i = 0; i < n; i++)
		rice_put(&w, &g, v[i]);
	b.n = (size_t)(rice_put_end(&w) - body);
	in = rice_open(&b);
	g = rice_start(mean, most);
	for (i = 0; i < n; i++)
		bad += rice_get(&in, &g) != v[i];
	return bad != 0 || b.n > rice_bound(n, most) ||
	    rice_close(&in, &b) < 0 || b.at != b.n ? -1 :
	    8.0 * (double)b.n / (double)n;
}

/* Gaps of a random set of density d / 65536.  The entropies of a gap are 11.41, 8.09, 4.69, 2
 * and 0 bits; most: bits allowed per gap. */
TEST(test_density)
{
	static const struct { uint32_t d; double most; } t[] = {
		{ 66, 11.7 }, { 655, 8.35 }, { 6554, 4.95 }, { 32768, 2.3 },
		{ 65536, 1.01 }
	};
	uint32_t r[4], i, k;
	double bits;
	size_t n;

	for (k = 0; k < 5; k++) {
		memset(v, 0, sizeof(v));
		for (i = 0, n = 0; n < N; i++) {
			rng_block(1, 2, t[k].d, i, r);
			if ((r[0] & 0xffff) < t[k].d)
				n++;
			else
				v[n]++;
		}
		bits = trip(N, 65536 / t[k].d, 1 << 26);
		ok(bits >= 0 && bits < t[k].most, "density %.4f: %.2f bits",
		    t[k].d / 65536.0, bits);
	}
}

TEST(test_extremes)
{
	static const uint32_t far[] = { 0, UINT32_MAX, 0, 0, 0, 0, 0, 0, 0, 1,
		UINT32_MAX, UINT32_MAX - 1, 15, 16, 17 };

	memcpy(v, far, sizeof(far));
	ok(trip(15, 0, UINT32_MAX) > 0 && trip(15, UINT32_MAX, UINT32_MAX) > 0,
	    "the smallest and largest 32-bit numbers, with any mean");
	v[0] = 1;
	ok(trip(1, 1, 1) > 0 && body[0] == 2, "0 1: one is 1 at r = 0");
	v[0] = 6;
	ok(trip(1, 4, 15) > 0 && body[0] == 10, "0 1 0 1: six is 1 and 2 at r = 2");
}

/* Return 1 if p[n] is refused as the code of one number up to 255 with that mean. */
static int
refused(uint64_t mean, const unsigned char *p, size_t n)
{
	struct bytes b = BYTES(p, n);
	struct rice g = rice_start(mean, 255);
	struct rice_in in = rice_open(&b);

	(void)rice_get(&in, &g);
	return rice_close(&in, &b) < 0 || b.at != n;
}

TEST(test_lies)
{
	ok(!refused(0, (const unsigned char *)"\0\0\20", 3) &&
	    refused(0, (const unsigned char *)"\0\0\17", 3) &&
	    refused(4, (const unsigned char *)"\0\0\77", 3) &&
	    !refused(4, (const unsigned char *)"\0\0\100", 3),
	    "all bits only where the zeros would be 16 and more");
	ok(!refused(0, (const unsigned char *)"\2", 1) &&
	    refused(0, (const unsigned char *)"\6", 1), "padding bits that are not 0");
	ok(refused(0, (const unsigned char *)"", 0) &&
	    refused(0, (const unsigned char *)"\0", 1) &&
	    refused(0, (const unsigned char *)"\0\0", 2), "a body that is cut");
	ok(refused(0, (const unsigned char *)"\1\0", 2), "one byte too many");
}
