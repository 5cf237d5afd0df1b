#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "format/frame.h"

void
frame_encode(const struct frame_head *h, unsigned char p[64])
{
	bytes_set32(p, FRAME_SYNC);
	bytes_set32(p + 4, h->type);
	bytes_set16(p + 8, h->flags);
	p[10] = FRAME_VERSION;
	p[11] = FRAME_HEAD_SIZE / 8;
	bytes_set32(p + 12, h->seq);
	bytes_set32(p + 16, h->wire_len);
	bytes_set32(p + 20, h->raw_len);
	bytes_set64(p + 24, h->stream_id);
	bytes_set64(p + 32, h->shard_key);
	bytes_set64(p + 40, h->payload_hash);
	bytes_set64(p + 48, h->offset);
	bytes_set64(p + 56, hash_64(p, 56));
}

static int
frame_strange(const unsigned char *p, uint64_t at, struct err *e)
{
	if (bytes_le32(p) == FRAME_SYNC && (p[4] == '\r' || p[4] == '\n'))
		return err_data(e, at, "corrupt: the line endings in the head were changed, as "
		    "by a terminal or a transfer in text mode: use ssh -T or binary mode");
	return err_data(e, at, "corrupt: %s", at == 0 ?
	    "the input is not a gradient-shard stream" :
	    "no frame begins where one is expected");
}

int
frame_version(unsigned v, uint64_t at, struct err *e)
{
	return err_data(e, at, "unsupported: the stream has format version %u, "
	    "expected %d (%s)", v, FRAME_VERSION, v > FRAME_VERSION ?
	    "a newer release of ace may read it" : "make it again with this release");
}

int
frame_decode(struct frame_head *h, const unsigned char p[64], uint32_t max,
    uint64_t at, struct err *e)
{
	char name[16];

	h->type = bytes_le32(p + 4);
	if (bytes_le32(p) != FRAME_SYNC ||
	    ((p[4] == '\r' || p[4] == '\n') && h->type != FRAME_HEAD))
		return frame_strange(p, at, e);
	if (hash_64(p, 56) != bytes_le64(p + 56))
		return err_data(e, at, "corrupt: the frame header's checksum does "
		    "not match");
	h->flags = bytes_le16(p + 8);
	h->seq = bytes_le32(p + 12);
	h->wire_len = bytes_le32(p + 16);
	h->raw_len = bytes_le32(p + 20);
	h->stream_id = bytes_le64(p + 24);
	h->shard_key = bytes_le64(p + 32);
	h->payload_hash = bytes_le64(p + 40);
	h->offset = bytes_le64(p + 48);
	if (p[10] != FRAME_VERSION)
		return frame_version(p[10], at, e);
	if (p[11] != FRAME_HEAD_SIZE / 8 ||
	    (h->flags & FRAME_CRITICAL & ~FRAME_LZ4) != 0)
		return err_data(e, at, "unsupported: a %s frame's header has an unknown "
		    "length or flag: a newer release of ace may read it",
		    frame_name(h->type, name));
	if (h->type != FRAME_HEAD && frame_name(h->type, name)[0] == '0')
		return err_data(e, at, "corrupt: '%s' is not a frame type", name);
	if (h->wire_len > max || h->raw_len > max)
		return err_data(e, at, "limit: a %s frame has %lu bytes, expected "
		    "at most %lu", frame_name(h->type, name),
		    (unsigned long)(h->raw_len > h->wire_len ? h->raw_len :
		    h->wire_len), (unsigned long)max);
	if ((h->flags & FRAME_LZ4) == 0 && h->raw_len != h->wire_len)
		return err_data(e, at, "corrupt: a %s frame without LZ4 states two lengths "
		    "that differ", frame_name(h->type, name));
	return 0;
}

const char *
frame_name(uint32_t type, char out[16])
{
	unsigned char c[4];
	int i, plain = 1;

	if (type == FRAME_HEAD)
		return "HEAD";
	bytes_set32(c, type);
	for (i = 0; i < 4; i++)
		if ((c[i] | 0x20) < 'a' || (c[i] | 0x20) > 'z')
			plain = 0;
	if (plain)
		(void)snprintf(out, 16, "%c%c%c%c", c[0], c[1], c[2], c[3]);
	else
		(void)snprintf(out, 16, "0x%08lx", (unsigned long)type);
	return out;
}
