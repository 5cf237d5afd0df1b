/*
 * How many bytes the writer will need for a shard, from SHRD to SEND with all
 * frames, directories and padding, reckoned without writing it.
 */
#ifndef ACE_SIZE_H
#define ACE_SIZE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct shard;

struct size {
	uint64_t bytes;		/* so far, without what waits for its frame */
	size_t dir, body;
	uint32_t n;
	uint64_t next;
	uint8_t param;
	size_t pad;		/* bytes of padding in the last DATA frame */
};

/* size_shard(z, s, e): begins to count for the shard s. */
int size_shard(struct size *z, const struct shard *s, struct err *e);
/* size_record(z, group, codec, param, len): counts a record with a body of len
 * bytes; groups rise, as for writer_record. */
void size_record(struct size *z, uint32_t group, uint32_t codec, uint8_t param,
    size_t len);
/* size_cost(codec, len, param): what a record with a body of len bytes adds to a
 * frame, without padding; param: 1 where its parameter may differ from that of the
 * record before.  Of no bytes it is 0: the group is not sent. */
uint64_t size_cost(uint32_t codec, size_t len, int param);
/* size_send(z): ends it and returns the bytes of the whole shard. */
uint64_t size_send(struct size *z);

#endif
