/*
 * estimate.h's part for CODEC_TOPK: fraction, chunks, threshold; f16 or a few
 * levels; range coded or not.  Chunks are taken as if they were the whole
 * group.
 */
#ifndef ACE_ESTIMATE_TOPK_H
#define ACE_ESTIMATE_TOPK_H

#include "sync/estimate.h"

int64_t estimate_topk_rate(const struct estimate *m,
    const struct codec_plan *plan);
double estimate_topk_error(const struct estimate *m,
    const struct codec_plan *plan);

#endif
