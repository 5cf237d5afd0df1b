/*
 * A few magnitudes that represent many: the levels a, a r, a r^2, ... of TOPK's value
 * formats q4, q2 and mag.
 */
#ifndef ACE_LEVELS_H
#define ACE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum { LEVELS_MAX = 8, LEVELS_TOP = 0x7f7f };

struct levels {
	unsigned n;		/* number of levels: 1, 2 or 8 */
	uint16_t a, r;		/* bf16, at most LEVELS_TOP; r is unused if n = 1 */
	float v[LEVELS_MAX];	/* [n] the levels, limited to FLT_MAX */
};

/* Round to the nearest bf16, ties to even, at most the largest finite one. */
uint16_t levels_bf16(double v);

/* Compute v from n, a and r, in f64. */
void levels_make(struct levels *l);

/*
 * Fit a, r and v to the k > 0 magnitudes m.  n, set by the caller, decides how:
 *
 *   1   their mean
 *   2   the means of two clusters (Lloyd's iteration from the mean)
 *   8   equal ratios from the least magnitude to the largest, which are either the
 *       outer levels or the middles of the outer cells, whichever has the smaller
 *       error (our own rule)
 */
void levels_fit(struct levels *l, const float *m, size_t k);

/* Set c[i] to the index of the level nearest to m[i]. */
void levels_code(const struct levels *l, const float *m, size_t k, uint16_t *c);

#endif
