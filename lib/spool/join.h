/*
 * The data that a device needs when it joins a run in progress: the averages of all
 * closed steps.  The device asks for them on its own connection.  An operator may first add
 * the device to the list of devices (spool/roster.h), so that steps wait for it.
 */
#ifndef ACE_JOIN_H
#define ACE_JOIN_H

#include <stdint.h>

#include "spool/spool.h"

struct err;
struct writer;

/* join_next(s, device, from, next, e): set *next to the first closed step from `from' on that
 * has a directory and return 1.  Its average is there, will come, or never will
 * (manifest_average).  If there is no such step, set *next to the first open step, which may
 * be before `from', and return 0.  Return 0 also if the device has a shard in the step *next
 * and can still get its average: after a crash the device sends that shard again.
 * -ERR_REFUSED: an average from `from' on was removed. */
int join_next(const struct spool *s, const char *device, uint64_t from, uint64_t *next,
    struct err *e);
/* join_tell(run, device, step, w, e): write the end of the answer: a shard of kind model without
 * values, whose step is the one with which the device begins. */
int join_tell(const char *run, const char *device, uint64_t step, struct writer *w,
    struct err *e);
/* join_known(s, device, step, e): note that the device has the others' model from this
 * step on, so that verdict_shard does not refuse its first shard if that is late.  An
 * earlier step that was noted stays: a shard of that step may be on its way, and was
 * computed at the others' model. */
int join_known(const struct spool *s, const char *device, uint64_t step,
    struct err *e);

#endif
