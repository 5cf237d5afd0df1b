/* The frame header: its bytes as in ace-stream(5), and the order of the checks. */
#include "base/bytes.h"
#include "base/err.h"
#include "base/pack.h"
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
	bytes_set64(p + 56, pack_hash64(p, 56));
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

TEST(test_layout)
{
	unsigned char p[64], again[64];
	struct frame_head h;

	frame_encode(&sample, p);
	ok(memcmp(p, "\xac" "ACEDATA", 8) == 0, "sync and type");
	ok(bytes_le16(p + 8) == 0 && p[10] == 1 && p[11] == 8,
	    "flags, version, length");
	ok(bytes_le32(p + 12) == 7 && bytes_le32(p + 16) == 100 &&
	    bytes_le32(p + 20) == 100, "sequence and lengths");
	ok(bytes_le64(p + 24) == 0x1122334455667788u &&
	    bytes_le64(p + 32) == 9 && bytes_le64(p + 40) == 10 &&
	    bytes_le64(p + 48) == 64, "ids, hash, offset");
	ok(bytes_le64(p + 56) == pack_hash64(p, 56), "its own checksum");
	/* padding of the struct must not matter */
	ok(frame_decode(&h, p, FRAME_MAX, 0, &e) == 0, "it is read");
	frame_encode(&h, again);
	ok(memcmp(p, again, sizeof(p)) == 0, "and back");
	h.type = FRAME_HEAD;
	frame_encode(&h, p);
	ok(memcmp(p, "\xac" "ACE\r\n\x1a\n", 8) == 0, "the magic of a file");
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
	frame_encode(&sample, p);
	bytes_set32(p + 16, FRAME_MAX + 1);
	bytes_set32(p + 20, FRAME_MAX + 1);
	seal(p);
	ok(says(p, "limit"), "%s", ERR_MSG(&e));
	frame_encode(&sample, p);
	bytes_set32(p + 16, FRAME_MAX);
	bytes_set32(p + 20, FRAME_MAX);
	seal(p);
	ok(FRAME_MAX == 16777216 && decode(p) == 0, "16 MiB are none");
	frame_encode(&sample, p);
	p[8] = 1;
	bytes_set32(p + 16, FRAME_MAX + 1);
	seal(p);
	ok(says(p, "limit"), "packed: %s", ERR_MSG(&e));
	frame_encode(&sample, p);
	p[8] = 1;
	bytes_set32(p + 20, UINT32_MAX);
	seal(p);
	ok(says(p, "limit"), "unpacked: %s", ERR_MSG(&e));
	frame_encode(&sample, p);
	bytes_set32(p + 20, 99);
	seal(p);
	ok(says(p, "corrupt"), "two lengths without LZ4: %s", ERR_MSG(&e));
}

TEST(test_text_mode)
{
	unsigned char p[64];
	struct frame_head h = sample;

	h.type = FRAME_HEAD;
	frame_encode(&h, p);
	memcpy(p + 4, "\r\r\n\x1a", 4);		/* a terminal's newline */
	ok(says(p, "corrupt") && strstr(ERR_MSG(&e), "terminal") != NULL, "%s",
	    ERR_MSG(&e));
	memcpy(p + 4, "\n\x1a\n", 3);		/* CR taken out */
	ok(says(p, "corrupt") && strstr(ERR_MSG(&e), "terminal") != NULL,
	    "the other way");
	memcpy(p, "{\"head\":", 8);
	ok(frame_decode(&h, p, FRAME_MAX, 0, NULL) == -ERR_DATA, "text");
}

TEST(test_names)
{
	char buf[16];

	ok(strcmp(frame_name(FRAME_STAT, buf), "sTAT") == 0, "sTAT");
	ok(strcmp(frame_name(FRAME_HEAD, buf), "HEAD") == 0, "HEAD");
	ok(strcmp(frame_name(0x1b5b324a, buf), "0x1b5b324a") == 0,
	    "what is no name is a number");
	ok(frame_ancillary(FRAME_POLI) && frame_ancillary(FRAME_STAT) &&
	    !frame_ancillary(FRAME_DATA), "first letter");
	ok(frame_safe_to_copy(FRAME_POLI) && frame_safe_to_copy(FRAME_PROV) &&
	    !frame_safe_to_copy(FRAME_STAT) && !frame_safe_to_copy(FRAME_PLAN),
	    "last letter");
	ok(frame_padding(0) == 0 && frame_padding(1) == 7 &&
	    frame_padding(64) == 0 && frame_padding(65) == 7, "padding");
}
