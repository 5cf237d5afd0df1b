/*
 * Which slices of a model's tensors somebody has: an index, as JSON,
 *
 *	{"__metadata__": {"rank": 0, "ranks": 2},
 *	 "w": {"offset": [0, 0], "shape": [64, 128], "of": [128, 128]}}
 *
 * A tensor that it does not name is there as a whole.  rank and ranks are needed of who
 * makes patches only.
 */
#ifndef ACE_PARTS_H
#define ACE_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct model;
struct slice;

/* parts_model(m, path, rank, e): m, whose files hold what the index says: from then on its
 * tensors have the shapes that they are slices of, and its groups are those, of which each
 * has what the slice has.  rank[0] of rank[1]; zeros where the index does not say. */
int parts_model(struct model *m, const char *path, uint64_t rank[2], struct err *e);
/* parts_for(m, path, out, e): what of m's slices is also in those of another index; the
 * caller's to free. */
int parts_for(const struct model *m, const char *path, struct slice **out,
    struct err *e);

#endif
