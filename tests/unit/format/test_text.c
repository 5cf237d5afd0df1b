/* Accepted UTF-8, keys and values, lines. */
#include "base/err.h"
#include "format/text.h"

#include "../test.h"

static struct err e;

/* Well-formed and ill-formed sequences of table 3-7 of Unicode 15. */
TEST(test_clean)
{
	static const char *const good[] = {
		"", "plain ~", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80",
		"\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
		/* neighbours of the invisible characters */
		"\xd8\x9b", "\xd8\x9d", "\xe2\x80\x8a", "\xe2\x80\x8c",
		"\xe2\x80\x8d", "\xe2\x80\x90", "\xe2\x80\xa7",
		"\xe2\x80\xaf", "\xe2\x81\x9f", "\xe2\x81\xb0",
		"\xef\xbb\xbe", "\xef\xbc\x80"
	};
	static const char *const bad[] = {
		"\x1b[2J", "a\nb", "\t", "\x7f", "\x80", "\xbf", "\xc0\x80",
		"\xc1\xbf", "\xc2", "\xc2\x41", "\xc2\x80", "\xc2\x9f",
		"\xc3\xc3", "\xe2\x82\xec", "\xf0\x9f\x98\xc0",
		"\xe0\x80\x80", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80",
		"\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xfe",
		"\xd8\x9c", "\xe2\x80\x8b", "\xe2\x80\x8e", "\xe2\x80\x8f",
		"\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa0",
		"\xe2\x81\xa9", "\xe2\x81\xaf", "\xef\xbb\xbf", "a\xe2\x80\xae_"
	};
	unsigned wrong = 0;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		wrong += !text_clean(good[i], strlen(good[i]));
	ok(wrong == 0, "%zu well-formed texts", i);
	for (wrong = 0, i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		wrong += text_clean(bad[i], strlen(bad[i])) != 0;
	ok(wrong == 0, "%zu texts that are malformed or control a terminal", i);
	ok(!text_clean("a\0b", 3), "a zero byte");
	ok(!text_clean("\xe2\x82\xac", 2), "never reads past the end");
}

TEST(test_set)
{
	struct text_kv kv = TEXT_KV_INIT, to = TEXT_KV_INIT;
	char key[66];

	ok(text_set(&kv, "run", "a", &e) == 0 &&
	    text_set(&kv, "device", "b", &e) == 0 &&
	    text_set(&kv, "zz.0_-", "", &e) == 0 && kv.n == 3, "three keys");
	ok(strcmp(kv.p[0].key, "device") == 0 && strcmp(kv.p[2].key,
	    "zz.0_-") == 0, "sorted");
	ok(text_set(&kv, "run", "c", &e) == 0 && kv.n == 3 &&
	    strcmp(text_get(&kv, "run"), "c") == 0, "replaced");
	ok(text_copy(&to, &kv, &e) == 0 && to.n == 3 &&
	    strcmp(text_get(&to, "run"), "c") == 0, "copied");
	ok(text_set(&kv, "run", NULL, &e) == 0 && kv.n == 2 &&
	    text_get(&kv, "run") == NULL, "removed");
	ok(text_set(&kv, "run", NULL, &e) == 0, "removed again");
	ok(text_set(&kv, "", "x", &e) == -ERR_DATA, "no key");
	ok(text_set(&kv, "Run", "x", &e) == -ERR_DATA, "a capital");
	ok(text_set(&kv, "a b", "x", &e) == -ERR_DATA, "a blank");
	memset(key, 'k', 65);
	key[65] = '\0';
	ok(text_set(&kv, key, "x", &e) == -ERR_DATA, "65 letters");
	key[64] = '\0';
	ok(text_set(&kv, key, "x", &e) == 0, "64 letters");
	ok(text_set(&kv, "a", "x\ny", &e) == -ERR_DATA, "two lines");
	text_release(&kv);
	text_release(&to);
}

/* Keys added in rising, falling and mixed order, then replaced, are all found. */
TEST(test_many)
{
	enum { N = 300 };
	static const unsigned step[] = { 1, N - 1, 77 };	/* coprime to N */
	char key[16], value[16];
	size_t i, k, bad = 0;

	for (k = 0; k < sizeof(step) / sizeof(*step); k++) {
		struct text_kv kv = TEXT_KV_INIT;

		for (i = 0; i < 2 * N; i++) {
			(void)snprintf(key, sizeof(key), "k%zu", i * step[k] % N);
			(void)snprintf(value, sizeof(value), "%zu", i);
			bad += text_set(&kv, key, value, &e) != 0 ||
			    text_get(&kv, key) == NULL ||
			    strcmp(text_get(&kv, key), value) != 0;
		}
		for (i = 1; i < kv.n; i++)
			bad += strcmp(kv.p[i - 1].key, kv.p[i].key) >= 0;
		bad += kv.n != N || text_get(&kv, "k") != NULL ||
		    text_get(&kv, "k300") != NULL || text_get(&kv, "z") != NULL;
		for (i = 0; i < N; i += 3) {
			(void)snprintf(key, sizeof(key), "k%zu", i);
			bad += text_set(&kv, key, NULL, &e) != 0 ||
			    text_get(&kv, key) != NULL;
		}
		bad += kv.n != N - N / 3;
		text_release(&kv);
	}
	ok(bad == 0, "keys in any order (%zu)", bad);
}

/* Decode pairs or, if lines is 1, lines, from memory of exactly n bytes. */
static int
from(struct text_kv *kv, const void *p, size_t n, int lines)
{
	unsigned char *q = malloc(n != 0 ? n : 1);
	int r;

	if (n != 0)
		memcpy(q, p, n);
	err_clear(&e);
	r = lines ? text_get_lines(kv, q, n, &e) : text_decode(kv, q, n, &e);
	free(q);
	return r;
}

/* Write keys and values of exactly n bytes, read them, and read a line of n bytes: each must
 * return `want'. */
static void
exactly(size_t n, int want)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct buf b = BUF_INIT;
	char *v = calloc(1, n);
	int w, r, lines;

	memset(v, 'v', n - 10010);
	(void)text_set(&kv, "a", v, &e);
	memset(v, 'w', 10000);
	v[10000] = '\0';
	(void)text_set(&kv, "b", v, &e);
	w = text_encode(&kv, &b, NULL);
	r = b.n == n ? from(&kv, b.p, n, 0) : -99;
	memset(b.p, 'v', n);
	memcpy(b.p, "a=", 2);
	b.p[n - 1] = '\n';
	lines = from(&kv, b.p, n, 1);
	ok(w == want && r == want && lines == (n > 65536 ? want : 0),
	    "%zu bytes are %s", n, want == 0 ? "read" : "too many");
	free(v);
	buf_release(&b);
	text_release(&kv);
}

TEST(test_most)
{
	struct text_kv kv = TEXT_KV_INIT;
	char *v = calloc(1, 65537);

	exactly(65536, 0);
	exactly(65537, -ERR_DATA);
	memset(v, 'v', 65536);
	ok(text_set(&kv, "a", v, NULL) == -ERR_DATA,
	    "a value whose length needs 17 bits is none");
	v[65535] = '\0';
	ok(text_set(&kv, "a", v, NULL) == 0, "with 16 it is one");
	free(v);
	text_release(&kv);
}
