/*
 * Predicts the rate and error of TOPK for every way of picking (fraction,
 * chunks, threshold) and of coding (f16 or a few levels, range coded or not).
 * Picking by chunks is predicted as if the whole group were one chunk.
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
