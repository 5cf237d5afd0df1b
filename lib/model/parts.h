/*
 * An index, in JSON, of the slices of a model's tensors that one rank has:
 *
 *	{"__metadata__": {"rank": 0, "ranks": 2},
 *	 "w": {"offset": [0, 0], "shape": [64, 128], "of": [128, 128]}}
 *
 * A tensor that the index does not name is whole.  Only ace-diff needs rank and
 * ranks.
 */
#ifndef ACE_PARTS_H
#define ACE_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct model;
struct slice;

/* Apply the index at path to m, whose files hold these slices.  Then m has the shapes and the
 * groups of the whole tensors, but of each group only the values in its slice.  Set rank[0]
 * to the rank and rank[1] to the number of ranks; both are 0 if the index has none. */
int parts_model(struct model *m, const char *path, uint64_t rank[2], struct err *e);
/* Set *out to the intersections of m's slices with those of the index at path.  The
 * caller frees it. */
int parts_for(const struct model *m, const char *path, struct slice **out,
    struct err *e);

#endif
