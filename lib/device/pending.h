/*
 * The shards in the file `residual' that were sent, or should have been, and
 * whose fate may not be known yet.
 */
#ifndef ACE_PENDING_H
#define ACE_PENDING_H

#include "device/receipts.h"
#include "device/residual.h"

struct err;

enum { PENDING_MAX = 8 };	/* shards in flight */

enum pending_fate { PENDING_OPEN, PENDING_ACCEPTED, PENDING_REJECTED };

struct pending {
	size_t n;
	struct pending_one {
		uint64_t step;
		unsigned char digest[SHARD_DIGEST];
		enum pending_fate fate;
	} p[PENDING_MAX];
};

/* pending_scan(p, s, e): what the file holds; fates are open. */
int pending_scan(struct pending *p, const struct state *s, struct err *e);
/* pending_judge(p, q, of, e): what the receipts say of them; of: any shard of
 * the run and device.  A receipt for other bytes is -ERR_REFUSED. */
int pending_judge(struct pending *p, const struct receipts *q,
    const struct shard *of, struct err *e);
/* How many are open. */
size_t pending_count(const struct pending *p);
const struct pending_one *pending_find(const struct pending *p, uint64_t step);

/* pending_copy(p, q, w, e): from q, which has read its residual, to w: those
 * still open and of a step before `before'. */
int pending_copy(const struct pending *p, struct residual *q, struct writer *w,
    uint64_t before, struct err *e);
/* pending_values(d, s, step, e): d gives the decoded values of the pending
 * shard of that step. */
int pending_values(struct dense *d, const struct state *s, uint64_t step,
    struct err *e);

#endif
