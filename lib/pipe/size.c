#include <string.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "format/frame.h"
#include "format/shard.h"
#include "format/writer.h"
#include "pipe/size.h"

static uint64_t
size_frame(size_t payload)
{
	return FRAME_HEAD_SIZE + payload + frame_padding(payload);
}

static size_t
size_varint(uint64_t v)
{
	unsigned char p[10];

	return bytes_set_varint(p, v);
}

int
size_shard(struct size *z, const struct shard *s, struct err *e)
{
	struct buf b = BUF_INIT;
	int r = shard_encode(s, &b, e);

	memset(z, 0, sizeof(*z));
	if (r == 0)
		z->bytes = size_frame(b.n);
	buf_release(&b);
	return r;
}

/* Count the unfinished DATA frame, if any, as writer_batch writes it. */
static void
size_batch(struct size *z)
{
	size_t head = 12 + z->dir;

	if (z->n == 0)
		return;
	z->bytes += size_frame(head + frame_padding(head) + z->body);
	z->pad = frame_padding(z->body);
	z->n = 0;
	z->dir = z->body = 0;
}

/* Return the bytes of a record in the directory, as batch_entry writes it. */
static size_t
size_entry(uint64_t gap, uint32_t codec, int param, size_t len)
{
	return 1 + (gap >= 7 ? size_varint(gap - 7) : 0) +
	    (codec >= CODEC_ESCAPE ? size_varint(codec) : 0) + (param != 0) +
	    size_varint(len);
}

uint64_t
size_cost(uint32_t codec, size_t len, int param)
{
	return len == 0 ? 0 : len + size_entry(0, codec, param, len);
}

void
size_record(struct size *z, uint32_t group, uint32_t codec, uint8_t param,
    size_t len)
{
	uint64_t gap;

	if (z->body + len > WRITER_BATCH)
		size_batch(z);
	if (z->n == 0)
		z->param = 0;
	gap = z->n != 0 ? group - z->next : 0;
	z->dir += size_entry(gap, codec, param != z->param, len);
	z->param = param;
	z->next = (uint64_t)group + 1;
	z->body += len;
	z->n++;
	if (z->body >= WRITER_BATCH)
		size_batch(z);
}

uint64_t
size_send(struct size *z)
{
	size_batch(z);
	return z->bytes + size_frame(SHARD_END_SIZE);
}
