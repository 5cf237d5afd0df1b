/* JSON by RFC 8259. */
#include <float.h>

#include "pipe/emit.h"

#include "../test.h"

static char *text;
static size_t size;
static FILE *f;

static void
begin(struct emit *j)
{
	f = open_memstream(&text, &size);
	emit_init(j, f);
}

static void
want(const char *s)
{
	(void)fclose(f);
	ok(strcmp(text, s) == 0, "%.60s", s);
	free(text);
}

TEST(test_shape)
{
	struct emit j;

	begin(&j);
	emit_open(&j, NULL, '{');
	emit_u64(&j, "a", UINT64_MAX);
	emit_open(&j, "b", '[');
	emit_u64(&j, NULL, 1);
	emit_bool(&j, NULL, 0);
	emit_open(&j, NULL, '{');
	emit_close(&j);
	emit_close(&j);
	emit_open(&j, "c", '[');
	emit_end(&j);
	emit_open(&j, NULL, '{');
	emit_end(&j);
	want("{\"a\":18446744073709551615,\"b\":[1,false,{}],\"c\":[]}\n{}\n");
	begin(&j);
	emit_open(&j, NULL, '{');
	emit_open(&j, "x", '[');
	emit_open(&j, NULL, '{');
	emit_u64(&j, "y", 1);
	emit_unwind(&j, 1);
	emit_string(&j, "error", "cut");
	emit_end(&j);
	want("{\"x\":[{\"y\":1}],\"error\":\"cut\"}\n");
}

TEST(test_strings)
{
	struct emit j;

	begin(&j);
	emit_string(&j, NULL, "\" \\ / \n\t\x1b \xe2\x82\xac \xf0\x9f\x98\x80");
	want("\"\\\" \\\\ / \\u000a\\u0009\\u001b \xe2\x82\xac "
	    "\xf0\x9f\x98\x80\"");
	begin(&j);
	emit_string(&j, NULL, "\xff\xc3(\xe2\x82");
	want("\"\\ufffd\\ufffd(\\ufffd\\ufffd\"");
	begin(&j);
	emit_string(&j, NULL, "\xed\xa0\x80\x7f\xc2\x85");
	want("\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST(test_numbers)
{
	static const double d[] = { 0.1, 1.0 / 3, 1e300, DBL_MIN, DBL_MAX,
	    5e-324, -0.0, 123456789.0 };
	static const float s[] = { 0.1f, 1.0f / 3, FLT_MAX, FLT_MIN, 1e-45f };
	struct emit j;
	unsigned wrong = 0;
	size_t i;

	begin(&j);
	emit_open(&j, NULL, '[');
	emit_f64(&j, NULL, 0.1);
	emit_f32(&j, NULL, 0.1f);
	emit_f64(&j, NULL, 49.5);
	emit_f64(&j, NULL, (double)NAN);
	emit_f64(&j, NULL, (double)INFINITY);
	emit_f32(&j, NULL, -INFINITY);
	emit_close(&j);
	want("[0.1,0.1,49.5,null,null,null]");
	for (i = 0; i < sizeof(d) / sizeof(d[0]); i++) {
		begin(&j);
		emit_f64(&j, NULL, d[i]);
		(void)fclose(f);
		wrong += strtod(text, NULL) != d[i];
		free(text);
	}
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		begin(&j);
		emit_f32(&j, NULL, s[i]);
		(void)fclose(f);
		wrong += strtof(text, NULL) != s[i];
		free(text);
	}
	ok(wrong == 0, "what is read back is the same number");
}
