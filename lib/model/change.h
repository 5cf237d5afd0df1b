/*
 * A patch in a stream.  It turns one model into another, or has a whole model.  change_read
 * reads all of it into memory or a scratch file; then change_group applies and verifies a group.
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
	uint8_t param;
};

struct change {
	struct scratch s;	/* the bodies; the caller may choose its file */
	struct change_part *part;	/* [n], in rising order of groups */
	size_t n, cap;
	struct model_note note;	/* hashes of the models; note.sum: [n], one per part */
	int notes;		/* number of frames mODL; note is the last one */
	uint64_t step, base;	/* base: base_version, 0: unknown */
	int whole;		/* 1: the patch has a whole model */
};
#define CHANGE_INIT { .s = SCRATCH_INIT(1 << 20), .note = MODEL_NOTE_INIT }

/* Read the patch whose shard `in' has reached (reader_to_shard); c forgets the patch read
 * before.  -ERR_DATA: the shard is damaged, is not a patch, or is not for the tensors of m. */
int change_read(struct change *c, struct reader *in, const struct model *m, struct err *e);
void change_release(struct change *c);

/* Apply record p to the bytes at old, write the result to new, verify it by its checksum, and
 * set hash to the result's XXH3-128.  old is not read if the record has all values.  body is
 * scratch memory; each thread needs its own.  -ERR_DATA if the record is damaged or the
 * checksum differs, as it does if old is of another model. */
int change_group(const struct change *c, const struct change_part *p,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e);

#endif
