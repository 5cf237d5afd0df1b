/*
 * Counts values by the octave of their magnitude: an octave reaches from one
 * power of two up to the next.
 */
#ifndef ACE_OCTAVES_H
#define ACE_OCTAVES_H

#include <stddef.h>
#include <stdint.h>

enum { OCTAVES = 277, OCTAVES_LOWEST = -149 };	/* 2^-149 to 2^127 */

struct octaves {
	uint64_t zero, nan, inf;
	uint64_t n[OCTAVES];	/* n[k]: from 2^(k + OCTAVES_LOWEST) up to but
				 * not including twice that */
};

void octaves_add(struct octaves *o, const float *x, size_t n);
/* octaves_ends(o, lo, hi): the indices into n of the lowest and the highest
 * octave that is not empty; hi is -1 when all are empty. */
void octaves_ends(const struct octaves *o, int *lo, int *hi);

#endif
