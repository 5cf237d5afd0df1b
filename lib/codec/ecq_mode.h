/*
 * How ECQ codes a group: the mode in which a sample of it takes fewest bits, and
 * the codes of all its values in that mode.
 */
#ifndef ACE_ECQ_MODE_H
#define ACE_ECQ_MODE_H

#include <stdint.h>

#include "codec/ecq_code.h"

struct ecq_work {
	struct kern_ecq m;
	uint32_t state[KERN_ECQ_LANES];
	int32_t *above;
	uint16_t *code;
	uint16_t *trial[KERN_ECQ_MODES];	/* to encode: code is one */
	uint32_t *mark;		/* of each chunk, to decode */
};

/* ecq_mode_start(w, ctx, s): w->m where nothing is known yet. */
void ecq_mode_start(struct ecq_work *w, const struct codec_ctx *ctx,
    const struct ecq_side *s);

/* ecq_mode(w, in, s): fills s, but for the centroids, and w->code.  w has its
 * room. */
void ecq_mode(struct ecq_work *w, const struct ecq_in *in, struct ecq_side *s);

static inline uint32_t
ecq_magnitude(int16_t q)
{
	return (uint32_t)(q < 0 ? -q : q);
}

/* v > 0 */
static inline unsigned
ecq_length(uint32_t v)
{
	return 32 - (unsigned)__builtin_clz(v);
}

#endif
