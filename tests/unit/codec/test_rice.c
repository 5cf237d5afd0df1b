
#include "../test.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "codec/rice.h"

enum { SPAN = 400000 };

static uint32_t pos[SPAN], back[SPAN];
static unsigned char body[SPAN];

/* A set of density d / 65536, and the bits a position takes. */
static double
trip(uint32_t d, size_t span, size_t *count)
{
	struct bytes b = BYTES(body, 0);
	uint32_t r[4], i;
	size_t n = 0;

	for (i = 0; i < span; i++) {
		rng_block(1, 2, d, i, r);
		if ((r[0] & 0xffff) < d)
			pos[n++] = i;
	}
	*count = n;
	b.n = rice_put(body, pos, n);
	if (b.n > rice_bound(n, span) ||
	    rice_get(&b, back, n, span) < 0 || b.at != b.n ||
	    (n != 0 && memcmp(pos, back, n * sizeof(*pos)) != 0))
		return -1;
	return n != 0 ? 8.0 * (double)b.n / (double)n : 0;
}

TEST(test_density)
{
	/* bits measured for these densities in the format's design; entropy
	 * is 11.41, 8.09, 4.69 */
	static const struct { uint32_t d; double most; } t[] = {
		{ 66, 11.7 }, { 655, 8.3 }, { 6554, 4.9 }, { 32768, 2.1 },
		{ 65536, 1.1 }
	};
	double bits;
	size_t i, n;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bits = trip(t[i].d, SPAN, &n);
		ok(bits >= 0 && bits < t[i].most, "density %.4f: %.2f bits",
		    t[i].d / 65536.0, bits);
	}
	for (i = 0, bits = 0; i < 600 && bits >= 0; i++)
		bits = trip((uint32_t)(i * 109), i, &n);
	ok(bits >= 0, "every span up to 600");
}

TEST(test_known)
{
	/* gaps 2, 0, 5.  r = 0 is the shortest: 001 1 000001.  At r = 1 the
	 * low bits are 0 0 1, the quotients 1, 0, 2: 01 1 001.  Bits from the
	 * least significant one. */
	static const uint32_t p[] = { 2, 3, 9 };
	static const unsigned char want[] = { 0, 0x0c, 0x02 };
	static const unsigned char other[] = { 1, 0x04, 0x26 };
	struct bytes b = BYTES(other, 3);
	size_t n = rice_put(body, p, 3);

	ok(n == 3 && memcmp(body, want, 3) == 0, "three gaps by hand");
	ok(rice_get(&b, back, 3, 10) == 0 && b.at == 3 &&
	    memcmp(back, p, sizeof(p)) == 0, "and at another r");
}

TEST(test_extremes)
{
	static const uint32_t p[] = { 0, 0xfffffffe };
	struct bytes b = BYTES(body, 0);

	b.n = rice_put(body, p, 2);
	ok(rice_get(&b, back, 2, 0xffffffff) == 0 && back[0] == p[0] &&
	    back[1] == p[1], "the ends of 32 bits, %zu bytes", b.n);
	b.at = 0;
	ok(rice_get(&b, back, 2, 0xfffffffe) < 0, "past the span");
}

TEST(test_lies)
{
	static const unsigned char bad_r[] = { 31, 0, 0, 0, 0, 1 };
	static const unsigned char padded[] = { 1, 0x0c, 0x26 };
	static const unsigned char padded2[] = { 1, 0x04, 0x66 };
	static const unsigned char zeros[] = { 30, 1, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct bytes b = BYTES(bad_r, 6), c = BYTES(padded, 3);
	struct bytes d = BYTES(padded2, 3), f = BYTES(zeros, 10);
	struct bytes none = BYTES(NULL, 0);

	ok(rice_get(&b, back, 1, 1000) < 0, "r = 31");
	ok(rice_get(&c, back, 3, 1000) < 0, "padding of the low bits");
	ok(rice_get(&d, back, 3, 1000) < 0, "padding of the quotients");
	ok(rice_get(&f, back, 1, 1000) < 0, "a quotient without an end");
	ok(rice_get(&none, back, 1, 1000) < 0, "nothing");
	ok(rice_get(&none, back, 0, 1000) == 0, "nothing, as it should be");
	ok(rice_get(&none, back, 0, (size_t)UINT32_MAX + 1) < 0,
	    "positions that 32 bits do not hold");
}
