/*
 * The bits of a group of values given what they were before, for exact.h, which says
 * how.
 */
#ifndef ACE_EXACT_GIVEN_H
#define ACE_EXACT_GIVEN_H

#include <stddef.h>

struct buf;
struct bytes;
struct err;
struct form;

/* exact_given_bound(f, n): the most bytes that exact_given_put appends. */
size_t exact_given_bound(const struct form *f, size_t n);
/* exact_given_put(f, old, new, n, out, too_long, e): appends the body, for which there is
 * room, unless all words are the same, or one of its two parts would be longer than the
 * words: then *too_long is 1.  Returns how many words changed. */
int exact_given_put(const struct form *f, const unsigned char *old,
    const unsigned char *new, size_t n, struct buf *out, int *too_long,
    struct err *e);
/* exact_given_get(f, old, in, new, n, e): the inverse, of all that is left of in. */
int exact_given_get(const struct form *f, const unsigned char *old,
    struct bytes *in, unsigned char *new, size_t n, struct err *e);

#endif
