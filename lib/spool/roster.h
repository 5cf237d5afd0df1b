/*
 * The list of a run's devices: the file DIR/devices, one name per line.  If it exists, a step
 * waits for a shard of each listed device, or its deadline.  The list may change during a run.
 */
#ifndef ACE_ROSTER_H
#define ACE_ROSTER_H

#include <stdint.h>

#include "format/array.h"

struct err;
struct spool;

/* roster_read(t, s, e): append the names to t, sorted.  Return 1, or 0 if there is no list.
 * -ERR_DATA: a line is invalid, or the list has 1 MiB or more.  Release t also after errors. */
int roster_read(struct array_names *t, const struct spool *s, struct err *e);
/* roster_missing(out, s, here, made, e): append the listed devices that have no shard in
 * a step and return 1; `here' has the names of the step's files (steps_files), which this
 * function sorts.  If there is no list, append the devices that have a shard in the step
 * `made' - 1 (unless made is 0) but not in this one, and return 0. */
int roster_missing(struct array_names *out, const struct spool *s,
    struct array_names *here, uint64_t made, struct err *e);

/* roster_change(s, device, joins, e): add the device to the list if joins is 1, or remove it if
 * 0.  If there is no list, first make a list of the devices whose shards are in the spool.
 * -ERR_REFUSED: the device to remove is not in the list, or the list is full; -ERR_USAGE: the
 * name to add cannot be in a list. */
int roster_change(const struct spool *s, const char *device, int joins,
    struct err *e);

#endif
