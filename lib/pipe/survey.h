/*
 * Collects what a shard's annotations say of its groups (statistics,
 * importance) and its policy, while they pass.
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
	struct stat_group *stat;	/* [n], zeros where nothing is known */
	float *score;			/* [n], 1 where nothing is known */
	uint8_t *have;			/* [n] SURVEY_SENT | ... */
	struct text_kv policy;		/* of the shard's pOLi, the last wins */
	uint64_t notes;			/* bytes of frames that stay when the
					 * shard is coded */
	const struct schema *schema;
	const struct reader *in;	/* for messages */
};
#define SURVEY_INIT { 0, NULL, NULL, NULL, TEXT_KV_INIT, 0, NULL, NULL }

/* survey_begin(s, sc, in, e): a shard of schema sc; in stands at it. */
int survey_begin(struct survey *s, const struct schema *sc,
    const struct reader *in, struct err *e);
/* survey_sent(s, g): notes that group g is in the shard. */
void survey_sent(struct survey *s, uint32_t g);
/* survey_note(s, type, p, n, wire, e): an annotation with payload p, which
 * takes wire bytes in the stream.  A score that is not in [0, 1] is corrupt,
 * and so are statistics that no values can have. */
int survey_note(struct survey *s, uint32_t type, const unsigned char *p,
    size_t n, size_t wire, struct err *e);
/* survey_lacks(s, g): 1 when the group was sent and has no statistics. */
int survey_lacks(const struct survey *s, uint32_t g);
/* survey_values(s, g, x, n): computes its statistics from its values x f32[n];
 * 0, or 1 + the index of the first that is not finite. */
size_t survey_values(struct survey *s, uint32_t g, const float *x, size_t n);
void survey_release(struct survey *s);

#endif
