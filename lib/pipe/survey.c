#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/annotation.h"
#include "format/keys.h"
#include "pipe/survey.h"

int
survey_begin(struct survey *s, const struct schema *sc,
    const struct reader *in, struct err *e)
{
	uint32_t g, n = sc->ngroups;

	text_release(&s->policy);
	if (n != s->n || s->stat == NULL) {
		survey_release(s);
		s->stat = alloc_get(n, sizeof(*s->stat), e);
		s->score = alloc_get(n, sizeof(*s->score), e);
		s->have = alloc_get(n, 1, e);
		if (s->stat == NULL || s->score == NULL || s->have == NULL)
			return -ERR_SYS;
		s->n = n;
	}
	s->schema = sc;
	s->in = in;
	memset(s->have, 0, n);
	memset(s->stat, 0, n * sizeof(*s->stat));
	for (g = 0; g < n; g++)
		s->score[g] = 1;
	s->notes = 0;
	return 0;
}

static int
survey_stats(struct survey *s, const unsigned char *p, size_t len, struct err *e)
{
	struct note note;
	uint32_t i;
	int k;

	if ((k = note_get(&note, p, len, NOTE_STAT, s->n, e)) < 0)
		return k;
	for (i = 0; i < note.n; i++) {
		if ((k = note_stat(&note, i, s->schema, &s->stat[note.first + i],
		    e)) < 0)
			return reader_place(s->in, k, e);
		s->have[note.first + i] |= SURVEY_STAT;
	}
	return 0;
}

static int
survey_scores(struct survey *s, const unsigned char *p, size_t len, struct err *e)
{
	struct note note;
	uint32_t i;
	int k;

	if ((k = note_get(&note, p, len, NOTE_SCORE, s->n, e)) < 0 ||
	    (k = note_scores(&note, s->score, e)) < 0)
		return reader_place(s->in, k, e);
	for (i = 0; i < note.n; i++)
		s->have[note.first + i] |= SURVEY_SCORE;
	return 0;
}

void
survey_sent(struct survey *s, uint32_t g)
{
	s->have[g] |= SURVEY_SENT;
}

int
survey_note(struct survey *s, uint32_t type, const unsigned char *p, size_t n,
    size_t wire, struct err *e)
{
	int k;

	if (frame_safe_to_copy(type))
		s->notes += FRAME_HEAD_SIZE + wire + frame_padding(wire);
	switch (type) {
	case FRAME_STAT:
		return survey_stats(s, p, n, e);
	case FRAME_SCOR:
		return survey_scores(s, p, n, e);
	case FRAME_POLI:
		k = keys_read(&s->policy, p, n, e);
		return k < 0 ? reader_place(s->in, k, e) : 0;
	default:
		return 0;
	}
}

int
survey_lacks(const struct survey *s, uint32_t g)
{
	return (s->have[g] & (SURVEY_SENT | SURVEY_STAT)) == SURVEY_SENT;
}

size_t
survey_values(struct survey *s, uint32_t g, const float *x, size_t n)
{
	size_t bad = stat_group_of(x, n, &s->stat[g]);

	if (bad == 0)
		s->have[g] |= SURVEY_STAT;
	return bad;
}

void
survey_release(struct survey *s)
{
	alloc_free(s->stat);
	alloc_free(s->score);
	alloc_free(s->have);
	text_release(&s->policy);
	*s = (struct survey)SURVEY_INIT;
}
