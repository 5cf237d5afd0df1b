/*
 * A patch of a stream: it changes a model, or has a whole one.  It is read, verified and
 * stored before any of it is applied, group by group.
 */
#ifndef ACE_CHANGE_H
#define ACE_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"
#include "pipe/scratch.h"

struct err;
struct reader;

/* The record of one group. */
struct change_part {
	uint32_t group, len;	/* len: bytes of its body */
	uint64_t at;		/* position of its body in the scratch file */
	uint64_t sum;		/* XXH3-64 of the new bytes */
	uint8_t param;
};

struct change {
	struct scratch s;	/* the bodies; the caller may choose its file */
	struct change_part *part;	/* [n], in rising order of groups */
	size_t n, cap;
	unsigned char before[MODEL_HASH];	/* zeros: the patch has a whole model */
	unsigned char after[MODEL_HASH];
	uint64_t step, base;	/* base: base_version, 0: unknown */
	int whole;
};
#define CHANGE_INIT { .s = SCRATCH_INIT(1 << 20) }

/* Read the patch whose shard `in' has reached; it replaces the patch read before.
 * -ERR_DATA if the shard is not a patch, or is for other tensors than m's. */
int change_read(struct change *c, struct reader *in, const struct model *m, struct err *e);
void change_release(struct change *c);

/* Apply record p to the bytes at old, write the result to new, verify it by p->sum, and
 * set hash to the result's XXH3-128. body is scratch memory; each thread needs its own. */
int change_group(const struct change *c, const struct change_part *p,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e);

#endif
