#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/pack.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/series.h"

/* ---- what comes ---- */

/* The patch that comes. */
struct coming {
	struct series_part *part;
	size_t n, cap;
	struct model_note note;
	int notes;
	struct series_patch p;
};

/* A shard that is a patch, of a model like this one. */
static int
series_begin(struct series *s, struct coming *c, struct reader *in,
    const struct model *m, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	const char *predict = text_get(&sh->kv, SHARD_KEY_PREDICT);
	const int differs = (sh->flags & SHARD_PREDICTED) != 0;
	char why[256];

	if (sh->kind != SHARD_MODEL || differs != (predict != NULL) ||
	    (differs && strcmp(predict, SHARD_PREDICT_PATCH) != 0))
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: this "
		    "is no patch of a model"), e);
	memcpy(s->run, sh->run, SHARD_ID);
	s->step = sh->step;
	if (schema_diff(&m->schema, reader_schema(in), why))
		return err_set(e, ERR_DATA, "mismatch: the patch is not of a model "
		    "like '%s': %s", m->path, why);
	c->p = (struct series_patch){ .step = sh->step, .base = sh->base_version,
	    .whole = !differs };
	c->n = 0;
	c->notes = 0;
	return 0;
}

static int
series_part(struct series *s, struct coming *c, const struct record *rec,
    struct err *e)
{
	struct series_part *p;
	int r;

	if (rec->codec != CODEC_EXACT)
		return err_set(e, ERR_DATA, "mismatch: group %lu of a patch is "
		    "coded %s", (unsigned long)rec->group,
		    codec_name(rec->codec));
	if (!codec_takes(CODEC_EXACT, rec->param))
		return err_set(e, ERR_DATA, "unsupported: parameter %u of codec "
		    "exact, group %lu", rec->param, (unsigned long)rec->group);
	if ((r = alloc_grow(&c->part, &c->cap, c->n + 1, sizeof(*c->part),
	    e)) < 0)
		return r;
	p = &c->part[c->n++];
	memset(p, 0, sizeof(*p));
	p->group = rec->group;
	p->len = (uint32_t)rec->len;
	p->param = rec->param;
	p->whole = (rec->param & EXACT_GIVEN) == 0;
	p->step = c->p.step;
	s->has[rec->group] = 1;
	return scratch_put(&s->s, rec->body, rec->len, &p->at, e);
}

static int
series_frame(struct series *s, struct coming *c, struct reader *in, int event,
    struct err *e)
{
	const struct chain_frame *f;
	const struct record *rec;
	size_t i, n;
	int r = 0;

	if (event == READER_DATA) {
		rec = reader_records(in, &n);
		for (i = 0; i < n && r == 0; i++)
			r = series_part(s, c, &rec[i], e);
		return r < 0 ? reader_place(in, r, e) : 0;
	}
	if (event != READER_NOTE ||
	    (f = reader_frame(in))->type != FRAME_MODL)
		return 0;
	c->notes++;
	return model_note_decode(&c->note, f->raw, f->raw_len, e);
}

/* It is whole: its parts are put down, too, with what its note says of each. */
static int
series_end(struct series *s, struct coming *c, struct reader *in, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	const struct series_patch *last = s->n > 0 ? &s->p[s->n - 1] : NULL;
	struct series_patch *p = &c->p;
	size_t i;
	int r;

	if (c->notes != 1 || c->note.n != c->n)
		return err_set(e, ERR_DATA, "corrupt: a patch without the hashes "
		    "of its groups");
	memcpy(p->before, c->note.before, MODEL_HASH);
	memcpy(p->after, c->note.after, MODEL_HASH);
	if (p->whole != (memcmp(p->before, none, MODEL_HASH) == 0))
		return err_set(e, ERR_DATA, p->whole ? "corrupt: a patch of no old "
		    "model that names one" : "corrupt: a patch of an old model that "
		    "names none");
	if (last != NULL && !p->whole &&
	    memcmp(p->before, last->after, MODEL_HASH) != 0)
		return err_set(e, ERR_DATA, "mismatch: the patch to step %llu is "
		    "not of the model that the one before it makes",
		    (unsigned long long)p->step);
	if (s->n == SERIES_MOST)
		return err_set(e, ERR_DATA, "limit: more than %d patches in a "
		    "stream", SERIES_MOST);
	for (i = 0; i < c->n; i++)
		c->part[i].sum = c->note.sum[i];
	p->n = c->n;
	if ((r = alloc_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p), e)) < 0 ||
	    (c->n > 0 && (r = scratch_put(&s->s, c->part,
	    c->n * sizeof(*c->part), &p->at, e)) < 0))
		return r;
	s->p[s->n++] = *p;
	memcpy(s->digest, reader_end_of_shard(in)->digest, SHARD_DIGEST);
	return 0;
}

int
series_read(struct series *s, struct reader *in, const struct model *m,
    struct err *e)
{
	struct coming c = { .note = MODEL_NOTE_INIT };
	int r = 0;

	if ((s->has = alloc_get(m->schema.ngroups, 1, e)) == NULL)
		return -ERR_SYS;
	while (r >= 0 && (r = reader_to_shard(in, e)) > 0) {
		r = series_begin(s, &c, in, m, e);
		while (r >= 0 && (r = reader_next(in, e)) > 0 &&
		    r != READER_SEND)
			r = series_frame(s, &c, in, r, e);
		if (r > 0)
			r = series_end(s, &c, in, e);
	}
	alloc_free(c.part);
	model_note_release(&c.note);
	return r;
}

void
series_release(struct series *s)
{
	scratch_release(&s->s);
	alloc_free(s->p);
	alloc_free(s->has);
	s->p = NULL;
	s->has = NULL;
	s->n = s->cap = 0;
}

/* ---- what is taken ---- */

void
series_from(struct series *s, size_t i)
{
	s->from = i;
	for (; i < s->n; i++)
		s->p[i].done = s->p[i].i = s->p[i].k = 0;
}

/* The next part of a patch, or NULL behind its last: *r is 0 then. */
static const struct series_part *
series_next(const struct series *s, struct series_patch *p, int *r,
    struct err *e)
{
	*r = 0;
	if (p->i == p->k) {
		p->i = 0;
		p->k = p->n - p->done < SERIES_AHEAD ? p->n - p->done :
		    SERIES_AHEAD;
		if (p->k == 0)
			return NULL;
		if ((*r = scratch_get(&s->s, p->at + p->done * sizeof(*p->next),
		    p->next, p->k * sizeof(*p->next), e)) < 0) {
			p->k = 0;
			return NULL;
		}
		p->done += p->k;
	}
	return &p->next[p->i];
}

int
series_take(struct series *s, uint32_t g, struct series_part **part, size_t *n,
    size_t *cap, struct err *e)
{
	const struct series_part *next;
	size_t i;
	int r = 0;

	*n = 0;
	for (i = s->from; i < s->n && r == 0; i++) {
		next = series_next(s, &s->p[i], &r, e);
		if (next == NULL || next->group != g)
			continue;
		if ((r = alloc_grow(part, cap, *n + 1, sizeof(**part), e)) == 0)
			(*part)[(*n)++] = *next;
		s->p[i].i++;
	}
	return r;
}

int
series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    struct buf *body, struct err *e)
{
	const unsigned char *from = old;
	size_t i;
	int r;

	for (i = 0; i < n; i++, from = new) {
		body->n = 0;
		if ((r = buf_room(body, list[i].len, e)) < 0 ||
		    (r = scratch_get(&s->s, list[i].at, body->p, list[i].len,
		    e)) < 0)
			return r;
		r = exact_get(list[i].param, span->form, list[i].whole ? NULL :
		    from, body->p, list[i].len, new, span->words, e);
		if (r == 0 && pack_hash64(new, span->bytes) != list[i].sum)
			r = err_set(e, ERR_DATA, "corrupt: checksum of a group");
		if (r < 0)
			return err_after(e, r, ", of the patch to step %llu",
			    (unsigned long long)list[i].step);
	}
	return 0;
}
