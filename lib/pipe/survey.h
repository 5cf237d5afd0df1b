/*
 * Collect a shard's statistics, importances and policy from its annotations.
 */
#ifndef ACE_SURVEY_H
#define ACE_SURVEY_H

#include <stdint.h>

#include "codec/stat.h"
#include "format/reader.h"
#include "format/text.h"

struct err;
struct schema;

enum { SURVEY_SENT = 1, SURVEY_STAT = 2, SURVEY_SCORE = 4 };

struct survey {
	uint32_t n;
	struct stat_group *stat;	/* [n], zeros if unknown */
	float *score;			/* [n], 1 if unknown */
	uint8_t *have;			/* [n] bits SURVEY_*: what is known of the group */
	struct text_kv policy;		/* from pOLi frames; the last value of each key */
	/* bytes of the frames that are passed on with the coded shard */
	uint64_t notes;
	const struct schema *schema;
	const struct reader *in;	/* for messages */
};
#define SURVEY_INIT { 0, NULL, NULL, NULL, TEXT_KV_INIT, 0, NULL, NULL }

/* Begin the shard of schema sc at which `in' stands. */
int survey_begin(struct survey *s, const struct schema *sc,
    const struct reader *in, struct err *e);
/* Note that group g is in the shard. */
void survey_sent(struct survey *s, uint32_t g);
/* Note an annotation with payload p[n], which has `wire' bytes in the stream, possibly packed.
 * Return -ERR_DATA for a score outside [0, 1], impossible statistics, or an invalid policy. */
int survey_note(struct survey *s, uint32_t type, const unsigned char *p,
    size_t n, size_t wire, struct err *e);
/* Return 1 if the group was sent without statistics. */
int survey_lacks(const struct survey *s, uint32_t g);
/* Compute a group's statistics from its values x f32[n]. Return 0, or 1 + the index of the
 * first value that is not finite. */
size_t survey_values(struct survey *s, uint32_t g, const float *x, size_t n);
void survey_release(struct survey *s);

#endif
