#include <string.h>

#include "base/bytes.h"
#include "codec/bits.h"

/* Eight codes, a byte each, to 8 w bits: neighbours join, three times over. */
static uint64_t
join(uint64_t v, unsigned w)
{
	const uint64_t m8 = 0x00ff00ff00ff00ffu, m16 = 0x0000ffff0000ffffu;
	const uint64_t m32 = 0x00000000ffffffffu;

	v = (v & m8) | (v >> (8 - w) & m8 << w);
	v = (v & m16) | (v >> (16 - 2 * w) & m16 << 2 * w);
	return (v & m32) | (v >> (32 - 4 * w) & m32 << 4 * w);
}

/* The inverse. */
static uint64_t
part(uint64_t v, unsigned w)
{
	const uint64_t m4 = ((uint64_t)1 << 4 * w) - 1;
	const uint64_t m2 = (((uint64_t)1 << 2 * w) - 1) * 0x100000001u;
	const uint64_t m1 = (((uint64_t)1 << w) - 1) * 0x1000100010001u;

	v = (v & m4) | (v >> 4 * w & m4) << 32;
	v = (v & m2) | (v >> 2 * w & m2) << 16;
	return (v & m1) | (v >> w & m1) << 8;
}

void
bits_pack(unsigned char *p, const unsigned char *c, size_t n, unsigned w)
{
	unsigned char last[8] = { 0 }, t[8];
	const unsigned char *end = p + bits_size(n, w);
	size_t i;

	for (i = 0; i + 8 <= n && end - p >= 8; i += 8, p += w)
		bytes_set64(p, join(bytes_le64(c + i), w));
	for (; i + 8 <= n; i += 8, p += w) {
		bytes_set64(t, join(bytes_le64(c + i), w));
		memcpy(p, t, w);
	}
	if (i == n)
		return;
	memcpy(last, c + i, n - i);
	bytes_set64(t, join(bytes_le64(last), w));
	memcpy(p, t, bits_size(n - i, w));
}

int
bits_unpack(unsigned char *c, const unsigned char *p, size_t n, unsigned w)
{
	unsigned char t[8] = { 0 };
	const unsigned char *end = p + bits_size(n, w);
	uint64_t v;
	size_t i, size;

	for (i = 0; i + 8 <= n && end - p >= 8; i += 8, p += w)
		bytes_set64(c + i, part(bytes_le64(p), w));
	for (; i + 8 <= n; i += 8, p += w) {
		memcpy(t, p, w);
		bytes_set64(c + i, part(bytes_le64(t), w));
	}
	if (i == n)
		return 0;
	size = bits_size(n - i, w);
	memset(t, 0, sizeof(t));
	memcpy(t, p, size);
	v = bytes_le64(t);
	if (v >> (n - i) * w != 0)
		return -1;
	bytes_set64(t, part(v, w));
	memcpy(c + i, t, n - i);
	return 0;
}
