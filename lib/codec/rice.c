#include <string.h>

#include "base/bytes.h"
#include "codec/ecq_bits.h"
#include "codec/rice.h"

enum { BLOCK = 128, MAX_R = 30 };

size_t
rice_bound(size_t count, size_t span)
{
	size_t blocks = (count + BLOCK - 1) / BLOCK, bits = 2;
	size_t map = span / 8 + 1, packed;

	while (bits < MAX_R + 4 && span >> (bits - 2) != 0)
		bits++;
	packed = count * bits / 8 + 1;
	return blocks * 4 + (map < packed ? map : packed) + 8;
}

/* Bits of a block of n gaps at r; few: their sum is below 2^32. */
static uint64_t
cost(const uint32_t *gap, size_t n, unsigned r, int few)
{
	uint64_t bits = (n * r + 7) / 8 * 8 + n;
	uint32_t sum = 0;
	size_t i;

	if (few && n == BLOCK) {	/* for vectors */
		for (i = 0; i < BLOCK; i++)
			sum += gap[i] >> r;
		return bits + sum;
	}
	for (i = 0; i < n; i++)
		bits += gap[i] >> r;
	return bits;
}

static unsigned
best_r(const uint32_t *gap, size_t n)
{
	uint64_t sum = 0, c, best = UINT64_MAX;
	unsigned r, from = 0, found = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += gap[i];
	/* the optimum is near log2(0.69 mean) (Golomb 1966) */
	while (from < MAX_R - 2 && sum >> (from + 1) > n)
		from++;
	for (r = from > 2 ? from - 2 : 0; r <= from + 2; r++) {
		c = cost(gap, n, r, sum <= UINT32_MAX);
		if (c < best) {
			best = c;
			found = r;
		}
	}
	return found;
}

/* To the end of the byte, all of it written. */
static void
put_pad(struct bits *w)
{
	for (; w->n > 0; w->n -= w->n < 8 ? w->n : 8) {
		*w->p++ = (unsigned char)w->v;
		w->v >>= 8;
	}
}

static void
put_block(struct bits *w, const uint32_t *gap, size_t n)
{
	unsigned r = best_r(gap, n);
	uint32_t q;
	size_t i;

	*w->p++ = (unsigned char)r;
	for (i = 0; r != 0 && i < n; i++)
		put_bits(w, gap[i] & (((uint32_t)1 << r) - 1), r);
	put_pad(w);
	for (i = 0; i < n; i++) {
		for (q = gap[i] >> r; q >= 16; q -= 16)
			put_bits(w, 0, 16);
		put_bits(w, (uint32_t)1 << q, q + 1);
	}
	put_pad(w);
}

size_t
rice_put(unsigned char *p, const uint32_t *pos, size_t count)
{
	struct bits w = { .p = p };
	uint32_t gap[BLOCK], next = 0;
	size_t i, j, n;

	for (i = 0; i < count; i += n) {
		n = count - i < BLOCK ? count - i : BLOCK;
		for (j = 0; j < n; j++) {
			gap[j] = pos[i + j] - next;
			next = pos[i + j] + 1;
		}
		put_block(&w, gap, n);
	}
	return (size_t)(w.p - p);
}

/* Eight bytes from at, zero past the end. */
static uint64_t
load(const unsigned char *p, size_t len, size_t at)
{
	unsigned char t[8] = { 0 };

	if (len >= 8 && at <= len - 8)
		return bytes_le64(p + at);
	if (at < len)
		memcpy(t, p + at, len - at);
	return bytes_le64(t);
}

/* The quotients of n gaps into q[n]; -1 when the body ends first or a gap
 * passes limit. */
static int
get_unary(struct bytes *b, uint64_t *q, size_t n, uint64_t limit)
{
	const unsigned char *p = b->p + b->at;
	size_t len = b->n - b->at, at = 0, i = 0;
	uint64_t w = 0, zeros = 0;
	unsigned have = 0, z;

	while (i < n) {
		if (have == 0) {
			if (at >= len)
				return -1;
			w = load(p, len, at);
			have = len - at < 8 ? (unsigned)(len - at) * 8 : 64;
			at += have / 8;
		}
		if (w == 0) {
			zeros += have;
			have = 0;
			if (zeros > limit)
				return -1;
			continue;
		}
		z = (unsigned)__builtin_ctzll(w);
		q[i++] = zeros + z;
		zeros = 0;
		w = z == 63 ? 0 : w >> (z + 1);
		have -= z + 1;
	}
	/* what is left of the last byte is padding */
	at -= have / 8;
	if (have % 8 != 0 && (w & ((1u << have % 8) - 1)) != 0)
		return -1;
	b->at += at;
	return 0;
}

static int
get_block(struct bytes *b, uint32_t *pos, size_t n, uint64_t *next,
    uint64_t span)
{
	uint64_t q[BLOCK], at, mask;
	const unsigned char *low;
	unsigned r = bytes_u8(b), over;
	size_t lowlen, i;

	if (b->bad || r > MAX_R)
		return -1;
	lowlen = (n * r + 7) / 8;
	low = bytes_take(b, lowlen);
	over = (unsigned)(n * r % 8);
	if (low == NULL || (over != 0 && low[lowlen - 1] >> over != 0) ||
	    get_unary(b, q, n, span) < 0)
		return -1;
	mask = ((uint64_t)1 << r) - 1;
	for (i = 0; i < n; i++) {
		at = i * r;
		if (q[i] >> (63 - MAX_R) != 0)
			return -1;
		at = load(low, lowlen, at / 8) >> at % 8 & mask;
		*next += q[i] << r | at;
		if (*next >= span)
			return -1;
		pos[i] = (uint32_t)*next;
		++*next;
	}
	return 0;
}

int
rice_get(struct bytes *b, uint32_t *pos, size_t count, size_t span)
{
	uint64_t next = 0;
	size_t i, n;

	if (span > UINT32_MAX)
		return -1;
	for (i = 0; i < count; i += n) {
		n = count - i < BLOCK ? count - i : BLOCK;
		if (get_block(b, pos + i, n, &next, span) < 0)
			return -1;
	}
	return 0;
}
