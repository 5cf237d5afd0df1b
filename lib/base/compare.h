/* Comparison functions for qsort, ascending, for numbers that are not NaN. */
#ifndef ACE_COMPARE_H
#define ACE_COMPARE_H

#include <stdint.h>

static inline int
compare_f64(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline int
compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

#endif
