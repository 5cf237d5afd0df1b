/*
 * How many bytes the writer will need for a shard, without writing it: from
 * SHRD to SEND, frames, directories, padding and all.
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

/* size_shard(z, s, e): a shard begins. */
int size_shard(struct size *z, const struct shard *s, struct err *e);
/* size_record: as writer_record, groups rising. */
void size_record(struct size *z, uint32_t group, uint8_t param, size_t len);
/* size_send(z): the end; the bytes of the whole shard. */
uint64_t size_send(struct size *z);

#endif
