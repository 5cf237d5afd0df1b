/*
 * Which shards of one device a spool has accepted, over all steps of a run: in
 * closed steps those that the manifest lists, in open ones those whose files
 * are there.
 */
#ifndef ACE_ACCEPTED_H
#define ACE_ACCEPTED_H

#include "spool/inbox.h"
#include "spool/ledger.h"

struct err;

/* accepted_find(s, of, got, gone, e): of is any shard of the run and device.
 * got becomes their receipts, in the order of the steps, with the names of
 * their files; gone becomes the receipts of those whose files were removed. */
int accepted_find(const struct inbox *s, const struct shard *of,
    struct ledger *got, struct ledger *gone, struct err *e);

#endif
