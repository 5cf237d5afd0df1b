#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/note.h"

static int
note_head(struct buf *out, uint32_t first, uint32_t n, uint32_t entry,
    struct err *e)
{
	unsigned char *p;
	int r = buf_room(out, NOTE_HEAD + (size_t)n * entry, e);

	if (r < 0)
		return r;
	p = out->p + out->n;
	memset(p, 0, NOTE_HEAD);
	bytes_set32(p, first);
	bytes_set32(p + 4, n);
	bytes_set32(p + 8, entry);
	out->n += NOTE_HEAD;
	return 0;
}

int
note_put_stats(struct buf *out, uint32_t first, const struct stat_group *s,
    uint32_t n, struct err *e)
{
	unsigned char *p;
	uint32_t i;
	int b, r;

	if ((r = note_head(out, first, n, NOTE_STAT, e)) < 0)
		return r;
	for (i = 0; i < n; i++, s++) {
		p = out->p + out->n;
		bytes_set32(p, s->n);
		bytes_set32(p + 4, s->nonzero);
		bytes_set32(p + 8, bytes_u32(s->sumsq));
		bytes_set32(p + 12, bytes_u32(s->sumabs));
		bytes_set32(p + 16, bytes_u32(s->sum));
		bytes_set32(p + 20, bytes_u32(s->max_abs));
		for (b = 0; b < STAT_BINS; b++)
			bytes_set32(p + 24 + 4 * b, s->hist[b]);
		out->n += NOTE_STAT;
	}
	return 0;
}

int
note_put_scores(struct buf *out, uint32_t first, const float *s, uint32_t n,
    struct err *e)
{
	int r;

	if ((r = note_head(out, first, n, NOTE_SCORE, e)) < 0)
		return r;
	bytes_put_f32(out->p + out->n, s, n);
	out->n += NOTE_SCORE * (size_t)n;
	return 0;
}

int
note_put_plan(struct buf *out, uint32_t first, const struct codec_plan *pl,
    uint32_t n, const struct note_terms *terms, struct err *e)
{
	unsigned char *p;
	uint32_t i;
	int r;

	if ((r = note_head(out, first, n, NOTE_PLAN, e)) < 0 ||
	    (r = buf_room(out, NOTE_TERMS + (size_t)n * NOTE_PLAN, e)) < 0)
		return r;
	p = out->p + out->n;
	bytes_set64(p, terms != NULL ? terms->budget : 0);
	bytes_set_f64(p + 8, terms != NULL ? terms->price : 0);
	out->n += NOTE_TERMS;
	for (i = 0; i < n; i++) {
		p = out->p + out->n;
		bytes_set16(p, pl[i].codec != CODEC_NONE ? (uint16_t)pl[i].codec :
		    NOTE_PLAN_NONE);
		p[2] = pl[i].param;
		p[3] = 0;
		bytes_set32(p + 4, bytes_u32(pl[i].arg));
		out->n += NOTE_PLAN;
	}
	return 0;
}

/* Checks that codecs are known, arguments are numbers, and padding is zero. */
static int
note_check_plan(const struct note *note, struct err *e)
{
	const unsigned char *p = note->entry;
	unsigned long g = note->first;
	uint32_t i, codec;

	for (i = 0; i < note->n; i++, p += NOTE_PLAN, g++) {
		codec = bytes_le16(p);
		if (!codec_known(codec) && codec != NOTE_PLAN_NONE)
			return err_set(e, ERR_DATA, "unsupported: codec %lu in "
			    "the plan of group %lu", (unsigned long)codec, g);
		if (p[3] != 0 || !isfinite(bytes_f32(bytes_le32(p + 4))))
			return err_set(e, ERR_DATA,
			    "corrupt: plan of group %lu", g);
	}
	return 0;
}

int
note_get(struct note *note, const unsigned char *p, size_t len, uint32_t entry,
    uint32_t ngroups, struct err *e)
{
	struct bytes b = BYTES(p, len);
	uint32_t size, terms = entry == NOTE_PLAN ? NOTE_TERMS : 0;

	note->terms = (struct note_terms){ 0, 0 };
	note->first = bytes_next32(&b);
	note->n = bytes_next32(&b);
	size = bytes_next32(&b);
	if (!bytes_zero(&b, 4) || b.bad || size != entry ||
	    len - b.at < terms)
		return err_set(e, ERR_DATA, "corrupt: annotation's sizes");
	if (terms != 0) {
		note->terms.budget = bytes_next64(&b);
		note->terms.price = bytes_f64(&b);
		if (!(note->terms.price >= 0 && note->terms.price <= DBL_MAX))
			return err_set(e, ERR_DATA, "corrupt: a plan's price");
	}
	if ((len - b.at) / entry != note->n || (len - b.at) % entry != 0)
		return err_set(e, ERR_DATA, "corrupt: annotation's sizes");
	if (note->first > ngroups || note->n > ngroups - note->first)
		return err_set(e, ERR_DATA,
		    "corrupt: annotation of groups %lu to %lu of %lu",
		    (unsigned long)note->first,
		    (unsigned long)note->first + note->n,
		    (unsigned long)ngroups);
	note->entry = p + b.at;
	return entry == NOTE_PLAN ? note_check_plan(note, e) : 0;
}

void
note_stat(const struct note *note, uint32_t i, struct stat_group *s)
{
	const unsigned char *p = note->entry + (size_t)NOTE_STAT * i;
	int b;

	s->n = bytes_le32(p);
	s->nonzero = bytes_le32(p + 4);
	s->sumsq = bytes_f32(bytes_le32(p + 8));
	s->sumabs = bytes_f32(bytes_le32(p + 12));
	s->sum = bytes_f32(bytes_le32(p + 16));
	s->max_abs = bytes_f32(bytes_le32(p + 20));
	for (b = 0; b < STAT_BINS; b++)
		s->hist[b] = bytes_le32(p + 24 + 4 * b);
}

float
note_score(const struct note *note, uint32_t i)
{
	return bytes_f32(bytes_le32(note->entry + (size_t)NOTE_SCORE * i));
}

void
note_plan(const struct note *note, uint32_t i, struct codec_plan *pl)
{
	const unsigned char *p = note->entry + (size_t)NOTE_PLAN * i;

	pl->codec = bytes_le16(p) != NOTE_PLAN_NONE ? p[0] : CODEC_NONE;
	pl->param = p[2];
	pl->arg = bytes_f32(bytes_le32(p + 4));
}
