#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "format/batch.h"
#include "format/frame.h"

enum {
	BATCH_HEAD = 12,
	BATCH_ENTRY = 32,	/* at most */
	BATCH_FRONT = 1024,	/* for the head and the directory of few records */
	BATCH_LARGE = 16384,	/* where a body is as long, */
	BATCH_MOST = 256 * 1024	/* so many bytes will come: one allocation */
};

/* See DATA in ace-stream(5) for the bytes. */
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

int
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

size_t
batch_bytes(const struct batch *b)
{
	return b->n != 0 ? b->body.n - BATCH_FRONT : 0;
}

/* The head, the directory and zeros, of which front is the length, to p. */
static void
batch_head(const struct batch *b, unsigned char *p, size_t front)
{
	bytes_set32(p, b->n);
	bytes_set32(p + 4, (uint32_t)b->dir.n);
	bytes_set32(p + 8, b->first);
	memcpy(p + BATCH_HEAD, b->dir.p, b->dir.n);
	memset(p + BATCH_HEAD + b->dir.n, 0, front - BATCH_HEAD - b->dir.n);
}

int
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

void
batch_release(struct batch *b)
{
	buf_release(&b->dir);
	buf_release(&b->body);
	buf_release(&b->whole);
}
