/*
 * The receipts a device has got (state file `receipts', a stream of RCPT
 * frames).  ace-ack writes it, ace-compress obeys it when it absorbs the next
 * step: a shard whose receipt says accepted is forgotten, one that was
 * rejected is taken back into the residual.  Once the file is there, nothing
 * pending is forgotten without a receipt.
 */
#ifndef ACE_RECEIPTS_H
#define ACE_RECEIPTS_H

#include "base/io.h"
#include "base/statedir.h"
#include "format/receipt.h"

struct err;

enum { RECEIPTS_MAX = 64 };	/* the newest are kept; windows are smaller */

struct receipts {
	int managed;		/* the file is there */
	size_t n;
	struct receipt r[RECEIPTS_MAX];	/* oldest first */
};

int receipts_load(struct receipts *q, const struct statedir *s, struct err *e);
/* receipts_add(q, r): a newer verdict on the same shard takes the place of the
 * older one, unless that was accepted. */
void receipts_add(struct receipts *q, const struct receipt *r);
int receipts_save(const struct receipts *q, const struct statedir *s,
    enum io_sync sync, struct err *e);
/* receipts_find(q, s, digest): the receipt for shard s with these bytes, or
 * NULL. */
const struct receipt *receipts_find(const struct receipts *q,
    const struct shard *s, const unsigned char digest[SHARD_DIGEST]);

#endif
