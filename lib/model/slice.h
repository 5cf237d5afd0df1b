/*
 * Slices of tensors, as ranks of a parallel training hold them: rectangles of as many
 * dimensions as the tensor has.  The values of a slice stand in the order that they have
 * in the tensor, so those that it has of a group of the tensor are one piece of the file.
 */
#ifndef ACE_SLICE_H
#define ACE_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "format/schema.h"

struct err;

struct slice {
	uint64_t off[SCHEMA_MAX_DIM], len[SCHEMA_MAX_DIM];
};

/* slice_check(p, t, e): -ERR_DATA with the tensor's name where it is not in the tensor, or
 * cuts a byte of f4. */
int slice_check(const struct slice *p, const struct schema_tensor *t,
    struct err *e);
/* slice_whole(t, p): all of a tensor. */
void slice_whole(const struct schema_tensor *t, struct slice *p);
/* slice_common(a, b, ndim, both): what both have. */
void slice_common(const struct slice *a, const struct slice *b, unsigned ndim,
    struct slice *both);

/* slice_before(p, t, x): how many of its values come before value x of the tensor, which
 * may be behind the last.  NULL: all of the tensor. */
uint64_t slice_before(const struct slice *p, const struct schema_tensor *t,
    uint64_t x);

/* slice_get(p, t, lo, hi, own, group, tile): of the values lo to hi of the tensor, of which
 * the slice own is at group, those of p, which own has all, to tile, which may be group.
 * slice_set is the inverse.  Both return their bytes. */
size_t slice_get(const struct slice *p, const struct schema_tensor *t,
    uint64_t lo, uint64_t hi, const struct slice *own,
    const unsigned char *group, unsigned char *tile);
size_t slice_set(const struct slice *p, const struct schema_tensor *t,
    uint64_t lo, uint64_t hi, const struct slice *own, unsigned char *group,
    const unsigned char *tile);

#endif
