#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/series.h"

/* ---- reading patches ---- */

/* The patch being read. */
struct coming {
	struct series_part *part;
	size_t n, cap;
	struct model_note note;
	int notes;
	struct series_patch p;
};

/* Begin a shard, which must be a patch of a model with these tensors. */
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
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: the shard is "
		    "not a patch of a model: expected the output of ace-diff"), e);
	memcpy(s->run, sh->run, SHARD_ID);
	s->step = sh->step;
	c->p = (struct series_patch){ .step = sh->step, .base = sh->base_version,
	    .whole = !differs };
	if (schema_diff(&m->schema, reader_schema(in), why))
		return err_set(e, ERR_DATA, "mismatch: the patch is for another "
		    "architecture than '%s': %s", m->path, why);
	return 0;
}

static int
series_part(struct series *s, struct coming *c, const struct record *rec,
    struct err *e)
{
	struct series_part *p;
	int r;

	if (rec->codec != CODEC_EXACT)
		return err_set(e, ERR_DATA, "mismatch: group %lu of the patch is "
		    "coded %s, expected codec exact", (unsigned long)rec->group,
		    codec_name(rec->codec));
	if (!codec_takes(CODEC_EXACT, rec->param))
		return err_set(e, ERR_DATA, "unsupported: parameter %u of codec "
		    "exact in group %lu: a newer release of ace may read it",
		    rec->param, (unsigned long)rec->group);
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
	if (event != READER_NOTE)
		return 0;
	f = reader_frame(in);
	if (f->type != FRAME_MODL)
		return 0;
	c->notes++;
	return model_note_decode(&c->note, f->raw, f->raw_len, e);
}

/* Check that the patch changes the model that the previous patch makes. */
static int
series_chains(const struct series *s, const struct series_patch *p, struct err *e)
{
	const struct series_patch *last = s->n > 0 ? &s->p[s->n - 1] : p;
	char want[MODEL_HEX], have[MODEL_HEX];

	if (last == p || p->whole ||
	    memcmp(p->before, last->after, MODEL_HASH) == 0)
		return 0;
	shard_hex(p->before, want);
	shard_hex(last->after, have);
	return err_set(e, ERR_DATA, "mismatch: the patch to step %llu changes model %s, "
	    "but the patch before it makes model %s: pass all patches, in order",
	    (unsigned long long)p->step, want, have);
}

/* Check a complete patch and keep it, with the checksums of its groups. */
static int
series_end(struct series *s, struct coming *c, struct reader *in, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	struct series_patch *p = &c->p;
	size_t i;
	int r;

	if (c->notes != 1 || c->note.n != c->n)
		return err_set(e, ERR_DATA, "corrupt: the patch has %d frames mODL, expected "
		    "1; the last lists %zu groups, expected %zu", c->notes, c->note.n, c->n);
	memcpy(p->before, c->note.before, MODEL_HASH);
	memcpy(p->after, c->note.after, MODEL_HASH);
	if (p->whole != (memcmp(p->before, none, MODEL_HASH) == 0))
		return err_set(e, ERR_DATA, p->whole ? "corrupt: the patch holds a "
		    "whole model, but names an old one" : "corrupt: the patch "
		    "changes an old model, but does not name it");
	if ((r = series_chains(s, p, e)) < 0)
		return r;
	if (s->n == SERIES_MOST)
		return err_set(e, ERR_DATA, "limit: the stream has more than %d "
		    "patches: apply them in several runs of ace-patch", SERIES_MOST);
	for (i = 0; i < c->n; i++)
		c->part[i].sum = c->note.sum[i];
	p->n = c->n;
	if ((r = alloc_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p), e)) < 0 ||
	    (p->n > 0 && (r = scratch_put(&s->s, c->part,
	    p->n * sizeof(*c->part), &p->at, e)) < 0))
		return r;
	s->p[s->n++] = *p;
	memcpy(s->digest, reader_end_of_shard(in)->digest, SHARD_DIGEST);
	return 0;
}

/* Read the patch at whose shard `in' stands. */
static int
series_add(struct series *s, struct reader *in, const struct model *m,
    struct err *e)
{
	struct coming c = { .note = MODEL_NOTE_INIT };
	int r = 0;

	if (s->has == NULL &&
	    (s->has = alloc_get(m->schema.ngroups, 1, e)) == NULL)
		return -ERR_SYS;
	r = series_begin(s, &c, in, m, e);
	while (r >= 0 && (r = reader_next(in, e)) > 0 && r != READER_SEND)
		r = series_frame(s, &c, in, r, e);
	if (r > 0)
		r = series_end(s, &c, in, e);
	alloc_free(c.part);
	model_note_release(&c.note);
	return r;
}

int
series_read(struct series *s, struct reader *in, const struct model *m,
    struct err *e)
{
	int r;

	while ((r = reader_to_shard(in, e)) > 0)
		if ((r = series_add(s, in, m, e)) < 0)
			return r;
	return r;
}

void
series_release(struct series *s)
{
	scratch_release(&s->s);
	alloc_free(s->p);
	alloc_free(s->has);
	*s = (struct series)SERIES_INIT;
}

/* ---- applying groups ---- */

void
series_from(struct series *s, size_t i)
{
	s->from = i;
	for (; i < s->n; i++)
		s->p[i].done = s->p[i].got = 0;
}

int
series_take(struct series *s, uint32_t g, struct series_part **part, size_t *n,
    size_t *cap, struct err *e)
{
	struct series_patch *p;
	int r = 0;

	*n = 0;
	for (p = s->p + s->from; p < s->p + s->n; p++) {
		if (!p->got && p->done < p->n) {
			if ((r = scratch_get(&s->s, p->at + p->done++ * sizeof(p->next),
			    &p->next, sizeof(p->next), e)) < 0)
				return r;
			p->got = 1;
		}
		if (!p->got || p->next.group != g)
			continue;
		if ((r = alloc_grow(part, cap, *n + 1, sizeof(**part), e)) < 0)
			return r;
		p->got = 0;
		(*part)[(*n)++] = p->next;
	}
	return 0;
}

size_t
series_whole(const struct series *s)
{
	size_t i = s->n;

	while (i > 0 && !s->p[i - 1].whole)
		i--;
	return i > 0 ? i - 1 : 0;
}

/* Apply a record to the bytes at old; new may be old. Hash the bytes at new. */
static int
series_body(const struct series *s, const struct series_part *x,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e)
{
	int r;

	body->n = 0;
	if ((r = buf_room(body, x->len, e)) < 0 ||
	    (r = scratch_get(&s->s, x->at, body->p, x->len, e)) < 0)
		return r;
	r = exact_get(x->param, span->form, x->whole ? NULL : old, body->p,
	    x->len, new, span->words, e);
	if (r == 0 && hash_both(new, span->bytes, hash) != x->sum)
		r = err_set(e, ERR_DATA, "corrupt: the checksum of a group does not "
		    "match its bytes");
	return r < 0 ? err_after(e, r, ", in the patch to step %llu",
	    (unsigned long long)x->step) : 0;
}

int
series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e)
{
	const unsigned char *from = old;
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++, from = new)
		r = series_body(s, &list[i], span, from, new, hash, body, e);
	return r;
}
