#include "codec/gaps.h"

/* A decision with probability p, as if it had been seen GAPS_TRUST times. */
static struct range_bit
believe(double p)
{
	struct range_bit b = { 32, GAPS_TRUST };

	if (p * 65536 > 65504)
		b.p = 65504;
	else if (p * 65536 > 32)
		b.p = (uint16_t)(p * 65536);
	return b;
}

void
gaps_start(struct gaps *g, size_t k, size_t n)
{
	double q = 1 - (double)k / (double)n, half[GAPS_OCTAVES], p, low, all;
	double above[GAPS_OCTAVES + 1];	/* P(b >= i) = P(v > 2^i - 1) */
	unsigned i, j, c, width;

	above[0] = 1;
	for (i = 0, p = q; i < GAPS_OCTAVES; i++, p *= p) {
		half[i] = p / (1 + p);	/* p = q^(2^i) */
		above[i + 1] = above[i] * p;
	}
	above[GAPS_OCTAVES] = 0;
	for (i = 1; i < GAPS_OCTAVES; i++) {
		/* node i of the tree covers width octaves from j */
		width = GAPS_OCTAVES >> (31 - __builtin_clz(i));
		j = i * width - GAPS_OCTAVES;
		all = above[j] - above[j + width];
		low = above[j] - above[j + width / 2];
		for (c = 0; c < GAPS_CLASSES; c++)
			g->octave[c][i] = believe(all > 0 ? 1 - low / all : 0);
	}
	for (i = 0; i < GAPS_OCTAVES; i++)
		for (j = 1; j < 1 << GAPS_KNOWN; j++) {
			c = 31 - (unsigned)__builtin_clz(j);
			g->top[i][j] = believe(i > c ? half[i - c - 1] : 0);
		}
	g->mean = ((uint64_t)n << 8) / k;
	g->expect = 63 - __builtin_clzll(g->mean);
}
