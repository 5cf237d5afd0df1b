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
/* note_scores(note, to, e): those of its groups to f32[groups]; -ERR_DATA where one is
 * not from 0 to 1. */
int note_scores(const struct note *note, float *to, struct err *e);
void note_plan(const struct note *note, uint32_t i, struct codec_plan *p);

/* ---- the plan as it arrives ---- */

/* pLAN annotations, before or after the data they speak of, asked for group by
 * group in rising order. */
enum { NOTE_WAIT_MAX = 32 << 20 };	/* bytes of plan waiting for their data */

struct note_wait {
	struct note_wait_part {
		uint32_t first, n;
		unsigned char *entry;	/* NOTE_PLAN bytes each */
	} *part;
	size_t n, cap, bytes;
	int any;		/* some plan was seen in this shard */
};
#define NOTE_WAIT_INIT { NULL, 0, 0, 0, 0 }

/* note_wait_add(p, payload, len, ngroups, e): adds the payload of one pLAN
 * frame. */
int note_wait_add(struct note_wait *p, const unsigned char *payload, size_t len,
    uint32_t ngroups, struct err *e);
/* note_wait_has(p, g): 1 when group g's entry has arrived, 0 when it has not. */
int note_wait_has(const struct note_wait *p, uint32_t g);
/* note_wait_get(p, g, out): the same, with the entry in *out; what is kept of the
 * groups before g may be freed. */
int note_wait_get(struct note_wait *p, uint32_t g, struct codec_plan *out);
/* note_wait_clear(p): forgets everything, before the next shard. */
void note_wait_clear(struct note_wait *p);
void note_wait_release(struct note_wait *p);

#endif
