/*
 * Find the patches and whole models that lead from one model to another with the fewest
 * bytes.
 */
#ifndef ACE_ROUTE_H
#define ACE_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct err;

/* A whole model, or a patch. */
struct route {
	unsigned char before[MODEL_HASH], after[MODEL_HASH];
	uint64_t step, bytes;
	uint64_t nth;		/* number given by the caller */
	int whole;		/* 1: a whole model; before is zeros */
	/* set by route_find: */
	uint64_t cost;		/* bytes of the way to this item; UINT64_MAX: no way */
	size_t prior;		/* index of the previous item on that way, or ROUTE_FIRST */
};
#define ROUTE_FIRST SIZE_MAX

struct routes {
	struct route *p;
	size_t n, cap;
};

int route_add(struct routes *x, const struct route *w, struct err *e);
void route_release(struct routes *x);

/* Find the cheapest way to each item, beginning at the model with hash `from' or at
 * nothing. from NULL: begin only at nothing. */
void route_find(struct routes *x, const unsigned char *from);
/* List the indices on the way that ends with `last', in order; its cost must not be
 * UINT64_MAX.  The caller frees the list. */
int route_list(const struct routes *x, size_t last, size_t **list, size_t *n,
    struct err *e);

#endif
