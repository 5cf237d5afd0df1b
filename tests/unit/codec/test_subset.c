/* subset: codes decode, and take about the bits of their entropy; bad bytes are refused. */
#include <math.h>

#include "../test.h"
#include "codec/subset.h"
#include "../../rnd.h"

enum { N = 100000, MOST = 2 * N };

static unsigned char code[MOST], bits[MOST], back[MOST], *begin;
static uint16_t token[SUBSET_TOKENS * N];
static uint32_t rank[N], got[N + SUBSET_SLACK], gap[N];
static struct rans_slots slots[SUBSET_TABLES];
static unsigned states, nbits;

/* Choose each of n values with probability p / 2^32. Return how many. */
static size_t
some(size_t n, uint32_t p)
{
	size_t i, c = 0;

	for (i = 0, rnd_seed = 1; i < n; i++)
		if (rnd_bits() < p)
			rank[c++] = (uint32_t)i;
	return c;
}

/* Code which c of n values were chosen. Return the bytes. */
static size_t
written(size_t c, size_t n)
{
	static struct subset_put o;
	size_t i;

	memset(&o, 0, sizeof(o));
	o.b = (struct bits_put){ bits, bits + MOST - 8, 0, 0 };
	o.token = o.next = token;
	subset_put(&o, rank, c, n);
	begin = subset_put_end(&o, code, code + MOST, &states);
	nbits = (unsigned)(o.b.p - bits) + (o.b.n > 0);
	for (i = 0; i < nbits; i++)
		back[MOST - 1 - i] = bits[i];
	return (size_t)(code + MOST - begin) + nbits;
}

/* Decode c of n positions into got. Return 1 if the end of the code is valid. */
static int
read_back(size_t c, size_t n)
{
	struct subset_get o = { .b = { back + MOST, nbits, 0 }, .p = begin,
		.end = code + MOST, .states = states, .gap = gap, .slots = slots };
	unsigned j;

	for (j = 0; j < states; j++, o.p += 4)
		o.state[j] = bytes_le32(o.p);
	subset_get(&o, got, c, n);
	for (j = 0; j < states; j++)
		o.bad |= o.state[j] != RANS_LOW;
	return !o.bad && o.p == o.end;
}

static int
same(size_t c, size_t n)
{
	return written(c, n) > 0 && read_back(c, n) && memcmp(rank, got, c * sizeof(*got)) == 0;
}

TEST(there_and_back)
{
	static const size_t of[] = { 1, 2, 3, 7, 8, 63, 64, 65, 1000, N };
	size_t i, c, n;
	int good = 1, p;

	for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
		n = of[i];
		for (p = 0; p < 32; p++)
			good &= same(some(n, 1u << p), n) && same(some(n, ~(1u << p)), n);
		for (c = 0; c < n; c++)
			rank[c] = (uint32_t)c;
		good &= same(n, n) && same(n - 1, n) && same(n / 2, n) && same(0, n);
		rank[0] = (uint32_t)(n - 1);
		good &= same(1, n) && (n == 1 || !read_back(1, n - 1));
	}
	ok(good, "some, most, the first half, all but the last, only the last");
}

TEST(near_the_entropy)
{
	size_t c;
	uint32_t p;
	double h, worst = 0;

	for (p = 1u << 22; p < 0xf0000000; p += p / 7) {
		c = some(N, p);
		h = lgamma(N + 1) - lgamma((double)c + 1) - lgamma((double)(N - c) + 1);
		worst = fmax(worst, ((double)written(c, N) - 20) / (h / log(2) / 8));
	}
	ok(worst < 1.01, "%.4f of it at most, and 20 bytes", worst);
}

TEST(a_bit_flipped)
{
	size_t c = some(5000, 1u << 30), bits_of, i, j, bad = 0, good = 0;

	bits_of = 8 * (written(c, 5000) - nbits);
	for (i = 0; i < bits_of; i++) {
		begin[i / 8] ^= (unsigned char)(1 << i % 8);
		if (read_back(c, 5000))
			for (good++, j = 0; j < c; j++)
				bad += got[j] >= 5000 || (j > 0 && got[j] <= got[j - 1]);
		begin[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	ok(states == 4 && bad == 0 && good < bits_of, "changed bodies: another subset or an error");
}
