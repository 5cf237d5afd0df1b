/*
 * Patches that come in one stream, each of the model that the one before makes, or
 * whole.  They are read and verified to their end, put down, and then taken all
 * together, group by group, so that a model makes several steps at once.
 *
 * Or the patches of all ranks of each of several steps, which are its parts: of each group
 * the words that a rank has are coded by themselves.  What is a part's lies in what the
 * model has, or beside it; all words that the model has are in some part, and those in
 * several are the same in all.  The steps are taken as the first part of each came, and
 * which of them the model has already is found by the words of its groups.
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
	SERIES_MOST = 1024,	/* patches of a stream */
	SERIES_AHEAD = 32	/* parts that are fetched at once */
};

/* A group as one of the patches has it. */
struct series_part {
	uint32_t group, len;	/* len: of its body */
	uint64_t at;		/* where that is put down */
	uint64_t sum;		/* XXH3-64 of the bytes that it makes */
	uint64_t step;		/* of the patch */
	uint8_t param;
	uint8_t whole;		/* it needs no old words */
	/* of a part, which says something of each group that it has words of: */
	uint8_t sent;		/* they changed, and there is a body */
	uint16_t of;		/* number of the patch, when it is taken */
	uint64_t base;		/* XXH3-64 of the bytes before */
};

struct series_patch {
	unsigned char before[MODEL_HASH];	/* zeros: whole */
	unsigned char after[MODEL_HASH];
	uint64_t step, base;	/* base_version, 0: it is not said */
	int whole;
	size_t turn;		/* of parts, that of all of a step */
	unsigned rank, ranks;	/* 0 of 0: no part */
	struct slice *slice;	/* of each tensor of the model; NULL: no part */
	int lent;		/* it is an earlier one's, who had the same */
	/* private: its parts, and those that are fetched */
	uint64_t at;
	size_t n, done, i, k;
	struct series_part next[SERIES_AHEAD];
};

struct series {
	struct scratch s;	/* its file is the caller's to choose */
	struct series_patch *p;	/* those of a turn side by side */
	size_t n, cap;
	size_t turns, capmay;
	size_t from;		/* the first that is taken */
	int parts;		/* they are parts */
	unsigned char *may;	/* [turns + 1]: the groups that were looked at are those
				 * of the model that this turn is for, the last: of
				 * the one that all make; of parts */
	/* of the last one that came, also of one that is refused: */
	unsigned char run[SHARD_ID], digest[SHARD_DIGEST];
	uint64_t step;
	unsigned char *has;	/* [groups]: 1 where any patch has this one */
};
#define SERIES_INIT { .s = SCRATCH_INIT(1 << 20) }

/* series_read(s, in, m, e): all of the stream, which may have none.  -ERR_DATA where
 * one is no patch, or not of a model with m's tensors, or does not go on from the one
 * before, or is a part of something else; -ERR_REFUSED where a rank's is missing, of any
 * step. */
int series_read(struct series *s, struct reader *in, const struct model *m,
    struct err *e);
void series_release(struct series *s);

/* series_from(s, i): from the first group on, of patch i and those after it; with n of
 * none. */
void series_from(struct series *s, size_t i);
/* series_take(s, g, part, n, cap, e): the parts of group g, in their order.  Groups are
 * asked for as they rise.  *part, of *cap, grows where it has to. */
int series_take(struct series *s, uint32_t g, struct series_part **part,
    size_t *n, size_t *cap, struct err *e);
/* series_whole(s): the first patch that is needed: what comes before one that needs no old
 * model is not. */
size_t series_whole(const struct series *s);
/* series_group(s, list, n, span, old, new, body, e): what n parts make of a group, each
 * verified by its sum; for several threads at once, each with a body of its own. */
int series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    struct buf *body, struct err *e);

/* What series_parts needs for itself, and what it found. */
struct series_work {
	struct buf body, tile, seen, was;
	struct buf is;		/* the same for the current group */
	size_t odd;		/* the first patch that is not for its words */
};
/* series_parts(s, list, n, m, g, old, new, w, e): the same of a group of m that n parts
 * have words of: from the first turn on that is for its words, of those that the model may
 * be at.  -ERR_DATA also where no part has some of its words, or two have others, or a
 * turn is not for what the one before makes. */
int series_parts(const struct series *s, const struct series_part *list, size_t n,
    const struct model *m, uint32_t g, unsigned char *old, unsigned char *new,
    struct series_work *w, struct err *e);
/* series_seen(s, w): one more group was looked at. */
void series_seen(struct series *s, const struct series_work *w);
/* series_base(s): the first patch of the last turn that the model may be at; n: none. */
size_t series_base(const struct series *s);

#endif
