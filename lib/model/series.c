#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/pack.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/series.h"
#include "model/slice.h"

/* ---- what comes ---- */

/* The patch that comes. */
struct coming {
	struct series_part *part;
	size_t n, cap;
	struct model_note note;
	int notes;
	struct series_patch p;
	/* of a part: */
	unsigned ranks;			/* 0: it is none */
	struct buf cut;			/* pART */
	int cuts;
	struct slice *slice;		/* [tensors of the patch] */
	uint32_t *own;			/* the model's number of each */
	struct series_part *full;	/* of all groups that it has words of */
	size_t nfull, capfull;
};
enum { SERIES_OTHERS = UINT32_MAX };	/* a tensor that the model has not */

/* Whether it is a part, and of what. */
static int
series_rank(const struct series *s, struct coming *c, const struct shard *sh,
    const unsigned char *run, const struct model *m, struct err *e)
{
	const char *key = text_get(&sh->kv, SHARD_KEY_PART);
	const struct series_patch *first = s->p;
	unsigned rank = 0, ranks = 0;
	char text[24] = "";

	if (key != NULL && sscanf(key, "%4u/%4u", &rank, &ranks) == 2)
		(void)snprintf(text, sizeof(text), "%u/%u", rank, ranks);
	if (key != NULL && (strcmp(text, key) != 0 || rank >= ranks ||
	    ranks > SERIES_MOST))
		return err_set(e, ERR_DATA, "corrupt: key " SHARD_KEY_PART
		    ": '%.40s'", key);
	if (key == NULL && m->slice != NULL)
		return err_set(e, ERR_DATA, "mismatch: the patch is of whole "
		    "tensors, and '%s' has slices", m->path);
	if (s->n > 0 && (ranks != s->ranks || (ranks != 0 &&
	    (memcmp(run, sh->run, SHARD_ID) != 0 || sh->step != first->step ||
	    sh->base_version != first->base ||
	    ((sh->flags & SHARD_PREDICTED) == 0) != first->whole))))
		return err_set(e, ERR_DATA, "mismatch: the patch to step %llu %s"
		    "of another run, step or number of ranks than the one before "
		    "it", (unsigned long long)sh->step, ranks == 0 ? "is no part, "
		    "or " : "is ");
	c->ranks = ranks;
	c->p.rank = rank;
	return 0;
}

/* Which tensor of the model each of a part's is.  A part may have some of the model's, and
 * a model that has slices may have some of a part's. */
static int
series_tensors(struct coming *c, const struct schema *sc, const struct model *m,
    struct err *e)
{
	const struct schema *own = &m->schema;
	const struct schema_tensor *t, *o;
	size_t i, k = 0;
	int is;

	alloc_free(c->own);
	alloc_free(c->slice);
	c->slice = NULL;
	if ((c->own = alloc_get(sc->n, sizeof(*c->own), e)) == NULL ||
	    (c->slice = alloc_get(sc->n, sizeof(*c->slice), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < sc->n; i++) {
		t = &sc->t[i];
		if (sc->group_size != MODEL_GROUP || (i > 0 &&
		    strcmp(sc->t[i - 1].name, t->name) >= 0))
			return err_set(e, ERR_DATA, "corrupt: the tensors of a "
			    "part stand in no order");
		while (k < own->n && strcmp(own->t[k].name, t->name) < 0)
			k++;
		o = k < own->n ? &own->t[k] : NULL;
		is = o != NULL && strcmp(o->name, t->name) == 0;
		if (is ? o->dtype != t->dtype || o->kind != t->kind ||
		    o->ndim != t->ndim || memcmp(o->dim, t->dim,
		    t->ndim * sizeof(*t->dim)) != 0 : m->slice == NULL)
			return err_set(e, ERR_DATA, "mismatch: the patch is not of "
			    "a model like '%s': tensor '%.160s'%s", m->path,
			    t->name, is ? " differs in shape or dtype" : "");
		c->own[i] = is ? (uint32_t)k : SERIES_OTHERS;
	}
	return 0;
}

/* A shard that is a patch, of a model like this one. */
static int
series_begin(struct series *s, struct coming *c, struct reader *in,
    const struct model *m, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	const char *predict = text_get(&sh->kv, SHARD_KEY_PREDICT);
	const int differs = (sh->flags & SHARD_PREDICTED) != 0;
	unsigned char run[SHARD_ID];
	char why[256];
	int r;

	if (sh->kind != SHARD_MODEL || differs != (predict != NULL) ||
	    (differs && strcmp(predict, SHARD_PREDICT_PATCH) != 0))
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: this "
		    "is no patch of a model"), e);
	memcpy(run, s->run, SHARD_ID);
	memcpy(s->run, sh->run, SHARD_ID);
	s->step = sh->step;
	c->p = (struct series_patch){ .step = sh->step, .base = sh->base_version,
	    .whole = !differs };
	c->n = 0;
	c->notes = c->cuts = 0;
	if ((r = series_rank(s, c, sh, run, m, e)) < 0)
		return reader_place(in, r, e);
	if (c->ranks != 0)
		return series_tensors(c, reader_schema(in), m, e);
	if (schema_diff(&m->schema, reader_schema(in), why))
		return err_set(e, ERR_DATA, "mismatch: the patch is not of a model "
		    "like '%s': %s", m->path, why);
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
	if (((rec->param & EXACT_PART) != 0) != (c->ranks != 0))
		return err_set(e, ERR_DATA, "corrupt: group %lu is of %s tensors, "
		    "the patch is not", (unsigned long)rec->group, c->ranks != 0 ?
		    "whole" : "slices of");
	if ((r = alloc_grow(&c->part, &c->cap, c->n + 1, sizeof(*c->part),
	    e)) < 0)
		return r;
	p = &c->part[c->n++];
	memset(p, 0, sizeof(*p));
	p->group = rec->group;
	p->len = (uint32_t)rec->len;
	p->param = rec->param & (uint8_t)~EXACT_PART;
	p->whole = (rec->param & EXACT_GIVEN) == 0;
	p->step = c->p.step;
	if (c->ranks == 0)
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
	if (f->type == FRAME_PART) {
		c->cuts++;
		c->cut.n = 0;
		return buf_put(&c->cut, f->raw, f->raw_len, e);
	}
	if (f->type != FRAME_MODL)
		return 0;
	c->notes++;
	return model_note_decode(&c->note, f->raw, f->raw_len, e);
}

/* A part has these slices. */
static int
series_slices(struct coming *c, const struct schema *sc, struct bytes *b,
    struct err *e)
{
	size_t i, d;
	int r = 0;

	for (i = 0; i < sc->n && r == 0; i++) {
		for (d = 0; d < sc->t[i].ndim; d++) {
			c->slice[i].off[d] = bytes_varint(b);
			c->slice[i].len[d] = bytes_varint(b);
		}
		r = b->bad ? 0 : slice_check(&c->slice[i], &sc->t[i], e);
	}
	return r;
}

/* What is said of group g of a part, tensor i, of which it has n words from value lo
 * on; the model has none, or all of them. */
static int
series_piece(struct series *s, struct coming *c, const struct model *m, size_t i,
    uint64_t lo, uint64_t n, const struct series_part *x, struct err *e)
{
	const uint32_t k = c->own[i];
	const struct schema_tensor *t;
	struct slice both;
	uint64_t hi, mine;
	int r;

	if (k == SERIES_OTHERS)
		return 0;
	t = &m->schema.t[k];
	hi = t->numel - lo < MODEL_GROUP ? t->numel : lo + MODEL_GROUP;
	if (m->slice != NULL) {
		both = slice_common(&m->slice[k], &c->slice[i]);
		mine = slice_before(&both, t, hi) - slice_before(&both, t, lo);
		if (mine == 0)
			return 0;
		if (mine < n)
			return err_set(e, ERR_DATA, "mismatch: of tensor '%.160s' "
			    "'%s' has only some of the values that rank %u coded "
			    "together (ace-diff --for)", t->name, m->path,
			    c->p.rank);
	}
	if ((r = alloc_grow(&c->full, &c->capfull, c->nfull + 1,
	    sizeof(*c->full), e)) < 0)
		return r;
	c->full[c->nfull] = *x;
	c->full[c->nfull].group = t->group + (uint32_t)(lo / MODEL_GROUP);
	c->full[c->nfull].of = (uint16_t)s->n;
	s->has[c->full[c->nfull++].group] |= x->sent;
	return 0;
}

/* All groups that a part has words of, those too that did not change. */
static int
series_fill(struct series *s, struct coming *c, const struct schema *sc,
    const struct model *m, struct err *e)
{
	struct bytes b = BYTES(c->cut.p, c->cut.n);
	struct series_part x;
	size_t i, next = 0;
	uint64_t lo, n;
	uint32_t g;
	int r, sent;

	c->nfull = 0;
	c->p.slice = alloc_get(m->schema.n, sizeof(*c->p.slice), e);
	if (c->p.slice == NULL || (r = series_slices(c, sc, &b, e)) < 0)
		return -e->code;
	for (i = 0; i < sc->n && !b.bad; i++) {
		if (c->own[i] != SERIES_OTHERS)
			c->p.slice[c->own[i]] = c->slice[i];
		for (g = 0; g < sc->t[i].ngroups && !b.bad; g++) {
			lo = (uint64_t)g * MODEL_GROUP;
			n = slice_before(&c->slice[i], &sc->t[i], lo + MODEL_GROUP) -
			    slice_before(&c->slice[i], &sc->t[i], lo);
			sent = next < c->n &&
			    c->part[next].group == sc->t[i].group + g;
			if (n == 0 && !sent)
				continue;
			memset(&x, 0, sizeof(x));
			if (sent)
				x = c->part[next++];
			x.sent = (uint8_t)sent;
			x.step = c->p.step;
			x.base = c->p.whole ? 0 : bytes_next64(&b);
			x.sum = sent ? x.sum : x.base;
			b.bad |= n == 0 || (c->p.whole && !sent);
			if (!b.bad && (r = series_piece(s, c, m, i, lo, n, &x,
			    e)) < 0)
				return r;
		}
	}
	return !b.bad && b.at == b.n && next == c->n && c->cuts == 1 ? 0 :
	    err_set(e, ERR_DATA, "corrupt: what the part of rank %u says of its "
	    "slices", c->p.rank);
}

/* What has come of a part is kept, once.  1 where it is there already. */
static int
series_known(const struct series *s, const struct series_patch *p,
    struct err *e)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->p[i].rank == p->rank)
			return memcmp(s->p[i].before, p->before, MODEL_HASH) == 0 &&
			    memcmp(s->p[i].after, p->after, MODEL_HASH) == 0 ? 1 :
			    err_set(e, ERR_DATA, "mismatch: two parts of rank %u, "
			    "which differ", p->rank);
	return 0;
}

/* It is whole: its parts are put down, too, with what its note says of each. */
static int
series_end(struct series *s, struct coming *c, struct reader *in,
    const struct model *m, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	const struct series_patch *last = s->n > 0 ? &s->p[s->n - 1] : NULL;
	struct series_patch *p = &c->p;
	const struct series_part *part = c->part;
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
	if (last != NULL && !p->whole && c->ranks == 0 &&
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
	if (c->ranks != 0) {
		if ((r = series_known(s, p, e)) != 0)
			return r < 0 ? r : 0;
		if ((r = series_fill(s, c, reader_schema(in), m, e)) < 0) {
			alloc_free(p->slice);
			return r;
		}
		part = c->full;
		p->n = c->nfull;
	}
	if ((r = alloc_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p), e)) < 0 ||
	    (p->n > 0 && (r = scratch_put(&s->s, part,
	    p->n * sizeof(*part), &p->at, e)) < 0)) {
		alloc_free(p->slice);
		return r;
	}
	s->ranks = c->ranks;
	s->p[s->n++] = *p;
	memcpy(s->digest, reader_end_of_shard(in)->digest, SHARD_DIGEST);
	return 0;
}

/* All ranks, or none. */
static int
series_missing(const struct series *s, struct err *e)
{
	unsigned k;
	size_t i;

	for (k = 0; k < s->ranks; k++) {
		for (i = 0; i < s->n && s->p[i].rank != k; i++)
			;
		if (i == s->n)
			break;
	}
	return err_set(e, ERR_REFUSED, "the patch to step %llu is of %u ranks, and "
	    "that of rank %u did not come", (unsigned long long)s->step,
	    s->ranks, k);
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
			r = series_end(s, &c, in, m, e);
	}
	if (r == 0 && s->n < s->ranks)
		r = series_missing(s, e);
	alloc_free(c.part);
	alloc_free(c.full);
	alloc_free(c.own);
	alloc_free(c.slice);
	buf_release(&c.cut);
	model_note_release(&c.note);
	return r;
}

void
series_release(struct series *s)
{
	size_t i;

	scratch_release(&s->s);
	for (i = 0; i < s->n; i++)
		alloc_free(s->p[i].slice);
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

/* What a part makes of the n bytes at old, which may be new. */
static int
series_body(const struct series *s, const struct series_part *x,
    const struct model_span *span, size_t n, const unsigned char *old,
    unsigned char *new, struct buf *body, struct err *e)
{
	int r;

	body->n = 0;
	if ((r = buf_room(body, x->len, e)) < 0 ||
	    (r = scratch_get(&s->s, x->at, body->p, x->len, e)) < 0)
		return r;
	r = exact_get(x->param, span->form, x->whole ? NULL : old, body->p,
	    x->len, new, n / exact_size(span->form), e);
	if (r == 0 && pack_hash64(new, n) != x->sum)
		r = err_set(e, ERR_DATA, "corrupt: checksum of a group");
	return r < 0 ? err_after(e, r, ", of the patch to step %llu",
	    (unsigned long long)x->step) : 0;
}

int
series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    struct buf *body, struct err *e)
{
	const unsigned char *from = old;
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++, from = new)
		r = series_body(s, &list[i], span, span->bytes, from, new, body, e);
	return r;
}

/* ---- parts ---- */

/* What a part has of a group, to or, with set, from the tile; its bytes. */
static size_t
series_tile(const struct series *s, const struct series_part *x,
    const struct model *m, const struct schema_span *at, int set,
    unsigned char *group, unsigned char *tile)
{
	return slice_move(&s->p[x->of].slice[at->tensor],
	    &m->schema.t[at->tensor], at->offset, at->offset + at->n,
	    m->slice != NULL ? &m->slice[at->tensor] : NULL, set, group, tile);
}

/* One part of a group, into new, if the words are those that it is for. */
static int
series_one(const struct series *s, const struct series_part *x,
    const struct model *m, const struct schema_span *at,
    const struct model_span *span, unsigned char *old, unsigned char *new,
    struct series_work *w, struct err *e)
{
	const size_t n = series_tile(s, x, m, at, 0, old, w->tile.p);
	const uint64_t is = pack_hash64(w->tile.p, n);
	int r = 0;

	w->made &= is == x->sum;
	if (!s->p[x->of].whole && is != x->base) {
		w->rank = w->base ? s->p[x->of].rank : w->rank;
		w->base = 0;
	}
	if (x->sent && w->base && (r = series_body(s, x, span, n, w->tile.p,
	    w->tile.p, &w->body, e)) == 0)
		(void)series_tile(s, x, m, at, 1, new, w->tile.p);
	memset(w->tile.p, 1, n);
	(void)series_tile(s, x, m, at, 1, w->seen.p, w->tile.p);
	return r;
}

int
series_parts(const struct series *s, const struct series_part *list, size_t n,
    const struct model *m, uint32_t g, unsigned char *old, unsigned char *new,
    struct series_work *w, struct err *e)
{
	struct schema_span at;
	struct model_span span;
	size_t i, k;
	int r;

	schema_span(&m->schema, g, &at);
	model_span(m, g, &span);
	w->base = w->made = 1;
	w->tile.n = w->seen.n = 0;
	if ((r = buf_room(&w->tile, span.bytes, e)) < 0 ||
	    (r = buf_room(&w->seen, span.bytes, e)) < 0 || span.bytes == 0)
		return r;
	memcpy(new, old, span.bytes);
	memset(w->seen.p, 0, span.bytes);
	for (i = 0; i < n; i++)
		if ((r = series_one(s, &list[i], m, &at, &span, old, new, w,
		    e)) < 0)
			return r;
	if (memchr(w->seen.p, 0, span.bytes) != NULL)
		return err_set(e, ERR_DATA, "mismatch: no rank has some values");
	for (i = 0; i < n && w->base; i++) {
		k = series_tile(s, &list[i], m, &at, 0, new, w->tile.p);
		if (pack_hash64(w->tile.p, k) != list[i].sum)
			return err_set(e, ERR_DATA, "mismatch: rank %u and another "
			    "one have the same values and differ",
			    s->p[list[i].of].rank);
	}
	return 0;
}
