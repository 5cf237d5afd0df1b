/*
 * Find the patches and whole models that lead from one model to another with the fewest
 * bytes.
 */
#ifndef ACE_WAYS_H
#define ACE_WAYS_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct err;

/* A whole model, or a patch. */
struct way {
	unsigned char before[MODEL_HASH], after[MODEL_HASH];
	uint64_t step, bytes;
	uint64_t nth;		/* number given by the caller */
	int whole;		/* 1: a whole model; before is zeros */
	/* set by ways_find: */
	uint64_t cost;		/* bytes of the way to this item; UINT64_MAX: no way */
	size_t prior;		/* index of the previous item on that way, or WAYS_FIRST */
};
#define WAYS_FIRST SIZE_MAX

struct ways {
	struct way *p;
	size_t n, cap;
};

int ways_add(struct ways *x, const struct way *w, struct err *e);
void ways_release(struct ways *x);

/* Find the cheapest way to each item, beginning at the model with hash `from' or at
 * nothing. from NULL: begin only at nothing. */
void ways_find(struct ways *x, const unsigned char *from);
/* List the indices on the way that ends with `last', in order; its cost must not be
 * UINT64_MAX.  The caller frees the list. */
int ways_list(const struct ways *x, size_t last, size_t **list, size_t *n,
    struct err *e);

#endif
