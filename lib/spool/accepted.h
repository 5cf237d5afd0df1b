/*
 * The shards of one device that a spool has accepted, all steps of a run: in
 * closed steps those of the manifest, in open ones those that are there.
 */
#ifndef ACE_ACCEPTED_H
#define ACE_ACCEPTED_H

#include "spool/inbox.h"
#include "spool/ledger.h"

struct err;

/* accepted_find(s, of, got, gone, e): of: any shard of the run and device; got:
 * receipts, by step, with the files' names; gone: those whose files were
 * removed. */
int accepted_find(const struct inbox *s, const struct shard *of,
    struct ledger *got, struct ledger *gone, struct err *e);

#endif
