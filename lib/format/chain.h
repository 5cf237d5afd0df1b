/*
 * The chain of frames from HEAD to TAIL. Each header is verified, and each payload that is
 * read: a lost, repeated, swapped or inserted frame is an error. format/reader.h interprets
 * the frames.
 */
#ifndef ACE_CHAIN_H
#define ACE_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "format/frame.h"

struct err;
struct io;
struct hash_sum;

struct chain;

struct chain_frame {
	struct chain *of;
	uint32_t type;
	uint16_t flags;
	uint64_t shard_key;
	const unsigned char *wire;	/* the payload as it was read */
	size_t wire_len;
	size_t unseen;			/* unread bytes at the end, with padding */
	uint64_t wire_hash;		/* XXH3-64 of wire, from the header */
	const unsigned char *raw;	/* the payload, decompressed if flags has FRAME_LZ4 */
	size_t raw_len;
};

struct chain_pos {
	int open;			/* 1: between HEAD and TAIL */
	uint32_t seq;			/* number of the next frame; HEAD is 0 */
	uint32_t n_shards;		/* shards of this stream that began so far */
	uint64_t announced;		/* number of shards that HEAD states; 0: unknown */
	uint64_t stream_id;
	uint64_t start;			/* position of this stream in the file */
	uint64_t offset;		/* position of the current frame in the file */
	uint64_t raw_total;		/* sum of the frames' raw_len */
};

struct chain {
	struct io *io;
	struct chain_pos pos;
	struct chain_frame frame;
	struct frame_head head;
	int skip;			/* 1: do not read the values of large DATA without LZ4 */
	uint32_t max_frame;		/* limit in bytes that the stream states */
	unsigned char schema_id[16];	/* schema that the stream states */
	struct hash_sum *headers;	/* checksum of this stream's headers so far */
	unsigned char header[FRAME_HEAD_SIZE];	/* the current frame's header as it was read */
	struct buf payload, unpacked;	/* memory of frame.wire and frame.raw */
};

/* Start a chain, which owns io from now on, even on failure; chain_release frees it. */
int chain_init(struct chain *c, struct io *io, struct err *e);
void chain_release(struct chain *c);

/* Return -ERR_DATA: the producer of the stream has given up. On a pipe set e->upstream,
 * because the producer has printed its own message, unless the pipe passes on a file. */
int chain_aborted(const struct chain *c, struct err *e);

/* Return 1 if a stream begins (HEAD verified), 0 at the clean end of the file; an empty
 * file is an error. */
int chain_begin(struct chain *c, struct err *e);
/* Return 1 with a frame in c->frame. Return 0 after TAIL, when all totals are verified;
 * call chain_begin for the next stream. */
int chain_next(struct chain *c, struct err *e);

/* Read the unread part of the current frame, so that it is complete and verified. */
int chain_fetch(struct chain *c, struct err *e);
/* Write the payload of the current frame f unchanged, with its padding. */
int chain_pass(const struct chain_frame *f, struct io *to, struct err *e);

/* Return -ERR_DATA "corrupt: WHAT (TYPE frame), at byte N". */
int chain_corrupt(const struct chain *c, struct err *e, const char *what);

#endif
