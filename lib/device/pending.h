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

enum { PENDING_MAX = 8 };	/* shards in flight */

enum pending_fate { PENDING_OPEN, PENDING_ACCEPTED, PENDING_REJECTED };

struct pending {
	size_t n;
	struct pending_one {
		uint64_t step;
		unsigned char digest[SHARD_DIGEST];
		enum pending_fate fate;
		int invalid;		/* it was rejected as invalid */
	} p[PENDING_MAX];
};

/* Read what the file has; all results are open. */
int pending_scan(struct pending *p, const struct statedir *s, struct err *e);
/* Set the results from the receipts q; of: any shard of the run and device. A receipt
 * with another digest is about other bytes and decides nothing: the shard is sent again
 * and gets its own receipt. */
void pending_judge(struct pending *p, const struct receipts *q,
    const struct shard *of);
/* pending_count: return how many are open. pending_find: return that of a step, or
 * NULL. */
size_t pending_count(const struct pending *p);
const struct pending_one *pending_find(const struct pending *p, uint64_t step);

/* Check that shard sh of schema sc, which was returned, answers a shard that this state
 * sent: it is an average of the state's run and model, of a step that is pending or
 * that one of the receipts `heard' is about. Otherwise -ERR_DATA with what was found
 * and expected. A state that has sent nothing accepts no average. */
int pending_answers(const struct statedir *s, const struct receipts *heard,
    const struct shard *sh, const struct schema *sc, struct err *e);

/* Return 1 if pending_copy would copy any. */
int pending_owed(const struct pending *p, uint64_t before);
/* Copy the open shards of steps before `before' from q, which stands after its
 * residual, to w. */
int pending_copy(const struct pending *p, struct residual *q, struct writer *w,
    uint64_t before, struct err *e);
/* Open d on the decoded values of the pending shard of that step. */
int pending_values(struct dense *d, const struct statedir *s, uint64_t step,
    struct err *e);

/*
 * The shard that was coded last, which a codec may start from (lowrank does).
 * It is read from the residual's file, which holds it until the next commit:
 * so it changes together with the residual or not at all, and a step that is
 * coded again after a kill starts from the same shard.
 */
struct pending_last {
	struct residual q;
	int open, done;
	const struct record *rec;	/* of the frame at hand */
	size_t n, i;
};

/* pending_last_group(l, s, step, g, c, e): 1 and *c is the body of group g in the
 * shard of that step, until the next call; 0: it has none.  g rises from call to
 * call; l begins as zeros. */
int pending_last_group(struct pending_last *l, const struct statedir *s,
    uint64_t step, uint32_t g, struct codec_last *c, struct err *e);
void pending_last_close(struct pending_last *l);

#endif
