#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/io.h"
#include "base/pack.h"
#include "codec/codec.h"
#include "stream/frame.h"
#include "stream/reader.h"

#ifdef ACE_FUZZING
#define READER_CHECK 0		/* fuzzers get past the checksums */
#else
#define READER_CHECK 1
#endif

enum reader_where { AT_START, AT_HEAD, AT_BODY, AT_SHARD, AT_DONE, AT_FAILED };

/* All that a rewind must bring back; the sums beside it are copied too. */
struct reader_pos {
	enum reader_where at;
	uint32_t seq;
	uint64_t stream_id, key;
	uint64_t start;			/* of this stream, in the file */
	uint64_t offset;		/* of the current frame, in the file */
	uint64_t raw_total;
	uint32_t n_shards, n_data, n_records;
	uint64_t next_group;		/* groups must rise */
	uint64_t raw, wire;
};

struct reader {
	struct io *io;
	struct reader_opts o;
	uint32_t max_frame;		/* this stream's own limit */
	int have_schema;
	struct schema own_schema;
	unsigned char head_schema_id[16];
	struct reader_pos pos, mark;
	struct pack_sum *headers, *digest;	/* running */
	struct pack_sum *mark_headers, *mark_digest;
	struct shard shard;
	struct shard_end end;
	struct reader_frame frame;
	struct frame_head head;
	unsigned char header[FRAME_HEAD_SIZE];
	struct buf payload, unpacked, prov;
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
	r->io = io;
	if (o != NULL)
		r->o = *o;
	if (r->o.max_elements == 0)
		r->o.max_elements = READER_MAX_ELEMENTS;
	r->own_schema = (struct schema)SCHEMA_INIT;
	shard_init(&r->shard);
	r->headers = pack_sum_new(e);
	r->digest = pack_sum_new(e);
	r->mark_headers = pack_sum_new(e);
	r->mark_digest = pack_sum_new(e);
	if (r->headers == NULL || r->digest == NULL ||
	    r->mark_headers == NULL || r->mark_digest == NULL ||
	    buf_put(&r->prov, "", 1, e) < 0) {
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
	io_free(r->io);
	schema_release(&r->own_schema);
	shard_release(&r->shard);
	pack_sum_free(r->headers);
	pack_sum_free(r->digest);
	pack_sum_free(r->mark_headers);
	pack_sum_free(r->mark_digest);
	buf_release(&r->payload);
	buf_release(&r->unpacked);
	buf_release(&r->prov);
	alloc_free(r->rec);
	alloc_free(r);
}

const char *
reader_where(const struct reader *r, char buf[160])
{
	unsigned long long at = r->pos.offset;

	if (r->pos.at == AT_SHARD)
		(void)snprintf(buf, 160, "shard %lu '%.80s/%llu', at byte %llu",
		    (unsigned long)r->pos.n_shards, shard_device(&r->shard),
		    (unsigned long long)r->shard.step, at);
	else
		(void)snprintf(buf, 160, "at byte %llu", at);
	return buf;
}

const char *
reader_name(const struct reader *r)
{
	return io_name(r->io);
}

static int
reader_corrupt(struct reader *r, struct err *e, const char *what)
{
	char where[160], name[16];

	return err_set(e, ERR_DATA, "corrupt: %s (%s frame), %s", what,
	    frame_name(r->head.type, name), reader_where(r, where));
}

/* Adds where it was to a message from a layer that cannot know. */
static int
reader_locate(struct reader *r, int code, struct err *e)
{
	char where[160], msg[512];

	if (e == NULL || code != -ERR_DATA || strstr(e->msg, "at byte") != NULL)
		return code;
	(void)snprintf(msg, sizeof(msg), "%.300s, %s", e->msg,
	    reader_where(r, where));
	err_clear(e);
	return err_set(e, ERR_DATA, "%s", msg);
}

/* ---- one frame ---- */

static int
reader_truncated(struct reader *r, struct err *e)
{
	char where[160];

	(void)reader_where(r, where);
	switch (r->pos.at) {
	case AT_START:
		return err_set(e, ERR_DATA,
		    r->pos.offset == 0 && io_bytes(r->io) == 0 ?
		    "truncated: empty input, at byte 0" :
		    "truncated: no whole stream head, %s", where);
	case AT_SHARD:
		return err_set(e, ERR_DATA, "truncated: no end of %s", where);
	default:
		return err_set(e, ERR_DATA,
		    "truncated: no end of the stream, %s", where);
	}
}

/* 1 a header, 0 a clean end of file. */
static int
reader_header(struct reader *r, struct err *e)
{
	uint32_t max = FRAME_MAX;
	size_t got;
	int k;

	r->pos.offset = io_bytes(r->io);
	if ((k = io_read(r->io, r->header, FRAME_HEAD_SIZE, &got, e)) < 0)
		return k;
	if (got == 0)
		return 0;
	/* say what it is before saying that it is cut: text is not a stream */
	if (got < FRAME_HEAD_SIZE && got >= 8 &&
	    bytes_le32(r->header) != FRAME_SYNC)
		memset(r->header + got, 0, FRAME_HEAD_SIZE - got);
	else if (got < FRAME_HEAD_SIZE)
		return reader_truncated(r, e);
	if (r->pos.at != AT_START)
		max = r->max_frame;
	if ((k = frame_decode(&r->head, r->header, max, r->pos.offset, e)) < 0)
		return k;
	return 1;
}

static int
reader_unpack(struct reader *r, struct err *e)
{
	struct reader_frame *f = &r->frame;
	int k;

	f->raw = f->wire;
	f->raw_len = f->wire_len;
	if ((f->flags & FRAME_LZ4) == 0)
		return 0;
	r->unpacked.n = 0;
	if ((k = buf_room(&r->unpacked, r->head.raw_len, e)) < 0)
		return k;
	if (pack_unlz4(r->unpacked.p, r->head.raw_len, f->wire,
	    f->wire_len) < 0)
		return reader_corrupt(r, e, "LZ4 block");
	f->raw = r->unpacked.p;
	f->raw_len = r->head.raw_len;
	return 0;
}

/* Payload and padding, into r->frame; verified but for the grammar. */
static int
reader_payload(struct reader *r, struct err *e)
{
	struct reader_frame *f = &r->frame;
	size_t n = r->head.wire_len, pad = frame_padding(n), got, i;
	int k;

	r->payload.n = 0;
	if ((k = buf_room(&r->payload, n + pad, e)) < 0 ||
	    (k = io_read(r->io, r->payload.p, n + pad, &got, e)) < 0)
		return k;
	if (got < n + pad)
		return reader_truncated(r, e);
	f->type = r->head.type;
	f->flags = r->head.flags;
	f->wire = r->payload.p;
	f->wire_len = n;
	f->wire_hash = r->head.payload_hash;
	if (READER_CHECK && pack_hash64(f->wire, n) != f->wire_hash)
		return reader_corrupt(r, e, "payload checksum");
	for (i = n; i < n + pad; i++)
		if (r->payload.p[i] != 0)
			return reader_corrupt(r, e, "padding is not zero");
	return 0;
}

/* The chain of frames: nothing lost, doubled, swapped or from elsewhere. */
static int
reader_chain(struct reader *r, struct err *e)
{
	const struct frame_head *h = &r->head;

	if (h->seq != r->pos.seq)
		return reader_corrupt(r, e, "frame out of sequence");
	if (h->stream_id != r->pos.stream_id)
		return reader_corrupt(r, e, "frame of another stream");
	if (h->offset != r->pos.offset - r->pos.start)
		return reader_corrupt(r, e, "frame not where it was written");
	if (h->shard_key != (r->pos.at == AT_SHARD ? r->pos.key : 0) &&
	    h->type != FRAME_SHRD)
		return reader_corrupt(r, e, "frame of another shard");
	r->pos.seq++;
	return 0;
}

static int
reader_fetch(struct reader *r, struct err *e)
{
	int k;

	if ((k = reader_header(r, e)) <= 0)
		return k < 0 ? k : reader_truncated(r, e);
	if ((k = reader_payload(r, e)) < 0)
		return k;
	if (r->head.type == FRAME_HEAD)
		return reader_corrupt(r, e, "stream head inside a stream");
	if ((k = reader_chain(r, e)) < 0)
		return k;
	if (r->head.type != FRAME_TAIL)
		pack_sum_add(r->headers, r->header, FRAME_HEAD_SIZE);
	r->pos.raw_total += r->head.raw_len;
	return reader_unpack(r, e);
}

/* ---- the frames, one function each ---- */

static int
reader_on_head(struct reader *r, struct err *e)
{
	struct bytes b = BYTES(r->frame.wire, r->frame.wire_len);
	struct text_kv kv = TEXT_KV_INIT;
	const unsigned char *id;
	uint32_t kv_len;
	int k;

	if (bytes_u16(&b) != FRAME_VERSION)
		return err_set(e, ERR_DATA, "unsupported: major version, at "
		    "byte %llu", (unsigned long long)r->pos.offset);
	(void)bytes_u16(&b);			/* minor: never gates */
	if (bytes_next32(&b) != 0)
		return err_set(e, ERR_DATA, "unsupported: a required feature, "
		    "at byte %llu", (unsigned long long)r->pos.offset);
	(void)bytes_next32(&b);			/* optional features */
	r->max_frame = bytes_next32(&b);
	(void)bytes_next64(&b);			/* created */
	if ((id = bytes_take(&b, 16)) != NULL)
		memcpy(r->head_schema_id, id, 16);
	(void)bytes_next64(&b);			/* n_shards, when known */
	kv_len = bytes_next32(&b);
	if (!bytes_zero(&b, 12) || b.bad || b.n - b.at != kv_len)
		return reader_corrupt(r, e, "payload");
	if (r->max_frame > FRAME_MAX)
		return err_set(e, ERR_DATA, "limit: frames up to %lu bytes "
		    "announced, at most %d, at byte %llu",
		    (unsigned long)r->max_frame, FRAME_MAX,
		    (unsigned long long)r->pos.offset);
	k = text_decode(&kv, b.p + b.at, kv_len, e);
	text_release(&kv);
	return k;
}

static int
reader_begin(struct reader *r, struct err *e)
{
	struct reader_pos *p = &r->pos;
	uint64_t off = p->offset;
	int k;

	if (r->head.type != FRAME_HEAD)
		return err_set(e, ERR_DATA, "corrupt: %s, at byte %llu",
		    off == 0 ? "not the beginning of a stream" :
		    "garbage after the end of a stream",
		    (unsigned long long)off);
	if ((k = reader_payload(r, e)) < 0)
		return k;
	if (r->head.seq != 0 || r->head.offset != 0 || r->head.shard_key != 0 ||
	    r->head.stream_id == 0 || r->head.flags != 0)
		return reader_corrupt(r, e, "stream head");
	memset(p, 0, sizeof(*p));
	p->start = p->offset = off;
	p->stream_id = r->head.stream_id;
	p->seq = 1;
	p->raw_total = r->head.raw_len;
	pack_sum_reset(r->headers);
	pack_sum_add(r->headers, r->header, FRAME_HEAD_SIZE);
	r->have_schema = 0;
	r->prov.n = 0;
	if ((k = buf_put(&r->prov, "", 1, e)) < 0 ||
	    (k = reader_on_head(r, e)) < 0)
		return k;
	p->at = AT_HEAD;
	return READER_HEAD;
}

static int
reader_on_schema(struct reader *r, struct err *e)
{
	int k;

	if (r->pos.at != AT_HEAD || r->have_schema || r->prov.n > 1)
		return reader_corrupt(r, e, "misplaced");
	k = schema_decode(&r->own_schema, r->frame.raw, r->frame.raw_len,
	    r->o.max_elements, e);
	if (k < 0)
		return k;
	if (memcmp(r->own_schema.id, r->head_schema_id, 16) != 0)
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
	if ((k = shard_decode(&r->shard, r->frame.raw, r->frame.raw_len, e)) < 0)
		return k;
	r->pos.key = shard_key(&r->shard);
	if (r->head.shard_key != r->pos.key)
		return reader_corrupt(r, e, "shard key");
	r->pos.n_shards++;
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
	reader_digest_add(r->digest, FRAME_SHRD, r->frame.wire_len,
	    r->frame.wire_hash);
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
	struct bytes b = BYTES(r->frame.raw, r->frame.raw_len), dir;
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
	reader_digest_add(r->digest, FRAME_DATA, r->frame.wire_len,
	    r->frame.wire_hash);
	return READER_DATA;
}

static int
reader_on_send(struct reader *r, struct err *e)
{
	unsigned char digest[16];
	int k;

	if (r->pos.at != AT_SHARD)
		return reader_corrupt(r, e, "outside a shard");
	if ((k = shard_end_decode(&r->end, r->frame.raw, r->frame.raw_len,
	    e)) < 0)
		return k;
	if (r->end.status == SHARD_ABORTED)
		return err_set(e, ERR_DATA, "truncated: aborted by its producer");
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
reader_on_tail(struct reader *r, struct err *e)
{
	struct bytes b = BYTES(r->frame.raw, r->frame.raw_len);
	uint32_t frames = bytes_next32(&b), shards = bytes_next32(&b), status;
	uint64_t before = bytes_next64(&b), raw;
	const unsigned char *want = bytes_take(&b, 16);
	unsigned char sum[16];

	raw = bytes_next64(&b);
	status = bytes_next32(&b);
	if (!bytes_zero(&b, 20) || b.bad || b.at != b.n ||
	    status > SHARD_ABORTED)
		return reader_corrupt(r, e, "payload");
	if (r->pos.at == AT_SHARD)
		return err_set(e, ERR_DATA, "truncated: no end of the shard");
	if (status == SHARD_ABORTED)
		return err_set(e, ERR_DATA,
		    "truncated: the stream was aborted by its producer");
	pack_sum_get(r->headers, sum);
	if (READER_CHECK && memcmp(sum, want, 16) != 0)
		return reader_corrupt(r, e, "checksum of all headers");
	if (frames != r->pos.seq - 1 || shards != r->pos.n_shards ||
	    before != r->pos.offset - r->pos.start ||
	    raw != r->pos.raw_total - r->head.raw_len)
		return reader_corrupt(r, e, "totals of the stream");
	r->pos.at = AT_START;
	return READER_END;
}

static int
reader_on_prov(struct reader *r, struct err *e)
{
	const char *s = (const char *)r->frame.raw;
	size_t i, n = r->frame.raw_len, line = 0;

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

	switch (r->head.type) {
	case FRAME_SCHM:
		return (k = reader_on_schema(r, e)) < 0 ? k : READER_NOTE;
	case FRAME_SHRD:
		return reader_on_shard(r, e);
	case FRAME_DATA:
		return reader_on_data(r, e);
	case FRAME_SEND:
		return reader_on_send(r, e);
	case FRAME_TAIL:
		return reader_on_tail(r, e);
	case FRAME_PROV:
		return reader_on_prov(r, e);
	case FRAME_RCPT:
		if (r->pos.at == AT_SHARD)
			return reader_corrupt(r, e, "inside a shard");
		r->pos.at = AT_BODY;
		return READER_RCPT;
	default:
		if (frame_ancillary(r->head.type))
			return r->pos.at == AT_SHARD ? READER_NOTE :
			    reader_corrupt(r, e, "outside a shard");
		return err_set(e, ERR_DATA, "unsupported: critical frame %s",
		    frame_name(r->head.type, name));
	}
}

/* ---- events ---- */

static int
reader_step(struct reader *r, struct err *e)
{
	int k;

	for (;;) {
		if (r->pos.at == AT_START) {
			if ((k = reader_header(r, e)) < 0)
				return k;
			if (k == 0 && r->pos.offset == 0)
				return reader_truncated(r, e);
			if (k == 0) {
				r->pos.at = AT_DONE;
				return READER_END;
			}
			return reader_begin(r, e);
		}
		if ((k = reader_fetch(r, e)) < 0 ||
		    (k = reader_on_frame(r, e)) < 0)
			return k;
		/* the tail: look whether another stream follows; schema and
		 * provenance are not events */
		if (k != READER_END && r->head.type != FRAME_SCHM &&
		    r->head.type != FRAME_PROV)
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
		k = reader_locate(r, k, e);
		r->failed = k;
		r->pos.at = AT_FAILED;
	}
	return k;
}

const struct shard *
reader_shard(const struct reader *r)
{
	return r->pos.n_shards != 0 ? &r->shard : NULL;
}

const struct record *
reader_records(const struct reader *r, size_t *n)
{
	*n = r->nrec;
	return r->rec;
}

const struct reader_frame *
reader_frame(const struct reader *r)
{
	return &r->frame;
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
reader_can_seek(const struct reader *r)
{
	return io_can_seek(r->io);
}

int
reader_mark(struct reader *r, size_t limit, struct err *e)
{
	r->mark = r->pos;
	pack_sum_copy(r->mark_headers, r->headers);
	pack_sum_copy(r->mark_digest, r->digest);
	return io_mark(r->io, limit, e);
}

int
reader_rewind(struct reader *r, struct err *e)
{
	int k = io_rewind(r->io, e);

	if (k < 0)
		return k;
	r->pos = r->mark;
	pack_sum_copy(r->headers, r->mark_headers);
	pack_sum_copy(r->digest, r->mark_digest);
	return 0;
}

void
reader_unmark(struct reader *r)
{
	io_unmark(r->io);
}
