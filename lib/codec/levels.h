/*
 * One or two magnitudes that represent many: the levels a and a * r of TOPK's value formats
 * mag and q2.
 */
#ifndef ACE_LEVELS_H
#define ACE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum { LEVELS_MAX = 2, LEVELS_TOP = 0x7f7f };	/* LEVELS_TOP: the largest finite bf16 */

struct levels {
	unsigned n;		/* number of levels: 1 or 2 */
	uint16_t a, r;		/* bf16, at most LEVELS_TOP; r is unused if n = 1 */
	float v[LEVELS_MAX];	/* [n] the levels, limited to FLT_MAX */
};

/* Round v >= 0 to the nearest bf16, ties to even, at most the largest finite one. */
uint16_t levels_bf16(double v);

/* Compute v from n, a and r, in f64. */
void levels_make(struct levels *l);

/* Fit a, r and v to the k > 0 magnitudes m: their mean if n, set by the caller, is 1, else
 * the means of two clusters (Lloyd's iteration from the mean). */
void levels_fit(struct levels *l, const float *m, size_t k);

/* Set c[i] to the index of the level nearest to m[i]. */
void levels_code(const struct levels *l, const float *m, size_t k, uint16_t *c);

#endif
