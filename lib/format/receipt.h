/*
 * A delivery receipt (frame RCPT): the admission result of one shard, identified by its
 * run, device, step and digest.
 */
#ifndef ACE_RECEIPT_H
#define ACE_RECEIPT_H

#include <stdint.h>

#include "base/alloc.h"
#include "format/shard.h"

struct err;

/* The result of a shard.  If the same bytes come again, it may be another one: `duplicate' after
 * `accepted', or `invalid' or `late' if closing the step excluded the shard. */
enum receipt_verdict {
	RECEIPT_ACCEPTED = 0,
	RECEIPT_DUPLICATE = 1,
	RECEIPT_LATE = 2,		/* the step was closed without the shard */
	RECEIPT_INVALID = 3,		/* bad values, another model, or against a rule */
	RECEIPT_EQUIVOCATION = 4,	/* other bytes for the same device and step */
	RECEIPT_FENCED = 5,		/* an older incarnation of the device */
	RECEIPT_NVERDICT = 6
};

enum { RECEIPT_REASON = 160 };

struct receipt {
	unsigned char run[SHARD_ID], device[SHARD_ID];
	uint64_t step;
	uint32_t verdict;		/* enum receipt_verdict */
	unsigned char digest[SHARD_DIGEST];	/* digest of the shard */
	uint64_t clock;			/* the server's time, Unix nanoseconds */
	uint64_t version;		/* the server's model version */
	char reason[RECEIPT_REASON];	/* text that ends in NUL, may be empty */
};

int receipt_encode(const struct receipt *r, struct buf *out, struct err *e);
int receipt_decode(struct receipt *r, const unsigned char *p, size_t n, struct err *e);
const char *receipt_verdict_name(unsigned verdict);	/* "accepted", ... */

/* Return 1 if the receiver has the shard: its values must not be added again. */
static inline int
receipt_is_accepted(const struct receipt *r)
{
	return r->verdict == RECEIPT_ACCEPTED || r->verdict == RECEIPT_DUPLICATE;
}

/* Return 1 if the shard was refused for good, and the sender must act before it
 * continues. */
static inline int
receipt_is_refused(const struct receipt *r)
{
	return r->verdict == RECEIPT_INVALID || r->verdict == RECEIPT_EQUIVOCATION ||
	    r->verdict == RECEIPT_FENCED;
}

/* Return 1 if the receipt has the run, device and step of s; the digest is not compared. */
int receipt_is_for(const struct receipt *r, const struct shard *s);

#endif
