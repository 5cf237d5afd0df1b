/*
 * The budget of a coded shard in bytes, whether it was asked for in bytes, in
 * bits a value, or by the policy in the stream.
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
 * budget_find(b, s, bytes, e): the budget of the shard that s is collected
 * from.  Of a policy its key budget_bytes, or else ratio counts; -ERR_USAGE
 * when it has neither.
 */
int budget_find(const struct budget *b, const struct survey *s,
    uint64_t *bytes, struct err *e);

#endif
