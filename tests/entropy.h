/* The length of an ideal adaptive code, with which tests compare codes. */
#ifndef ACE_TEST_ENTROPY_H
#define ACE_TEST_ENTROPY_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline int
entropy_order(const void *a, const void *b)
{
	float x, y;

	memcpy(&x, a, 4);
	memcpy(&y, b, 4);
	return x < y ? -1 : x > y;
}

/*
 * Sort y[n], n > 0, and return the bits of its values as symbols, by the estimate of Krichevsky
 * and Trofimov: for K symbols, of which the i-th occurs n_i times,
 * -log2 [G(K/2) / G(n + K/2) * prod_i (G(n_i + 1/2) / G(1/2))], G: the gamma function
 */
static inline double
entropy(float *y, size_t n)
{
	double bits = 0, k = 0;
	size_t i, j;

	qsort(y, n, sizeof(*y), entropy_order);
	for (i = 0; i < n; i = j, k++) {
		for (j = i; j < n && entropy_order(y + i, y + j) == 0; j++)
			;
		bits -= lgamma((double)(j - i) + 0.5) - lgamma(0.5);
	}
	return (bits + lgamma((double)n + k / 2) - lgamma(k / 2)) / log(2);
}

#endif
