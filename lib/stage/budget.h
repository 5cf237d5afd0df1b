/*
 * How many bytes a coded shard may take, however it was asked for.
 */
#ifndef ACE_BUDGET_H
#define ACE_BUDGET_H

#include <stdint.h>

struct err;
struct survey;

enum budget_by { BUDGET_BYTES, BUDGET_BITS, BUDGET_POLICY };

struct budget {
	enum budget_by by;
	uint64_t bytes;
	double bits;		/* a value */
};

/*
 * budget_find(b, s, bytes, e): of the shard of which s is known so far.  A
 * policy gives budget_bytes, or else ratio.
 * -ERR_USAGE with what is missing.
 */
int budget_find(const struct budget *b, const struct survey *s,
    uint64_t *bytes, struct err *e);

#endif
