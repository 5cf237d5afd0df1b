/*
 * The records of one DATA frame, until it is written: their bodies lie one after
 * another, behind room for the directory, so that the payload is there when the
 * last one came.
 */
#ifndef ACE_BATCH_H
#define ACE_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

struct batch {
	struct buf dir, body;
	struct buf whole;	/* payload, where the directory is long */
	uint32_t n;		/* records */
	uint32_t first;		/* group */
	uint64_t next;		/* the group after the last one */
	uint8_t param;		/* of the last one */
};
#define BATCH_INIT { BUF_INIT, BUF_INIT, BUF_INIT, 0, 0, 0, 0 }

/* batch_add(b, group, codec, param, body, len, e): one more record; its group is
 * behind the last one's. */
int batch_add(struct batch *b, uint32_t group, uint32_t codec, uint8_t param,
    const unsigned char *body, size_t len, struct err *e);
/* batch_bytes(b): those of the bodies so far. */
size_t batch_bytes(const struct batch *b);
/* batch_end(b, p, n, e): *p is the payload, of *n bytes, until the next record,
 * which begins another one. */
int batch_end(struct batch *b, const unsigned char **p, size_t *n,
    struct err *e);
void batch_release(struct batch *b);

#endif
