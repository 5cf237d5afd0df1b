/*
 * One frame: a 64-byte header, the payload, and zeros up to a multiple of 8 bytes
 * (ace-stream(5), FRAMES).
 */
#ifndef ACE_FRAME_H
#define ACE_FRAME_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum {
	FRAME_HEAD_SIZE = 64,
	FRAME_TAIL_SIZE = 48,		/* bytes of TAIL's payload */
	FRAME_MAX = 16 << 20,		/* limit on the payload in bytes; HEAD may lower it */
	FRAME_MAX_HARD = 64 << 20,	/* limit on lengths for which no memory is allocated */
	FRAME_VERSION = 1
};

#define FRAME_TYPE(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | \
	(uint32_t)(c) << 16 | (uint32_t)(d) << 24)

#define FRAME_SYNC FRAME_TYPE(0xac, 'A', 'C', 'E')
#define FRAME_HEAD FRAME_TYPE(0x0d, 0x0a, 0x1a, 0x0a)
#define FRAME_SCHM FRAME_TYPE('S', 'C', 'H', 'M')
#define FRAME_SHRD FRAME_TYPE('S', 'H', 'R', 'D')
#define FRAME_DATA FRAME_TYPE('D', 'A', 'T', 'A')
#define FRAME_SEND FRAME_TYPE('S', 'E', 'N', 'D')
#define FRAME_TAIL FRAME_TYPE('T', 'A', 'I', 'L')
#define FRAME_RCPT FRAME_TYPE('R', 'C', 'P', 'T')
#define FRAME_PROV FRAME_TYPE('p', 'R', 'O', 'v')	/* provenance */
#define FRAME_STAT FRAME_TYPE('s', 'T', 'A', 'T')	/* statistics */
#define FRAME_SCOR FRAME_TYPE('s', 'C', 'O', 'R')	/* importance */
#define FRAME_PLAN FRAME_TYPE('p', 'L', 'A', 'N')	/* codec per group */
#define FRAME_POLI FRAME_TYPE('p', 'O', 'L', 'i')	/* policy */
#define FRAME_MEMB FRAME_TYPE('m', 'E', 'M', 'b')	/* contributors to the shard */
#define FRAME_TIME FRAME_TYPE('t', 'I', 'M', 'e')	/* seconds per tensor */
#define FRAME_SIGN FRAME_TYPE('s', 'I', 'G', 'N')	/* signature */
#define FRAME_MODL FRAME_TYPE('m', 'O', 'D', 'L')	/* models of a patch */

/* The case of a type's letters has a meaning, as in PNG. First letter lower case:
 * readers may skip the frame. Second: private type. Fourth: the frame remains valid
 * when its shard is changed. */
static inline int
frame_ancillary(uint32_t type)
{
	return (type & 0x20) != 0;
}

static inline int
frame_safe_to_copy(uint32_t type)
{
	return (type & 0x20000000u) != 0;
}

/* Return 1 for the annotations that must be inside a shard. Other annotations may also be
 * between shards. */
static inline int
frame_of_shard(uint32_t type)
{
	return type == FRAME_STAT || type == FRAME_SCOR ||
	    type == FRAME_PLAN || type == FRAME_POLI || type == FRAME_MEMB ||
	    type == FRAME_TIME || type == FRAME_SIGN || type == FRAME_MODL;
}

/* Flags. Unknown bits in the low byte are refused; in the high byte they are ignored. */
#define FRAME_LZ4 ((uint16_t)1)
#define FRAME_CRITICAL ((uint16_t)0xff)
/* a DATA frame that was written early; filters pass it on immediately */
#define FRAME_CUT ((uint16_t)0x100)

struct frame_head {
	uint32_t type;
	uint16_t flags;
	uint32_t seq;			/* number of the frame in its stream, from 0 */
	uint32_t wire_len, raw_len;	/* bytes of the payload; bytes after LZ4 decompression */
	uint64_t stream_id, shard_key;	/* shard_key: 0 outside shards */
	uint64_t payload_hash;		/* XXH3-64 of the payload as it is in the stream */
	uint64_t offset;		/* position of the frame in its stream */
};

void frame_encode(const struct frame_head *h, unsigned char out[64]);

/* Read and check a header. Errors are "corrupt" for sync, checksum, type, and two lengths that
 * differ without LZ4; "unsupported" for version, header length and critical flags; "limit" for
 * a payload above max bytes. at: the header's position, for the message. */
int frame_decode(struct frame_head *h, const unsigned char p[64], uint32_t max,
    uint64_t at, struct err *e);
/* Return the error for a stream of version v, other than FRAME_VERSION. */
int frame_version(unsigned v, uint64_t at, struct err *e);

/* Return "HEAD", another type's four letters, or "0x" and hexadecimal digits; out: memory for the
 * result, not always used. */
const char *frame_name(uint32_t type, char out[16]);

/* Return how many zeros follow n bytes of payload. */
static inline size_t
frame_padding(size_t n)
{
	return (8 - n % 8) % 8;
}

#endif
