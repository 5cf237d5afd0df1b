#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/lz4_block.h"
#include "base/temp.h"
#include "codec/codec.h"
#include "format/frame.h"
#include "format/reader.h"
#include "format/receipt.h"
#include "format/text.h"
#include "format/writer.h"
#include "kern/kern.h"

enum { WRITER_HEAD = 56 };	/* bytes of HEAD's payload */

/*
 * ---- the records of a DATA frame ----
 *
 * Until the frame is written, the bodies are stored one after another, after room for the
 * directory, so that the payload is complete as soon as the last body is stored.
 */

enum {
	BATCH_HEAD = 12,
	BATCH_ENTRY = 32,	/* most bytes of a directory entry */
	BATCH_FRONT = 1024,	/* room for the head and a short directory */
	/* if the first body has LARGE to MOST bytes, allocate MOST: more bodies follow */
	BATCH_LARGE = 16384,
	BATCH_MOST = 256 * 1024
};

struct batch {
	struct buf dir, body;
	struct buf whole;	/* payload with a long directory */
	uint32_t n;		/* number of records */
	uint32_t first;		/* number of the first group */
	uint64_t next;		/* number of the last group plus 1 */
	uint8_t param;		/* parameter of the last entry */
};

/* Append a directory entry (ace-stream(5), DATA). */
static int
batch_entry(struct batch *b, uint32_t group, uint32_t codec, uint8_t param,
    size_t len, struct err *e)
{
	uint64_t gap = b->n != 0 ? group - b->next : 0;
	unsigned char *p;
	size_t n = 1;
	int r;

	if ((r = buf_room(&b->dir, BATCH_ENTRY, e)) < 0)
		return r;
	if (b->n == 0) {
		b->param = 0;
		b->first = group;
	}
	p = b->dir.p + b->dir.n;
	p[0] = (unsigned char)((codec < CODEC_ESCAPE ? codec : CODEC_ESCAPE) |
	    (gap < 7 ? gap : 7) << 5);
	if (gap >= 7)
		n += bytes_set_varint(p + n, gap - 7);
	if (codec >= CODEC_ESCAPE)
		n += bytes_set_varint(p + n, codec);
	if (param == b->param)
		p[0] |= 0x10;
	else
		p[n++] = param;
	n += bytes_set_varint(p + n, len);
	b->dir.n += n;
	b->param = param;
	b->next = (uint64_t)group + 1;
	return 0;
}

static int
batch_add(struct batch *b, uint32_t group, uint32_t codec, uint8_t param,
    const unsigned char *body, size_t len, struct err *e)
{
	int r;

	if (b->n == 0) {
		b->dir.n = b->body.n = 0;
		if ((r = buf_room(&b->body, BATCH_FRONT + (len < BATCH_LARGE ||
		    len > BATCH_MOST ? len : BATCH_MOST), e)) < 0)
			return r;
		b->body.n = BATCH_FRONT;
	}
	if ((r = batch_entry(b, group, codec, param, len, e)) < 0 ||
	    (r = buf_put(&b->body, body, len, e)) < 0)
		return r;
	b->n++;
	return 0;
}

static size_t
batch_bytes(const struct batch *b)
{
	return b->n != 0 ? b->body.n - BATCH_FRONT : 0;
}

/* Write the payload's head, the directory and padding to p, `front' bytes in all. */
static void
batch_head(const struct batch *b, unsigned char *p, size_t front)
{
	bytes_set32(p, b->n);
	bytes_set32(p + 4, (uint32_t)b->dir.n);
	bytes_set32(p + 8, b->first);
	memcpy(p + BATCH_HEAD, b->dir.p, b->dir.n);
	memset(p + BATCH_HEAD + b->dir.n, 0, front - BATCH_HEAD - b->dir.n);
}

static int
batch_end(struct batch *b, const unsigned char **p, size_t *n, struct err *e)
{
	size_t front = BATCH_HEAD + b->dir.n, len = batch_bytes(b);
	unsigned char *bodies = b->body.p + BATCH_FRONT;
	int r;

	front += frame_padding(front);
	*n = front + len;
	if (front <= BATCH_FRONT) {
		batch_head(b, bodies - front, front);
		*p = bodies - front;
	} else {
		b->whole.n = 0;
		if ((r = buf_room(&b->whole, *n, e)) < 0)
			return r;
		batch_head(b, b->whole.p, front);
		memcpy(b->whole.p + front, bodies, len);
		*p = b->whole.p;
	}
	b->n = 0;
	return 0;
}

/* ---- a stream ---- */

struct writer {
	struct io *io;
	struct writer_opts o;
	const struct kern *kern;
	char *tool, *line, *history;
	int open, in_shard, done;	/* open: 1 from HEAD to TAIL; done: ended or aborted */
	int keeps;			/* 1: complete shards remain after an abort */
	uint32_t seq, n_shards;
	uint64_t id, key;		/* id of the stream; key of the shard */
	uint64_t start;			/* position of this stream in the file */
	uint64_t shard_at;		/* position of the shard in the file */
	uint64_t raw_total;
	unsigned char schema_id[16];
	const struct schema *schema;	/* schema of the shard */
	struct hash_sum *headers, *digest;
	struct batch batch;
	struct buf pack, f32;		/* scratch */
	uint64_t next_group;		/* least number that the next group may have */
	struct shard_end end;
};

int
writer_open(struct writer **out, struct io *io, const struct writer_opts *o,
    struct err *e)
{
	struct writer *w = alloc_get(1, sizeof(*w), e);

	*out = NULL;
	if (w == NULL) {
		io_free(io);
		return -ERR_SYS;
	}
	w->io = io;
	w->o = *o;
	w->tool = alloc_dup(o->tool, e);
	w->line = o->line != NULL ? alloc_dup(o->line, e) : NULL;
	w->history = alloc_dup("", e);
	w->headers = hash_sum_new(e);
	w->digest = hash_sum_new(e);
	w->kern = kern_get(e);
	if (w->tool == NULL || (o->line != NULL && w->line == NULL) ||
	    w->history == NULL || w->headers == NULL || w->digest == NULL) {
		writer_free(w);
		return -ERR_SYS;
	}
	if (w->kern == NULL) {
		writer_free(w);
		return -ERR_USAGE;
	}
	*out = w;
	return 0;
}

int
writer_file(struct writer **out, const char *path, const char *tool, struct err *e)
{
	const struct writer_opts o = { tool, NULL, 0, 0 };
	struct io *io;
	int r = io_create(&io, path, 0, e);

	*out = NULL;
	return r < 0 ? r : writer_open(out, io, &o, e);
}

int
writer_fd(struct writer **out, int fd, const char *tool, struct err *e)
{
	const struct writer_opts o = { tool, NULL, 0, 0 };
	struct io *io;
	int r = io_create_fd(&io, fd, TEMP_UNNAMED, e);

	*out = NULL;
	return r < 0 ? r : writer_open(out, io, &o, e);
}

void
writer_free(struct writer *w)
{
	if (w == NULL)
		return;
	io_free(w->io);
	alloc_free(w->tool);
	alloc_free(w->line);
	alloc_free(w->history);
	hash_sum_free(w->headers);
	hash_sum_free(w->digest);
	buf_release(&w->batch.dir);
	buf_release(&w->batch.body);
	buf_release(&w->batch.whole);
	buf_release(&w->pack);
	buf_release(&w->f32);
	alloc_free(w);
}

int
writer_history(struct writer *w, const char *lines, struct err *e)
{
	char *s = alloc_dup(lines, e);

	if (s == NULL)
		return -ERR_SYS;
	alloc_free(w->history);
	w->history = s;
	return 0;
}

/* Write the header of a frame whose payload is written next. */
static int
writer_frame_head(struct writer *w, uint32_t type, uint16_t flags, size_t n,
    size_t raw_len, uint64_t hash, struct err *e)
{
	struct frame_head h;
	unsigned char head[FRAME_HEAD_SIZE];

	memset(&h, 0, sizeof(h));
	h.type = type;
	h.flags = flags;
	h.seq = w->seq++;
	h.wire_len = (uint32_t)n;
	h.raw_len = (uint32_t)raw_len;
	h.stream_id = w->id;
	h.shard_key = w->in_shard ? w->key : 0;
	h.payload_hash = hash;
	h.offset = io_bytes(w->io) - w->start;
	frame_encode(&h, head);
	if (type != FRAME_TAIL)
		hash_sum_add(w->headers, head, sizeof(head));
	w->raw_total += raw_len;
	if (type == FRAME_DATA || type == FRAME_SHRD)
		reader_digest_add(w->digest, type, n, hash);
	return io_write(w->io, head, sizeof(head), e);
}

static int
writer_frame(struct writer *w, uint32_t type, uint16_t flags, const void *p,
    size_t n, size_t raw_len, uint64_t hash, struct err *e)
{
	static const unsigned char zeros[64];
	int r;

	if ((r = writer_frame_head(w, type, flags, n, raw_len, hash, e)) < 0 ||
	    (r = io_write(w->io, p, n, e)) < 0)
		return r;
	r = io_write(w->io, zeros, frame_padding(n), e);
	return r < 0 || (flags & FRAME_CUT) == 0 ? r : io_flush(w->io, e);
}

/* Write frame f, which was read from another stream, unchanged. */
static int
writer_same(struct writer *w, const struct chain_frame *f, struct err *e)
{
	int r = writer_frame_head(w, f->type, f->flags, f->wire_len,
	    f->raw_len, f->wire_hash, e);

	if (r == 0)
		r = chain_pass(f, w->io, e);
	return r < 0 || (f->flags & FRAME_CUT) == 0 ? r : io_flush(w->io, e);
}

int
writer_pack(struct buf *b, const void *p, size_t n, size_t *packed, struct err *e)
{
	int r;

	*packed = 0;
	if (n <= 64)
		return 0;
	b->n = 0;
	if ((r = buf_room(b, n, e)) == 0)
		*packed = lz4_block_pack(b->p, n - 1, p, n);
	return r;
}

/* Write a frame.  lz4 1: pack a payload of more than 64 bytes if this makes it shorter. */
static int
writer_plain(struct writer *w, uint32_t type, const void *p, size_t n, int lz4,
    struct err *e)
{
	size_t k = 0;
	int r;

	if (n > FRAME_MAX)
		return err_set(e, ERR_DATA, "limit: a frame has %zu bytes, expected at most %d", n,
		    FRAME_MAX);
	if (lz4 && (r = writer_pack(&w->pack, p, n, &k, e)) < 0)
		return r;
	if (k != 0)
		return writer_frame(w, type, FRAME_LZ4, w->pack.p, k, n,
		    hash_64(w->pack.p, k), e);
	return writer_frame(w, type, 0, p, n, n, hash_64(p, n), e);
}

static int
writer_provenance(struct writer *w, struct err *e)
{
	const char *h = w->history;
	struct buf b = BUF_INIT;
	size_t n;
	int r;

	if (w->line == NULL)
		return 0;
	/* drop the oldest lines until the text is within the limit */
	n = strlen(w->line) + 1;
	while (*h != '\0' && strlen(h) + n > TEXT_MAX_KV) {
		h += strcspn(h, "\n");
		h += *h != '\0';
	}
	if ((r = buf_puts(&b, h, e)) == 0 &&
	    (r = buf_put(&b, w->line, n - 1, e)) == 0 &&
	    (r = buf_put(&b, "\n", 1, e)) == 0)
		r = writer_plain(w, FRAME_PROV, b.p, b.n, 1, e);
	buf_release(&b);
	return r;
}

/* Write the tensor table in as many frames as it needs. */
static int
writer_schema(struct writer *w, const struct schema *sc, struct err *e)
{
	struct buf b = BUF_INIT;
	size_t i, n;
	int r = schema_encode(sc, &b, e);

	if (r == 0 && b.n > SCHEMA_MAX_BYTES)
		r = err_set(e, ERR_DATA, "limit: the schema exceeds 512 MiB (%zu bytes)", b.n);
	for (i = 0; i < b.n && r == 0; i += n) {
		n = b.n - i < FRAME_MAX ? b.n - i : FRAME_MAX;
		r = writer_plain(w, FRAME_SCHM, b.p + i, n, !w->o.same, e);
	}
	buf_release(&b);
	return r;
}

/* Write HEAD, SCHM unless sc is NULL or omitted, and provenance. The id is a hash of the
 * tool's name and of the key of s, the first shard (0 if s is NULL). */
static int
writer_head(struct writer *w, const struct shard *s, const struct schema *sc,
    struct err *e)
{
	unsigned char p[WRITER_HEAD], seed[16];
	int r;

	bytes_set64(seed, s != NULL ? shard_key(s) : 0);
	bytes_set64(seed + 8, hash_64(w->tool, strlen(w->tool)));
	w->id = hash_64(seed, sizeof(seed));
	if (w->id == 0)
		w->id = 1;
	w->seq = w->n_shards = 0;
	w->raw_total = 0;
	w->start = io_bytes(w->io);
	hash_sum_reset(w->headers);
	memset(p, 0, sizeof(p));
	bytes_set16(p, FRAME_VERSION);
	bytes_set32(p + 12, FRAME_MAX);
	if (sc != NULL)
		memcpy(p + 24, sc->id, 16);
	memcpy(w->schema_id, p + 24, 16);
	w->open = 1;
	r = writer_frame(w, FRAME_HEAD, 0, p, sizeof(p), sizeof(p),
	    hash_64(p, sizeof(p)), e);
	if (r == 0 && sc != NULL && !w->o.omit_schema)
		r = writer_schema(w, sc, e);
	return r < 0 ? r : writer_provenance(w, e);
}

static int
writer_tail(struct writer *w, uint32_t status, struct err *e)
{
	unsigned char p[FRAME_TAIL_SIZE];

	memset(p, 0, sizeof(p));
	bytes_set32(p, w->seq);
	bytes_set32(p + 4, w->n_shards);
	bytes_set64(p + 8, io_bytes(w->io) - w->start);
	hash_sum_get(w->headers, p + 16);
	bytes_set64(p + 32, w->raw_total);
	bytes_set32(p + 40, status);
	w->open = 0;
	return writer_frame(w, FRAME_TAIL, 0, p, sizeof(p), sizeof(p),
	    hash_64(p, sizeof(p)), e);
}

int
writer_shard(struct writer *w, const struct shard *shard,
    const struct schema *sc, struct err *e)
{
	struct buf b = BUF_INIT;
	struct shard s = *shard;
	int r = 0;

	if (w->open && memcmp(w->schema_id, sc->id, 16) != 0)
		r = writer_tail(w, SHARD_COMPLETE, e);
	if (r == 0 && !w->open)
		r = writer_head(w, shard, sc, e);
	memcpy(s.schema_id, sc->id, 16);
	if (r < 0 || (r = shard_encode(&s, &b, e)) < 0)
		goto out;
	w->key = shard_key(&s);
	w->shard_at = io_bytes(w->io);
	w->in_shard = 1;
	w->n_shards++;
	w->next_group = 0;
	w->schema = sc;
	memset(&w->end, 0, sizeof(w->end));
	hash_sum_reset(w->digest);
	r = writer_plain(w, FRAME_SHRD, b.p, b.n, 0, e);
out:
	buf_release(&b);
	return r;
}

/* Write the buffered records, if there are any, as one DATA frame with these flags. */
static int
writer_batch(struct writer *w, uint16_t flags, struct err *e)
{
	const unsigned char *p;
	size_t n;
	int r;

	if (w->batch.n == 0)
		return 0;
	if ((r = batch_end(&w->batch, &p, &n, e)) < 0)
		return r;
	w->end.n_data++;
	return writer_frame(w, FRAME_DATA, flags, p, n, n, hash_64(p, n), e);
}

/* Return -ERR_REFUSED if the type of the group's values does not permit this codec, else
 * 0. */
static int
writer_may(const struct writer *w, uint32_t group, uint32_t codec, struct err *e)
{
	const struct schema_tensor *t;
	struct schema_span span;

	schema_span(w->schema, group, &span);
	t = &w->schema->t[span.tensor];
	if (!schema_exact(t->dtype) || codec == CODEC_EXACT ||
	    (!schema_bits(t->dtype) && codec_exact(codec)))
		return 0;
	return err_set(e, ERR_REFUSED, "tensor '%.160s' is %s, which codec %s cannot "
	    "hold: leave it out (ace-import --tensor)", t->name,
	    schema_dtype_name(t->dtype), codec_name(codec));
}

int
writer_record_seen(struct writer *w, uint32_t group, uint32_t codec, uint8_t param,
    const unsigned char *body, size_t len, const struct kern_stat *seen, size_t n,
    struct err *e)
{
	int r;

	if (group < w->next_group || codec >= CODEC_MAX)
		return err_set(e, ERR_USAGE, "group %lu, codec %lu: expected rising groups and a "
		    "known codec", (unsigned long)group, (unsigned long)codec);
	if ((r = writer_may(w, group, codec, e)) < 0)
		return r;
	if (batch_bytes(&w->batch) + len > WRITER_BATCH &&
	    (r = writer_batch(w, 0, e)) < 0)
		return r;
	if (len > FRAME_MAX / 2 + 4096)
		return err_set(e, ERR_DATA, "limit: the coded values of group %lu have %zu "
		    "bytes, expected at most %d", (unsigned long)group, len, FRAME_MAX / 2 + 4096);
	if ((r = batch_add(&w->batch, group, codec, param, body, len, e)) < 0)
		return r;
	w->next_group = (uint64_t)group + 1;
	w->end.n_records++;
	w->end.raw += 4 * (uint64_t)n;
	w->end.wire += len;
	if (seen != NULL)
		shard_sums_put(&w->end.sums, seen);
	return batch_bytes(&w->batch) >= WRITER_BATCH ? writer_batch(w, 0, e) : 0;
}

int
writer_record(struct writer *w, uint32_t group, uint32_t codec, uint8_t param,
    const unsigned char *body, size_t len, const float *x, size_t n, struct err *e)
{
	struct kern_stat seen;

	if (x != NULL)
		w->kern->stat(x, n, &seen);
	return writer_record_seen(w, group, codec, param, body, len, x != NULL ? &seen : NULL,
	    n, e);
}

int
writer_seen(struct writer *w, uint32_t group, const float *x, size_t n,
    const struct kern_stat *seen, struct err *e)
{
	const unsigned char *p = (const unsigned char *)x;
	int r;

	if (!BYTES_LITTLE) {
		w->f32.n = 0;
		if ((r = buf_room(&w->f32, 4 * n, e)) < 0)
			return r;
		bytes_put_f32(w->f32.p, x, n);
		p = w->f32.p;
	}
	return writer_record_seen(w, group, CODEC_F32, 0, p, 4 * n, seen, n, e);
}

int
writer_values(struct writer *w, uint32_t group, const float *x, size_t n, struct err *e)
{
	struct kern_stat seen;

	w->kern->stat(x, n, &seen);
	return writer_seen(w, group, x, n, &seen, e);
}

int
writer_note(struct writer *w, uint32_t type, const void *p, size_t n, struct err *e)
{
	int r;

	if ((r = writer_batch(w, 0, e)) < 0)
		return r;
	return writer_plain(w, type, p, n, 1, e);
}

int
writer_pass(struct writer *w, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	const struct record *rec;
	struct schema_span span;
	size_t i, n;
	int k;

	if ((k = writer_batch(w, 0, e)) < 0)
		return k;
	if (f->type == FRAME_DATA) {
		rec = reader_records(r, &n);
		for (i = 0; i < n; i++) {
			schema_span(reader_schema(r), rec[i].group, &span);
			w->end.raw += 4 * (uint64_t)span.n;
			w->end.wire += rec[i].len;
		}
		w->end.n_data++;
		w->end.n_records += (uint32_t)n;
		w->next_group = (uint64_t)rec[n - 1].group + 1;
	}
	return writer_same(w, f, e);
}

void
writer_splice(struct writer *w, struct reader *r, int skip)
{
	reader_splice(r, w->io, skip);
}

int
writer_begin(struct writer *w, const struct schema *sc, struct err *e)
{
	return w->open ? 0 : writer_head(w, NULL, sc, e);
}

int
writer_pass_receipt(struct writer *w, const struct reader *r, struct err *e)
{
	int k = w->open ? 0 : writer_history(w, reader_provenance(r), e);

	if (k == 0)
		k = writer_begin(w, reader_schema(r), e);
	if (k == 0)
		k = writer_same(w, reader_frame(r), e);
	return k < 0 ? k : io_flush(w->io, e);
}

void
writer_dropped(struct writer *w, uint64_t n)
{
	w->end.sums.dropped += n;
}

static int
writer_shard_end(struct writer *w, struct err *e)
{
	unsigned char p[SHARD_END_SIZE];
	int r;

	hash_sum_get(w->digest, w->end.digest);
	shard_end_encode(&w->end, p);
	if ((r = writer_plain(w, FRAME_SEND, p, sizeof(p), 0, e)) == 0)
		w->in_shard = 0;
	return r;
}

int
writer_send(struct writer *w, const struct shard_sums *sums, struct err *e)
{
	int r;

	if ((r = writer_batch(w, 0, e)) < 0)
		return r;
	if (sums != NULL)
		w->end.sums = *sums;
	if ((r = writer_shard_end(w, e)) < 0)
		return r;
	return io_flush(w->io, e);
}

uint64_t
writer_shard_bytes(const struct writer *w)
{
	return io_bytes(w->io) - w->shard_at;
}

struct io *
writer_io(const struct writer *w)
{
	return w->io;
}

const struct shard_end *
writer_sent(const struct writer *w)
{
	return &w->end;
}

int
writer_receipt(struct writer *w, const struct receipt *r, struct err *e)
{
	struct buf b = BUF_INIT;
	int k = receipt_encode(r, &b, e);

	if (k == 0 && !w->open)
		k = writer_head(w, NULL, NULL, e);
	if (k == 0)
		k = writer_plain(w, FRAME_RCPT, b.p, b.n, 0, e);
	buf_release(&b);
	return k < 0 ? k : io_flush(w->io, e);
}

int
writer_flush(struct writer *w, struct err *e)
{
	int r = writer_batch(w, FRAME_CUT, e);

	return r < 0 ? r : io_flush(w->io, e);
}

int
writer_finish(struct writer *w, struct err *e)
{
	int r = 0;

	if (!w->open && w->start == 0 && io_bytes(w->io) == 0)
		r = writer_head(w, NULL, NULL, e);
	if (r == 0 && w->open)
		r = writer_tail(w, SHARD_COMPLETE, e);
	if (r == 0)
		r = io_flush(w->io, e);
	w->done = r == 0;
	return r;
}

int
writer_end(struct writer *w, enum io_sync sync, struct err *e)
{
	int r = writer_finish(w, e);

	return r < 0 ? r : io_commit(w->io, sync, e);
}

void
writer_keeps(struct writer *w)
{
	w->keeps = 1;
}

void
writer_abort(struct writer *w)
{
	if (w == NULL || w->done)
		return;
	/* nothing was written yet: tell the reader of the pipe that we failed */
	if (!w->open && io_bytes(w->io) == 0 && io_is_pipe(w->io) &&
	    writer_head(w, NULL, NULL, NULL) < 0)
		return;
	if (!w->open)
		return;
	if (w->in_shard) {
		w->end.status = SHARD_ABORTED;
		if (writer_shard_end(w, NULL) < 0)
			return;
	}
	if (writer_tail(w, SHARD_ABORTED, NULL) == 0)
		(void)(w->keeps ? io_commit(w->io, IO_SYNC_FULL, NULL) :
		    io_flush(w->io, NULL));
	w->done = 1;
}
