/*
 * What TOPK will cost and lose: fraction, chunks, threshold; f16 or a few
 * levels; range coded or not.  Chunks are taken as if they were the whole
 * group.
 */
#ifndef ACE_TOPK_FORETELL_H
#define ACE_TOPK_FORETELL_H

#include <stdint.h>

struct codec_plan;
struct estimate;

/* topk_foretell(plan, m, rate, error): as codec_foretell. */
void topk_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error);

#endif
