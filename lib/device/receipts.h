/*
 * The receipts of a device: the state file `receipts', a stream of RCPT frames.
 * ace-ack writes the file, and ace-compress reads it at the next step.  It then drops
 * pending shards that were accepted, and adds the values of rejected ones back to its
 * target.  Once the file exists, no pending shard is dropped without a receipt.
 */
#ifndef ACE_RECEIPTS_H
#define ACE_RECEIPTS_H

#include "base/io.h"
#include "base/statedir.h"
#include "format/receipt.h"

struct err;

enum { RECEIPTS_MAX = 64 };	/* the newest ones are kept: more than a window of shards */

struct receipts {
	int managed;		/* 1: the file exists */
	size_t n;
	struct receipt r[RECEIPTS_MAX];	/* oldest first */
};

int receipts_load(struct receipts *q, const struct statedir *s, struct err *e);
/* Add r. It replaces an older receipt for the same bytes, unless receipt_is_accepted(the older
 * one). If there are RECEIPTS_MAX others, the oldest is dropped. */
void receipts_add(struct receipts *q, const struct receipt *r);
int receipts_save(const struct receipts *q, const struct statedir *s,
    enum io_sync sync, struct err *e);
/* Return the receipt for shard s with this digest, or NULL. */
const struct receipt *receipts_find(const struct receipts *q,
    const struct shard *s, const unsigned char digest[SHARD_DIGEST]);

#endif
