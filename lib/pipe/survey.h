/*
 * What a shard's annotations say of its groups, gathered over one pass.
 */
#ifndef ACE_SURVEY_H
#define ACE_SURVEY_H

#include <stdint.h>

#include "codec/stat.h"
#include "format/reader.h"
#include "format/text.h"

struct err;

enum { SURVEY_SENT = 1, SURVEY_STAT = 2, SURVEY_SCORE = 4 };

struct survey {
	uint32_t n;
	struct stat_group *stat;	/* [n], zeros where nothing is known */
	float *score;			/* [n], 1 where nothing is known */
	uint8_t *have;			/* [n] */
	struct text_kv policy;		/* of the shard's pOLi, the last wins */
	uint64_t notes;			/* bytes of frames that stay when the
					 * shard is coded */
	int scored;			/* some score was there */
};
#define SURVEY_INIT { 0, NULL, NULL, NULL, TEXT_KV_INIT, 0, 0 }

/* survey_begin(s, n, e): a shard of n groups. */
int survey_begin(struct survey *s, uint32_t n, struct err *e);
/* survey_event(s, r, event, e): READER_DATA and READER_NOTE count, the rest
 * is passed over.  A score that is not in [0, 1] is corrupt. */
int survey_event(struct survey *s, const struct reader *r, int event,
    struct err *e);
/* survey_lacks(s): 1 when a group that was sent has no statistics. */
int survey_lacks(const struct survey *s);
/* survey_values(s, g, x, n): its statistics from its values; 0, or 1 + index
 * of the first that is not finite. */
size_t survey_values(struct survey *s, uint32_t g, const float *x, size_t n);
void survey_release(struct survey *s);

#endif
