#include <time.h>

#include "../tap.h"
#include "base/err.h"
#include "base/io.h"
#include "format/keys.h"
#include "format/text.h"
#include "format/writer.h"

static int
passes(const char *key, const char *value)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct err e = ERR_INIT;
	int r = text_set(&kv, key, value, &e);

	if (r == 0)
		r = keys_check(&kv, &e);
	text_release(&kv);
	if (r == 0)
		return 1;
	return r == -ERR_DATA && e.kind == ERR_CORRUPT && strncmp(e.text,
	    "key ", 4) == 0 ? 0 : -1;
}

/* Each key: both limits, values beyond them, and text that is not a number. */
TEST(test_rows)
{
	static const char *const none[] = { "", "nan", "-nan", "inf", "-inf",
	    "infinity", "x", "1x", "-1", "1e400", "-", "1,", ",1" };
	const struct keys_row *k;
	char lo[64], hi[64], above[64];
	size_t i;
	int bad = 0, order = 0;

	for (k = keys_table; k->name != NULL; k++) {
		const char *form = k->type == KEYS_REAL ? "%.17g" : "%.0f";

		order += k != keys_table && strcmp(k[-1].name, k->name) >= 0;
		(void)snprintf(lo, sizeof(lo), form, k->lo);
		(void)snprintf(hi, sizeof(hi), form, k->hi);
		(void)snprintf(above, sizeof(above), form, k->hi > 1e15 ?
		    k->hi * (1 + 1e-15) : k->type == KEYS_REAL ?
		    k->hi * (1 + 1e-15) : k->hi + 1);
		if (k->type == KEYS_LIST)
			(void)strcat(hi, ",1");
		bad += passes(k->name, lo) != 1 || passes(k->name, hi) != 1 ||
		    passes(k->name, above) != 0 || k->lo < 0;
		for (i = 0; i < sizeof(none) / sizeof(*none); i++)
			bad += passes(k->name, none[i]) != 0;
		if (k->type != KEYS_REAL)
			bad += passes(k->name, "1.5") != 0;
	}
	ok(bad == 0, "ends of each range pass, nothing beyond (%d)", bad);
	ok(order == 0, "in order of their names, none twice");
	ok(passes("other", "nan") == 1 && passes(KEYS_RATIO, "0x1p3") == 1,
	    "an unknown key may have any value, and a real number is as for strtod(3)");
}

TEST(test_lists)
{
	ok(passes(KEYS_CUTS, "1") == 1 && passes(KEYS_CUTS, "5,3,1") == 1 &&
	    passes(KEYS_CUTS, "1048576,1") == 1, "falling lists that end in 1");
	ok(passes(KEYS_CUTS, "5,3") == 0 && passes(KEYS_CUTS, "3,3,1") == 0 &&
	    passes(KEYS_CUTS, "3,5,1") == 0 && passes(KEYS_CUTS, "2,1,0") == 0 &&
	    passes(KEYS_CUTS, "5, 1") == 0 && passes(KEYS_CUTS, "5,+1") == 0 &&
	    passes(KEYS_CUTS, "18446744073709551617,1") == 0,
	    "lists that do not");
}

TEST(test_getters)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct err e = ERR_INIT;
	uint64_t u = 7;
	double x = 7;

	ok(keys_whole(&kv, KEYS_DELAY, &u, "here", &e) == 0 && u == 7 &&
	    keys_real(&kv, KEYS_RATIO, &x, "here", &e) == 0 && x >= 7 && x <= 7,
	    "without the key the value is unchanged");
	(void)text_set(&kv, KEYS_DELAY, "12", &e);
	(void)text_set(&kv, KEYS_RATIO, "2.5", &e);
	ok(keys_whole(&kv, KEYS_DELAY, &u, "here", &e) == 1 && u == 12 &&
	    keys_real(&kv, KEYS_RATIO, &x, "here", &e) == 1 &&
	    fabs(x - 2.5) < 1e-12, "values");
	(void)text_set(&kv, KEYS_DELAY, "1001", &e);
	ok(keys_whole(&kv, KEYS_DELAY, &u, "edge1", &e) == -ERR_DATA &&
	    u == 12 && strcmp(e.text, "key delay of edge1: '1001' "
	    "is not a whole number from 0 to 1000") == 0, "%s", e.text);
	text_release(&kv);
}

/* The keys of several policy frames together have the limit of one frame. */
TEST(test_together)
{
	enum { N = 40000 };
	static unsigned char a[N], b[N];
	struct text_kv kv = TEXT_KV_INIT;
	struct err e = ERR_INIT;
	int i, r = 0;

	memset(a, 'v', N);
	memcpy(a, "a=", 2);
	a[N - 1] = '\n';
	memcpy(b, a, N);
	b[0] = 'b';
	for (i = 0; i < 3; i++)
		r |= keys_read(&kv, a, N, &e);
	ok(r == 0 && kv.n == 1, "one key three times is one");
	ok(keys_read(&kv, b, N, &e) == -ERR_DATA && kv.n == 0 &&
	    strcmp(ERR_MSG(&e), "limit: the policy is larger than 64 KiB") == 0,
	    "two keys are too much: %s", ERR_MSG(&e));
	/* both lines together have 65536 bytes, then 65537 */
	for (i = 0; i < 2; i++) {
		err_clear(&e);
		b[65536 - N + i - 1] = '\n';
		ok(keys_read(&kv, a, N, &e) == 0 && keys_read(&kv, b,
		    (size_t)(65536 - N + i), &e) == (i == 0 ? 0 : -ERR_DATA),
		    "%d bytes: %s", 65536 + i, ERR_MSG(&e));
		b[65536 - N + i - 1] = 'v';
	}
	text_release(&kv);
	/* with many keys, a frame takes no more time than its own keys need */
	for (i = 0; i < 9000; i++)
		r |= keys_read(&kv, a, (size_t)sprintf((char *)a, "%04d=\n", i), &e);
	for (i = 0; i < 1000000; i++)
		r |= keys_read(&kv, (const unsigned char *)"0000=\n", 6, &e);
	ok(r == 0 && kv.n == 9000 && clock() < 10 * CLOCKS_PER_SEC, "a million frames");
	text_release(&kv);
}

/* A value that readers would refuse is not written. */
TEST(test_put)
{
	struct text_kv kv = TEXT_KV_INIT;
	struct err e = ERR_INIT;
	char *v = calloc(1, 65536);
	struct schema sc = SCHEMA_INIT;
	struct writer *w = NULL;
	struct io *io = NULL;

	(void)io_create(&io, "/dev/null", 0, &e);
	(void)writer_open(&w, io, &(struct writer_opts){ "test", NULL, 0, 0 }, &e);
	(void)writer_begin(w, &sc, &e);
	memset(v, 'v', 65533);
	(void)text_set(&kv, "a", v, &e);
	ok(keys_put(w, &kv, &e) == 0, "65536 bytes: %s", ERR_MSG(&e));
	v[65533] = 'v';
	(void)text_set(&kv, "a", v, &e);
	ok(keys_put(w, &kv, &e) == -ERR_DATA && strncmp(ERR_MSG(&e), "limit", 5) ==
	    0, "65537 bytes: %s", ERR_MSG(&e));
	writer_free(w);
	text_release(&kv);
	free(v);
}

/* Print the table of ace-stream(5) without the meanings, for tests/cli/keys.bats. */
static int
page(void)
{
	static const char *const type[] = { "whole", "real", "list" };
	const struct keys_row *k;

	for (k = keys_table; k->name != NULL; k++)
		(void)printf(".It Cm %s Pq %s, %.10g to %.10g\n", k->name,
		    type[k->type], k->lo, k->hi);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "page") == 0)
		return page();
	run_tests();
	return done_testing();
}
