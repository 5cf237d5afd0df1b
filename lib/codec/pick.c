#include <string.h>

#include "base/bytes.h"
#include "codec/pick.h"

enum { TOP_BITS = 11, MID_BITS = 10, STRIDE = 64, SAMPLE = 2048 };
#define MAG 0x7fffffffu

/*
 * The bin, counted from the top, in which the k-th largest lies; *k becomes
 * its rank in that bin.
 */
static uint32_t
find_bin(const uint32_t *count, uint32_t bins, size_t *k)
{
	uint32_t b = bins - 1;

	while (b > 0 && count[b] < *k)
		*k -= count[b--];
	return b;
}

/* The k-th largest (k from 1) of those of x[at[]] whose bits above shift
 * equal prefix; *k becomes its rank among its equals. */
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
			if (u >> shift == prefix)
				count[u >> (shift - MID_BITS) &
				    ((1 << MID_BITS) - 1)]++;
		}
		prefix = prefix << MID_BITS |
		    find_bin(count, 1 << MID_BITS, k);
	}
	return prefix;
}

/* Of the m candidates at[], in place, those above t and the first `ties' that
 * equal it. */
static size_t
keep(const float *x, uint32_t *at, size_t m, uint32_t t, size_t ties)
{
	size_t i, k = 0;
	uint32_t u;

	if (t == 0)
		ties = 0;
	for (i = 0; i < m; i++) {
		u = bytes_u32(x[at[i]]) & MAG;
		if (u > t || (u == t && ties > 0)) {
			ties -= u == t;
			at[k++] = at[i];
		}
	}
	return k;
}

/* Two passes over x: a count by the leading bits, then the candidates. */
size_t
pick_top(const float *x, size_t n, size_t k, uint32_t *at)
{
	uint32_t count[1 << TOP_BITS], bin, t;
	const unsigned shift = 2 * MID_BITS;
	size_t i, m, c = 0, rank = k;

	if (k == 0 || n == 0)
		return 0;
	memset(count, 0, sizeof(count));
	for (i = 0; i < n; i++)
		count[(bytes_u32(x[i]) & MAG) >> shift]++;
	bin = find_bin(count, 1 << TOP_BITS, &rank);
	for (i = bin; i < 1 << TOP_BITS; i++)
		c += count[i];
	for (i = m = 0; i < n && m < c; i++) {
		at[m] = (uint32_t)i;
		m += (bytes_u32(x[i]) & MAG) >> shift >= bin;
	}
	t = refine(x, at, m, bin, &rank);
	return keep(x, at, m, t, rank);
}

static size_t
at_least(const float *x, size_t n, uint32_t t, uint32_t *at)
{
	size_t i, m = 0;

	for (i = 0; i < n; i++) {
		at[m] = (uint32_t)i;
		m += (bytes_u32(x[i]) & MAG) >= t;
	}
	return m;
}

size_t
pick_above(const float *x, size_t n, float t, uint32_t *at)
{
	return at_least(x, n, t > 0 ? bytes_u32(t) : 1, at);
}

size_t
pick_chunks(const float *x, size_t n, size_t k, size_t c, uint32_t *at)
{
	size_t i, j, m, got, total = 0;

	for (i = 0; i < n; i += m) {
		m = n - i < c ? n - i : c;
		got = m == c ? k : (k * m + c / 2) / c;
		got = pick_top(x + i, m, got == 0 && n < c ? 1 : got,
		    at + total);
		for (j = 0; j < got; j++)
			at[total + j] += (uint32_t)i;
		total += got;
	}
	return total;
}

size_t
pick_sampled(const float *x, size_t n, size_t k, uint32_t *at)
{
	float s[SAMPLE];
	size_t stride = n / SAMPLE < STRIDE ? STRIDE : n / SAMPLE + 1;
	size_t i, m = 0, want, got;
	uint32_t t = 0xffffffffu, u;

	for (i = stride / 2; i < n; i += stride)
		s[m++] = x[i];
	want = (size_t)(((double)k * (double)m) / (double)n + 0.5);
	if (want == 0 || want > m)
		return pick_top(x, n, k, at);
	got = pick_top(s, m, want, at);
	for (i = 0; i < got; i++) {
		u = bytes_u32(s[at[i]]) & MAG;
		t = u < t ? u : t;
	}
	got = got == 0 ? 0 : at_least(x, n, t, at);
	/* the k largest may be among them, but to find the border costs no
	 * more than to begin again */
	if (got > k + k / 10 * 3 || got < k - k / 4)
		return pick_top(x, n, k, at);
	return got;
}
