/*
 * The chain of frames: one verified frame after another, from HEAD to TAIL,
 * nothing lost, doubled, swapped or spliced in.  What the frames mean is the
 * reader's business.
 */
#ifndef ACE_CHAIN_H
#define ACE_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "format/frame.h"

struct err;
struct io;
struct pack_sum;

struct chain_frame {
	uint32_t type;
	uint16_t flags;
	uint64_t shard_key;
	const unsigned char *wire;	/* as it came */
	size_t wire_len;
	uint64_t wire_hash;
	const unsigned char *raw;	/* after LZ4 */
	size_t raw_len;
};

/* All that a rewind must bring back, beside the sum of the headers. */
struct chain_pos {
	int open;			/* between HEAD and TAIL */
	uint32_t seq;
	uint32_t n_shards;
	uint64_t announced;		/* shards, by HEAD; 0: not known */
	uint64_t stream_id;
	uint64_t start;			/* of this stream, in the file */
	uint64_t offset;		/* of the current frame, in the file */
	uint64_t raw_total;
};

struct chain {
	struct io *io;
	struct chain_pos pos, mark;
	struct chain_frame frame;
	struct frame_head head;
	int unknown;			/* refused for a version, a flag or a
					 * feature, and nothing was damaged */
	uint32_t max_frame;		/* announced by this stream */
	unsigned char schema_id[16];	/* announced by this stream */
	struct pack_sum *headers, *mark_headers;
	unsigned char header[FRAME_HEAD_SIZE];
	struct buf payload, unpacked;
};

/* chain_init takes io (freed by chain_release), also when it fails. */
int chain_init(struct chain *c, struct io *io, struct err *e);
void chain_release(struct chain *c);

/* chain_aborted(c, e): -ERR_DATA, its producer has given up; without a word where
 * it is a pipe, so that the first cause stands alone. */
int chain_aborted(const struct chain *c, struct err *e);

/* chain_begin: 1 a stream begins (HEAD verified), 0 the clean end of the file,
 * which no bytes at all are not. */
int chain_begin(struct chain *c, struct err *e);
/* chain_next: 1 a frame, in c->frame; 0 the TAIL, all totals verified (then
 * chain_begin). */
int chain_next(struct chain *c, struct err *e);

/* -ERR_DATA "corrupt: what (TYPE frame), at byte N". */
int chain_corrupt(const struct chain *c, struct err *e, const char *what);

/*
 * chain_find(c, from, e): after damage, looks for the next header whose
 * checksum is right, from byte `from' on, and stands before it: 1, the header
 * in c->head; 0 there is none; -ERR_DATA it is whole but of a version, or with
 * a flag, that this reader does not know.  If it is not a HEAD, chain_next
 * takes it and what follows it for the chain; the tail's sums are then wrong.
 */
int chain_find(struct chain *c, uint64_t from, struct err *e);

int chain_mark(struct chain *c, size_t limit, struct err *e);
int chain_rewind(struct chain *c, struct err *e);

#endif
