/*
 * Verify that a stream is as it was written; recover the intact shards of a damaged
 * one.
 */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

#include <stdint.h>

#include "base/err.h"

struct reader;
struct report;
struct writer;

/* Decode the whole stream p->io, compare it with the sums at the end of each shard, and
 * print one line if it is intact (none with p->quiet). Return -ERR_DATA if the file is
 * damaged, -ERR_NO if the sums disagree. */
int verify_file(struct report *p, struct reader *r, struct err *e);

struct verify_saved {
	uint64_t saved;		/* number of saved shards */
	uint64_t damages;	/* frames refused, including a wrong sum in the tail */
	struct err first;	/* the first damage */
};

/* Copy the undamaged shards from r, of which nothing was read yet, to w, which the caller
 * ends. These are the shards of which each frame from SHRD to SEND is as it was written.
 * Data is copied unchanged. Copies are marked as recovered; marked shards are never
 * aggregated. Damage is not an error; it is described in x. Return -ERR_USAGE if the
 * input cannot seek. */
int verify_recover(struct verify_saved *x, struct reader *r, struct writer *w,
    struct err *e);

#endif
