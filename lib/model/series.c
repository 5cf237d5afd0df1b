#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/series.h"
#include "model/slice.h"

/* ---- reading patches ---- */

/* The patch being read. */
struct coming {
	struct series_part *part;
	size_t n, cap;
	struct model_note note;
	int notes;
	struct series_patch p;
	/* for a patch of slices only: */
	struct buf cut;			/* pART */
	int cuts;
	struct slice *slice;		/* [tensors of the patch] */
	uint32_t *own;			/* numbers of these in the model */
	struct series_part *full;	/* one record for each group that has values in
					 * the patch */
	size_t nfull, capfull;
};
enum { SERIES_OTHERS = UINT32_MAX };	/* the model does not have the tensor */

/* Return the position after the last patch to this step, or the end if there is none. */
static size_t
series_place(const struct series *s, uint64_t step)
{
	size_t i = s->n;

	while (i > 0 && s->p[i - 1].step != step)
		i--;
	return s->parts && i > 0 ? i : s->n;
}

/* Check that a patch of one rank continues its step or begins the next one. */
static int
series_follows(const struct series *s, const struct coming *c, int same_run,
    struct err *e)
{
	const size_t i = series_place(s, c->p.step);
	const struct series_patch *p = &c->p, *q = &s->p[i - 1];

	if ((p->ranks != 0) != s->parts || !same_run || (q->step == p->step &&
	    (q->base != p->base || q->ranks != p->ranks ||
	    q->whole != p->whole)))
		return err_set(e, ERR_DATA, "mismatch: the patch to step %llu does not "
		    "continue the patch before it: %sits run, base step or number of "
		    "ranks differs: pass the patches of one run, from all ranks",
		    (unsigned long long)p->step,
		    p->ranks == 0 ? "it is not a part, or " : "");
	if (q->step != p->step && !p->whole && p->base != 0 && p->base != q->step)
		return err_set(e, ERR_DATA, "mismatch: the patch to step %llu "
		    "changes step %llu, but the patches before it end at step %llu: "
		    "a patch between them is missing", (unsigned long long)p->step,
		    (unsigned long long)p->base, (unsigned long long)q->step);
	return 0;
}

/* Read the patch's rank and the number of ranks; both are 0 if the patch is not a part. */
static int
series_rank(const struct series *s, struct coming *c, const struct shard *sh,
    const unsigned char *run, const struct model *m, struct err *e)
{
	const char *key = text_get(&sh->kv, SHARD_KEY_PART);
	unsigned rank = 0, ranks = 0;
	char text[24] = "";

	if (key != NULL && sscanf(key, "%4u/%4u", &rank, &ranks) == 2)
		(void)snprintf(text, sizeof(text), "%u/%u", rank, ranks);
	if (key != NULL && (strcmp(text, key) != 0 || rank >= ranks ||
	    ranks > SERIES_MOST))
		return err_set(e, ERR_DATA, "corrupt: key " SHARD_KEY_PART
		    " is '%.40s', expected RANK/RANKS such as 0/4", key);
	if (key == NULL && m->slice != NULL)
		return err_set(e, ERR_DATA, "mismatch: the patch has whole tensors, "
		    "but '%s' holds slices of tensors: expected patches made with "
		    "ace-diff --part", m->path);
	c->p.ranks = ranks;
	c->p.rank = rank;
	return s->n == 0 ? 0 : ranks == 0 && !s->parts ? 0 :
	    series_follows(s, c, memcmp(run, sh->run, SHARD_ID) == 0, e);
}

/* Find the model's tensor for each tensor of the patch. If the model holds slices, both
 * may have tensors that the other lacks. */
static int
series_tensors(struct coming *c, const struct schema *sc, const struct model *m,
    struct err *e)
{
	const struct schema *own = &m->schema;
	const struct schema_tensor *t, *o;
	size_t i, k = 0;
	int is;

	if ((c->own = alloc_get(sc->n, sizeof(*c->own), e)) == NULL ||
	    (c->slice = alloc_get(sc->n, sizeof(*c->slice), e)) == NULL)
		return -ERR_SYS;
	for (i = 0; i < sc->n; i++) {
		t = &sc->t[i];
		if (sc->group_size != MODEL_GROUP || (i > 0 &&
		    strcmp(sc->t[i - 1].name, t->name) >= 0))
			return err_set(e, ERR_DATA, "corrupt: the tensors of a patch "
			    "of slices are not sorted by name");
		while (k < own->n && strcmp(own->t[k].name, t->name) < 0)
			k++;
		o = k < own->n ? &own->t[k] : NULL;
		is = o != NULL && strcmp(o->name, t->name) == 0;
		if (is ? o->dtype != t->dtype || o->kind != t->kind ||
		    o->ndim != t->ndim || memcmp(o->dim, t->dim,
		    t->ndim * sizeof(*t->dim)) != 0 : m->slice == NULL)
			return err_set(e, ERR_DATA, "mismatch: the patch is for "
			    "another architecture than '%s': tensor '%.160s' is %s",
			    m->path, t->name, is ? "different in shape or type" : "absent");
		c->own[i] = is ? (uint32_t)k : SERIES_OTHERS;
	}
	return 0;
}

/* Begin a shard, which must be a patch of a model with these tensors. */
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
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: the shard is "
		    "not a patch of a model: expected the output of ace-diff"), e);
	memcpy(run, s->run, SHARD_ID);
	memcpy(s->run, sh->run, SHARD_ID);
	s->step = sh->step;
	c->p = (struct series_patch){ .step = sh->step, .base = sh->base_version,
	    .whole = !differs };
	if ((r = series_rank(s, c, sh, run, m, e)) < 0)
		return reader_place(in, r, e);
	if (c->p.ranks != 0)
		return series_tensors(c, reader_schema(in), m, e);
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
	if (((rec->param & EXACT_PART) != 0) != (c->p.ranks != 0))
		return err_set(e, ERR_DATA, "corrupt: group %lu holds values of %s "
		    "tensors, unlike the rest of the patch",
		    (unsigned long)rec->group,
		    c->p.ranks != 0 ? "whole" : "slices of");
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
	if (c->p.ranks == 0)
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

/* Store the slices that the patch has of each tensor. */
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

/* Add a record of the patch's n values, from lo on, in group g of tensor i. The model
 * must have all of these values or none. */
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
			return err_set(e, ERR_DATA, "mismatch: tensor '%.160s': '%s' "
			    "holds only some of the values that rank %u coded as one "
			    "group: make the patch with ace-diff --for", t->name,
			    m->path, c->p.rank);
	}
	if ((r = alloc_grow(&c->full, &c->capfull, c->nfull + 1,
	    sizeof(*c->full), e)) < 0)
		return r;
	c->full[c->nfull] = *x;
	c->full[c->nfull].group = t->group + (uint32_t)(lo / MODEL_GROUP);
	s->has[c->full[c->nfull++].group] |= x->sent;
	return 0;
}

/* Add a record for each group that has values in the patch, also for unchanged groups. */
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
	    err_set(e, ERR_DATA, "corrupt: the list of slices in the patch of rank "
	    "%u does not cover its groups", c->p.rank);
}

/* Return 1 if the same patch came earlier in the stream, 0 if not. */
static int
series_known(const struct series *s, const struct series_patch *p,
    struct err *e)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->p[i].step == p->step && s->p[i].rank == p->rank)
			return memcmp(s->p[i].before, p->before, MODEL_HASH) == 0 &&
			    memcmp(s->p[i].after, p->after, MODEL_HASH) == 0 ? 1 :
			    err_set(e, ERR_DATA, "mismatch: two different patches of "
			    "rank %u to step %llu: pass one of them", p->rank,
			    (unsigned long long)p->step);
	return 0;
}

/* Insert a patch after the others to its step. */
static int
series_keep(struct series *s, struct series_patch *p,
    const struct series_part *part, struct err *e)
{
	const size_t i = series_place(s, p->step);
	int r;

	if ((r = alloc_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p), e)) < 0 ||
	    (r = alloc_grow(&s->may, &s->capmay, s->turns + 2, 1, e)) < 0 ||
	    (p->n > 0 && (r = scratch_put(&s->s, part,
	    p->n * sizeof(*part), &p->at, e)) < 0)) {
		alloc_free(p->slice);
		return r;
	}
	p->turn = p->ranks != 0 && i > 0 && s->p[i - 1].step == p->step ?
	    s->p[i - 1].turn : s->turns++;
	memmove(&s->p[i + 1], &s->p[i], (s->n++ - i) * sizeof(*s->p));
	s->p[i] = *p;
	s->parts = p->ranks != 0;
	return 0;
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
series_end(struct series *s, struct coming *c, struct reader *in,
    const struct model *m, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	struct series_patch *p = &c->p;
	const struct series_part *part = c->part;
	size_t i;
	int r;

	if (c->notes != 1 || c->note.n != c->n)
		return err_set(e, ERR_DATA, "corrupt: found %d frames mODL, the last of %zu "
		    "groups, expected 1 of %zu groups", c->notes, c->note.n, c->n);
	memcpy(p->before, c->note.before, MODEL_HASH);
	memcpy(p->after, c->note.after, MODEL_HASH);
	if (p->whole != (memcmp(p->before, none, MODEL_HASH) == 0))
		return err_set(e, ERR_DATA, p->whole ? "corrupt: the patch holds a "
		    "whole model, but names an old one" : "corrupt: the patch "
		    "changes an old model, but does not name it");
	if (c->p.ranks == 0 && (r = series_chains(s, p, e)) < 0)
		return r;
	if (s->n == SERIES_MOST)
		return err_set(e, ERR_DATA, "limit: the stream has more than %d "
		    "patches: apply them in several runs of ace-patch", SERIES_MOST);
	for (i = 0; i < c->n; i++)
		c->part[i].sum = c->note.sum[i];
	p->n = c->n;
	if (c->p.ranks != 0) {
		if ((r = series_known(s, p, e)) != 0)
			return r < 0 ? r : 0;
		if ((r = series_fill(s, c, reader_schema(in), m, e)) < 0) {
			alloc_free(p->slice);
			return r;
		}
		part = c->full;
		p->n = c->nfull;
	}
	if ((r = series_keep(s, p, part, e)) == 0)
		memcpy(s->digest, reader_end_of_shard(in)->digest, SHARD_DIGEST);
	return r;
}

/* Check that each step has the patches of all ranks or of none. */
static int
series_missing(const struct series *s, struct err *e)
{
	const struct series_patch *p;
	unsigned k;
	size_t i, j;

	for (i = 0; i < s->n; i = j) {
		for (j = i; j < s->n && s->p[j].turn == s->p[i].turn; j++)
			;
		for (p = &s->p[i], k = 0; k < p->ranks; k++) {
			for (p = &s->p[i]; p < &s->p[j] && p->rank != k; p++)
				;
			if (p == &s->p[j])
				return err_set(e, ERR_REFUSED, "the patch to step "
				    "%llu has parts of %u ranks, and the part of "
				    "rank %u is missing: pass the parts of all ranks",
				    (unsigned long long)s->p[i].step, s->p[i].ranks,
				    k);
		}
	}
	return 0;
}

/* Read the patch at whose shard `in' stands. series_missing checks the ranks later. */
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
		r = series_end(s, &c, in, m, e);
	alloc_free(c.part);
	alloc_free(c.full);
	alloc_free(c.own);
	alloc_free(c.slice);
	buf_release(&c.cut);
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
	return r < 0 ? r : series_missing(s, e);
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
	alloc_free(s->may);
	*s = (struct series)SERIES_INIT;
}

/* ---- applying groups ---- */

void
series_from(struct series *s, size_t i)
{
	s->from = i;
	if (i == s->n)
		return;
	memset(s->may, 0, s->turns + 1);
	memset(s->may + s->p[i].turn, 1, s->turns + 1 - s->p[i].turn);
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
		p->next.of = (uint16_t)(p - s->p);
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
	while (i > 1 && s->p[i - 2].turn == s->p[i - 1].turn)
		i--;
	return i > 0 ? i - 1 : 0;
}

/* Apply a record to the n bytes at old; new may be old. Hash the n bytes at new. */
static int
series_body(const struct series *s, const struct series_part *x,
    const struct model_span *span, size_t n, const unsigned char *old,
    unsigned char *new, unsigned char hash[MODEL_HASH], struct buf *body,
    struct err *e)
{
	int r;

	body->n = 0;
	if ((r = buf_room(body, x->len, e)) < 0 ||
	    (r = scratch_get(&s->s, x->at, body->p, x->len, e)) < 0)
		return r;
	r = exact_get(x->param, span->form, x->whole ? NULL : old, body->p,
	    x->len, new, n / exact_size(span->form), e);
	if (r == 0 && hash_both(new, n, hash) != x->sum)
		r = err_set(e, ERR_DATA, "corrupt: the checksum of a group does not "
		    "match its bytes");
	return r < 0 ? err_after(e, r, ", in the patch to step %llu",
	    (unsigned long long)x->step) : 0;
}

/* ---- parts ---- */

/* A group and its records, from patches of slices. */
struct parted {
	const struct series *s;
	const struct model *m;
	struct schema_span at;
	struct model_span span;
	const struct series_part *list;	/* ordered by turn */
	size_t n;
	struct series_work *w;
};

static const struct series_patch *
parted_patch(const struct parted *g, size_t i)
{
	return &g->s->p[g->list[i].of];
}

/* Copy the values of patch i from the group into the tile or, with `set', from the tile
 * into the group. Return the number of bytes copied. */
static size_t
parted_tile(const struct parted *g, size_t i, int set, unsigned char *group,
    unsigned char *tile)
{
	const uint32_t k = g->at.tensor;

	return slice_move(&parted_patch(g, i)->slice[k], &g->m->schema.t[k],
	    g->at.offset, g->at.offset + g->at.n, g->m->slice != NULL ?
	    &g->m->slice[k] : NULL, set, group, tile);
}

/* Clear g->w->is of the turns for which the group does not have the old bytes. */
static void
parted_look(const struct parted *g, unsigned char *group)
{
	const struct series *s = g->s;
	unsigned char *is = g->w->is.p;
	const struct series_patch *p;
	uint64_t sum;
	size_t i, n;

	g->w->odd = SIZE_MAX;
	for (i = 0; i < g->n; i++) {
		p = parted_patch(g, i);
		if (!(is[p->turn] && !p->whole) &&
		    !(is[s->turns] && p->turn + 1 == s->turns))
			continue;
		n = parted_tile(g, i, 0, group, g->w->tile);
		sum = hash_64(g->w->tile, n);
		if (p->turn + 1 == s->turns)
			is[s->turns] &= sum == g->list[i].sum;
		if (is[p->turn] && !p->whole && sum != g->list[i].base) {
			is[p->turn] = 0;
			if (g->w->odd == SIZE_MAX)
				g->w->odd = g->list[i].of;
		}
	}
}

/* Apply one record to the bytes at old and store the result in new. */
static int
parted_part(const struct parted *g, size_t i, int first, unsigned char *old,
    unsigned char *new, struct err *e)
{
	const struct series_part *x = &g->list[i];
	struct series_work *w = g->w;
	const size_t n = parted_tile(g, i, 0, old, w->tile);
	unsigned char hash[MODEL_HASH];
	int r = 0;

	if (!first && hash_64(w->tile, n) != x->base)
		return err_set(e, ERR_DATA, "mismatch: the patch to step %llu of "
		    "rank %u changes another model than the one that the patches "
		    "before it make", (unsigned long long)x->step,
		    parted_patch(g, i)->rank);
	if (x->sent && (r = series_body(g->s, x, &g->span, n, w->tile, w->tile,
	    hash, &w->body, e)) == 0)
		(void)parted_tile(g, i, 1, new, w->tile);
	memset(w->tile, 1, n);
	(void)parted_tile(g, i, 1, w->seen, w->tile);
	return r;
}

/* Apply records i to j, which belong to one step. */
static int
parted_turn(const struct parted *g, size_t i, size_t j, int first,
    unsigned char *old, unsigned char *new, struct err *e)
{
	const size_t bytes = g->span.bytes;
	struct series_work *w = g->w;
	size_t k, n;
	int r;

	memset(w->seen, 0, bytes);
	for (k = i; k < j; k++)
		if ((r = parted_part(g, k, first, old, new, e)) < 0)
			return r;
	if (memchr(w->seen, 0, bytes) != NULL)
		return err_set(e, ERR_DATA, "mismatch: no patch of this step covers "
		    "some values of a group: pass the patches of all ranks");
	for (k = i; k < j; k++) {
		n = parted_tile(g, k, 0, new, w->tile);
		if (hash_64(w->tile, n) != g->list[k].sum)
			return err_set(e, ERR_DATA, "mismatch: the patches of rank "
			    "%u and of another rank give different values to the "
			    "same elements", parted_patch(g, k)->rank);
	}
	return 0;
}

/* Make the new bytes of a group from patches of slices. */
static int
parted_group(const struct parted *g, unsigned char *old, unsigned char *new,
    struct err *e)
{
	const size_t bytes = g->span.bytes, turns = g->s->turns;
	struct series_work *w = g->w;
	unsigned char *from = old;
	size_t turn = 0, first, i = 0, j;
	int r;

	w->room.n = w->is.n = 0;
	if ((r = buf_put(&w->is, g->s->may, turns + 1, e)) < 0 || bytes == 0 ||
	    (r = buf_room(&w->room, 3 * bytes, e)) < 0)
		return r;
	w->tile = w->room.p;
	w->seen = w->tile + bytes;
	w->was = w->seen + bytes;
	memcpy(new, old, bytes);
	parted_look(g, old);
	/* start at the first possible turn, to check that later ones continue it */
	while (turn < turns && !w->is.p[turn])
		turn++;
	for (first = turn; turn < turns && r == 0; turn++) {
		while (i < g->n && parted_patch(g, i)->turn < turn)
			i++;
		for (j = i; j < g->n && parted_patch(g, j)->turn == turn; j++)
			;
		if (turn > first)
			memcpy(from = w->was, new, bytes);
		r = parted_turn(g, i, j, turn == first, from, new, e);
	}
	return r;
}

int
series_group(const struct series *s, const struct series_part *list, size_t n,
    const struct model *m, uint32_t g, unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct series_work *w, struct err *e)
{
	struct parted x = { .s = s, .m = m, .list = list, .n = n, .w = w };
	const unsigned char *from = old;
	size_t i;
	int r = 0;

	schema_span(&m->schema, g, &x.at);
	model_span(m, g, &x.span);
	if (s->parts) {
		if ((r = parted_group(&x, old, new, e)) == 0)
			hash_128(new, x.span.bytes, hash);
		return r;
	}
	for (i = 0; i < n && r == 0; i++, from = new)
		r = series_body(s, &list[i], &x.span, x.span.bytes, from, new, hash,
		    &w->body, e);
	return r;
}

void
series_work_release(struct series_work *w)
{
	buf_release(&w->body);
	buf_release(&w->room);
	buf_release(&w->is);
}

void
series_seen(struct series *s, const struct series_work *w)
{
	size_t i;

	for (i = 0; i <= s->turns; i++)
		s->may[i] &= w->is.p[i];
}

size_t
series_base(const struct series *s)
{
	size_t i = s->n;

	while (i > 0 && !s->may[s->p[i - 1].turn])
		i--;
	while (i > 1 && s->p[i - 2].turn == s->p[i - 1].turn)
		i--;
	return i > 0 ? i - 1 : s->n;
}
