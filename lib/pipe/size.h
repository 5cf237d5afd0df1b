/*
 * Compute the bytes that the writer would write for a shard without annotations, from SHRD
 * to SEND with frames, directories and padding.
 */
#ifndef ACE_SIZE_H
#define ACE_SIZE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct shard;

struct size {
	uint64_t bytes;		/* bytes so far, without the unfinished DATA frame */
	size_t dir, body;	/* bytes of the unfinished frame's directory; of its bodies */
	uint32_t n;		/* records in it */
	uint64_t next;		/* group after the last one */
	uint8_t param;		/* parameter of the last record */
	size_t pad;		/* padding of the last DATA frame in bytes */
};

/* Start counting shard s. */
int size_shard(struct size *z, const struct shard *s, struct err *e);
/* Count a record with a body of len bytes; group numbers rise, as in writer_record. */
void size_record(struct size *z, uint32_t group, uint32_t codec, uint8_t param,
    size_t len);
/* Return the bytes that a record of the next group with a body of len bytes adds to a frame,
 * without padding; 0 if len is 0, since the group is then not sent. param: 1 if its parameter
 * may differ from the previous record's. */
uint64_t size_cost(uint32_t codec, size_t len, int param);
/* End the shard and return its bytes. */
uint64_t size_send(struct size *z);

#endif
