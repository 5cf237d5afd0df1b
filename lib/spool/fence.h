/*
 * The receiver's part in restoring a device from a backup (device/restore.h
 * says what for): it raises the device's incarnation and says what it has
 * accepted.
 */
#ifndef ACE_FENCE_H
#define ACE_FENCE_H

#include <stdint.h>

#include "spool/inbox.h"
#include "spool/ledger.h"

struct err;

/* fence_send(s, run, device, step, w, e): raises the incarnation, then writes
 * to w the new number, receipts for what was accepted up to step, which is the
 * last one that the backup knows, and the shards accepted after it. */
int fence_send(const struct inbox *s, const char *run, const char *device,
    uint64_t step, struct writer *w, struct err *e);

/* fence_accepted(s, of, got, gone, e): which shards of one device the spool has
 * accepted, over all steps of a run: in closed steps those that the manifest lists,
 * in open ones those whose files are there.  of is any shard of the run and device.
 * got becomes their receipts, in the order of the steps, with the names of
 * their files; gone becomes the receipts of those whose files were removed. */
int fence_accepted(const struct inbox *s, const struct shard *of,
    struct ledger *got, struct ledger *gone, struct err *e);

#endif
