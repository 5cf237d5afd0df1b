/* XXH3 of the bytes i * i / 8 mod 256, as xxhash 0.8.1 returns it, in one call and in pieces. */
#include "../test.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hash.h"

TEST(test_hash)
{
	enum { MOST = 100000 };
	static const struct {
		size_t n;
		uint64_t of64, low, high;
	} known[] = {
		{ 0, 0x2d06800538d394c2, 0x6001c324468d497f, 0x99aa06d3014798d8 },
		{ 17, 0xbcf9a4f794acc1b2, 0xaabe63e38d07b8d9, 0x1f5a02746056b673 },
		{ 300, 0x1c315d2113ef824e, 0x1c315d2113ef824e, 0x881ea81e8f185761 },
		{ 100000, 0xde7b34649650c701, 0xde7b34649650c701, 0xbb34bf7b2426abab },
	};
	static unsigned char b[MOST];
	struct err e = ERR_INIT;
	struct hash_sum *s = hash_sum_new(&e);
	unsigned char at_once[16], want[16], pieces[16];
	size_t i, at, k;

	for (i = 0; i < MOST; i++)
		b[i] = (unsigned char)(i * i >> 3);
	for (i = 0; s != NULL && i < sizeof(known) / sizeof(*known); i++) {
		bytes_set64(want, known[i].low);
		bytes_set64(want + 8, known[i].high);
		hash_128(b, known[i].n, at_once);
		hash_sum_reset(s);
		for (at = 0; at < known[i].n; at += k) {
			k = known[i].n - at < 777 ? known[i].n - at : 777;
			hash_sum_add(s, b + at, k);
		}
		hash_sum_get(s, pieces);
		ok(hash_64(b, known[i].n) == known[i].of64 &&
		    memcmp(at_once, want, 16) == 0 &&
		    memcmp(pieces, want, 16) == 0, "XXH3 of %zu bytes", known[i].n);
	}
	for (i = at = 0; i <= 600; i++) {
		hash_128(b, i, want);
		at += hash_both(b, i, at_once) == hash_64(b, i) &&
		    memcmp(at_once, want, 16) == 0;
	}
	ok(at == 601, "both at once are the two, of 0 to 600 bytes: %zu", at);
	hash_sum_free(s);
}
