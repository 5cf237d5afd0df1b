#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/lz4_block.h"
#include "base/magic.h"
#include "format/chain.h"
#include "format/shard.h"
#include "format/text.h"

/* CHAIN_KEEP: payloads below this are copied, which is cheaper than splicing. CHAIN_ROOM:
 * about the size of a frame of values. */
enum { CHAIN_KEEP = 32 * 1024, CHAIN_ROOM = 260 * 1024 };

int
chain_init(struct chain *c, struct io *io, struct err *e)
{
	memset(c, 0, sizeof(*c));
	c->io = io;
	c->headers = hash_sum_new(e);
	if (c->headers == NULL) {
		chain_release(c);
		return -ERR_SYS;
	}
	return 0;
}

void
chain_release(struct chain *c)
{
	io_free(c->io);
	hash_sum_free(c->headers);
	buf_release(&c->payload);
	buf_release(&c->unpacked);
	memset(c, 0, sizeof(*c));
}

int
chain_corrupt(const struct chain *c, struct err *e, const char *what)
{
	char name[16];

	return err_data(e, c->pos.offset, "corrupt: %s (%s frame)", what,
	    frame_name(c->head.type, name));
}

int
chain_aborted(const struct chain *c, struct err *e)
{
	int piped = io_is_pipe(c->io);
	int r = err_data(e, c->pos.offset, "truncated: %s", piped ?
	    "the stream was aborted: a program before this one failed (see its message) or "
	    "passed on a stream that was aborted" :
	    "the program that wrote the stream aborted it");

	if (e != NULL)
		e->upstream = piped;
	return r;
}

static int
chain_truncated(const struct chain *c, struct err *e)
{
	if (!c->pos.open && io_bytes(c->io) == 0 && io_is_pipe(c->io))
		return err_set(e, ERR_DATA, "truncated: the input is empty: the "
		    "program before this one wrote nothing, see its message, if any");
	return err_data(e, c->pos.offset, "truncated: %s", c->pos.open ? "the stream has no end" :
	    io_bytes(c->io) == 0 ? "the input is empty" : c->pos.offset == 0 ? "the stream's "
	    "head is incomplete" : "bytes follow the stream's end, too few for another stream");
}

/* Append to the error the file format that the input's first bytes indicate. Return r. */
static int
chain_strange(struct chain *c, int r, struct err *e)
{
	unsigned char p[MAGIC_SIZE];
	char words[MAGIC_WORDS];
	size_t got;

	memcpy(p, c->header, FRAME_HEAD_SIZE);
	if (io_read(c->io, p + FRAME_HEAD_SIZE, sizeof(p) - FRAME_HEAD_SIZE,
	    &got, NULL) < 0)
		return r;
	return err_after(e, r, "%s", magic_say(p, FRAME_HEAD_SIZE + got,
	    io_is_pipe(c->io) ? " (if the stream comes by ssh, 'ssh HOST true' must print "
	    "nothing)" : "", words));
}

/* Read a header. Return 1, or 0 at the end of the file. */
static int
chain_header(struct chain *c, struct err *e)
{
	uint32_t max = c->pos.open ? c->max_frame : FRAME_MAX;
	size_t got;
	int r;

	c->pos.offset = io_bytes(c->io);
	if ((r = io_read(c->io, c->header, FRAME_HEAD_SIZE, &got, e)) < 0)
		return r;
	if (got == 0)
		return 0;
	/* tell a file of another kind, such as text, from a truncated stream */
	if (got < FRAME_HEAD_SIZE && (got < 8 || bytes_le32(c->header) == FRAME_SYNC))
		return chain_truncated(c, e);
	if (got < FRAME_HEAD_SIZE)
		memset(c->header + got, 0, FRAME_HEAD_SIZE - got);
	r = frame_decode(&c->head, c->header, max, c->pos.offset, e);
	if (r < 0 && c->pos.offset == 0 && bytes_le32(c->header) != FRAME_SYNC)
		return chain_strange(c, r, e);
	return r < 0 ? r : 1;
}

static int
chain_more(struct chain *c, size_t n, struct err *e)
{
	size_t got;
	int r;

	if (n == 0)
		return 0;
	if ((r = io_read(c->io, c->payload.p + c->payload.n, n, &got, e)) < 0)
		return r;
	c->payload.n += got;
	return got < n ? chain_truncated(c, e) : 0;
}

/* Read the rest of the frame's payload and verify the whole payload. */
static int
chain_see(struct chain *c, struct err *e)
{
	struct chain_frame *f = &c->frame;
	size_t i, all = f->wire_len + frame_padding(f->wire_len);
	const size_t n = f->unseen;
	int r;

	f->unseen = 0;
	if ((r = chain_more(c, n, e)) < 0)
		return r;
	if (hash_64(f->wire, f->wire_len) != f->wire_hash)
		return chain_corrupt(c, e, "the payload's checksum does not match");
	for (i = f->wire_len; i < all; i++)
		if (f->wire[i] != 0)
			return chain_corrupt(c, e, "the padding is not zero");
	return 0;
}

/* Read only the directory of a frame whose values this program does not use. The program
 * that uses them verifies them. */
static int
chain_directory(struct chain *c, struct err *e)
{
	struct chain_frame *f = &c->frame;
	size_t head = 12;
	int r;

	if ((r = chain_more(c, head, e)) < 0)
		return r;
	head += bytes_le32(c->payload.p + 4);
	head += frame_padding(head);
	f->unseen -= c->payload.n;
	if (head >= f->unseen)
		return chain_see(c, e);
	r = chain_more(c, head - c->payload.n, e);
	f->unseen -= head - 12;
	return r;
}

static int
chain_payload(struct chain *c, struct err *e)
{
	struct chain_frame *f = &c->frame;
	size_t n = c->head.wire_len, all = n + frame_padding(n);
	int large = c->head.type == FRAME_DATA && n >= CHAIN_KEEP, r;
	int part = large && (c->head.flags & FRAME_LZ4) == 0;
	int skip = part && c->skip;

	c->payload.n = 0;
	io_splice_keep(c->io, large && !skip ? all : 0);
	/* make room for later frames, too, which may be larger */
	if ((r = buf_room(&c->payload, large && all < CHAIN_ROOM ? CHAIN_ROOM :
	    all, e)) < 0)
		return r;
	f->of = c;
	f->type = c->head.type;
	f->flags = c->head.flags;
	f->shard_key = c->head.shard_key;
	f->wire = c->payload.p;
	f->wire_len = n;
	f->wire_hash = c->head.payload_hash;
	f->unseen = all;
	return skip ? chain_directory(c, e) : chain_see(c, e);
}

int
chain_fetch(struct chain *c, struct err *e)
{
	return c->frame.unseen == 0 ? 0 : chain_see(c, e);
}

/* Copy the rest of the payload, which could not be spliced to `to'. some: 1 if a part was
 * spliced, so that the payload cannot be verified. */
static int
chain_rest(struct chain *c, int some, struct io *to, struct err *e)
{
	const size_t n = c->frame.unseen;
	int r = some ? chain_more(c, n, e) : chain_see(c, e);

	c->frame.unseen = 0;
	return r < 0 ? r : io_write(to, c->payload.p + c->payload.n - n, n, e);
}

int
chain_pass(const struct chain_frame *f, struct io *to, struct err *e)
{
	struct chain *c = f->of;
	size_t k, moved = 0;
	int r = io_splice_pass(to, c->io, f->wire, c->payload.n, e);

	while (r >= 0 && f->unseen != 0) {
		if ((r = io_splice_move(to, c->io, f->unseen, &k, e)) == 0)
			return chain_rest(c, moved != 0, to, e);
		if (r > 0 && k == 0)
			r = chain_truncated(c, e);
		c->frame.unseen -= k;
		moved += k;
	}
	return r < 0 ? r : 0;
}

static int
chain_unpack(struct chain *c, struct err *e)
{
	struct chain_frame *f = &c->frame;
	int r;

	f->raw = f->wire;
	f->raw_len = f->wire_len;
	if ((f->flags & FRAME_LZ4) == 0)
		return 0;
	c->unpacked.n = 0;
	if ((r = buf_room(&c->unpacked, c->head.raw_len, e)) < 0)
		return r;
	if (lz4_block_unpack(c->unpacked.p, c->head.raw_len, f->wire, f->wire_len) < 0)
		return chain_corrupt(c, e, "the LZ4 block is damaged");
	f->raw = c->unpacked.p;
	f->raw_len = c->head.raw_len;
	return 0;
}

/* ---- HEAD ---- */

static int
chain_on_head(struct chain *c, struct err *e)
{
	struct bytes b = BYTES(c->frame.wire, c->frame.wire_len);
	struct text_kv kv = TEXT_KV_INIT;
	const unsigned char *id;
	uint32_t kv_len, max;
	unsigned version;
	int r;

	if ((version = bytes_u16(&b)) != FRAME_VERSION)
		return frame_version(version, c->pos.offset, e);
	(void)bytes_u16(&b);			/* minor version: never a reason to refuse */
	if (bytes_next32(&b) != 0)
		return err_data(e, c->pos.offset, "unsupported: the stream needs an "
		    "unknown feature: a newer release of ace may read it");
	(void)bytes_next32(&b);			/* optional features */
	max = bytes_next32(&b);
	(void)bytes_next64(&b);			/* time of creation */
	if ((id = bytes_take(&b, 16)) != NULL)
		memcpy(c->schema_id, id, 16);
	c->pos.announced = bytes_next64(&b);
	kv_len = bytes_next32(&b);
	if (!bytes_zero(&b, 4) || b.bad || b.n - b.at != kv_len)
		return chain_corrupt(c, e, "the payload has a wrong length or field");
	if (max > FRAME_MAX)
		return err_data(e, c->pos.offset, "limit: the stream announces "
		    "frames of up to %lu bytes, expected at most %d", (unsigned long)max,
		    FRAME_MAX);
	c->max_frame = max;
	r = text_decode(&kv, b.p + b.at, kv_len, e);
	text_release(&kv);
	return r;
}

int
chain_begin(struct chain *c, struct err *e)
{
	struct chain_pos *p = &c->pos;
	uint64_t off;
	int r;

	if ((r = chain_header(c, e)) < 0)
		return r;
	off = p->offset;
	if (r == 0)
		return off == 0 ? chain_truncated(c, e) : 0;
	if (c->head.type != FRAME_HEAD)
		return err_data(e, off, "corrupt: %s", off == 0 ?
		    "the input does not begin with the head of a stream" :
		    "bytes follow the end of the stream");
	if ((r = chain_payload(c, e)) < 0)
		return r;
	if (c->head.seq != 0 || c->head.offset != 0 || c->head.shard_key != 0 ||
	    c->head.stream_id == 0 || (c->head.flags & FRAME_LZ4) != 0)
		return chain_corrupt(c, e, "a field of the frame's header is wrong");
	memset(p, 0, sizeof(*p));
	p->start = p->offset = off;
	p->stream_id = c->head.stream_id;
	p->seq = 1;
	p->raw_total = c->head.raw_len;
	hash_sum_reset(c->headers);
	hash_sum_add(c->headers, c->header, FRAME_HEAD_SIZE);
	if ((r = chain_on_head(c, e)) < 0)
		return r;
	p->open = 1;
	return 1;
}

/* ---- TAIL ---- */

static int
chain_on_tail(struct chain *c, struct err *e)
{
	struct bytes b = BYTES(c->frame.wire, c->frame.wire_len);
	uint32_t frames = bytes_next32(&b), shards = bytes_next32(&b), status;
	uint64_t before = bytes_next64(&b), raw;
	const unsigned char *want = bytes_take(&b, 16);
	unsigned char sum[16];

	raw = bytes_next64(&b);
	status = bytes_next32(&b);
	if (!bytes_zero(&b, 4) || b.bad || b.at != b.n ||
	    status > SHARD_ABORTED || (c->frame.flags & FRAME_LZ4) != 0)
		return chain_corrupt(c, e, "the payload has a wrong length or field");
	if (c->frame.shard_key != 0)
		return chain_corrupt(c, e, "the frame names a shard, but belongs to none");
	if (status == SHARD_ABORTED)
		return chain_aborted(c, e);
	hash_sum_get(c->headers, sum);
	if (memcmp(sum, want, 16) != 0)
		return chain_corrupt(c, e, "the checksum of all headers does not "
		    "match");
	if (frames != c->pos.seq || shards != c->pos.n_shards ||
	    before != c->pos.offset - c->pos.start || raw != c->pos.raw_total ||
	    (c->pos.announced != 0 && c->pos.announced != shards))
		return chain_corrupt(c, e, "the totals in HEAD or TAIL differ from those of "
		    "the stream");
	c->pos.open = 0;
	return 0;
}

static int
chain_past(struct chain *c, struct err *e)
{
	const size_t n = c->frame.unseen;

	if (n == 0)
		return 0;
	if (!io_can_seek(c->io))
		return chain_see(c, e);
	c->frame.unseen = 0;
	return io_seek(c->io, io_bytes(c->io) + n, e);
}

int
chain_next(struct chain *c, struct err *e)
{
	struct chain_pos *p = &c->pos;
	int r;

	if ((r = chain_past(c, e)) < 0)
		return r;
	if ((r = chain_header(c, e)) <= 0)
		return r < 0 ? r : chain_truncated(c, e);
	if ((r = chain_payload(c, e)) < 0)
		return r;
	if (c->head.type == FRAME_HEAD)
		return chain_corrupt(c, e, "a stream begins, but the one before it has no end");
	if (c->head.seq != p->seq)
		return chain_corrupt(c, e, "the frame is out of sequence");
	if (c->head.stream_id != p->stream_id)
		return chain_corrupt(c, e, "the frame belongs to another stream");
	if (c->head.offset != p->offset - p->start)
		return chain_corrupt(c, e, "the frame is not at the byte where it was written");
	if (c->head.type == FRAME_TAIL)
		return chain_on_tail(c, e);
	p->seq++;
	p->n_shards += c->head.type == FRAME_SHRD;
	p->raw_total += c->head.raw_len;
	hash_sum_add(c->headers, c->header, FRAME_HEAD_SIZE);
	r = chain_unpack(c, e);
	return r < 0 ? r : 1;
}
