/*
 * The pending shards: coded shards in the file `residual' that were sent, or
 * were about to be, and which the device may have no receipt for yet.
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

/* pending_scan(p, s, e): reads what the file holds; all fates are open. */
int pending_scan(struct pending *p, const struct state *s, struct err *e);
/* pending_judge(p, q, of): sets their fates by the receipts q; of is any shard of
 * the run and device.  A receipt with another digest is about other bytes and
 * decides nothing: the shard is sent again, and its own receipt does. */
void pending_judge(struct pending *p, const struct receipts *q,
    const struct shard *of);
/* pending_count: how many are open.  pending_find: that of a step, or NULL. */
size_t pending_count(const struct pending *p);
const struct pending_one *pending_find(const struct pending *p, uint64_t step);

/* pending_owed(p, before): 1 when pending_copy would copy some. */
int pending_owed(const struct pending *p, uint64_t before);
/* pending_copy(p, q, w, before, e): copies those that are open and of a step
 * before `before' from q, which stands behind its residual, to w. */
int pending_copy(const struct pending *p, struct residual *q, struct writer *w,
    uint64_t before, struct err *e);
/* pending_values(d, s, step, e): opens d so that it gives the decoded values of
 * the pending shard of that step. */
int pending_values(struct dense *d, const struct state *s, uint64_t step,
    struct err *e);

#endif
