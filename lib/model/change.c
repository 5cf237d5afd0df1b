#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "codec/codec.h"
#include "codec/exact.h"
#include "format/frame.h"
#include "format/reader.h"
#include "model/change.h"

/* Begin a shard, which must be a patch of a model with these tensors. */
static int
change_begin(struct change *c, struct reader *in, const struct model *m, struct err *e)
{
	const struct shard *sh = reader_shard(in);
	const char *predict = text_get(&sh->kv, SHARD_KEY_PREDICT);
	const int differs = (sh->flags & SHARD_PREDICTED) != 0;
	char why[256];

	if (sh->kind != SHARD_MODEL || reader_schema(in)->group_size != MODEL_GROUP ||
	    differs != (predict != NULL) ||
	    (differs && strcmp(predict, SHARD_PREDICT_PATCH) != 0))
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: the shard is "
		    "not a patch of a model: expected the output of ace-diff"), e);
	c->step = sh->step;
	c->base = sh->base_version;
	c->whole = !differs;
	c->n = 0;
	c->notes = 0;
	scratch_clear(&c->s);
	return !schema_diff(reader_schema(in), &m->schema, why) ? 0 : reader_place(in,
	    err_set(e, ERR_DATA, "mismatch: the patch is for another architecture than '%s': "
	    "%s", m->path, why), e);
}

static int
change_part(struct change *c, const struct schema *s, const struct record *rec, struct err *e)
{
	struct change_part *p;
	int r;

	if (rec->codec != CODEC_EXACT)
		return err_set(e, ERR_DATA, "mismatch: tensor '%.160s' of the patch is "
		    "coded %s, expected codec exact (give ace-diff's output unchanged)",
		    schema_name(s, rec->group), codec_name(rec->codec));
	if (!codec_takes(CODEC_EXACT, rec->param))
		return err_set(e, ERR_DATA, "unsupported: parameter %u of codec "
		    "exact in tensor '%.160s' is unknown: a newer release of ace may read it",
		    rec->param, schema_name(s, rec->group));
	if ((r = alloc_grow(&c->part, &c->cap, c->n + 1, sizeof(*c->part), e)) < 0)
		return r;
	p = &c->part[c->n++];
	p->group = rec->group;
	p->len = (uint32_t)rec->len;
	p->param = rec->param;
	return scratch_put(&c->s, rec->body, rec->len, &p->at, e);
}

/* Store the records or the note of a frame. */
static int
change_frame(struct change *c, struct reader *in, int event, struct err *e)
{
	const struct chain_frame *f;
	const struct record *rec;
	size_t i, n;
	int r = 0;

	if (event == READER_DATA) {
		rec = reader_records(in, &n);
		for (i = 0; i < n && r == 0; i++)
			r = change_part(c, reader_schema(in), &rec[i], e);
		return r < 0 ? reader_place(in, r, e) : 0;
	}
	if (event != READER_NOTE || (f = reader_frame(in))->type != FRAME_MODL)
		return 0;
	c->notes++;
	r = model_note_decode(&c->note, f->raw, f->raw_len, e);
	return r < 0 ? reader_place(in, r, e) : 0;
}

/* Check a complete patch. */
static int
change_end(const struct change *c, struct err *e)
{
	const unsigned char none[MODEL_HASH] = { 0 };
	const int one = c->notes == 1;

	if (!one || c->note.n != c->n)
		return err_set(e, ERR_DATA, one ? "corrupt: the number of groups in the "
		    "patch's frame mODL is %zu, expected %zu" : "mismatch: the number of "
		    "frames mODL in the patch is %zu, expected %zu (give ace-diff's "
		    "output unchanged)",
		    one ? c->note.n : (size_t)c->notes, one ? c->n : 1);
	if (c->whole != (memcmp(c->note.before, none, MODEL_HASH) == 0))
		return err_set(e, ERR_DATA, c->whole ? "corrupt: the patch holds a "
		    "whole model, but names an old one" : "corrupt: the patch "
		    "changes an old model, but does not name it");
	return 0;
}

int
change_read(struct change *c, struct reader *in, const struct model *m, struct err *e)
{
	int r = change_begin(c, in, m, e);

	while (r >= 0 && (r = reader_next(in, e)) > 0 && r != READER_SEND)
		r = change_frame(c, in, r, e);
	if (r > 0 && (r = change_end(c, e)) < 0)
		r = err_after(e, r, ", in the patch to step %llu", (unsigned long long)c->step);
	return r;
}

void
change_release(struct change *c)
{
	scratch_release(&c->s);
	model_note_release(&c->note);
	alloc_free(c->part);
	*c = (struct change)CHANGE_INIT;
}

int
change_group(const struct change *c, const struct change_part *p,
    const struct model_span *span, const unsigned char *old, unsigned char *new,
    unsigned char hash[MODEL_HASH], struct buf *body, struct err *e)
{
	const int given = (p->param & EXACT_GIVEN) != 0;
	int r;

	body->n = 0;
	if ((r = buf_room(body, p->len, e)) < 0 ||
	    (r = scratch_get(&c->s, p->at, body->p, p->len, e)) < 0)
		return r;
	r = exact_get(p->param, span->form, given ? old : NULL, body->p,
	    p->len, new, span->words, e);
	if (r == 0 && hash_both(new, span->bytes, hash) != c->note.sum[p - c->part])
		r = err_set(e, ERR_DATA, "corrupt: the checksum does not match the bytes");
	return r < 0 ? err_after(e, r, ", in group %lu of the patch to step %llu",
	    (unsigned long)p->group, (unsigned long long)c->step) : 0;
}
