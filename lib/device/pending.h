/*
 * Pending shards: coded shards in the file `residual' that were sent, or were about to
 * be, and for which the device may have no receipt yet.
 */
#ifndef ACE_PENDING_H
#define ACE_PENDING_H

#include "codec/codec.h"
#include "device/receipts.h"
#include "device/residual.h"

struct err;
struct schema;

enum { PENDING_MAX = 8 };	/* limit on the pending shards of a state */

enum pending_fate { PENDING_OPEN, PENDING_ACCEPTED, PENDING_REJECTED };

struct pending {
	size_t n;
	struct pending_one {
		uint64_t step;
		unsigned char digest[SHARD_DIGEST];
		enum pending_fate fate;
		int invalid;		/* 1: rejected as invalid */
	} p[PENDING_MAX];
};

/* Read the pending shards from the file, if it exists; each fate is PENDING_OPEN.  -ERR_DATA
 * if there are more than PENDING_MAX. */
int pending_scan(struct pending *p, const struct statedir *s, struct err *e);
/* Set the fates from the receipts q; of: any shard of the run and device.  Ignore
 * receipts with another digest: they are for other bytes, and the shard, which is sent
 * again, gets its own receipt. */
void pending_judge(struct pending *p, const struct receipts *q,
    const struct shard *of);
/* pending_count: return the number of open shards. pending_find: return the shard of a
 * step, or NULL. */
size_t pending_count(const struct pending *p);
const struct pending_one *pending_find(const struct pending *p, uint64_t step);

/* Check that sh, of schema sc, is an average that answers a shard of this state: it must be
 * of the state's run and model, and of a step that is pending or that has one of the
 * receipts `heard'. Otherwise return -ERR_DATA with what was found and expected. A state
 * that has sent nothing accepts any shard but an average. */
int pending_answers(const struct statedir *s, const struct receipts *heard,
    const struct shard *sh, const struct schema *sc, struct err *e);

/* Return 1 if pending_copy would copy any shard. */
int pending_owed(const struct pending *p, uint64_t before);
/* Copy the open shards of steps before `before' to w.  q: the residual, opened but not
 * passed to residual_pending yet. */
int pending_copy(const struct pending *p, struct residual *q, struct writer *w,
    uint64_t before, struct err *e);
/* Open d on the decoded values of the pending shard of the given step; -ERR_DATA if it is
 * absent.  Close d also after a failure. */
int pending_values(struct dense *d, const struct statedir *s, uint64_t step,
    struct err *e);

/*
 * The shard that was coded last, from which a codec may start (lowrank does).  It is read
 * from the residual's file, which keeps it until the next commit.  So it never changes
 * without the residual, and a step that is coded again after a kill starts from the same
 * shard.
 */
struct pending_last {
	struct residual q;
	int open, done;		/* 1: q is open; 1: the shard is absent or has no more records */
	const struct record *rec;	/* [n] records of the current frame */
	size_t n, i;		/* i: index of the next record */
	uint32_t group;		/* group of the last call */
};

/* Set *c to the body of group g in the shard of the given step, valid until the next
 * call.  Return 1, or 0 if the shard or its group is absent.  A smaller g than before
 * reads the shard again from its beginning.  l begins as zeros. */
int pending_last_group(struct pending_last *l, const struct statedir *s,
    uint64_t step, uint32_t g, struct codec_last *c, struct err *e);
void pending_last_close(struct pending_last *l);

#endif
