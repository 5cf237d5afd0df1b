/* The frame header: the order of its checks. */
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"
#include "format/frame.h"

#include "../test.h"

static struct err e;

static const struct frame_head sample = {
	.type = FRAME_DATA, .flags = 0, .seq = 7, .wire_len = 100,
	.raw_len = 100, .stream_id = 0x1122334455667788u, .shard_key = 9,
	.payload_hash = 10, .offset = 64
};

/* Recompute the header's checksum after a change. */
static void
seal(unsigned char p[64])
{
	bytes_set64(p + 56, hash_64(p, 56));
}

static int
decode(const unsigned char p[64])
{
	struct frame_head h;

	err_clear(&e);
	return frame_decode(&h, p, FRAME_MAX, 4096, &e);
}

static int
says(const unsigned char p[64], const char *word)
{
	return decode(p) == -ERR_DATA &&
	    strncmp(ERR_MSG(&e), word, strlen(word)) == 0 &&
	    strstr(ERR_MSG(&e), "at byte 4096") != NULL;
}

TEST(test_checks)
{
	unsigned char p[64];
	unsigned long wrong = 0;
	int i;

	frame_encode(&sample, p);
	for (i = 0; i < 512; i++) {
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		wrong += !says(p, "corrupt");
		p[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	ok(wrong == 0, "each of 512 flipped bits is corrupt, not unsupported");
	p[10] = 2;
	seal(p);
	ok(says(p, "unsupported"), "%s", ERR_MSG(&e));
	ok(frame_unknown(p), "whole, but not known");
	frame_encode(&sample, p);
	p[11] = 9;
	seal(p);
	ok(says(p, "unsupported"), "%s", ERR_MSG(&e));
	p[10] = 0;
	seal(p);
	ok(says(p, "unsupported: format version 0, where version 1 is expected "
	    "(make the stream again)"), "%s", ERR_MSG(&e));
	frame_encode(&sample, p);
	ok(!frame_unknown(p), "a header of this version is known");
	p[60] ^= 1;
	ok(!frame_unknown(p), "and one that is damaged says nothing");
	frame_encode(&sample, p);
	p[8] = 2;
	seal(p);
	ok(says(p, "unsupported"), "a critical flag: %s", ERR_MSG(&e));
	p[8] = 0;
	p[9] = 0x80;
	seal(p);
	ok(decode(p) == 0, "a flag that may be ignored");
}
