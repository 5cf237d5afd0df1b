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

/* join_send(s, run, w, e): writes to w the shards of DIR/RUN/model.aceg, and
 * the aggregates of the steps from that model's on, which are all steps where
 * there is no model.  -ERR_REFUSED when one of them was removed. */
int join_send(const struct inbox *s, const char *run, struct writer *w,
    struct err *e);

/* join_model(s, run, in, e): `in' stands at a shard of kind model: this shard
 * and all that follow become DIR/RUN/model.aceg.  run NULL: the shard's own. */
int join_model(const struct inbox *s, const char *run, struct reader *in,
    struct err *e);

#endif
