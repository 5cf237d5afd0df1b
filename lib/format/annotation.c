#include <float.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "format/annotation.h"
#include "format/schema.h"

static int
note_head(struct buf *out, uint32_t first, uint32_t n, uint32_t entry, struct err *e)
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

/* Check that codecs and parameters are known, arguments are finite, and padding is zero. */
static int
note_check_plan(const struct note *note, struct err *e)
{
	const unsigned char *p = note->entry;
	unsigned long g = note->first;
	uint32_t i, codec;

	for (i = 0; i < note->n; i++, p += NOTE_PLAN, g++) {
		codec = bytes_le16(p);
		if (!codec_known(codec) && codec != NOTE_PLAN_NONE)
			return err_set(e, ERR_DATA, "unsupported: codec %u in the plan of group "
			    "%lu is unknown: a newer release of ace may read it", codec, g);
		if (codec != NOTE_PLAN_NONE && !codec_takes(codec, p[2]))
			return err_set(e, ERR_DATA, "unsupported: parameter %u of codec "
			    "%s in the plan of group %lu is unknown: a newer release "
			    "of ace may read it", p[2], codec_name(codec), g);
		if (p[3] != 0 || !isfinite(bytes_f32(bytes_le32(p + 4))))
			return err_set(e, ERR_DATA, "corrupt: in the plan of group "
			    "%lu the %s", g, p[3] != 0 ? "padding is not zero" :
			    "codec's argument is not finite");
	}
	return 0;
}

int
note_get(struct note *note, const unsigned char *p, size_t len, uint32_t entry,
    uint32_t ngroups, struct err *e)
{
	struct bytes b = BYTES(p, len);
	uint32_t size, terms = entry == NOTE_PLAN ? NOTE_TERMS : 0;
	const char *what = entry == NOTE_PLAN ? "plan" : entry == NOTE_SCORE ? "scores" :
	    "statistics";

	note->terms = (struct note_terms){ 0, 0 };
	note->first = bytes_next32(&b);
	note->n = bytes_next32(&b);
	size = bytes_next32(&b);
	if (!bytes_zero(&b, 4) || b.bad || size != entry || len - b.at < terms)
		return err_set(e, ERR_DATA, "corrupt: the head of the %s is incomplete or not "
		    "valid: expected entries of %lu bytes (found %lu), and zeros as padding", what,
		    (unsigned long)entry, (unsigned long)size);
	if (terms != 0) {
		note->terms.budget = bytes_next64(&b);
		note->terms.price = bytes_f64(&b);
		if (!(note->terms.price >= 0 && note->terms.price <= DBL_MAX))
			return err_set(e, ERR_DATA, "corrupt: the plan's lambda %g is "
			    "negative or not finite", note->terms.price);
	}
	if ((len - b.at) / entry != note->n || (len - b.at) % entry != 0)
		return err_set(e, ERR_DATA, "corrupt: the entries of the %s have %zu bytes, "
		    "expected %zu", what, len - b.at, (size_t)note->n * entry);
	if (note->first > ngroups || note->n > ngroups - note->first)
		return err_set(e, ERR_DATA,
		    "corrupt: first group %lu plus number of groups %lu in the %s exceeds %lu, "
		    "the schema's number of groups", (unsigned long)note->first,
		    (unsigned long)note->n, what, (unsigned long)ngroups);
	note->entry = p + b.at;
	return entry == NOTE_PLAN ? note_check_plan(note, e) : 0;
}

/* Return 1 if s may be the statistics of n values: its sums are finite, and hist counts each
 * non-zero value once, at least one of them in hist[0]. */
static int
note_stat_sound(const struct stat_group *s, size_t n)
{
	uint64_t octaves = 0;
	int b;

	for (b = 0; b < STAT_BINS; b++)
		octaves += s->hist[b];
	return s->n == n && s->nonzero <= s->n && octaves == s->nonzero &&
	    s->sumsq >= 0 && isfinite(s->sumsq) && s->sumabs >= 0 &&
	    isfinite(s->sumabs) && s->max_abs >= 0 && isfinite(s->max_abs) &&
	    isfinite(s->sum) && (s->max_abs > 0) == (s->nonzero > 0) &&
	    (s->nonzero == 0 || s->hist[0] > 0);
}

int
note_stat(const struct note *note, uint32_t i, const struct schema *sc,
    struct stat_group *s, struct err *e)
{
	const unsigned char *p = note->entry + (size_t)NOTE_STAT * i;
	struct schema_span span;
	int b;

	s->n = bytes_le32(p);
	s->nonzero = bytes_le32(p + 4);
	s->sumsq = bytes_f32(bytes_le32(p + 8));
	s->sumabs = bytes_f32(bytes_le32(p + 12));
	s->sum = bytes_f32(bytes_le32(p + 16));
	s->max_abs = bytes_f32(bytes_le32(p + 20));
	for (b = 0; b < STAT_BINS; b++)
		s->hist[b] = bytes_le32(p + 24 + 4 * b);
	schema_span(sc, note->first + i, &span);
	return note_stat_sound(s, span.n) ? 0 : err_set(e, ERR_DATA, "corrupt: the "
	    "statistics of group %lu, in tensor '%.160s', are not finite or do not add up",
	    (unsigned long)(note->first + i), sc->t[span.tensor].name);
}

float
note_score(const struct note *note, uint32_t i)
{
	return bytes_f32(bytes_le32(note->entry + (size_t)NOTE_SCORE * i));
}

int
note_scores(const struct note *note, float *to, struct err *e)
{
	uint32_t i;

	for (i = 0; i < note->n; i++) {
		to[note->first + i] = note_score(note, i);
		if (!(to[note->first + i] >= 0 && to[note->first + i] <= 1))
			return err_set(e, ERR_DATA, "corrupt: score %g of group %lu is not from 0 "
			    "to 1", (double)note_score(note, i), (unsigned long)note->first + i);
	}
	return 0;
}

void
note_plan(const struct note *note, uint32_t i, struct codec_plan *pl)
{
	const unsigned char *p = note->entry + (size_t)NOTE_PLAN * i;

	pl->codec = bytes_le16(p) != NOTE_PLAN_NONE ? p[0] : CODEC_NONE;
	pl->param = p[2];
	pl->arg = bytes_f32(bytes_le32(p + 4));
}

/* ---- a plan that arrives in parts ---- */

/* Return about how many bytes of memory a part of n entries takes. Even an empty part takes
 * some, so that many of them reach the limit. */
static size_t
note_wait_cost(uint32_t n)
{
	return sizeof(struct note_wait_part) + 48 + (size_t)n * NOTE_PLAN;
}

int
note_wait_add(struct note_wait *p, const unsigned char *payload, size_t len,
    uint32_t ngroups, struct err *e)
{
	struct note note;
	struct note_wait_part *part;
	size_t size;
	int r;

	if ((r = note_get(&note, payload, len, NOTE_PLAN, ngroups, e)) < 0)
		return r;
	p->any = 1;
	if (note.n == 0)
		return 0;
	size = (size_t)note.n * NOTE_PLAN;
	if (p->bytes + note_wait_cost(note.n) > NOTE_WAIT_MAX)
		return err_set(e, ERR_DATA, "limit: the plans that come before their "
		    "data have more than %d bytes", NOTE_WAIT_MAX);
	if ((r = alloc_grow(&p->part, &p->cap, p->n + 1, sizeof(*p->part), e)) < 0)
		return r;
	part = &p->part[p->n];
	part->first = note.first;
	part->n = note.n;
	if ((part->entry = alloc_get(size, 1, e)) == NULL)
		return -ERR_SYS;
	memcpy(part->entry, note.entry, size);
	p->n++;
	p->bytes += note_wait_cost(note.n);
	return 0;
}

static void
note_wait_drop(struct note_wait *p, size_t i)
{
	p->bytes -= note_wait_cost(p->part[i].n);
	alloc_free(p->part[i].entry);
	memmove(&p->part[i], &p->part[i + 1], (p->n - i - 1) * sizeof(*p->part));
	p->n--;
}

int
note_wait_has(const struct note_wait *p, uint32_t g)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (g >= p->part[i].first && g - p->part[i].first < p->part[i].n)
			return 1;
	return 0;
}

int
note_wait_get(struct note_wait *p, uint32_t g, struct codec_plan *out)
{
	struct note note;
	size_t i = 0;

	while (i < p->n) {
		const struct note_wait_part *q = &p->part[i];

		if (q->first + (uint64_t)q->n <= g) {
			note_wait_drop(p, i);
			continue;
		}
		if (g >= q->first) {
			note.entry = q->entry;
			note_plan(&note, g - q->first, out);
			return 1;
		}
		i++;
	}
	return 0;
}

void
note_wait_clear(struct note_wait *p)
{
	while (p->n != 0)
		note_wait_drop(p, p->n - 1);
	p->any = 0;
}

void
note_wait_release(struct note_wait *p)
{
	note_wait_clear(p);
	alloc_free(p->part);
	*p = (struct note_wait)NOTE_WAIT_INIT;
}
