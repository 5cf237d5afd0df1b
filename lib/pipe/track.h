/*
 * Finds the frames in the bytes of a stream while they pass: where each ends,
 * and of which type it is.  It looks at headers and their checksums only;
 * payloads are not verified, which takes a reader.
 */
#ifndef ACE_TRACK_H
#define ACE_TRACK_H

#include <stddef.h>
#include <stdint.h>

#include "format/frame.h"
#include "format/shard.h"

enum { TRACK_HEAD = FRAME_HEAD_SIZE + SHARD_END_SIZE };

struct track {
	int lost;		/* this is no stream, or a damaged one */
	uint64_t left;		/* of the current frame; 0: in its header */
	size_t have;
	unsigned char head[TRACK_HEAD];	/* how the frame begins */
	struct frame_head h;	/* of the current frame */
};
#define TRACK_INIT { 0, 0, 0, { 0 }, { 0, 0, 0, 0, 0, 0, 0, 0, 0 } }

/* track_unseen(t): how many bytes of values come next, of which track_bytes need
 * not see a copy: p may be NULL then. */
uint64_t track_unseen(const struct track *t);
/* track_bytes(t, p, n, end): how many of the n > 0 bytes belong to the current
 * frame, at least 1; *end is its type if it ends with them, else 0.  When lost,
 * all n. */
size_t track_bytes(struct track *t, const unsigned char *p, size_t n,
    uint32_t *end);

#endif
