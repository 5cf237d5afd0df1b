/* Headers that are valid but have an unknown version or an unknown flag.  The golden files
 * test the order of all other checks. */
#include "base/bytes.h"
#include "base/hash.h"
#include "format/frame.h"

#include "../test.h"

/* Encode a header, set one of its bytes, and make its checksum right again. */
static void
header(unsigned char p[64], size_t at, unsigned char byte)
{
	static const struct frame_head h = { .type = FRAME_DATA, .seq = 7, .wire_len = 100,
	    .raw_len = 100, .stream_id = 0x1122334455667788u };

	frame_encode(&h, p);
	p[at] = byte;
	bytes_set64(p + 56, hash_64(p, 56));
}

TEST(test_unknown)
{
	static const struct {
		size_t at;
		unsigned char byte;
		int unknown;
		const char *what;
	} t[] = {
		{ 10, FRAME_VERSION, 0, "this version" },
		{ 10, FRAME_VERSION + 1, 1, "a later version" },
		{ 11, FRAME_HEAD_SIZE / 8 + 1, 1, "a longer header" },
		{ 8, 2, 1, "a critical flag" },
		{ 8, FRAME_LZ4, 0, "LZ4" },
		{ 9, 0x80, 0, "a flag that readers ignore" }
	};
	unsigned char p[64];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		header(p, t[i].at, t[i].byte);
		ok(frame_unknown(p) == t[i].unknown, "%s is %sknown", t[i].what,
		    t[i].unknown ? "un" : "");
		p[60] ^= 1;
		ok(!frame_unknown(p), "a damaged header is not unknown");
	}
}
