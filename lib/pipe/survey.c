#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/keys.h"
#include "format/note.h"
#include "pipe/survey.h"

int
survey_begin(struct survey *s, uint32_t n, struct err *e)
{
	uint32_t g;

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
	memset(s->have, 0, n);
	memset(s->stat, 0, n * sizeof(*s->stat));
	for (g = 0; g < n; g++)
		s->score[g] = 1;
	s->notes = 0;
	s->scored = 0;
	return 0;
}

/* What no values can have would mislead whoever reckons with it. */
static int
survey_sound(const struct stat_group *s, size_t n)
{
	uint64_t sum = 0;
	int b;

	for (b = 0; b < STAT_BINS; b++)
		sum += s->hist[b];
	return s->n == n && s->nonzero <= s->n && sum == s->nonzero &&
	    s->sumsq >= 0 && isfinite(s->sumsq) && s->sumabs >= 0 &&
	    isfinite(s->sumabs) && s->max_abs >= 0 && isfinite(s->max_abs) &&
	    isfinite(s->sum) && (s->max_abs > 0) == (s->nonzero > 0) &&
	    (s->nonzero == 0 || s->hist[0] > 0);
}

static int
survey_stats(struct survey *s, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct schema_span span;
	struct note note;
	uint32_t i;
	int k;

	if ((k = note_get(&note, f->raw, f->raw_len, NOTE_STAT, s->n, e)) < 0)
		return k;
	for (i = 0; i < note.n; i++) {
		note_stat(&note, i, &s->stat[note.first + i]);
		schema_span(reader_schema(r), note.first + i, &span);
		if (!survey_sound(&s->stat[note.first + i], span.n))
			return reader_place(r, err_set(e, ERR_DATA, "corrupt: "
			    "statistics of group %lu",
			    (unsigned long)(note.first + i)), e);
		s->have[note.first + i] |= SURVEY_STAT;
	}
	return 0;
}

static int
survey_scores(struct survey *s, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct note note;
	uint32_t i;
	float v;
	int k;

	if ((k = note_get(&note, f->raw, f->raw_len, NOTE_SCORE, s->n, e)) < 0)
		return k;
	for (i = 0; i < note.n; i++) {
		v = note_score(&note, i);
		if (!(v >= 0 && v <= 1))
			return reader_place(r, err_set(e, ERR_DATA, "corrupt: "
			    "the score of group %lu",
			    (unsigned long)(note.first + i)), e);
		s->score[note.first + i] = v;
		s->have[note.first + i] |= SURVEY_SCORE;
		s->scored = 1;
	}
	return 0;
}

int
survey_event(struct survey *s, const struct reader *r, int event,
    struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const struct record *rec;
	size_t n, i;

	if (event == READER_DATA) {
		rec = reader_records(r, &n);
		for (i = 0; i < n; i++)
			s->have[rec[i].group] |= SURVEY_SENT;
		return 0;
	}
	if (event != READER_NOTE)
		return 0;
	if (frame_safe_to_copy(f->type))
		s->notes += FRAME_HEAD_SIZE + f->wire_len +
		    frame_padding(f->wire_len);
	switch (f->type) {
	case FRAME_STAT:
		return survey_stats(s, r, e);
	case FRAME_SCOR:
		return survey_scores(s, r, e);
	case FRAME_POLI:
		return keys_add(&s->policy, r, e);
	default:
		return 0;
	}
}

int
survey_lacks(const struct survey *s)
{
	uint32_t g;

	for (g = 0; g < s->n; g++)
		if ((s->have[g] & (SURVEY_SENT | SURVEY_STAT)) == SURVEY_SENT)
			return 1;
	return 0;
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
