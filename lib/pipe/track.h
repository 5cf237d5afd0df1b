/*
 * Follows the bytes of a stream as they pass, frame by frame: where a frame
 * ends, and of which type it was.  Only headers are looked at and only their
 * checksums hold; to believe a frame takes a reader.
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

/* track_want(t): so many bytes belong to the header or the frame at hand. */
uint64_t track_want(const struct track *t);
/* track_bytes(t, p, n, end): how many of them belong to the current frame, at
 * least 1 of n > 0; *end its type when it ends there, else 0.  When lost, all
 * n. */
size_t track_bytes(struct track *t, const unsigned char *p, size_t n,
    uint32_t *end);

#endif
