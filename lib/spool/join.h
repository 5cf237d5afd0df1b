/*
 * The receiver's part in letting a device join a run that has begun: it comes
 * into the list of devices, if there is one, and is told what the others know:
 * the newest model that somebody put into the spool, if there is one, and the
 * aggregates after it.
 */
#ifndef ACE_JOIN_H
#define ACE_JOIN_H

#include <stdint.h>

#include "spool/inbox.h"

struct err;
struct reader;
struct writer;

/* join_send(s, run, device, w, e): writes to w the shards of
 * DIR/RUN/model.aceg, and the aggregates of the steps from that model's on, which
 * are all steps where there is no model.  -ERR_REFUSED when one of them was
 * removed.  The device counts as told, see decide_shard. */
int join_send(const struct inbox *s, const char *run, const char *device,
    struct writer *w, struct err *e);

/* ---- a device asks by itself, on its own connection ---- */

struct join_asked {
	const char *run, *device;
	uint64_t step;		/* what it has to know begins here */
};
/* join_next(s, q, next, e): 1 and the first closed step from q->step on; its
 * aggregate is there, will come, or never will (decide_aggregate).  0: there is
 * none, and *next is the step to begin with: it is open, or one of which the
 * device has a shard here, which it sends again, as after a crash.  -ERR_REFUSED
 * when an aggregate was removed. */
int join_next(const struct inbox *s, const struct join_asked *q,
    uint64_t *next, struct err *e);
/* join_tell(q, w, e): the end of the answer, a model without values whose step
 * is q->step, the one to begin with. */
int join_tell(const struct join_asked *q, struct writer *w, struct err *e);
/* join_known(s, run, device, step, e): writes down that the device knows what the
 * others do from this step on.  It may be slow with its first shard, and have asked
 * before the run had any.  Where it was told before that stays: it may have a shard
 * of then that is not there yet, which was computed at the others' model. */
int join_known(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct err *e);
/* join_model(s, run, in, e): `in' stands at a shard of kind model: this shard
 * and all that follow become DIR/RUN/model.aceg.  run: of a shard that does not say
 * its own; NULL or a pattern: of none. */
int join_model(const struct inbox *s, const char *run, struct reader *in,
    struct err *e);

#endif
