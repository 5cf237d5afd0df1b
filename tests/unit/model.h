/* A model of one tensor, for tests of streams. */
#ifndef MODEL_H
#define MODEL_H

#include <stdlib.h>

#include "format/schema.h"

/* Return tensor w of rows * cols values, or of rows values if cols is 0, in groups of
 * this size (0: the default). */
static inline struct schema
model_of(uint64_t rows, uint64_t cols, uint32_t group)
{
	struct schema_tensor t = { .name = (char []){ "w" },
	    .ndim = cols != 0 ? 2 : 1, .dim = { rows, cols } };
	struct schema sc = SCHEMA_INIT;

	if (group != 0)
		sc.group_size = group;
	if (schema_add(&sc, &t, NULL) < 0 || schema_finish(&sc, NULL) < 0)
		abort();
	return sc;
}

#endif
