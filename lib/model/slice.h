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
int slice_check(const struct slice *p, const struct schema_tensor *t, struct err *e);
/* slice_whole(t, p): all of a tensor. */
void slice_whole(const struct schema_tensor *t, struct slice *p);
/* slice_common(a, b): what both have. */
struct slice slice_common(const struct slice *a, const struct slice *b);

/* slice_before(p, t, x): how many of its values come before value x of the tensor, which
 * may be behind the last.  NULL: all of the tensor. */
uint64_t slice_before(const struct slice *p, const struct schema_tensor *t,
    uint64_t x);

/* slice_move(p, t, lo, hi, own, set, group, tile): of the values lo to hi of the tensor, of
 * which the slice own is at group, those of p, which own has all, to tile, which may be
 * group; with set from there.  Returns their bytes. */
size_t slice_move(const struct slice *p, const struct schema_tensor *t,
    uint64_t lo, uint64_t hi, const struct slice *own, int set,
    unsigned char *group, unsigned char *tile);

#endif
