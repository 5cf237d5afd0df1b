/*
 * Is a stream as it was written; and of one that is damaged, what is whole.
 */
#ifndef ACE_VERIFY_H
#define ACE_VERIFY_H

#include <stdint.h>

#include "base/err.h"

struct reader;
struct report;
struct writer;

/* verify_file(p, r, e): decodes a whole stream, which is p->io, compares it with the sums that
 * the end of each shard states, and prints one line when all is well (none if
 * p->quiet).  -ERR_DATA: the file is damaged.  -ERR_NO: the sums disagree with the
 * end of a shard. */
int verify_file(struct report *p, struct reader *r, struct err *e);

struct verify_saved {
	uint64_t saved;		/* shards */
	uint64_t damages;	/* frames refused, the tail's sums too */
	struct err first;	/* the first damage */
};

/* verify_recover(x, r, w, e): copies the undamaged shards from r, of which nothing
 * may have been read yet, to w; the caller still has to end w.  Those are the
 * shards whose every frame, from SHRD to SEND, is as it was written.  Their data is
 * copied byte for byte.  Each is marked as recovered, and marked shards are never
 * aggregated.  Damage is not an error, but is described in x.  An input that cannot
 * seek: -ERR_USAGE. */
int verify_recover(struct verify_saved *x, struct reader *r, struct writer *w,
    struct err *e);

#endif
