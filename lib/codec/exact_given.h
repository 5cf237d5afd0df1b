/* Code a group's values given the old values; exact.h explains the method. */
#ifndef ACE_EXACT_GIVEN_H
#define ACE_EXACT_GIVEN_H

#include <stddef.h>

struct buf;
struct bytes;
struct err;
struct form;

/* Return the largest size in bytes that exact_given_put appends. */
size_t exact_given_bound(const struct form *f, size_t n);
/* Append the body, for which out has room, and return the number of changed words. Append
 * nothing if no word changed; otherwise set *too_long: 1 if a part of the body would be too long
 * to be of use, and nothing was appended; else 0. On an error return -ERR_SYS or -ERR_USAGE. */
int exact_given_put(const struct form *f, const unsigned char *old,
    const unsigned char *new, size_t n, struct buf *out, int *too_long,
    struct err *e);
/* Decode the rest of `in' to new[n]; see exact_get. */
int exact_given_get(const struct form *f, const unsigned char *old,
    struct bytes *in, unsigned char *new, size_t n, struct err *e);

#endif
