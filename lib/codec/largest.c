#include <string.h>

#include "base/bytes.h"
#include "codec/largest.h"
#include "kern/kern.h"

enum { TOP_BITS = 11, MID_BITS = 10, SOME = 1024, LEAST = 16 };
#define MAG 0x7fffffffu

/* Return the bin, of count[bins], that holds the k-th largest value, where k is *k. Then set *k
 * to the value's rank in that bin, from 1. */
static uint32_t
find_bin(const uint32_t *count, uint32_t bins, size_t *k)
{
	uint32_t b = bins - 1;

	while (b > 0 && count[b] < *k)
		*k -= count[b--];
	return b;
}

/* Return the k-th largest magnitude (k from 1) among those x[at[]] whose top TOP_BITS
 * bits without the sign are `prefix'; set *k to its rank among equal magnitudes. */
static uint32_t
refine(const float *x, const uint32_t *at, size_t m, uint32_t prefix, size_t *k)
{
	uint32_t count[1 << MID_BITS], u;
	unsigned shift;
	size_t i;

	for (shift = 2 * MID_BITS; shift > 0; shift -= MID_BITS) {
		memset(count, 0, sizeof(count));
		for (i = 0; i < m; i++) {
			u = bytes_u32(x[at[i]]) & MAG;
			/* no branch, because the condition is unpredictable */
			count[u >> (shift - MID_BITS) & ((1 << MID_BITS) - 1)]
			    += u >> shift == prefix;
		}
		prefix = prefix << MID_BITS | find_bin(count, 1 << MID_BITS, k);
	}
	return prefix;
}

/* Keep, in place, the candidates at[m] above t and, unless t is 0, the first `ties' that are
 * equal to t. Return the number kept. */
static size_t
keep(const float *x, uint32_t *at, size_t m, uint32_t t, size_t ties)
{
	size_t i, k = 0;
	uint32_t u;

	if (t == 0)
		ties = 0;
	for (i = 0; i < m; i++) {
		u = bytes_u32(x[at[i]]) & MAG;
		at[k] = at[i];
		k += u > t;
		if (u == t && ties > 0) {
			ties--;
			k++;
		}
	}
	return k;
}

/* Keep, in place, the k largest of the m candidates at[], without zeros if m > k. Return the
 * number kept. */
static size_t
best(const float *x, uint32_t *at, size_t m, size_t k)
{
	uint32_t count[1 << TOP_BITS] = { 0 }, next[1 << TOP_BITS] = { 0 };
	const unsigned shift = 2 * MID_BITS;
	uint32_t bin, t;
	size_t i, rank = k;

	if (m <= k)
		return m;
	/* two tables, so that two equal neighbours need not wait for each other's
	 * store */
	for (i = 0; i + 2 <= m; i += 2) {
		count[(bytes_u32(x[at[i]]) & MAG) >> shift]++;
		next[(bytes_u32(x[at[i + 1]]) & MAG) >> shift]++;
	}
	if (i < m)
		count[(bytes_u32(x[at[i]]) & MAG) >> shift]++;
	for (i = 0; i < 1 << TOP_BITS; i++)
		count[i] += next[i];
	bin = find_bin(count, 1 << TOP_BITS, &rank);
	t = refine(x, at, m, bin, &rank);
	return keep(x, at, m, t, rank);
}

/* Estimate from a sample the f32 bits of a magnitude that the k largest values reach and few
 * others do; 0 if there is none. The estimate may be wrong. */
static uint32_t
border(const float *x, size_t n, size_t k)
{
	uint32_t count[1 << TOP_BITS] = { 0 };
	size_t stride = n / SOME < LEAST ? LEAST : n / SOME, i, m = 0, rank;

	for (i = stride / 2; i < n; i += stride, m++)
		count[(bytes_u32(x[i]) & MAG) >> 2 * MID_BITS]++;
	rank = (size_t)((double)k * (double)m / (double)n);
	for (i = 0; i * i < rank; i++)		/* plus three standard deviations */
		;
	rank += 3 * i + 2;
	return rank < m ? find_bin(count, 1 << TOP_BITS, &rank) << 2 * MID_BITS : 0;
}

size_t
largest_of(const struct kern *kern, const float *x, size_t n, size_t k, uint32_t *at)
{
	uint32_t t;
	size_t m;

	if (k == 0 || n == 0)
		return 0;
	t = n < SOME ? 0 : border(x, n, k);
	m = t > 1 ? kern->at_least(at, x, n, t) : 0;
	if (m < k)
		m = kern->at_least(at, x, n, 1);
	return best(x, at, m, k);
}

size_t
largest_chunks(const struct kern *kern, const float *x, size_t n, size_t k,
    size_t c, uint32_t *at)
{
	size_t i, j, m, got, total = 0;

	for (i = 0; i < n; i += m) {
		m = n - i < c ? n - i : c;
		got = m == c ? k : (k * m + c / 2) / c;
		got = largest_of(kern, x + i, m, got == 0 && n < c ? 1 : got,
		    at + total);
		for (j = 0; j < got; j++)
			at[total + j] += (uint32_t)i;
		total += got;
	}
	return total;
}
