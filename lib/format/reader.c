#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "codec/codec.h"
#include "format/annotation.h"
#include "format/chain.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/receipt.h"
#include "format/schema.h"

/* ---- the payload of DATA: a directory of rising groups, and their bodies ---- */

/* Records of one frame; they point into its payload. */
struct data_frame {
	struct record *rec;	/* [n], freed by alloc_free */
	size_t n, cap;
};

/* State of reading a shard; zeros when the shard begins. */
struct data_pos {
	uint32_t frames, records;
	uint64_t next_group;	/* least number that the next group may have */
	uint64_t raw, wire;	/* raw: bytes of the values as f32; wire: bytes of the bodies */
};

/* Check the codec of a group: EXACT for types sent as bits (schema_bits), lossless for exact
 * types. i32 and i64 are exempt, because older writers coded them with any codec. */
static int
data_may(const struct schema *s, const struct record *rec, struct err *e)
{
	struct schema_span span;
	unsigned dtype;

	schema_span(s, rec->group, &span);
	dtype = s->t[span.tensor].dtype;
	if (schema_bits(dtype) && rec->codec != CODEC_EXACT)
		return err_set(e, ERR_DATA, "unsupported: tensor '%.160s' has %s values in "
		    "codec %s, expected codec exact", s->t[span.tensor].name,
		    schema_dtype_name(dtype), codec_name(rec->codec));
	if (dtype < SCHEMA_U8 || codec_exact(rec->codec))
		return 0;
	return err_set(e, ERR_DATA, "corrupt: tensor '%.160s' has %s values in codec %s, "
	    "expected a codec without loss", s->t[span.tensor].name,
	    schema_dtype_name(dtype), codec_name(rec->codec));
}

/* Read a directory entry; bodies are located when all entries are known. In the first byte
 *
 *   bits 0-3	are the codec, or 15 if its number follows as a varint
 *   bit 4	is 1 if the parameter is the previous entry's (0 before the first entry)
 *   bits 5-7	are the number of groups skipped, or 7 if that less 7 follows as a varint
 *
 * Then follow the varint of the skipped groups, that of the codec, the parameter unless bit 4
 * is set, and the length of the body as a varint. */
static int
data_entry(struct data_pos *pos, const struct chain *c, const struct schema *s,
    struct bytes *dir, struct record *rec, uint8_t *param, struct err *e)
{
	uint8_t b = bytes_u8(dir);
	uint64_t gap = b >> 5, more = 0, codec = b & 0x0f, g, len;

	if (gap == 7)
		more = bytes_varint(dir);
	if (codec == CODEC_ESCAPE && (codec = bytes_varint(dir)) < CODEC_ESCAPE)
		return chain_corrupt(c, e, "the directory of groups is not valid");
	if ((b & 0x10) == 0)
		*param = bytes_u8(dir);
	len = bytes_varint(dir);
	g = pos->next_group + gap + more;
	if (dir->bad || len > FRAME_MAX_HARD || more > UINT32_MAX ||
	    codec > CODEC_ID_MOST)
		return chain_corrupt(c, e, "the directory of groups is not valid");
	if (g >= s->ngroups)
		return chain_corrupt(c, e, "a group is beyond the schema's last one");
	if (!codec_known(codec))
		return err_set(e, ERR_DATA, "unsupported: codec %llu of group %llu is "
		    "unknown: a newer release of ace may read it", (unsigned long long)codec,
		    (unsigned long long)g);
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
			return chain_corrupt(c, e, "the bodies are longer than "
			    "the frame");
		schema_span(s, d->rec[i].group, &span);
		pos->raw += 4 * (uint64_t)span.n;
		pos->wire += d->rec[i].len;
	}
	if (b->at != b->n)
		return chain_corrupt(c, e, "bytes follow the last body");
	return 0;
}

/* Read the records of c's DATA frame into d and advance pos. */
static int
data_decode(struct data_frame *d, struct data_pos *pos, const struct chain *c,
    const struct schema *s, struct err *e)
{
	struct bytes b = BYTES(c->frame.raw, c->frame.raw_len), dir;
	uint32_t n = bytes_next32(&b), dir_len = bytes_next32(&b);
	uint32_t first = bytes_next32(&b);
	const unsigned char *p = bytes_take(&b, dir_len);
	uint8_t param = 0;
	int k;

	/* An entry has at least two bytes, so the payload's size limits n. The first
	 * group's number precedes the entries, so the first entry skips no group. */
	if (p == NULL || n == 0 || n > dir_len / 2 || p[0] >> 5 != 0)
		return chain_corrupt(c, e, "the directory of groups is not valid");
	if (first < pos->next_group)
		return chain_corrupt(c, e, "the groups are not in order");
	pos->next_group = first;
	if ((k = alloc_grow(&d->rec, &d->cap, n, sizeof(*d->rec), e)) < 0)
		return k;
	dir = (struct bytes)BYTES(p, dir_len);
	for (d->n = 0; d->n < n; d->n++)
		if ((k = data_entry(pos, c, s, &dir, &d->rec[d->n], &param, e)) < 0)
			return k;
	if (dir.at != dir_len || !bytes_zero(&b, frame_padding(12 + dir_len)))
		return chain_corrupt(c, e, "the directory of groups is not valid");
	if ((k = data_bodies(d, pos, c, s, &b, e)) < 0)
		return k;
	pos->frames++;
	pos->records += n;
	return 0;
}

/* ---- a reader ---- */

enum reader_at { AT_START, AT_HEAD, AT_BODY, AT_SHARD, AT_DONE, AT_FAILED };

struct reader_pos {
	enum reader_at at;
	uint64_t key;			/* the shard's key */
	struct data_pos data;
	uint64_t noted[3];		/* per type of annotation: group after the last range */
};

/* Numbers of records that callers have decoded, and of their non-zero values. */
struct reader_tally {
	uint64_t records, nonzero;
};

struct reader {
	struct chain c;
	struct reader_opts o;
	int have_schema;
	struct schema own_schema;
	struct buf table;		/* the schema's table, from several frames */
	size_t table_size, table_wire;	/* bytes of the whole table; bytes read on the wire */
	struct reader_pos pos;
	struct hash_sum *digest;
	struct reader_tally *tally;
	struct shard shard;
	struct shard_end end;
	struct receipt receipt;
	struct buf prov;		/* the provenance and a NUL */
	struct data_frame data;
	int failed;			/* the error that reader_next repeats at AT_FAILED */
};

int
reader_open(struct reader **out, struct io *io, const struct reader_opts *o,
    struct err *e)
{
	struct reader *r = alloc_get(1, sizeof(*r), e);

	*out = NULL;
	if (r == NULL) {
		io_free(io);
		return -ERR_SYS;
	}
	if (o != NULL)
		r->o = *o;
	if (r->o.max_elements == 0)
		r->o.max_elements = SCHEMA_MAX_ELEMENTS;
	r->own_schema = (struct schema)SCHEMA_INIT;
	shard_init(&r->shard);
	r->digest = hash_sum_new(e);
	r->tally = alloc_get(1, sizeof(*r->tally), e);
	if (chain_init(&r->c, io, e) < 0 || r->digest == NULL ||
	    r->tally == NULL || buf_put(&r->prov, "", 1, e) < 0) {
		reader_free(r);
		return -ERR_SYS;
	}
	*out = r;
	return 0;
}

int
reader_file(struct reader **out, const char *path, const struct reader_opts *o,
    struct err *e)
{
	struct io *io;
	int k = io_open(&io, path, e);

	*out = NULL;
	return k < 0 ? k : reader_open(out, io, o, e);
}

int
reader_kept(struct reader **out, const char *path, const struct reader_opts *o,
    struct err *e)
{
	struct io *io;
	int k = io_open_kept(&io, path, e);

	*out = NULL;
	if (k > 0)
		k = reader_open(out, io, o, e);
	return *out != NULL ? 1 : k;
}

void
reader_free(struct reader *r)
{
	if (r == NULL)
		return;
	chain_release(&r->c);
	schema_release(&r->own_schema);
	shard_release(&r->shard);
	hash_sum_free(r->digest);
	alloc_free(r->tally);
	buf_release(&r->prov);
	buf_release(&r->table);
	alloc_free(r->data.rec);
	alloc_free(r);
}

const char *
reader_where(const struct reader *r, char buf[160])
{
	unsigned long long at = r->c.pos.offset;

	if (r->pos.at == AT_SHARD)
		(void)snprintf(buf, 160, "shard %lu '%.80s/%llu', at byte %llu",
		    (unsigned long)r->c.pos.n_shards, shard_device(&r->shard),
		    (unsigned long long)r->shard.step, at);
	else
		(void)snprintf(buf, 160, "at byte %llu", at);
	return buf;
}

const char *
reader_name(const struct reader *r)
{
	return io_name(r->c.io);
}

int
reader_blame(const struct reader *r, int k, struct err *e)
{
	return k == -ERR_DATA ? err_file(e, k, reader_name(r)) : k;
}

int
reader_place(const struct reader *r, int k, struct err *e)
{
	if (k == -ERR_DATA && r->o.remedy != NULL && e != NULL && e->file[0] == '\0')
		(void)reader_blame(r, err_after(e, k, "%s", r->o.remedy), e);
	if (r->pos.at == AT_SHARD)
		return err_shard(e, k, r->c.pos.n_shards,
		    shard_device(&r->shard), r->shard.step, r->c.pos.offset);
	if (e != NULL && !e->has_byte) {
		e->byte = r->c.pos.offset;
		e->has_byte = 1;
	}
	return k;
}

const struct schema *
reader_schema(const struct reader *r)
{
	if (r->have_schema)
		return &r->own_schema;
	return r->o.schema;
}

void
reader_decoded(const struct reader *r, uint64_t nonzero)
{
	/* atomic, since several threads may decode; their order does not matter */
	(void)__atomic_fetch_add(&r->tally->records, 1, __ATOMIC_RELAXED);
	(void)__atomic_fetch_add(&r->tally->nonzero, nonzero, __ATOMIC_RELAXED);
}

void
reader_digest_add(struct hash_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash)
{
	unsigned char b[16];

	bytes_set32(b, type);
	bytes_set32(b + 4, (uint32_t)wire_len);
	bytes_set64(b + 8, wire_hash);
	hash_sum_add(s, b, sizeof(b));
}

/* ---- the handling of frames ---- */

static int
reader_corrupt(struct reader *r, struct err *e, const char *what)
{
	return chain_corrupt(&r->c, e, what);
}

/* Append a frame to the tensor table, and decode the table when it is complete. */
static int
reader_on_table(struct reader *r, struct err *e)
{
	const struct chain_frame *f = &r->c.frame;
	int k;

	r->table_wire += f->wire_len;
	if (r->table.n == 0 && (k = schema_bytes(f->raw, f->raw_len,
	    r->o.max_elements, r->table_wire, &r->table_size, e)) < 0)
		return k;
	if (r->o.max_table != 0 && r->table_size > r->o.max_table)
		return err_set(e, ERR_DATA, "limit: the schema has %llu bytes, expected "
		    "at most %llu", (unsigned long long)r->table_size,
		    (unsigned long long)r->o.max_table);
	if (f->raw_len == 0 || f->raw_len > r->table_size - r->table.n)
		return reader_corrupt(r, e, "the frame is empty, or longer than the rest of "
		    "the schema");
	if ((k = buf_put(&r->table, f->raw, f->raw_len, e)) < 0)
		return k;
	if (r->table.n < r->table_size)
		return 0;
	k = schema_decode(&r->own_schema, r->table.p, r->table.n, e);
	buf_release(&r->table);
	r->have_schema = k == 0;
	return k;
}

/* Forget the schema; a new stream begins. */
static void
reader_on_no_table(struct reader *r)
{
	r->table.n = 0;
	r->table_wire = 0;
	r->have_schema = 0;
}

static int
reader_on_schema(struct reader *r, struct err *e)
{
	char why[256];
	int k;

	if (r->pos.at != AT_HEAD || r->have_schema)
		return reader_corrupt(r, e, "the frame is not at the stream's head");
	if ((k = reader_on_table(r, e)) < 0 || !r->have_schema)
		return k;
	if (memcmp(r->own_schema.id, r->c.schema_id, 16) != 0) {
		r->have_schema = 0;
		return reader_corrupt(r, e, "the schema is not the one that the head "
		    "announces");
	}
	if (r->o.schema != NULL && !r->o.any_model &&
	    schema_diff(&r->own_schema, r->o.schema, why) != 0) {
		r->have_schema = 0;
		return err_set(e, ERR_DATA, "mismatch: the stream is for another "
		    "model than --schema: %.200s", why);
	}
	return 0;
}

static int
reader_on_shard(struct reader *r, struct err *e)
{
	const struct schema *s = reader_schema(r);
	const struct chain_frame *f = &r->c.frame;
	int k;

	if (r->pos.at == AT_SHARD)
		return reader_corrupt(r, e, "a shard begins inside a shard");
	if (r->table.n != 0)
		return reader_corrupt(r, e, "the schema is incomplete");
	/* check this first: corrupt data must not be called unsupported */
	r->pos.key = shard_key_of(f->raw, f->raw_len);
	if (f->shard_key != r->pos.key)
		return reader_corrupt(r, e, "the key does not match the shard's run, device and "
		    "step");
	if ((k = shard_decode(&r->shard, f->raw, f->raw_len, e)) < 0)
		return k;
	r->pos.at = AT_SHARD;
	if (s == NULL)
		return err_set(e, ERR_DATA,
		    "mismatch: the stream has no schema: add one with ace-cut --schema "
		    "FILE");
	if (memcmp(r->shard.schema_id, s->id, 16) != 0)
		return err_set(e, ERR_DATA, "mismatch: the shard has another schema than "
		    "%s", r->have_schema ? "the stream" : "--schema or the model");
	memset(&r->pos.data, 0, sizeof(r->pos.data));
	memset(r->pos.noted, 0, sizeof(r->pos.noted));
	*r->tally = (struct reader_tally){ 0, 0 };
	hash_sum_reset(r->digest);
	reader_digest_add(r->digest, FRAME_SHRD, f->wire_len, f->wire_hash);
	return READER_SHARD;
}

static int
reader_on_data(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "the frame is outside a shard");
	if ((k = data_decode(&r->data, &r->pos.data, &r->c, reader_schema(r), e)) < 0)
		return k;
	reader_digest_add(r->digest, FRAME_DATA, r->c.frame.wire_len,
	    r->c.frame.wire_hash);
	return READER_DATA;
}

static int
reader_on_send(struct reader *r, struct err *e)
{
	const struct data_pos *d = &r->pos.data;
	unsigned char digest[16];
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "the frame is outside a shard");
	if ((k = shard_end_decode(&r->end, r->c.frame.raw, r->c.frame.raw_len, e)) < 0)
		return k;
	if (r->end.status == SHARD_ABORTED)
		return chain_aborted(&r->c, e);
	if (r->end.sums.nonzero > reader_schema(r)->total)
		return reader_corrupt(r, e, "the shard states more nonzero values than the "
		    "schema has");
	hash_sum_get(r->digest, digest);
	if (memcmp(digest, r->end.digest, 16) != 0)
		return reader_corrupt(r, e, "the shard's digest does not match its "
		    "values");
	if (r->end.n_data != d->frames || r->end.n_records != d->records ||
	    r->end.raw != d->raw || r->end.wire != d->wire)
		return reader_corrupt(r, e, "the shard's counts do not match its "
		    "values");
	if (r->tally->records == d->records && r->tally->nonzero != r->end.sums.nonzero)
		return reader_corrupt(r, e, "the count of nonzero values does not match "
		    "the values");
	r->pos.at = AT_BODY;
	return READER_SEND;
}

static int
reader_on_prov(struct reader *r, struct err *e)
{
	const char *s = (const char *)r->c.frame.raw;
	size_t n = r->c.frame.raw_len;

	if (r->table.n != 0)
		return reader_corrupt(r, e, "the schema is incomplete");
	if (r->pos.at != AT_HEAD)
		return reader_corrupt(r, e, "the frame is not at the stream's head");
	if (n > TEXT_MAX_KV)
		return err_set(e, ERR_DATA, "limit: the provenance has %zu bytes, expected at "
		    "most %d", n, TEXT_MAX_KV);
	if (!text_lines(s, n))
		return reader_corrupt(r, e, "the text is not lines of UTF-8");
	r->prov.n--;
	if (buf_put(&r->prov, s, n, e) < 0 || buf_put(&r->prov, "", 1, e) < 0)
		return -ERR_SYS;
	r->pos.at = AT_BODY;
	return READER_NOTE;
}

/* Check that the group ranges of one type of note rise, so that none describes a group again. */
static int
reader_on_range(struct reader *r, size_t which, uint32_t entry, struct err *e)
{
	struct note note;
	int k = note_get(&note, r->c.frame.raw, r->c.frame.raw_len, entry,
	    reader_schema(r)->ngroups, e);

	if (k < 0)
		return k;
	if (note.first < r->pos.noted[which])
		return reader_corrupt(r, e, "the groups are not in order");
	r->pos.noted[which] = (uint64_t)note.first + note.n;
	return READER_NOTE;
}

static int
reader_on_note(struct reader *r, struct err *e)
{
	uint32_t type = r->c.frame.type;

	if (r->pos.at != AT_SHARD) {
		if (frame_of_shard(type))
			return reader_corrupt(r, e, "the frame is outside a shard");
		if (r->table.n != 0)
			return reader_corrupt(r, e, "the schema is incomplete");
		r->pos.at = AT_BODY;
		return READER_NOTE;
	}
	if (type == FRAME_STAT)
		return reader_on_range(r, 0, NOTE_STAT, e);
	if (type == FRAME_SCOR)
		return reader_on_range(r, 1, NOTE_SCORE, e);
	if (type == FRAME_PLAN)
		return reader_on_range(r, 2, NOTE_PLAN, e);
	return READER_NOTE;
}

/* Handle a frame. Return an event, or < 0. */
static int
reader_on_frame(struct reader *r, struct err *e)
{
	char name[16];
	int k;

	/* a shard's digest covers SHRD as it is in the stream, so SHRD must have one form only */
	if ((r->c.frame.flags & FRAME_LZ4) != 0 &&
	    (r->c.frame.type == FRAME_SHRD || r->c.frame.type == FRAME_SEND ||
	    r->c.frame.type == FRAME_RCPT))
		return reader_corrupt(r, e, "the frame must not be compressed");
	switch (r->c.frame.type) {
	case FRAME_SCHM:
		return (k = reader_on_schema(r, e)) < 0 ? k : READER_NOTE;
	case FRAME_SHRD:
		return reader_on_shard(r, e);
	case FRAME_DATA:
		return reader_on_data(r, e);
	case FRAME_SEND:
		return reader_on_send(r, e);
	case FRAME_PROV:
		return reader_on_prov(r, e);
	case FRAME_RCPT:
		if (r->pos.at == AT_SHARD)
			return reader_corrupt(r, e, "the frame is inside a shard");
		if (r->table.n != 0)
			return reader_corrupt(r, e, "the schema is incomplete");
		if ((k = receipt_decode(&r->receipt, r->c.frame.raw,
		    r->c.frame.raw_len, e)) < 0)
			return k;
		r->pos.at = AT_BODY;
		return READER_RCPT;
	default:
		if (frame_ancillary(r->c.frame.type))
			return reader_on_note(r, e);
		return err_set(e, ERR_DATA, "unsupported: critical frame %s is "
		    "unknown: a newer release of ace may read it",
		    frame_name(r->c.frame.type, name));
	}
}

/* Handle TAIL: another stream or the end of the file must follow. */
static int
reader_on_tail(struct reader *r, struct err *e)
{
	if (r->pos.at == AT_SHARD)
		return err_set(e, ERR_DATA, "truncated: the stream ends inside the shard");
	if (r->table.n != 0)
		return reader_corrupt(r, e, "the schema is incomplete");
	r->pos.at = AT_START;
	return 0;
}

/* ---- events ---- */

static int
reader_begin(struct reader *r, struct err *e)
{
	int k = chain_begin(&r->c, e);

	if (k < 0)
		return k;
	if (k == 0) {
		r->pos.at = AT_DONE;
		return READER_END;
	}
	memset(&r->pos, 0, sizeof(r->pos));
	r->pos.at = AT_HEAD;
	reader_on_no_table(r);
	r->prov.n = 0;
	k = buf_put(&r->prov, "", 1, e);
	return k < 0 ? k : READER_HEAD;
}

static int
reader_step(struct reader *r, struct err *e)
{
	int k;

	for (;;) {
		if (r->pos.at == AT_START)
			return reader_begin(r, e);
		if ((k = chain_next(&r->c, e)) < 0)
			return k;
		if (k == 0) {
			if ((k = reader_on_tail(r, e)) < 0)
				return k;
			continue;
		}
		if (r->c.frame.shard_key != (r->pos.at == AT_SHARD ?
		    r->pos.key : 0) && r->c.frame.type != FRAME_SHRD)
			return chain_corrupt(&r->c, e, "the frame belongs to another "
			    "shard or to none");
		if ((k = reader_on_frame(r, e)) < 0)
			return k;
		/* frames between shards are not events, except receipts */
		if (k != READER_NOTE || r->pos.at == AT_SHARD)
			return k;
	}
}

int
reader_next(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at == AT_FAILED)
		return r->failed;
	if (r->pos.at == AT_DONE)
		return READER_END;
	k = reader_step(r, e);
	if (k < 0) {
		k = k == -ERR_DATA ? reader_place(r, k, e) : k;
		r->failed = k;
		r->pos.at = AT_FAILED;
	}
	return k;
}

int
reader_to_shard(struct reader *r, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0 && k != READER_SHARD)
		continue;
	return k > 0 ? 1 : k;
}

const struct shard *
reader_shard(const struct reader *r)
{
	return r->c.pos.n_shards != 0 ? &r->shard : NULL;
}

const struct record *
reader_records(const struct reader *r, size_t *n)
{
	*n = r->data.n;
	return r->data.rec;
}

uint32_t
reader_so_far(const struct reader *r)
{
	return r->pos.data.records;
}

const struct chain_frame *
reader_frame(const struct reader *r)
{
	return &r->c.frame;
}

const struct receipt *
reader_receipt(const struct reader *r)
{
	return &r->receipt;
}

const struct shard_end *
reader_end_of_shard(const struct reader *r)
{
	return &r->end;
}

const char *
reader_provenance(const struct reader *r)
{
	return (const char *)r->prov.p;
}

struct io *
reader_io(const struct reader *r)
{
	return r->c.io;
}

void
reader_splice(struct reader *r, const struct io *to, int skip_checks)
{
	r->c.skip = io_splice(r->c.io, to) && skip_checks;
}

int
reader_skip_bodies(struct reader *r, int on)
{
	int was = r->c.skip;

	if (io_can_seek(r->c.io))
		r->c.skip = on;
	return was;
}

void
reader_skip_checks(struct reader *r)
{
	(void)reader_skip_bodies(r, 1);
	io_sparse(r->c.io);
}

int
reader_fetch(struct reader *r, struct err *e)
{
	int k = chain_fetch(&r->c, e);

	return k == -ERR_DATA ? reader_place(r, k, e) : k;
}

uint64_t
reader_offset(const struct reader *r)
{
	return r->c.pos.offset;
}
