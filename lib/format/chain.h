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

struct chain;

struct chain_frame {
	struct chain *of;
	uint32_t type;
	uint16_t flags;
	uint64_t shard_key;
	const unsigned char *wire;	/* as it came */
	size_t wire_len;
	size_t unseen;			/* of it and its padding, at the end:
					 * still to be read */
	size_t skipped;			/* the same, but passed over */
	uint64_t wire_hash;
	const unsigned char *raw;	/* after LZ4 */
	size_t raw_len;
};

/* The state that a rewind restores, apart from the sum of the headers. */
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
	uint64_t mark_at;
	struct chain_frame frame;
	struct frame_head head;
	int skip_checks;		/* what DATA carries is not looked at */
	int skip_bodies;		/* nor read, where it can be passed over */
	int unknown;			/* refused for a version, a flag or a
					 * feature, and nothing was damaged */
	uint32_t max_frame;		/* announced by this stream */
	unsigned char schema_id[16];	/* announced by this stream */
	struct pack_sum *headers, *mark_headers;
	unsigned char header[FRAME_HEAD_SIZE];
	struct buf payload, unpacked;
};

/* chain_init(c, io, e): the chain owns io from now on, even when this fails;
 * chain_release frees it. */
int chain_init(struct chain *c, struct io *io, struct err *e);
void chain_release(struct chain *c);

/* chain_aborted(c, e): -ERR_DATA, because the stream's producer has given up.
 * On a pipe the error is marked quiet, so that only the producer's own message
 * is seen. */
int chain_aborted(const struct chain *c, struct err *e);

/* chain_begin: 1 a stream begins (HEAD verified), 0 the clean end of the file,
 * which no bytes at all are not. */
int chain_begin(struct chain *c, struct err *e);
/* chain_next: 1 a frame, in c->frame; 0 the TAIL, all totals verified (then
 * chain_begin). */
int chain_next(struct chain *c, struct err *e);

/* chain_fetch(c, e): reads what was passed over of the current frame: afterwards
 * it is whole and verified. */
int chain_fetch(struct chain *c, struct err *e);
/* chain_pass(f, to, e): writes the payload of the current frame f, as it came,
 * and its padding. */
int chain_pass(const struct chain_frame *f, struct io *to, struct err *e);

/* chain_corrupt(c, e, what): -ERR_DATA with the message "corrupt: WHAT (TYPE
 * frame), at byte N". */
int chain_corrupt(const struct chain *c, struct err *e, const char *what);

/*
 * chain_find(c, from, e): after damage, looks from byte `from' on for the next
 * header whose checksum is right, and stands before it.  Returns 1 with the
 * header in c->head; 0 when there is none; -ERR_DATA when the header is whole
 * but has a version or a flag that this reader does not know.  If it is not a
 * HEAD, chain_next goes on from it as if the stream had begun earlier, and the
 * totals in the TAIL will not match.
 */
int chain_find(struct chain *c, uint64_t from, struct err *e);

void chain_mark(struct chain *c);
int chain_rewind(struct chain *c, struct err *e);

#endif
