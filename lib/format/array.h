/*
 * Annotations that are arrays: the names of the devices whose shards are in an average
 * (mEMb), and the time to compute each tensor (tIMe).
 */
#ifndef ACE_ARRAY_H
#define ACE_ARRAY_H

#include <stddef.h>

#include "base/alloc.h"

struct err;

#define ARRAY_LONGEST 1e7	/* limit on the seconds to compute a tensor */

struct array_names {
	char **p;
	size_t n, cap;
};
#define ARRAY_NAMES_INIT { NULL, 0, 0 }

/* array_add: append a copy of any string. array_name: append a contributor's name; -ERR_DATA
 * unless it has 1 to 255 bytes that text_clean accepts. */
int array_add(struct array_names *l, const char *s, struct err *e);
int array_name(struct array_names *l, const char *s, size_t len, struct err *e);
/* Append the names in the payload of one mEMb frame. A shard may have several such
 * frames. The names must rise through all of them, so that no name is twice in l. */
int array_get_names(struct array_names *l, const unsigned char *p, size_t n,
    struct err *e);
/* array_sort: sort by bytes. array_put_names: sort the names and append their payload to
 * out. */
void array_sort(struct array_names *l);
int array_put_names(struct array_names *l, struct buf *out, struct err *e);
void array_release(struct array_names *l);

/* Append the payload of a tIMe frame; v f64[n] is in seconds, one per tensor. */
int array_put_times(const double *v, size_t n, struct buf *out, struct err *e);
/* Read the payload of a tIMe frame into v f64[n]. Return -ERR_DATA unless it has n times
 * from 0 to ARRAY_LONGEST seconds. */
int array_get_times(const unsigned char *p, size_t len, size_t n, double *v,
    struct err *e);

#endif
