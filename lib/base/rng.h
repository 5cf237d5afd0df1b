/*
 * Random numbers without state: a number is a function of its counter, so a
 * stochastic codec gives the same bytes on every machine, in any order and on
 * any number of threads.  Philox 4x32-10 (Salmon et al., SC 2011).
 */
#ifndef ACE_RNG_H
#define ACE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* rng_block(seed, step, group, block, out): four 32-bit numbers.  Element i of
 * a group uses out[i % 4] of block i / 4. */
void rng_block(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t out[4]);

/* rng_fill(seed, step, group, block, out, n): the numbers of n blocks, the first
 * being `block', into out[4 * n]; faster than one rng_block after another. */
void rng_fill(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t *out, size_t n);

/* rng_unit(u): a number in [0,1) from the top 24 bits of u, exact in f32. */
static inline float
rng_unit(uint32_t u)
{
	return (float)(u >> 8) * (1.0f / 16777216.0f);
}

#endif
