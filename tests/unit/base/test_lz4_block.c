/* A packed block unpacks to exactly the bytes packed; other sizes are refused. */
#include "../test.h"
#include "base/lz4_block.h"

TEST(test_lz4)
{
	enum { N = 1000 };
	unsigned char text[N], packed[2 * N], out[N + 1];
	size_t i, n;

	for (i = 0; i < N; i++)
		text[i] = (unsigned char)(i % 7 * (i / 100));
	n = lz4_block_pack(packed, sizeof(packed), text, N);
	ok(n != 0 && n < N, "%zu bytes for %d", n, N);
	ok(lz4_block_unpack(out, N, packed, n) == 0 && memcmp(out, text, N) == 0, "unpacked");
	ok(lz4_block_unpack(out, N + 1, packed, n) == -1, "a size 1 too large is refused");
	ok(lz4_block_unpack(out, N - 1, packed, n) == -1, "a size 1 too small is refused");
	ok(lz4_block_unpack(out, N, packed, n - 1) == -1, "a block that was cut is refused");
	ok(lz4_block_pack(packed, n - 1, text, N) == 0, "too small a buffer for packing");
	ok(lz4_block_pack(packed, n, text, N) == n, "a buffer of exactly the packed size");
}
