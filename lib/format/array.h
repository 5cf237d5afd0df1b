/*
 * Annotations that are arrays: the names of those whose shards are in an
 * aggregate (mEMb), and how long each tensor took to compute (tIMe).
 */
#ifndef ACE_ARRAY_H
#define ACE_ARRAY_H

#include <stddef.h>

#include "base/alloc.h"

struct err;

#define ARRAY_LONGEST 1e7	/* seconds of a tensor */

struct array_names {
	char **p;
	size_t n, cap;
};
#define ARRAY_NAMES_INIT { NULL, 0, 0 }

/* array_name(l, s, e): one more, 1 to 255 bytes as text_clean wants them. */
int array_name(struct array_names *l, const char *s, size_t len, struct err *e);
/* array_get_names: the payload of one mEMb frame; several of a shard add up. */
int array_get_names(struct array_names *l, const unsigned char *p, size_t n,
    struct err *e);
/* array_put_names(l, out, e): sorts them. */
int array_put_names(struct array_names *l, struct buf *out, struct err *e);
void array_release(struct array_names *l);

/* array_put_times(v, n, out, e): v f64[n], seconds, by tensor. */
int array_put_times(const double *v, size_t n, struct buf *out, struct err *e);
/* array_get_times(p, len, n, v, e): -ERR_DATA unless it is n times from 0 to
 * ARRAY_LONGEST. */
int array_get_times(const unsigned char *p, size_t len, size_t n, double *v,
    struct err *e);

#endif
