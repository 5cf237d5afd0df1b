/*
 * Payloads of annotations about groups: sTAT, sCOR, pLAN. Each covers a range of
 * groups: {first u32, n u32, entry size u32, 0 u32}, in pLAN also {budget u64, price
 * f64}, then n entries. Annotations are inside the shard, before or after the data they
 * describe. The ranges of one type are in rising order.
 */
#ifndef ACE_ANNOTATION_H
#define ACE_ANNOTATION_H

#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "codec/stat.h"

struct err;

enum {
	NOTE_HEAD = 16,			/* bytes of the head */
	NOTE_STAT = 24 + 4 * STAT_BINS,	/* bytes of an entry in sTAT */
	NOTE_SCORE = 4,			/* bytes of an entry in sCOR */
	NOTE_PLAN = 8,			/* bytes of an entry in pLAN */
	NOTE_TERMS = 16,		/* bytes of budget and price */
	NOTE_PLAN_NONE = 65535		/* codec in a plan: do not send the group */
};

/* The budget and the Lagrange multiplier (price) of a plan. The encoder may change the
 * codecs' rate parameters until the coded shard takes `budget' bytes. */
struct note_terms {
	uint64_t budget;	/* bytes of the whole coded shard; 0: no limit */
	/* Lagrange multiplier: weighted squared error per byte; 0: unknown */
	double price;
};

/* A range of groups. The entries are encoded; decode them when needed. */
struct note {
	uint32_t first, n;		/* first group; number of groups */
	struct note_terms terms;	/* only in a plan */
	const unsigned char *entry;	/* the first entry, in the payload */
};

/* Append to out the payload of an annotation about n groups, the first of which is `first'.
 * note_put_plan: terms may be NULL: no budget and no Lagrange multiplier. */
int note_put_stats(struct buf *out, uint32_t first, const struct stat_group *s,
    uint32_t n, struct err *e);
int note_put_scores(struct buf *out, uint32_t first, const float *s, uint32_t n,
    struct err *e);
int note_put_plan(struct buf *out, uint32_t first, const struct codec_plan *p,
    uint32_t n, const struct note_terms *terms, struct err *e);

/* Set *note from the payload p, into which note->entry points. Check the head against len and
 * ngroups, and the entries of a plan. entry: NOTE_STAT, NOTE_SCORE or NOTE_PLAN. Return 0 or
 * -ERR_DATA, "unsupported" if a codec or its parameter is unknown. */
int note_get(struct note *note, const unsigned char *p, size_t len,
    uint32_t entry, uint32_t ngroups, struct err *e);
/* Read entry i of a note.  note_stat: -ERR_DATA if the statistics are not finite, do not add
 * up, or are not of as many values as the group has in schema sc. */
struct schema;
int note_stat(const struct note *note, uint32_t i, const struct schema *sc,
    struct stat_group *s, struct err *e);
float note_score(const struct note *note, uint32_t i);
/* Copy a note's scores to `to', at the index of each group. Return -ERR_DATA unless all are
 * from 0 to 1. */
int note_scores(const struct note *note, float *to, struct err *e);
void note_plan(const struct note *note, uint32_t i, struct codec_plan *p);

/* ---- a plan that arrives in parts ---- */

/* The entries of pLAN frames, which come before or after the data. They are looked up by
 * group, in rising order. */
enum { NOTE_WAIT_MAX = 32 << 20 };	/* limit on waiting entries, in bytes */

struct note_wait {
	struct note_wait_part {
		uint32_t first, n;
		unsigned char *entry;	/* NOTE_PLAN bytes each */
	} *part;
	size_t n, cap, bytes;	/* n: parts; bytes: approximate memory of all parts */
	int any;		/* 1: a pLAN frame of this shard was added */
};
#define NOTE_WAIT_INIT { NULL, 0, 0, 0, 0 }

/* Add the payload of one pLAN frame. -ERR_DATA if note_get refuses it or all waiting parts
 * exceed NOTE_WAIT_MAX. */
int note_wait_add(struct note_wait *p, const unsigned char *payload, size_t len,
    uint32_t ngroups, struct err *e);
/* Return 1 if the entry of group g has arrived, else 0. */
int note_wait_has(const struct note_wait *p, uint32_t g);
/* Like note_wait_has, and set *out to the entry. This may free entries of groups before g. */
int note_wait_get(struct note_wait *p, uint32_t g, struct codec_plan *out);
/* Drop all entries; call it before the next shard begins. */
void note_wait_clear(struct note_wait *p);
void note_wait_release(struct note_wait *p);

#endif
