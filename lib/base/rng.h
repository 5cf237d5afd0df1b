/*
 * Random numbers without state (Philox 4x32-10, Salmon et al., SC 2011): a number depends
 * on seed and counter only, so that a stochastic codec gives the same bytes on every
 * machine, in any order, on any number of threads.
 */
#ifndef ACE_RNG_H
#define ACE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* Write four 32-bit numbers to out. Element i of a group uses out[i % 4] of block i / 4. */
void rng_block(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t out[4]);

/* Fill out[4 * n] with the numbers of n blocks from `block' on; faster than n calls of
 * rng_block. */
void rng_fill(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t *out, size_t n);

/* Return a number in [0,1) from the top 24 bits of u, exact in f32. */
static inline float
rng_unit(uint32_t u)
{
	return (float)(u >> 8) * (1.0f / 16777216.0f);
}

#endif
