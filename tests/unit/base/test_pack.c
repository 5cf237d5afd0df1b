/* A packed block gives as many bytes as were packed; more or fewer are refused. */
#include "../tap.h"
#include "base/pack.h"

int
main(void)
{
	enum { N = 1000 };
	unsigned char text[N], packed[2 * N], out[N + 1];
	size_t i, n;

	for (i = 0; i < N; i++)
		text[i] = (unsigned char)(i % 7 * (i / 100));
	n = pack_lz4(packed, sizeof(packed), text, N);
	ok(n != 0 && n < N, "%zu bytes for %d", n, N);
	ok(pack_unlz4(out, N, packed, n) == 0 && memcmp(out, text, N) == 0,
	    "there and back");
	ok(pack_unlz4(out, N + 1, packed, n) == -1, "one byte more is asked for");
	ok(pack_unlz4(out, N - 1, packed, n) == -1, "one less");
	ok(pack_unlz4(out, N, packed, n - 1) == -1, "it was cut");
	ok(pack_lz4(packed, n - 1, text, N) == 0, "no room for it");
	ok(pack_lz4(packed, n, text, N) == n, "just enough");
	return done_testing();
}
