#include <string.h>

#include "base/bytes.h"
#include "base/lz4_block.h"
#include "codec/planes.h"
#include "codec/rans.h"

enum { STORED, CONSTANT, LZ4, RANS, SPARSE = 128 };
enum { SAMPLE = 4096 };

size_t
planes_bound(size_t n, size_t planes)
{
	/* A code longer than its plane is not kept, but it is written before its length
	 * is known. */
	return planes * (n + 16) + rans_bound(n);
}

/* Write plane s[n] to out, set `count' to how often each byte occurs, and return the end. */
static unsigned char *
put_plane(unsigned char *out, const unsigned char *s, size_t n,
    uint32_t count[RANS_SYMBOLS])
{
	size_t i, guess, len;
	unsigned char head[16];

	if (n == 0)
		return out;
	rans_count(s, n, count);
	if (count[s[0]] == n) {
		*out++ = CONSTANT;
		*out++ = s[0];
		return out;
	}
	guess = rans_estimate(count, n);
	guess = guess < n ? guess : n - 1;
	*out = LZ4;
	/* Use LZ4 if it takes no more than rANS's estimate, as for repeats of several bytes.
	 * In a plane of more than 4 * SAMPLE bytes, first try it on a sample from the middle. */
	len = n > 4 * SAMPLE && lz4_block_pack(out + 11, guess / (n / SAMPLE) + 64,
	    s + n / 2, SAMPLE) == 0 ? 0 : lz4_block_pack(out + 11, guess, s, n);
	if (len == 0 && guess < n - n / 64) {
		*out = RANS;
		len = rans_put(out + 11, s, n, count);
	}
	if (len == 0 || len + 3 >= n) {
		*out++ = STORED;
		memcpy(out, s, n);
		return out + n;
	}
	i = bytes_set_varint(head, len);
	memcpy(out + 1, head, i);
	memmove(out + 1 + i, out + 11, len);
	return out + 1 + i + len;
}

/* Return 1 if each value that is 0 in the first plane is 0 in all planes. */
static int
zero_whole(const unsigned char *s, size_t n, size_t planes)
{
	unsigned char rest = 0;
	size_t i, j;

	for (i = 0; i < n; i++)
		for (j = 1; s[i] == 0 && j < planes; j++)
			rest |= s[j * n + i];
	return rest == 0;
}

unsigned char *
planes_put(unsigned char *out, unsigned char *s, size_t n, size_t planes)
{
	uint32_t count[RANS_SYMBOLS] = { 0 };
	unsigned char *first = out, *p;
	size_t i, j, k = n;

	out = put_plane(out, s, n, count);
	if (count[0] > n / 64 && zero_whole(s, n, planes)) {
		*first |= SPARSE;
		for (j = 1, p = s + n; j < planes; j++, p += n)
			for (i = k = 0; i < n; i++) {
				p[k] = p[i];
				k += s[i] != 0;
			}
	}
	for (j = 1; j < planes; j++)
		out = put_plane(out, s + j * n, k, count);
	return out;
}

static int
get_plane(struct bytes *b, unsigned mode, unsigned char *s, size_t n)
{
	const unsigned char *p;
	struct bytes part = BYTES(NULL, 0);
	uint64_t len;

	if (mode == STORED || mode == CONSTANT) {
		p = bytes_take(b, mode == STORED ? n : 1);
		if (p == NULL)
			return -1;
		if (mode == STORED)
			memcpy(s, p, n);
		else
			memset(s, p[0], n);
		return 0;
	}
	len = bytes_varint(b);
	if (b->bad || len > b->n - b->at || (p = bytes_take(b, (size_t)len)) == NULL)
		return -1;
	if (mode == LZ4)
		return lz4_block_unpack(s, n, p, (size_t)len);
	part.p = p;
	part.n = (size_t)len;
	return mode == RANS ? rans_get(&part, s, n) : -1;
}

int
planes_get(struct bytes *b, unsigned char *s, size_t n, size_t planes)
{
	unsigned mode = bytes_u8(b);
	size_t i, j, k = n, left;

	if (get_plane(b, mode & ~(unsigned)SPARSE, s, n) < 0)
		return -1;
	if ((mode & SPARSE) != 0)
		for (i = 0; i < n; i++)
			k -= s[i] == 0;
	for (j = 1; j < planes; j++) {
		if (k > 0 && get_plane(b, bytes_u8(b), s + j * n, k) < 0)
			return -1;
		/* move the values to where the first plane is not 0, backwards */
		for (i = n, left = k; k < n && i-- > 0; )
			s[j * n + i] = s[i] != 0 ? s[j * n + --left] : 0;
	}
	return 0;
}
