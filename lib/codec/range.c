#include <string.h>

#include "codec/range.h"

const uint16_t range_rate[RANGE_LIMIT + 1] = {
	43691, 26214, 18725, 14564, 11916, 10082, 8738, 7710,
	6899, 6242, 5699, 5243, 4855, 4520, 4228, 3972,
	3745, 3542, 3361, 3197, 3048, 2913, 2789, 2675,
	2570, 2473, 2383, 2300, 2222, 2149, 2081, 2016,
	1956, 1900, 1846, 1796, 1748, 1702, 1659, 1618,
	1579, 1542, 1507, 1473, 1440, 1409, 1380, 1351,
	1324, 1298, 1273, 1248, 1225, 1202, 1181, 1160,
	1140, 1120, 1101, 1083, 1066, 1049, 1032, 1016,
	1001, 986, 971, 957, 943, 930, 917, 904,
	892, 880, 868, 857, 846, 835, 824, 814,
	804, 794, 785, 776, 767, 758, 749, 741,
	732, 724, 716, 708, 701, 694, 686, 679,
	672, 665, 659, 652, 646, 639, 633, 627,
	621, 615, 610, 604, 599, 593, 588, 583,
	577, 572, 567, 563, 558, 553, 548, 544,
	539, 535, 531, 526, 522, 518, 514, 510,
	506, 502, 498, 495, 491, 487, 484, 480,
	477, 473, 470, 466, 463, 460, 457, 454,
	450, 447, 444, 441, 438, 435, 433, 430,
	427, 424, 421, 419, 416, 413, 411, 408,
	406, 403, 401, 398, 396, 394, 391, 389,
	387, 384, 382, 380, 378, 376, 373, 371,
	369, 367, 365, 363, 361, 359, 357, 355,
	353, 351, 350, 348, 346, 344, 342, 340,
	339, 337, 335, 334, 332, 330, 329, 327,
	325, 324, 322, 320, 319, 317, 316, 314,
	313, 311, 310, 308, 307, 306, 304, 303,
	301, 300, 299, 297, 296, 295, 293, 292,
	291, 289, 288, 287, 286, 284, 283, 282,
	281, 279, 278, 277, 276, 275, 274, 272,
	271, 270, 269, 268, 267, 266, 265, 264,
	263, 262, 261, 260, 259, 258, 257, 256,
};

void
range_start(struct range_bit *b, size_t n)
{
	while (n-- > 0) {
		b[n].p = 1 << (RANGE_BITS - 1);
		b[n].n = 0;
	}
}

struct range_put
range_put_start(unsigned char *p)
{
	struct range_put w = { 0, UINT64_MAX, p, p };

	return w;
}

void
range_put_carry(unsigned char *start, unsigned char *p)
{
	while (p > start && ++*--p == 0)
		;
}

/* Find the fewest bytes, *k, that give a number in [low, low + range) whatever bytes
 * follow. Return the 64-bit number that begins with them and ends with zeros. A result
 * below low has wrapped: add a carry to the bytes before. */
static uint64_t
shortest(uint64_t low, uint64_t range, unsigned *k)
{
	uint64_t mask, v;

	for (*k = 1; *k < 8; ++*k) {
		mask = UINT64_MAX >> 8 * *k;
		v = (low + mask) & ~mask;
		if (v - low + mask < range)
			return v;
	}
	return low;
}

size_t
range_put_end(struct range_put w)
{
	unsigned k, i;
	uint64_t v = shortest(w.low, w.range, &k);

	if (v < w.low)
		range_put_carry(w.start, w.p);
	for (i = 0; i < k; i++)
		*w.p++ = (unsigned char)(v >> (56 - 8 * i));
	return (size_t)(w.p - w.start);
}

/* Return the eight bytes at p[at], with zeros from p[n] on. */
static uint64_t
eight(const unsigned char *p, size_t at, size_t n)
{
	uint64_t v = 0;
	size_t i;

	for (i = at; i < at + 8; i++)
		v = v << 8 | (i < n ? p[i] : 0u);
	return v;
}

struct range_get
range_get_start(const unsigned char *p, size_t n)
{
	struct range_get r = { eight(p, 0, n), UINT64_MAX, p, 8, n };

	return r;
}

uint32_t
range_get_tail(const unsigned char *p, size_t at, size_t n)
{
	return (uint32_t)(eight(p, at, n) >> 32);
}

size_t
range_get_end(struct range_get r)
{
	uint64_t seen = eight(r.p, r.at - 8, r.n), v;
	unsigned k;

	v = shortest(seen - r.code, r.range, &k);
	return (seen ^ v) >> (64 - 8 * k) == 0 ? r.at - 8 + k : SIZE_MAX;
}
