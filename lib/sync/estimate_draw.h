/*
 * estimate.h's part for the codecs that draw: qsgd, natural, tern (whose third
 * kind does not).
 */
#ifndef ACE_ESTIMATE_DRAW_H
#define ACE_ESTIMATE_DRAW_H

#include <stdint.h>

#include "sync/estimate.h"

/* mode: tern's parameter */
double estimate_draw_tern(const struct estimate *m, unsigned mode);
double estimate_draw_natural(const struct estimate *m);
int64_t estimate_draw_natural_rate(const struct estimate *m);
double estimate_draw_qsgd(const struct estimate *m, double levels);

#endif
