/* Normal values that are the same in each run. */
#ifndef ACE_TEST_NORMAL_H
#define ACE_TEST_NORMAL_H

#include <math.h>

#include "base/rng.h"

/* Draw value i of N(0,1) by the method of Box and Muller; a, b and c name the sequence. */
static inline double
normal(uint64_t a, uint64_t b, uint32_t c, uint32_t i)
{
	uint32_t r[4];

	rng_block(a, b, c, i, r);
	return sqrt(-2 * log((r[0] + 1.0) / 4294967297.0)) *
	    cos(6.283185307179586 * r[1] / 4294967296.0);
}

#endif
