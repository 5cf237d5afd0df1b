#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "codec/rans.h"

enum { N = 65536 };

static unsigned char s[N], back[N], body[2 * N + 4096];

static size_t
count_all(uint32_t count[RANS_SYMBOLS], size_t n, double *bits)
{
	size_t i;

	memset(count, 0, RANS_SYMBOLS * sizeof(*count));
	for (i = 0; i < n; i++)
		count[s[i]]++;
	for (i = 0, *bits = 0; i < RANS_SYMBOLS; i++)
		if (count[i] != 0)
			*bits -= count[i] * log2((double)count[i] / (double)n);
	return n;
}

/* n symbols whose number is skewed by shape; bits above the entropy. */
static double
trip(size_t n, unsigned shape, double *entropy, size_t *guess)
{
	uint32_t count[RANS_SYMBOLS], r[4];
	struct bytes b = BYTES(body, 0);
	double bits;
	size_t i;

	for (i = 0; i < n; i++) {
		rng_block(3, shape, 0, (uint32_t)i, r);
		s[i] = shape > 31 ? (unsigned char)r[0] : (unsigned char)(127 +
		    __builtin_clz(r[0] | 1u << shape));
	}
	(void)count_all(count, n, &bits);
	b.n = rans_put(body, s, n, count);
	memset(back, 0x55, n);
	*entropy = bits / (double)n;
	*guess = rans_estimate(count, n);
	if (b.n > rans_bound(n) || rans_get(&b, back, n) < 0 || b.at != b.n ||
	    memcmp(s, back, n) != 0)
		return -1;
	return (double)b.n * 8 - bits;
}

int
main(void)
{
	unsigned shape;
	double over, entropy;
	size_t n, guess, i;
	struct bytes b;
	int good = 1;

	for (shape = 1; shape < 34; shape += 8) {
		over = trip(N, shape, &entropy, &guess);
		ok(over >= 0 && over < 0.01 * entropy * N + 6000,
		    "%.2f bits a symbol, %.0f bits over", entropy, over);
		ok(fabs((double)guess * 8 - (entropy * N + over)) <
		    0.01 * N * entropy + 4000, "the estimate, %zu bytes", guess);
	}
	for (n = 1; n < 300; n++)
		good &= trip(n, 20, &entropy, &guess) >= 0;
	ok(good, "every length up to 300");
	/* a single symbol: probability 1 costs nothing but the table */
	memset(s, 7, N);
	{
		uint32_t count[RANS_SYMBOLS] = { 0 };

		count[7] = N;
		n = rans_put(body, s, N, count);
		b = (struct bytes)BYTES(body, n);
		ok(n < 30 && rans_get(&b, back, N) == 0 &&
		    memcmp(s, back, N) == 0, "one symbol: %zu bytes", n);
	}
	(void)trip(1000, 20, &entropy, &guess);
	for (i = 0, good = 1; i < 200; i++) {
		b = (struct bytes)BYTES(body, i);
		good &= rans_get(&b, back, 1000) < 0;
	}
	ok(good, "cut short");
	return done_testing();
}
