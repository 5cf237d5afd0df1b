#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "format/chain.h"
#include "format/data.h"
#include "format/frame.h"
#include "format/schema.h"

/* Values of an exact type (schema_exact) may only be coded without loss. */
static int
data_may(const struct schema *s, const struct record *rec, struct err *e)
{
	struct schema_span span;
	unsigned dtype;

	schema_span(s, rec->group, &span);
	dtype = s->t[span.tensor].dtype;
	if (!schema_exact(dtype) || codec_exact(rec->codec, rec->param))
		return 0;
	return err_set(e, ERR_DATA, "corrupt: codec %u of group %lu, whose "
	    "values are %s", rec->codec, (unsigned long)rec->group,
	    schema_dtype_name(dtype));
}

/*
 * One directory entry; the bodies are cut up later, when all are known.
 * First byte: codec in bits 0-3, 15 says that a varint of it follows; bit 4
 * "same parameter as the entry before" (0 at first); gap in bits 5-7, 7 says
 * that a varint of gap - 7 follows.
 */
static int
data_entry(struct data_pos *pos, const struct chain *c, const struct schema *s,
    struct bytes *dir, struct record *rec, uint8_t *param, struct err *e)
{
	uint8_t b = bytes_u8(dir);
	uint64_t gap = b >> 5, more = 0, codec = b & 0x0f, g, len;

	if (gap == 7)
		more = bytes_varint(dir);
	if (codec == CODEC_ESCAPE && (codec = bytes_varint(dir)) < CODEC_ESCAPE)
		return chain_corrupt(c, e, "directory");
	if ((b & 0x10) == 0)
		*param = bytes_u8(dir);
	len = bytes_varint(dir);
	g = pos->next_group + gap + more;
	if (dir->bad || len > FRAME_MAX_HARD || more > UINT32_MAX ||
	    codec > CODEC_ID_MOST)
		return chain_corrupt(c, e, "directory");
	if (g >= s->ngroups)
		return chain_corrupt(c, e, "group beyond the schema");
	if (!codec_known(codec))
		return err_set(e, ERR_DATA, "unsupported: codec %llu of group "
		    "%llu", (unsigned long long)codec, (unsigned long long)g);
	rec->codec = (uint8_t)codec;
	rec->param = *param;
	rec->group = (uint32_t)g;
	rec->len = (size_t)len;
	pos->next_group = g + 1;
	return data_may(s, rec, e);
}

static int
data_bodies(struct data_frame *d, struct data_pos *pos, const struct chain *c,
    const struct schema *s, struct bytes *b, struct err *e)
{
	struct schema_span span;
	size_t i;

	for (i = 0; i < d->n; i++) {
		d->rec[i].body = bytes_take(b, d->rec[i].len);
		if (b->bad)
			return chain_corrupt(c, e, "bodies");
		schema_span(s, d->rec[i].group, &span);
		pos->raw += 4 * (uint64_t)span.n;
		pos->wire += d->rec[i].len;
	}
	if (b->at != b->n)
		return chain_corrupt(c, e, "bytes after the last body");
	return 0;
}

int
data_decode(struct data_frame *d, struct data_pos *pos, const struct chain *c,
    const struct schema *s, struct err *e)
{
	struct bytes b = BYTES(c->frame.raw, c->frame.raw_len), dir;
	uint32_t n = bytes_next32(&b), dir_len = bytes_next32(&b);
	uint32_t first = bytes_next32(&b);
	const unsigned char *p = bytes_take(&b, dir_len);
	uint8_t param = 0;
	int k;

	/* an entry is at least two bytes: n is bounded by what is here; the
	 * first group stands before them, so its gap is 0 */
	if (p == NULL || n == 0 || n > dir_len / 2 || p[0] >> 5 != 0)
		return chain_corrupt(c, e, "directory");
	if (first < pos->next_group)
		return chain_corrupt(c, e, "groups do not rise");
	pos->next_group = first;
	if ((k = alloc_grow(&d->rec, &d->cap, n, sizeof(*d->rec), e)) < 0)
		return k;
	dir = (struct bytes)BYTES(p, dir_len);
	for (d->n = 0; d->n < n; d->n++)
		if ((k = data_entry(pos, c, s, &dir, &d->rec[d->n], &param,
		    e)) < 0)
			return k;
	if (dir.at != dir_len || !bytes_zero(&b, frame_padding(12 + dir_len)))
		return chain_corrupt(c, e, "directory");
	if ((k = data_bodies(d, pos, c, s, &b, e)) < 0)
		return k;
	pos->frames++;
	pos->records += n;
	return 0;
}
