/*
 * A few magnitudes for many: a, a r, a r^2, ... (TOPK's q4, q2, mag).
 */
#ifndef ACE_LEVELS_H
#define ACE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum { LEVELS_MAX = 8, LEVELS_TOP = 0x7f7f };

struct levels {
	unsigned n;		/* 1, 2 or 8 */
	uint16_t a, r;		/* bf16, at most LEVELS_TOP; 1 has no r */
	float v[LEVELS_MAX];	/* at most the largest f32 */
};

/* levels_make(l): v from n, a and r; products in f64. */
void levels_make(struct levels *l);

/*
 * levels_fit(l, m, k): a, r and v for k > 0 magnitudes, n is given:
 *
 *   1   their mean
 *   2   their two means (Lloyd's iteration from the mean)
 *   8   from the least to the largest in equal ratios, these as the middles
 *       of cells or as levels, whichever errs less (ours)
 */
void levels_fit(struct levels *l, const float *m, size_t k);

/* levels_code(l, m, k, c): c[i] = the index of the level nearest to m[i]. */
void levels_code(const struct levels *l, const float *m, size_t k,
    uint16_t *c);

#endif
