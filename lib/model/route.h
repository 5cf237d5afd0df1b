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
	uint64_t cost;		/* bytes of the path to this item; UINT64_MAX: no path */
	size_t prior;		/* index of the previous item on the path; ROUTE_FIRST: none */
};
#define ROUTE_FIRST SIZE_MAX

struct routes {
	struct route *p;
	size_t n, cap;
};

int route_add(struct routes *x, const struct route *w, struct err *e);
void route_release(struct routes *x);

/* Find the path of fewest bytes to each item. A path begins with a whole model or, unless
 * from is NULL, with a patch to the model with hash `from'. */
void route_find(struct routes *x, const unsigned char *from);
/* Set *list to the indices of the path to `last', in order; its cost must not be
 * UINT64_MAX.  The caller frees the list (alloc_free). */
int route_list(const struct routes *x, size_t last, size_t **list, size_t *n,
    struct err *e);

#endif
