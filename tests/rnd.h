/* Random numbers that are the same each time: the test sets the seed, rnd_seed. */
#ifndef ACE_TEST_RND_H
#define ACE_TEST_RND_H

#include <stdint.h>

static uint64_t rnd_seed;

/* Return the upper 32 bits of the next number. */
static inline uint32_t
rnd_bits(void)
{
	rnd_seed = rnd_seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rnd_seed >> 32);
}

/* Return a number from 0 to below 1, in steps of 2^-24. */
static inline double
rnd(void)
{
	return (double)(rnd_bits() >> 8) / 16777216.0;
}

#endif
