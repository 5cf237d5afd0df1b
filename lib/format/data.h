/*
 * The payload of DATA: a directory of groups in rising order, and their bodies.
 */
#ifndef ACE_DATA_H
#define ACE_DATA_H

#include <stddef.h>
#include <stdint.h>

struct chain;
struct err;
struct schema;

struct record {
	uint32_t group;
	uint8_t codec, param;	/* codec: one of this version's */
	const unsigned char *body;
	size_t len;
};

/* The records of one frame; they point into its payload. */
struct data_frame {
	struct record *rec;	/* [n], alloc_free */
	size_t n, cap;
};

/* What was read of the shard so far; all zeros at its beginning. */
struct data_pos {
	uint32_t frames, records;
	uint64_t next_group;	/* groups must rise */
	uint64_t raw, wire;	/* bytes of the values, of the bodies */
};

/* data_decode(d, pos, c, s, e): reads the records of the DATA frame that c
 * stands at into d, and moves pos on. */
int data_decode(struct data_frame *d, struct data_pos *pos, const struct chain *c,
    const struct schema *s, struct err *e);

#endif
