#include <string.h>

#include "base/bytes.h"
#include "codec/rans.h"

enum { BITS = 12, TOTAL = 1 << BITS, STATES = 4 };
#define LOW 0x10000u		/* a state lies in [LOW, 2^32) */

/* log2(v) in units of 2^-16, v > 0: whole numbers, so that what is decided by
 * it is decided alike on every machine. */
static uint64_t
log2_fixed(uint32_t v)
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
	uint64_t bits = (uint64_t)n * log2_fixed((uint32_t)n);
	size_t i, used = 0;

	for (i = 0; i < RANS_SYMBOLS; i++)
		if (count[i] != 0) {
			bits -= count[i] * log2_fixed(count[i]);
			used++;
		}
	bits >>= 19;				/* bytes */
	return (size_t)(bits + bits / 512) + 2 * used + 20;
}

size_t
rans_bound(size_t n)
{
	/* at most 12 bits a symbol; a table entry is at most two bytes and an
	 * empty run three */
	return n + n / 2 + 2 + 4 * STATES + 3 * RANS_SYMBOLS;
}

/* Counts to frequencies: none of what occurs is 0, the sum is TOTAL. */
static void
scale(const uint32_t count[RANS_SYMBOLS], size_t n,
    uint16_t freq[RANS_SYMBOLS])
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
	while (sum != TOTAL) {		/* from or to the most frequent */
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

size_t
rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS])
{
	unsigned char *start = p, *room = p + rans_bound(n), *w = room;
	uint16_t freq[RANS_SYMBOLS], base[RANS_SYMBOLS];
	uint32_t x[STATES] = { LOW, LOW, LOW, LOW }, f, at = 0;
	size_t i;

	scale(count, n, freq);
	p = put_table(p, freq);
	for (i = 0; i < RANS_SYMBOLS; i++) {
		base[i] = (uint16_t)at;
		at += freq[i];
	}
	for (i = n; i-- > 0;) {			/* backwards, to the end */
		uint32_t *y = &x[i % STATES];

		f = freq[s[i]];
		if ((uint64_t)*y >= (uint64_t)f << (32 - BITS)) {
			w -= 2;
			bytes_set16(w, (uint16_t)*y);
			*y >>= 16;
		}
		*y = (*y / f << BITS) + *y % f + base[s[i]];
	}
	for (i = 0; i < STATES; i++, p += 4)
		bytes_set32(p, x[i]);
	memmove(p, w, (size_t)(room - w));
	return (size_t)(p - start) + (size_t)(room - w);
}

/* What the low BITS of a state say. */
struct slot {
	uint16_t freq, off;		/* off: place in the symbol's range */
	unsigned char symbol;
};

static void
fill_slots(struct slot slot[TOTAL], const uint16_t freq[RANS_SYMBOLS])
{
	uint32_t at = 0, j;
	size_t i;

	for (i = 0; i < RANS_SYMBOLS; i++)
		for (j = 0; j < freq[i]; j++, at++) {
			slot[at].freq = freq[i];
			slot[at].off = (uint16_t)j;
			slot[at].symbol = (unsigned char)i;
		}
}

int
rans_get(struct bytes *b, unsigned char *s, size_t n)
{
	struct slot slot[TOTAL];
	uint16_t freq[RANS_SYMBOLS];
	uint32_t x[STATES];
	const unsigned char *p, *end;
	size_t i;

	if (get_table(b, freq) < 0)
		return -1;
	for (i = 0; i < STATES; i++)
		x[i] = bytes_next32(b);
	if (b->bad || (b->n - b->at) % 2 != 0)
		return -1;
	fill_slots(slot, freq);
	p = b->p + b->at;
	end = b->p + b->n;
	for (i = 0; i < n; i++) {
		uint32_t y = x[i % STATES];
		const struct slot *t = &slot[y & (TOTAL - 1)];

		s[i] = t->symbol;
		y = t->freq * (y >> BITS) + t->off;
		if (y < LOW) {
			if (p == end)
				return -1;
			y = y << 16 | bytes_le16(p);
			p += 2;
		}
		x[i % STATES] = y;
	}
	b->at = b->n;
	/* the encoder began here */
	return p == end && x[0] == LOW && x[1] == LOW && x[2] == LOW &&
	    x[3] == LOW ? 0 : -1;
}
