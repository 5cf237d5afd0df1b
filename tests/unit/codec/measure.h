/*
 * Measure the true cost and loss of a codec on a group by coding and decoding it.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stddef.h>

#include "base/alloc.h"
#include "codec/codec.h"

struct measure {
	struct buf body;	/* scratch */
	float *y;
	size_t cap;
};
#define MEASURE_INIT { BUF_INIT, NULL, 0 }

/* Code and decode x f32[n], finite; set *len to the bytes of the body and *error to the
 * sum of squared errors, added in f64 in the order of the values. */
static inline int
measure_group(struct measure *m, const struct codec_plan *plan,
    const struct codec_ctx *ctx, const float *x, size_t n, size_t *len,
    double *error, struct err *e)
{
	uint8_t param;
	double d;
	size_t i;
	int r;

	m->body.n = *len = 0;
	*error = 0;
	if ((r = alloc_grow(&m->y, &m->cap, n, sizeof(*m->y), e)) < 0 ||
	    (r = codec_encode(plan, ctx, x, n, &m->body, &param, e)) < 0 ||
	    (r = codec_decode(plan->codec, param, ctx, m->body.p, m->body.n,
	    m->y, n, e)) < 0)
		return r;
	*len = m->body.n;
	for (*error = 0, i = 0; i < n; i++) {
		d = (double)x[i] - (double)m->y[i];
		*error += d * d;
	}
	return 0;
}

static inline void
measure_release(struct measure *m)
{
	buf_release(&m->body);
	alloc_free(m->y);
	*m = (struct measure)MEASURE_INIT;
}

#endif
