/*
 * The patches of one stream.  Each has a whole model, or changes the model that the
 * previous patch makes.  All are read, verified and stored, and then applied together,
 * group by group, so that a model goes through several steps in one pass.
 *
 * A step may also have one patch per rank, called a part.  In each group a part codes
 * only the words that its rank has; a model of slices has all of these words or none.
 * Each word of the model is in some part, and all parts with that word agree.  Steps
 * (turns) are applied in the order in which their first parts came.  Checksums of the
 * groups' words show which steps the model has already made.
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
	/* for parts, which have a record for each group that has words in them: */
	uint8_t sent;		/* 1: words changed, and there is a body */
	uint16_t of;		/* index of the patch, set by series_take */
	uint64_t base;		/* XXH3-64 of the old bytes */
};

struct series_patch {
	unsigned char before[MODEL_HASH];	/* zeros: the patch has a whole model */
	unsigned char after[MODEL_HASH];
	uint64_t step, base;	/* base: base_version, 0: unknown */
	int whole;
	size_t turn;		/* number of its step in the stream */
	unsigned rank, ranks;	/* both 0: not a part */
	struct slice *slice;	/* [tensors of the model]; NULL: not a part */
	/* private: the patch's records, and the record fetched last */
	uint64_t at;
	size_t n, done, got;
	struct series_part next;
};

struct series {
	struct scratch s;	/* the caller may choose its file */
	struct series_patch *p;	/* [n]; patches of one turn are adjacent */
	size_t n, cap;
	size_t turns, capmay;
	size_t from;		/* the first patch to apply */
	int parts;		/* 1: the patches are parts */
	unsigned char *may;	/* [turns + 1], for parts: 1 if all groups seen so far
				 * have the bytes that precede this turn; last element:
				 * the bytes after all turns */
	/* names of the last patch that was read, even if it was refused: */
	unsigned char run[SHARD_ID], digest[SHARD_DIGEST];
	uint64_t step;
	unsigned char *has;	/* [groups]: 1 if any patch changes the group */
};
#define SERIES_INIT { .s = SCRATCH_INIT(1 << 20) }

/* Read all patches of the stream, which may have none.  -ERR_DATA if a shard is not a
 * patch, is for other tensors than m's, does not continue the previous patch, or is a
 * part of another run; -ERR_REFUSED if a step lacks the part of a rank. */
int series_read(struct series *s, struct reader *in, const struct model *m,
    struct err *e);
void series_release(struct series *s);

/* Begin to take the groups of patch i and of all later patches; i = s->n: no groups. */
void series_from(struct series *s, size_t i);
/* Set part[*n] to the records of group g, in the order of the patches.  Ask for groups in
 * rising order.  *part has room for *cap records and grows as needed. */
int series_take(struct series *s, uint32_t g, struct series_part **part,
    size_t *n, size_t *cap, struct err *e);
/* Return the index of the first patch to apply: the first of the last step that has the
 * whole model, which replaces all earlier ones; 0, so all patches, without such a step. */
size_t series_whole(const struct series *s);
/* Memory and results of series_group. */
struct series_work {
	struct buf body, room;	/* room: memory for the next three */
	unsigned char *tile;	/* the words of one part */
	unsigned char *seen;	/* 1 for each byte of the group that some part has */
	unsigned char *was;	/* the group before a turn */
	struct buf is;		/* like `may' of struct series, for this group alone */
	size_t odd;		/* the first patch that does not fit the group's words */
};
void series_work_release(struct series_work *w);
/* Apply n > 0 records to group g of m, verify each result by its sum, and set the hash of
 * the last.  With parts, begin with the first turn that fits the group's words and those of
 * all groups before; -ERR_DATA also if no part has some of these words, if two parts differ,
 * or if a turn does not continue the one before it.  Each thread needs its own w. */
int series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model *m, uint32_t g, unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct series_work *w, struct err *e);
/* Take what series_group found in one more group of parts into s->may. */
void series_seen(struct series *s, const struct series_work *w);
/* Return the first patch of the last turn that fits all groups seen, or s->n if none does. */
size_t series_base(const struct series *s);

#endif
