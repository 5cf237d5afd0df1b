/*
 * What is whole in a damaged file, saved: shards whose every frame, from SHRD
 * to SEND, is as it was written.  Their data is copied byte for byte; each is
 * marked as recovered, and nobody aggregates what is marked.
 */
#ifndef ACE_RECOVER_H
#define ACE_RECOVER_H

#include <stdint.h>

#include "base/err.h"

struct reader;
struct writer;

struct recover {
	uint64_t saved;		/* shards */
	uint64_t damages;	/* frames refused, the tail's sums too */
	struct err first;	/* the first of them */
};

/* recover_stream(x, r, w, e): nothing was read from r yet; w is left without
 * its end.  Damage is not an error, but told in x.  What cannot seek:
 * -ERR_USAGE. */
int recover_stream(struct recover *x, struct reader *r, struct writer *w,
    struct err *e);

#endif
