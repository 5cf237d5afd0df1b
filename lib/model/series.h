/*
 * The patches of one stream.  Each has a whole model, or changes the model that the
 * previous patch makes.  All are read, verified and stored, and then applied together,
 * group by group, so that a model goes through several steps in one pass.
 */
#ifndef ACE_SERIES_H
#define ACE_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "format/shard.h"
#include "model/model.h"
#include "pipe/scratch.h"

struct err;
struct reader;

enum {
	SERIES_MOST = 1024	/* limit on the patches of a stream */
};

/* A patch's record of one group. */
struct series_part {
	uint32_t group, len;	/* len: bytes of its body */
	uint64_t at;		/* position of its body in the scratch file */
	uint64_t sum;		/* XXH3-64 of the new bytes */
	uint64_t step;		/* step of the patch */
	uint8_t param;
	uint8_t whole;		/* 1: it needs no old words */
};

struct series_patch {
	unsigned char before[MODEL_HASH];	/* zeros: the patch has a whole model */
	unsigned char after[MODEL_HASH];
	uint64_t step, base;	/* base: base_version, 0: unknown */
	int whole;
	/* private: the patch's records, and the record fetched last */
	uint64_t at;
	size_t n, done, got;
	struct series_part next;
};

struct series {
	struct scratch s;	/* the caller may choose its file */
	struct series_patch *p;	/* [n] */
	size_t n, cap;
	size_t from;		/* the first patch to apply */
	/* of the patch begun last, even if refused; digest: of the last accepted one */
	unsigned char run[SHARD_ID], digest[SHARD_DIGEST];
	uint64_t step;
	unsigned char *has;	/* [groups]: 1 if any patch changes the group */
};
#define SERIES_INIT { .s = SCRATCH_INIT(1 << 20) }

/* Read all patches of the stream, which may have none.  -ERR_DATA if a shard is not a
 * patch, is for other tensors than m's, or does not continue the previous patch. */
int series_read(struct series *s, struct reader *in, const struct model *m,
    struct err *e);
void series_release(struct series *s);

/* Begin to take the groups of patch i and of all later patches; i = s->n: no groups. */
void series_from(struct series *s, size_t i);
/* Set part[*n] to the records of group g, in the order of the patches.  Ask for groups in
 * rising order.  *part has room for *cap records and grows as needed. */
int series_take(struct series *s, uint32_t g, struct series_part **part,
    size_t *n, size_t *cap, struct err *e);
/* Return the index of the last patch that has a whole model, which replaces all earlier
 * ones; 0 if there is none. */
size_t series_whole(const struct series *s);
/* Apply n > 0 records to a group, verify each result by its sum, and set the hash of the
 * last.  body is memory; each thread needs its own. */
int series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e);

#endif
