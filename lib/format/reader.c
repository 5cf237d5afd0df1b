#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "base/pack.h"
#include "codec/codec.h"
#include "format/frame.h"
#include "format/reader.h"

#ifdef ACE_FUZZING
#define READER_CHECK 0		/* fuzzers get past the checksums */
#else
#define READER_CHECK 1
#endif

enum reader_at { AT_START, AT_HEAD, AT_BODY, AT_SHARD, AT_DONE, AT_FAILED };

/* What a rewind must bring back; the digest beside it is copied too. */
struct reader_pos {
	enum reader_at at;
	uint64_t key;
	uint32_t n_data, n_records;
	uint64_t next_group;		/* groups must rise */
	uint64_t raw, wire;
};

struct reader {
	struct chain c;
	struct reader_opts o;
	int have_schema;
	struct schema own_schema;
	struct reader_pos pos, mark;
	struct pack_sum *digest, *mark_digest;
	struct shard shard;
	struct shard_end end;
	struct buf prov;
	struct record *rec;
	size_t nrec, rec_cap;
	int failed;
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
		r->o.max_elements = READER_MAX_ELEMENTS;
	r->own_schema = (struct schema)SCHEMA_INIT;
	shard_init(&r->shard);
	r->digest = pack_sum_new(e);
	r->mark_digest = pack_sum_new(e);
	if (chain_init(&r->c, io, e) < 0 || r->digest == NULL ||
	    r->mark_digest == NULL || buf_put(&r->prov, "", 1, e) < 0) {
		reader_free(r);
		return -ERR_SYS;
	}
	*out = r;
	return 0;
}

void
reader_free(struct reader *r)
{
	if (r == NULL)
		return;
	chain_release(&r->c);
	schema_release(&r->own_schema);
	shard_release(&r->shard);
	pack_sum_free(r->digest);
	pack_sum_free(r->mark_digest);
	buf_release(&r->prov);
	alloc_free(r->rec);
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
	if (r->pos.at == AT_SHARD)
		return err_shard(e, k, r->c.pos.n_shards,
		    shard_device(&r->shard), r->shard.step, r->c.pos.offset);
	if (e != NULL && !e->has_byte) {
		e->byte = r->c.pos.offset;
		e->has_byte = 1;
	}
	return k;
}

static int
reader_corrupt(struct reader *r, struct err *e, const char *what)
{
	return chain_corrupt(&r->c, e, what);
}

/* ---- the frames, one function each ---- */

static int
reader_on_schema(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at != AT_HEAD || r->have_schema || r->prov.n > 1)
		return reader_corrupt(r, e, "misplaced");
	k = schema_decode(&r->own_schema, r->c.frame.raw, r->c.frame.raw_len,
	    r->o.max_elements, e);
	if (k < 0)
		return k;
	if (memcmp(r->own_schema.id, r->c.schema_id, 16) != 0)
		return reader_corrupt(r, e, "schema is not the announced one");
	r->have_schema = 1;
	return 0;
}

const struct schema *
reader_schema(const struct reader *r)
{
	if (r->have_schema)
		return &r->own_schema;
	return r->o.schema;
}

static int
reader_on_shard(struct reader *r, struct err *e)
{
	const struct schema *s = reader_schema(r);
	int k;

	if (r->pos.at == AT_SHARD)
		return reader_corrupt(r, e, "shard inside a shard");
	/* the digest is over the bytes on the wire: there is one form */
	if (r->c.frame.flags != 0)
		return reader_corrupt(r, e, "flags");
	if ((k = shard_decode(&r->shard, r->c.frame.raw, r->c.frame.raw_len, e)) < 0)
		return k;
	r->pos.key = shard_key(&r->shard);
	if (r->c.frame.shard_key != r->pos.key)
		return reader_corrupt(r, e, "shard key");
	r->pos.at = AT_SHARD;
	if (s == NULL)
		return err_set(e, ERR_DATA,
		    "mismatch: the stream has no schema of its own (--schema)");
	if (memcmp(r->shard.schema_id, s->id, 16) != 0)
		return err_set(e, ERR_DATA,
		    "mismatch: the shard's schema is not the stream's");
	r->pos.n_data = r->pos.n_records = 0;
	r->pos.next_group = 0;
	r->pos.raw = r->pos.wire = 0;
	pack_sum_reset(r->digest);
	reader_digest_add(r->digest, FRAME_SHRD, r->c.frame.wire_len,
	    r->c.frame.wire_hash);
	return READER_SHARD;
}

void
reader_digest_add(struct pack_sum *s, uint32_t type, size_t wire_len,
    uint64_t wire_hash)
{
	unsigned char b[16];

	bytes_set32(b, type);
	bytes_set32(b + 4, (uint32_t)wire_len);
	bytes_set64(b + 8, wire_hash);
	pack_sum_add(s, b, sizeof(b));
}

/*
 * One directory entry; the bodies are cut up later, when all are known.
 * First byte: codec in bits 0-3, bit 4 "same parameter as the entry before"
 * (0 at first), gap in bits 5-7, where 7 says that a varint of gap - 7 follows.
 */
static int
reader_entry(struct reader *r, struct bytes *dir, struct record *rec,
    uint8_t *param, struct err *e)
{
	uint8_t c = bytes_u8(dir);
	uint64_t gap = c >> 5, more = 0, g, len;

	if (gap == 7)
		more = bytes_varint(dir);
	if ((c & 0x10) == 0)
		*param = bytes_u8(dir);
	len = bytes_varint(dir);
	g = r->pos.next_group + gap + more;
	if (dir->bad || len > FRAME_MAX_HARD || more > UINT32_MAX)
		return reader_corrupt(r, e, "directory");
	if (g >= reader_schema(r)->ngroups)
		return reader_corrupt(r, e, "group beyond the schema");
	rec->codec = c & 0x0f;
	rec->param = *param;
	if (rec->codec >= CODEC_MAX)
		return err_set(e, ERR_DATA, "unsupported: codec %u of group "
		    "%llu", rec->codec, (unsigned long long)g);
	rec->group = (uint32_t)g;
	rec->len = (size_t)len;
	r->pos.next_group = g + 1;
	return 0;
}

static int
reader_bodies(struct reader *r, struct bytes *b, struct err *e)
{
	struct schema_span span;
	size_t i;

	for (i = 0; i < r->nrec; i++) {
		r->rec[i].body = bytes_take(b, r->rec[i].len);
		if (b->bad)
			return reader_corrupt(r, e, "bodies");
		schema_span(reader_schema(r), r->rec[i].group, &span);
		r->pos.raw += 4 * (uint64_t)span.n;
		r->pos.wire += r->rec[i].len;
	}
	if (b->at != b->n)
		return reader_corrupt(r, e, "bytes after the last body");
	return 0;
}

static int
reader_on_data(struct reader *r, struct err *e)
{
	struct bytes b = BYTES(r->c.frame.raw, r->c.frame.raw_len), dir;
	uint32_t n = bytes_next32(&b), dir_len = bytes_next32(&b);
	const unsigned char *p = bytes_take(&b, dir_len);
	uint8_t param = 0;
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "outside a shard");
	/* an entry is at least two bytes: n is bounded by what is here */
	if (p == NULL || n == 0 || n > dir_len / 2)
		return reader_corrupt(r, e, "directory");
	if ((k = alloc_grow(&r->rec, &r->rec_cap, n, sizeof(*r->rec), e)) < 0)
		return k;
	dir = (struct bytes)BYTES(p, dir_len);
	for (r->nrec = 0; r->nrec < n; r->nrec++)
		if ((k = reader_entry(r, &dir, &r->rec[r->nrec], &param,
		    e)) < 0)
			return k;
	if (dir.at != dir_len || !bytes_zero(&b, frame_padding(8 + dir_len)))
		return reader_corrupt(r, e, "directory");
	if ((k = reader_bodies(r, &b, e)) < 0)
		return k;
	r->pos.n_data++;
	r->pos.n_records += n;
	reader_digest_add(r->digest, FRAME_DATA, r->c.frame.wire_len,
	    r->c.frame.wire_hash);
	return READER_DATA;
}

static int
reader_on_send(struct reader *r, struct err *e)
{
	unsigned char digest[16];
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "outside a shard");
	if ((k = shard_end_decode(&r->end, r->c.frame.raw, r->c.frame.raw_len,
	    e)) < 0)
		return k;
	if (r->end.status == SHARD_ABORTED)
		return chain_aborted(&r->c, e);
	pack_sum_get(r->digest, digest);
	if (READER_CHECK && memcmp(digest, r->end.digest, 16) != 0)
		return reader_corrupt(r, e, "digest of the shard");
	if (r->end.n_data != r->pos.n_data ||
	    r->end.n_records != r->pos.n_records || r->end.raw != r->pos.raw ||
	    r->end.wire != r->pos.wire)
		return reader_corrupt(r, e, "counts of the shard");
	r->pos.at = AT_BODY;
	return READER_SEND;
}

static int
reader_on_prov(struct reader *r, struct err *e)
{
	const char *s = (const char *)r->c.frame.raw;
	size_t i, n = r->c.frame.raw_len, line = 0;

	if (r->pos.at != AT_HEAD || r->prov.n > 1)
		return reader_corrupt(r, e, "misplaced");
	if (n > TEXT_MAX_KV)
		return err_set(e, ERR_DATA, "limit: provenance over 64 KiB");
	for (i = 0; i < n; i++)
		if (s[i] == '\n') {
			if (!text_clean(s + line, i - line))
				return reader_corrupt(r, e, "text");
			line = i + 1;
		}
	if (line != n)
		return reader_corrupt(r, e, "text");
	r->prov.n--;
	if (buf_put(&r->prov, s, n, e) < 0 || buf_put(&r->prov, "", 1, e) < 0)
		return -ERR_SYS;
	return READER_NOTE;
}

static int
reader_on_frame(struct reader *r, struct err *e)
{
	char name[16];
	int k;

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
			return reader_corrupt(r, e, "inside a shard");
		r->pos.at = AT_BODY;
		return READER_RCPT;
	default:
		if (frame_ancillary(r->c.frame.type))
			return r->pos.at == AT_SHARD ? READER_NOTE :
			    reader_corrupt(r, e, "outside a shard");
		return err_set(e, ERR_DATA, "unsupported: critical frame %s",
		    frame_name(r->c.frame.type, name));
	}
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
	r->have_schema = 0;
	r->prov.n = 0;
	k = buf_put(&r->prov, "", 1, e);
	return k < 0 ? k : READER_HEAD;
}

/* The tail: what follows is another stream or the end. */
static int
reader_on_tail(struct reader *r, struct err *e)
{
	if (r->pos.at == AT_SHARD)
		return err_set(e, ERR_DATA, "truncated: no end of the stream");
	r->pos.at = AT_START;
	return 0;
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
			return reader_corrupt(r, e, "frame of another shard");
		if ((k = reader_on_frame(r, e)) < 0)
			return k;
		/* schema and provenance are not events */
		if (r->c.frame.type != FRAME_SCHM &&
		    r->c.frame.type != FRAME_PROV)
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

const struct shard *
reader_shard(const struct reader *r)
{
	return r->c.pos.n_shards != 0 ? &r->shard : NULL;
}

const struct record *
reader_records(const struct reader *r, size_t *n)
{
	*n = r->nrec;
	return r->rec;
}

const struct chain_frame *
reader_frame(const struct reader *r)
{
	return &r->c.frame;
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

int
reader_is_pipe(const struct reader *r)
{
	return io_is_pipe(r->c.io);
}

int
reader_can_seek(const struct reader *r)
{
	return io_can_seek(r->c.io);
}

int
reader_mark(struct reader *r, size_t limit, struct err *e)
{
	r->mark = r->pos;
	pack_sum_copy(r->mark_digest, r->digest);
	return chain_mark(&r->c, limit, e);
}

int
reader_rewind(struct reader *r, struct err *e)
{
	int k = chain_rewind(&r->c, e);

	if (k < 0)
		return k;
	r->pos = r->mark;
	pack_sum_copy(r->digest, r->mark_digest);
	return 0;
}

void
reader_unmark(struct reader *r)
{
	io_unmark(r->c.io);
}

/* A frame that is neither: skipped, its schema taken.  *from: what is next. */
static int
reader_skip(struct reader *r, uint64_t *from, struct err *e)
{
	struct err own = ERR_INIT;
	int k = chain_next(&r->c, &own);

	*from = k > 0 ? io_bytes(r->c.io) : r->c.pos.offset + 1;
	if (k > 0 && r->c.frame.type == FRAME_SCHM) {
		k = schema_decode(&r->own_schema, r->c.frame.raw,
		    r->c.frame.raw_len, r->o.max_elements, &own);
		r->have_schema = k == 0;
	}
	return k < 0 && k != -ERR_DATA ? err_move(e, &own) : 0;
}

int
reader_recover(struct reader *r, uint64_t from, struct err *e)
{
	int k;

	while ((k = chain_find(&r->c, from, e)) > 0) {
		r->pos.at = AT_BODY;
		if (r->c.head.type == FRAME_HEAD)
			r->pos.at = AT_START;
		if (r->c.head.type == FRAME_HEAD ||
		    r->c.head.type == FRAME_SHRD)
			return 1;
		if ((k = reader_skip(r, &from, e)) < 0)
			return k;
	}
	return k;
}

uint64_t
reader_offset(const struct reader *r)
{
	return r->c.pos.offset;
}
