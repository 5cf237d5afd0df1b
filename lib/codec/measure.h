/*
 * What a codec really costs and loses on a group: coded, decoded, thrown away.
 */
#ifndef ACE_MEASURE_H
#define ACE_MEASURE_H

#include <stddef.h>

#include "codec/codec.h"

struct measure {
	struct buf body;	/* scratch */
	float *y;
	size_t cap;
};
#define MEASURE_INIT { BUF_INIT, NULL, 0 }

/* measure_group(m, plan, ctx, x, n, len, error, e): x f32[n] finite; *len bytes
 * of the body, *error sum of (x - dec(code(x)))^2 in f64, in order. */
int measure_group(struct measure *m, const struct codec_plan *plan,
    const struct codec_ctx *ctx, const float *x, size_t n, size_t *len,
    double *error, struct err *e);
void measure_release(struct measure *m);

#endif
