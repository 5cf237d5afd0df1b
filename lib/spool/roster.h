/*
 * The devices that a run has now, as far as somebody said it: the file
 * DIR/RUN/devices, a name in a line.  Where there is one, a step is over when
 * each of them has a shard in it; a device that joins is added, one that left
 * is taken out, and nothing has to be started again.
 */
#ifndef ACE_ROSTER_H
#define ACE_ROSTER_H

#include <stdint.h>

#include "format/array.h"

struct err;
struct inbox;

/* roster_read(t, s, run, e): 1 and the names, sorted, or 0: there is no list. */
int roster_read(struct array_names *t, const struct inbox *s, const char *run,
    struct err *e);
/* roster_missing(out, s, run, step, last, e): appends those of the list that have no
 * shard in the step: 1.  0: there is no list; then it appends those who had one in the
 * step `last', unless that is NULL, and have none in this one. */
int roster_missing(struct array_names *out, const struct inbox *s,
    const char *run, uint64_t step, const uint64_t *last, struct err *e);

/* roster_change(s, run, device, joins, e): adds the device to the list, or
 * takes it out.  Without a list, one is made of the devices seen so far. */
int roster_change(const struct inbox *s, const char *run, const char *device,
    int joins, struct err *e);

#endif
