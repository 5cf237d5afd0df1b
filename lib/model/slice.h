/*
 * Slices of tensors, as the ranks of parallel training hold them: boxes with as many
 * dimensions as the tensor.  A file has a slice's values in the order of the tensor, so
 * those that belong to one group of the tensor are contiguous in the file.
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

/* Return 0, or -ERR_DATA with the tensor's name if the slice is not inside the tensor or
 * splits a byte of f4 values. */
int slice_check(const struct slice *p, const struct schema_tensor *t, struct err *e);
/* Set p to the slice that is the whole tensor. */
void slice_whole(const struct schema_tensor *t, struct slice *p);
/* Return the intersection of two slices. */
struct slice slice_common(const struct slice *a, const struct slice *b);

/* Return how many values of the slice precede value x of the tensor; x may be past the
 * last one.  p NULL: the slice is the whole tensor. */
uint64_t slice_before(const struct slice *p, const struct schema_tensor *t,
    uint64_t x);

/* Copy the values of slice p among values lo to hi of the tensor from group to tile, or
 * with `set' from tile to group.  group has the values of slice own among lo to hi, and
 * own contains p.  tile may be group.  Return the number of bytes copied. */
size_t slice_move(const struct slice *p, const struct schema_tensor *t,
    uint64_t lo, uint64_t hi, const struct slice *own, int set,
    unsigned char *group, unsigned char *tile);

#endif
