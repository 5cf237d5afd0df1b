/*
 * Philox 4x32-10: the known answers of Random123 1.09 (examples/kat_vectors); rng_fill
 * returns the same numbers as rng_block.
 */
#include "../test.h"
#include "base/rng.h"

static int
is(const uint32_t r[4], uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return r[0] == a && r[1] == b && r[2] == c && r[3] == d;
}

TEST(test_rng)
{
	uint32_t r[4], many[4 * 23];
	int good = 1;
	size_t n, i;

	rng_block(0, 0, 0, 0, r);
	ok(is(r, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8), "zeros");
	rng_block(UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, r);
	ok(is(r, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd), "ones");
	rng_block(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3, 0x243f6a88, r);
	ok(is(r, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1), "pi");
	for (n = 0; n <= 23; n++) {
		memset(many, 0, sizeof(many));
		rng_fill(1, 2, 3, 0xfffffff0, many, n);
		for (i = 0; i < 23; i++) {
			rng_block(1, 2, 3, 0xfffffff0 + (uint32_t)i, r);
			good &= i < n ? memcmp(r, many + 4 * i, 16) == 0 :
			    many[4 * i] == 0 && many[4 * i + 3] == 0;
		}
	}
	ok(good, "rng_fill is rng_block, up to 23 times");
	ok(rng_unit(0) == 0 && rng_unit(UINT32_MAX) < 1, "[0, 1)");
}
