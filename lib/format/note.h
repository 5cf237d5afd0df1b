/*
 * The payloads of the annotations that speak of groups: sTAT, sCOR, pLAN.
 * Each covers a range of groups: {first u32, n u32, entry size u32, 0 u32}, in
 * pLAN also {budget u64, price f64}, then n entries.  An annotation follows, or
 * comes before, the data it speaks of, inside the shard; ranges of one type
 * rise.
 */
#ifndef ACE_NOTE_H
#define ACE_NOTE_H

#include <stdint.h>

#include "base/alloc.h"
#include "codec/codec.h"
#include "codec/stat.h"

struct err;

enum {
	NOTE_HEAD = 16,
	NOTE_STAT = 24 + 4 * STAT_BINS,
	NOTE_SCORE = 4,
	NOTE_PLAN = 8,
	NOTE_TERMS = 16,
	NOTE_PLAN_NONE = 65535		/* a plan's codec: do not send */
};

/* What a plan was made for.  Whoever codes it may turn the codecs' knobs until
 * the coded shard takes `budget' bytes. */
struct note_terms {
	uint64_t budget;	/* bytes of the whole coded shard; 0: any */
	double price;		/* weighted squared error that a byte is worth;
				 * 0: not known */
};

/* A range of groups, its entries still as bytes. */
struct note {
	uint32_t first, n;
	struct note_terms terms;	/* of a plan */
	const unsigned char *entry;
};

int note_put_stats(struct buf *out, uint32_t first, const struct stat_group *s,
    uint32_t n, struct err *e);
int note_put_scores(struct buf *out, uint32_t first, const float *s, uint32_t n,
    struct err *e);
/* terms may be NULL: then the plan has no budget and no price. */
int note_put_plan(struct buf *out, uint32_t first, const struct codec_plan *p,
    uint32_t n, const struct note_terms *terms, struct err *e);

/* note_get(&note, payload, len, entry size, ngroups, e): checks the head
 * against the payload's length and the schema's number of groups, and a plan's
 * entries; -ERR_DATA, "unsupported" for a codec that is not known. */
int note_get(struct note *note, const unsigned char *p, size_t len,
    uint32_t entry, uint32_t ngroups, struct err *e);
/* Entry i of a note. */
void note_stat(const struct note *note, uint32_t i, struct stat_group *s);
float note_score(const struct note *note, uint32_t i);
void note_plan(const struct note *note, uint32_t i, struct codec_plan *p);

#endif
