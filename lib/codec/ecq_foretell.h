/*
 * Predicts the rate and error of ECQ at a given step.
 */
#ifndef ACE_ECQ_FORETELL_H
#define ACE_ECQ_FORETELL_H

#include <stdint.h>

struct codec_plan;
struct estimate;

/* ecq_foretell(plan, m, rate, error): as codec_foretell. */
void ecq_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error);

#endif
