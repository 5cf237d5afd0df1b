#include <string.h>

#include "base/bytes.h"
#include "codec/rans.h"

enum { BITS = 12, TOTAL = 1 << BITS, STATES = 4 };
#define LOW 0x10000u		/* a state lies in [LOW, 2^32) */

uint64_t
rans_log2(uint32_t v)
{
	unsigned top = 31 - (unsigned)__builtin_clz(v), i;
	uint64_t m = (uint64_t)v << (31 - top), r = top;

	for (i = 0; i < 16; i++) {		/* m in [2^31, 2^32) */
		m = m * m >> 31;
		r = r << 1 | m >> 32;
		m >>= m >> 32;
	}
	return r;
}

size_t
rans_estimate(const uint32_t count[RANS_SYMBOLS], size_t n)
{
	uint64_t bits = (uint64_t)n * rans_log2((uint32_t)n);
	size_t i, used = 0, bytes;

	for (i = 0; i < RANS_SYMBOLS; i++)
		if (count[i] != 0) {
			bits -= count[i] * rans_log2(count[i]);
			used++;
		}
	bytes = (size_t)(bits >> 19);
	return bytes + bytes / 512 + 2 * used + 20;
}

void
rans_count(const unsigned char *s, size_t n, uint32_t count[RANS_SYMBOLS])
{
	uint32_t way[4][RANS_SYMBOLS];
	uint64_t v;
	size_t i;

	/* equal neighbours do not wait for each other, and eight are counted per
	 * iteration */
	memset(way, 0, sizeof(way));
	for (i = 0; i + 8 <= n; i += 8) {
		memcpy(&v, s + i, sizeof(v));
		if (v == (v >> 8 | v << 56)) {
			way[0][s[i]] += 8;
			continue;
		}
		way[0][s[i]]++;
		way[1][s[i + 1]]++;
		way[2][s[i + 2]]++;
		way[3][s[i + 3]]++;
		way[0][s[i + 4]]++;
		way[1][s[i + 5]]++;
		way[2][s[i + 6]]++;
		way[3][s[i + 7]]++;
	}
	for (; i < n; i++)
		way[0][s[i]]++;
	for (i = 0; i < RANS_SYMBOLS; i++)
		count[i] = way[0][i] + way[1][i] + way[2][i] + way[3][i];
}

size_t
rans_bound(size_t n)
{
	/* at most 12 bits per symbol; a table entry is at most two bytes, an empty run
	 * three */
	return n + n / 2 + 2 + 4 * STATES + 3 * RANS_SYMBOLS;
}

/* Scale counts to frequencies that sum to TOTAL; every symbol that occurs keeps at
 * least 1. */
static void
scale(const uint32_t count[RANS_SYMBOLS], size_t n, uint16_t freq[RANS_SYMBOLS])
{
	uint32_t f, sum = 0;
	size_t i, big = 0;

	for (i = 0; i < RANS_SYMBOLS; i++) {
		f = (uint32_t)(((uint64_t)count[i] * TOTAL + n / 2) / n);
		if (f == 0 && count[i] != 0)
			f = 1;
		freq[i] = (uint16_t)f;
		sum += f;
	}
	while (sum != TOTAL) {		/* take from, or give to, the most frequent */
		for (i = 0, big = 0; i < RANS_SYMBOLS; i++)
			if (freq[i] > freq[big])
				big = i;
		f = sum > TOTAL ? sum - TOTAL : TOTAL - sum;
		if (sum < TOTAL) {
			freq[big] = (uint16_t)(freq[big] + f);
			sum = TOTAL;
			continue;
		}
		f = f > freq[big] / 8u ? freq[big] / 8u : f;
		f = f == 0 ? 1 : f;
		freq[big] = (uint16_t)(freq[big] - f);
		sum -= f;
	}
}

static unsigned char *
put_table(unsigned char *p, const uint16_t freq[RANS_SYMBOLS])
{
	size_t i, m;

	for (i = 0; i < RANS_SYMBOLS; i += m) {
		p += bytes_set_varint(p, freq[i]);
		for (m = 1; freq[i] == 0 && i + m < RANS_SYMBOLS &&
		    freq[i + m] == 0; m++)
			;
		if (freq[i] == 0)
			p += bytes_set_varint(p, m - 1);
	}
	return p;
}

static int
get_table(struct bytes *b, uint16_t freq[RANS_SYMBOLS])
{
	uint64_t f, m;
	uint32_t sum = 0;
	size_t i;

	memset(freq, 0, RANS_SYMBOLS * sizeof(*freq));
	for (i = 0; i < RANS_SYMBOLS; i++) {
		f = bytes_varint(b);
		if (f > TOTAL - sum)
			return -1;
		freq[i] = (uint16_t)f;
		sum += (uint32_t)f;
		if (f != 0)
			continue;
		m = bytes_varint(b);
		if (m > RANS_SYMBOLS - 1 - i)
			return -1;
		i += m;
	}
	return b->bad || sum != TOTAL ? -1 : 0;
}

/*
 * Constants for putting a symbol of frequency f into a state x:
 *
 *   x' = x / f * TOTAL + x % f + base = x + (x / f) (TOTAL - f) + base
 *
 * x / f is the integer part of x * ceil(2^44 / f) / 2^44 (Granlund and Montgomery 1994): x
 * is below 2^20 f, so the product is below 2^64, and the quotient exceeds x / f by less
 * than x / 2^44, which is at most f / 2^24 and so at most 1 / f.
 */
struct steps {
	uint64_t inverse[RANS_SYMBOLS];
	uint32_t most[RANS_SYMBOLS];	/* larger states output 16 bits first */
	uint32_t base[RANS_SYMBOLS], rest[RANS_SYMBOLS];
};

static void
fill_steps(struct steps *t, const uint16_t freq[RANS_SYMBOLS])
{
	uint32_t at = 0, f;
	size_t i;

	for (i = 0; i < RANS_SYMBOLS; i++) {
		f = freq[i];
		t->inverse[i] = f > 0 ? (((uint64_t)1 << 44) + f - 1) / f : 0;
		t->most[i] = (f << (32 - BITS)) - 1;
		t->base[i] = at;
		t->rest[i] = TOTAL - f;
		at += f;
	}
}

static inline uint32_t
put_symbol(uint32_t x, const struct steps *t, unsigned s, unsigned char *p, size_t *at)
{
	const uint64_t keep = 0 - (uint64_t)(x <= t->most[s]);
	uint32_t y = x >> 16;

	bytes_set16(p + *at - 2, (uint16_t)x);
	*at -= 2 + 2 * keep;
	y ^= (x ^ y) & (uint32_t)keep;
	return y + t->base[s] + (uint32_t)(y * t->inverse[s] >> 44) * t->rest[s];
}

size_t
rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS])
{
	unsigned char *start = p;
	uint32_t x[STATES] = { LOW, LOW, LOW, LOW }, a, b, c, d;
	size_t i, room = rans_bound(n), at = room;
	uint16_t freq[RANS_SYMBOLS];
	struct steps t;

	scale(count, n, freq);
	p = put_table(p, freq);
	fill_steps(&t, freq);
	for (i = n; i % STATES != 0; i--)	/* backwards, to the end */
		x[(i - 1) % STATES] = put_symbol(x[(i - 1) % STATES], &t,
		    s[i - 1], start, &at);
	a = x[0];
	b = x[1];
	c = x[2];
	d = x[3];
	for (; i > 0; i -= STATES) {
		d = put_symbol(d, &t, s[i - 1], start, &at);
		c = put_symbol(c, &t, s[i - 2], start, &at);
		b = put_symbol(b, &t, s[i - 3], start, &at);
		a = put_symbol(a, &t, s[i - 4], start, &at);
	}
	bytes_set32(p, a);
	bytes_set32(p + 4, b);
	bytes_set32(p + 8, c);
	bytes_set32(p + 12, d);
	p += 4 * STATES;
	memmove(p, start + at, room - at);
	return (size_t)(p - start) + room - at;
}

/* The low BITS of a state select the symbol, its frequency and the place in its
 * range. */
struct slots {
	struct {
		uint16_t freq, at;
	} range[TOTAL];
	unsigned char symbol[TOTAL];
};

static void
fill_slots(struct slots *t, const uint16_t freq[RANS_SYMBOLS])
{
	uint32_t at = 0, j;
	size_t i;

	for (i = 0; i < RANS_SYMBOLS; i++)
		for (j = 0; j < freq[i]; j++, at++) {
			t->range[at].freq = freq[i];
			t->range[at].at = (uint16_t)j;
			t->symbol[at] = (unsigned char)i;
		}
}

/* The next word is read even if it is not needed. */
static inline unsigned char
get_symbol(uint32_t *x, const struct slots *t, const unsigned char *p, size_t *at)
{
	uint32_t slot = *x & (TOTAL - 1);
	uint32_t y = (*x >> BITS) * t->range[slot].freq + t->range[slot].at;
	const uint64_t low = 0 - (uint64_t)(y < LOW);
	uint32_t more = y << 16 | bytes_le16(p + *at);

	*x = y ^ ((y ^ more) & (uint32_t)low);
	*at += 2 & low;
	return t->symbol[slot];
}

int
rans_get(struct bytes *b, unsigned char *s, size_t n)
{
	uint32_t x[STATES], w, y, z, u;
	uint16_t freq[RANS_SYMBOLS];
	unsigned char none[2] = { 0, 0 };
	const unsigned char *p;
	size_t i, at = 0, was, end;
	struct slots slot;

	if (get_table(b, freq) < 0)
		return -1;
	for (i = 0; i < STATES; i++)
		x[i] = bytes_next32(b);
	if (b->bad || (b->n - b->at) % 2 != 0)
		return -1;
	fill_slots(&slot, freq);
	p = b->p + b->at;
	end = b->n - b->at;
	b->at = b->n;
	w = x[0];
	y = x[1];
	z = x[2];
	u = x[3];
	for (i = 0; i + STATES <= n && end - at >= 2 * STATES; i += STATES) {
		s[i] = get_symbol(&w, &slot, p, &at);
		s[i + 1] = get_symbol(&y, &slot, p, &at);
		s[i + 2] = get_symbol(&z, &slot, p, &at);
		s[i + 3] = get_symbol(&u, &slot, p, &at);
	}
	x[0] = w;
	x[1] = y;
	x[2] = z;
	x[3] = u;
	for (; i < n; i++) {			/* near the end of the body */
		was = 0;
		s[i] = get_symbol(&x[i % STATES], &slot, at < end ? p + at :
		    none, &was);
		if (was != 0 && at == end)
			return -1;
		at += was;
	}
	/* the encoder began here */
	return at == end && x[0] == LOW && x[1] == LOW && x[2] == LOW &&
	    x[3] == LOW ? 0 : -1;
}
