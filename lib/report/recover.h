/*
 * Saves the undamaged shards of a damaged file: those whose every frame, from
 * SHRD to SEND, is as it was written.  Their data is copied byte for byte.  Each
 * is marked as recovered, and marked shards are never aggregated.
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
	struct err first;	/* the first damage */
};

/* recover_stream(x, r, w, e): copies from r, of which nothing may have been read
 * yet, to w; the caller still has to end w.  Damage is not an error, but is
 * described in x.  An input that cannot seek: -ERR_USAGE. */
int recover_stream(struct recover *x, struct reader *r, struct writer *w,
    struct err *e);

#endif
