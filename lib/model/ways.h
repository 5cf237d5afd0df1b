/*
 * Which of many patches, and models that are whole, make one model of another with
 * the fewest bytes.
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
	unsigned char digest[16];	/* of the shard, where it is known */
	uint64_t step, bytes;
	uint64_t nth;		/* its number among those that there are */
	int whole;		/* before is nothing */
	/* as ways_find says: */
	uint64_t cost;		/* bytes of the way that ends with it; none: MAX */
	size_t prior;		/* before it on that way, or WAYS_FIRST */
};
#define WAYS_FIRST SIZE_MAX

struct ways {
	struct way *p;
	size_t n, cap;
};

int ways_add(struct ways *x, const struct way *w, struct err *e);
void ways_release(struct ways *x);

/* ways_find(x, from): the cheapest way to each, from the model that has this hash
 * or, as well, from nothing; with NULL from nothing alone. */
void ways_find(struct ways *x, const unsigned char *from);
/* ways_list(x, last, list, n, e): the numbers, in order, of those on the way that ends
 * with `last', whose cost is not MAX; the list is the caller's to free. */
int ways_list(const struct ways *x, size_t last, size_t **list, size_t *n,
    struct err *e);

#endif
