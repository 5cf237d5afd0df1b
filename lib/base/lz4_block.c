#include <limits.h>

#include <lz4.h>

#include "base/lz4_block.h"

size_t
lz4_block_pack(void *out, size_t cap, const void *p, size_t n)
{
	int r;

	if (n > LZ4_MAX_INPUT_SIZE)
		return 0;
	if (cap > INT_MAX)
		cap = INT_MAX;
	r = LZ4_compress_default(p, out, (int)n, (int)cap);
	return r > 0 ? (size_t)r : 0;
}

int
lz4_block_unpack(void *out, size_t n, const void *p, size_t len)
{
	int r;

	if (n > INT_MAX || len > INT_MAX)
		return -1;
	r = LZ4_decompress_safe(p, out, (int)len, (int)n);
	return r >= 0 && (size_t)r == n ? 0 : -1;
}

const char *
lz4_block_version(void)
{
	return LZ4_versionString();
}
