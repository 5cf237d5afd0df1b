#include "base/rng.h"

/* Multipliers and Weyl constants of Philox 4x32 (Salmon et al. 2011). */
#define RNG_M0 0xD2511F53u
#define RNG_M1 0xCD9E8D57u
#define RNG_W0 0x9E3779B9u
#define RNG_W1 0xBB67AE85u

void
rng_block(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t out[4])
{
	uint32_t c0 = block, c1 = group, c2 = (uint32_t)step;
	uint32_t c3 = (uint32_t)(step >> 32);
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	uint64_t p0, p1;
	int r;

	for (r = 0; r < 10; r++) {
		p0 = (uint64_t)RNG_M0 * c0;
		p1 = (uint64_t)RNG_M1 * c2;
		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += RNG_W0;
		k1 += RNG_W1;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

/* Number of blocks computed in parallel, so that multiplications need not wait. */
enum { WAYS = 4 };

static void
fill_ways(uint64_t seed, uint64_t step, uint32_t group, uint32_t block, uint32_t *out)
{
	uint32_t c0[WAYS], c1[WAYS], c2[WAYS], c3[WAYS];
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	uint64_t p0, p1;
	int r, i;

	for (i = 0; i < WAYS; i++) {
		c0[i] = block + (uint32_t)i;
		c1[i] = group;
		c2[i] = (uint32_t)step;
		c3[i] = (uint32_t)(step >> 32);
	}
	for (r = 0; r < 10; r++) {
		for (i = 0; i < WAYS; i++) {
			p0 = (uint64_t)RNG_M0 * c0[i];
			p1 = (uint64_t)RNG_M1 * c2[i];
			c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
			c1[i] = (uint32_t)p1;
			c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
			c3[i] = (uint32_t)p0;
		}
		k0 += RNG_W0;
		k1 += RNG_W1;
	}
	for (i = 0; i < WAYS; i++, out += 4) {
		out[0] = c0[i];
		out[1] = c1[i];
		out[2] = c2[i];
		out[3] = c3[i];
	}
}

void
rng_fill(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t *out, size_t n)
{
	for (; n >= WAYS; n -= WAYS, block += WAYS, out += 4 * WAYS)
		fill_ways(seed, step, group, block, out);
	for (; n > 0; n--, block++, out += 4)
		rng_block(seed, step, group, block, out);
}
