#include <string.h>

#include "base/bytes.h"
#include "codec/rans.h"
#include "codec/rans_step.h"

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

	/* several tables, so that equal neighbours need not wait for each other; eight
	 * are counted per iteration */
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
	/* at most 12 bits per symbol; a table entry takes at most two bytes, a run of
	 * zeros three */
	return n + n / 2 + 2 + 4 * RANS_STATES + 3 * RANS_SYMBOLS;
}

/* Scale counts to frequencies that sum to RANS_TOTAL; every symbol that occurs keeps at
 * least 1. */
static void
scale(const uint32_t count[RANS_SYMBOLS], size_t n, uint16_t freq[RANS_SYMBOLS])
{
	uint32_t f, sum = 0;
	size_t i, big = 0;

	for (i = 0; i < RANS_SYMBOLS; i++) {
		f = (uint32_t)(((uint64_t)count[i] * RANS_TOTAL + n / 2) / n);
		if (f == 0 && count[i] != 0)
			f = 1;
		freq[i] = (uint16_t)f;
		sum += f;
	}
	while (sum != RANS_TOTAL) {		/* adjust the most frequent symbol */
		for (i = 0, big = 0; i < RANS_SYMBOLS; i++)
			if (freq[i] > freq[big])
				big = i;
		f = sum > RANS_TOTAL ? sum - RANS_TOTAL : RANS_TOTAL - sum;
		if (sum < RANS_TOTAL) {
			freq[big] = (uint16_t)(freq[big] + f);
			sum = RANS_TOTAL;
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
		if (f > RANS_TOTAL - sum)
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
	return b->bad || sum != RANS_TOTAL ? -1 : 0;
}

size_t
rans_put(unsigned char *p, const unsigned char *s, size_t n,
    const uint32_t count[RANS_SYMBOLS])
{
	unsigned char *start = p, *end = p + rans_bound(n), *const last = end;
	uint32_t x[RANS_STATES] = { RANS_LOW, RANS_LOW, RANS_LOW, RANS_LOW }, a, b, c, d;
	struct rans_step t[RANS_SYMBOLS];
	uint16_t freq[RANS_SYMBOLS];
	uint32_t base = 0;
	size_t i;

	scale(count, n, freq);
	p = put_table(p, freq);
	for (i = 0; i < RANS_SYMBOLS; base += freq[i++])
		rans_step(&t[i], base, freq[i]);
	for (i = n; i % RANS_STATES != 0; i--)	/* from the last symbol to the first */
		x[(i - 1) % RANS_STATES] = rans_put_symbol(x[(i - 1) % RANS_STATES],
		    &t[s[i - 1]], &end);
	a = x[0];
	b = x[1];
	c = x[2];
	d = x[3];
	for (; i > 0; i -= RANS_STATES) {
		d = rans_put_symbol(d, &t[s[i - 1]], &end);
		c = rans_put_symbol(c, &t[s[i - 2]], &end);
		b = rans_put_symbol(b, &t[s[i - 3]], &end);
		a = rans_put_symbol(a, &t[s[i - 4]], &end);
	}
	bytes_set32(p, a);
	bytes_set32(p + 4, b);
	bytes_set32(p + 8, c);
	bytes_set32(p + 12, d);
	p += 4 * RANS_STATES;
	memmove(p, end, (size_t)(last - end));
	return (size_t)(p - start + (last - end));
}

int
rans_get(struct bytes *b, unsigned char *s, size_t n)
{
	static const unsigned char none[2];
	uint32_t x[RANS_STATES], w, y, z, u, at = 0;
	const unsigned char *p, *end = b->p + b->n, *q;
	uint16_t freq[RANS_SYMBOLS];
	struct rans_slots slot;
	size_t i;

	if (get_table(b, freq) < 0)
		return -1;
	for (i = 0; i < RANS_STATES; i++)
		x[i] = bytes_next32(b);
	if (b->bad || (b->n - b->at) % 2 != 0)
		return -1;
	p = b->p + b->at;
	b->at = b->n;
	for (i = 0; i < RANS_SYMBOLS; i++)
		at = rans_slots(&slot, at, freq[i], (unsigned char)i);
	w = x[0];
	y = x[1];
	z = x[2];
	u = x[3];
	for (i = 0; i + RANS_STATES <= n && end - p >= 2 * RANS_STATES; i += RANS_STATES) {
		s[i] = rans_get_symbol(&w, &slot, &p);
		s[i + 1] = rans_get_symbol(&y, &slot, &p);
		s[i + 2] = rans_get_symbol(&z, &slot, &p);
		s[i + 3] = rans_get_symbol(&u, &slot, &p);
	}
	x[0] = w;
	x[1] = y;
	x[2] = z;
	x[3] = u;
	for (; i < n; i++) {			/* the code may end early */
		q = p < end ? p : none;
		s[i] = rans_get_symbol(&x[i % RANS_STATES], &slot, &q);
		if (p == end && q != none)
			return -1;
		p = p < end ? q : p;
	}
	/* the states must be those with which the encoder began */
	return p == end && x[0] == RANS_LOW && x[1] == RANS_LOW && x[2] == RANS_LOW &&
	    x[3] == RANS_LOW ? 0 : -1;
}
