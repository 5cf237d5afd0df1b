/*
 * Groups of several patches as one, without the models.  Which values a coding means is
 * told by the old ones, so that what is given them stays as it is, one behind the other.  A
 * group that one of the patches has whole is known from there on, and is coded anew.
 */
#ifndef ACE_FOLD_H
#define ACE_FOLD_H

#include <stddef.h>
#include <stdint.h>

#include "model/series.h"

struct buf;
struct err;
struct model_span;

/* fold_group(s, list, n, span, new, body, more, param, e): the body of a group that n
 * parts, at least one, make together; with its parameter.  new: its words, of a group that
 * is whole, each of whose parts from there on is verified by its sum. */
int fold_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, unsigned char *new, struct buf *body,
    struct buf *more, uint8_t *param, struct err *e);

#endif
