/* Compare the output with JSON as RFC 8259 defines it. */
#include <float.h>

#include "pipe/json_out.h"

#include "../test.h"

static char *text;
static size_t size;
static FILE *f;

static void
begin(struct json_out *j)
{
	f = open_memstream(&text, &size);
	json_out_init(j, f);
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
	struct json_out j;

	begin(&j);
	json_out_open(&j, NULL, '{');
	json_out_u64(&j, "a", UINT64_MAX);
	json_out_open(&j, "b", '[');
	json_out_u64(&j, NULL, 1);
	json_out_bool(&j, NULL, 0);
	json_out_open(&j, NULL, '{');
	json_out_close(&j);
	json_out_close(&j);
	json_out_open(&j, "c", '[');
	json_out_end(&j);
	json_out_open(&j, NULL, '{');
	json_out_end(&j);
	want("{\"a\":18446744073709551615,\"b\":[1,false,{}],\"c\":[]}\n{}\n");
	begin(&j);
	json_out_open(&j, NULL, '{');
	json_out_open(&j, "x", '[');
	json_out_open(&j, NULL, '{');
	json_out_u64(&j, "y", 1);
	json_out_unwind(&j, 1);
	json_out_string(&j, "error", "cut");
	json_out_end(&j);
	want("{\"x\":[{\"y\":1}],\"error\":\"cut\"}\n");
}

TEST(test_strings)
{
	struct json_out j;

	begin(&j);
	json_out_string(&j, NULL, "\" \\ / \n\t\x1b \xe2\x82\xac \xf0\x9f\x98\x80");
	want("\"\\\" \\\\ / \\u000a\\u0009\\u001b \xe2\x82\xac "
	    "\xf0\x9f\x98\x80\"");
	begin(&j);
	json_out_string(&j, NULL, "\xff\xc3(\xe2\x82");
	want("\"\\ufffd\\ufffd(\\ufffd\\ufffd\"");
	begin(&j);
	json_out_string(&j, NULL, "\xed\xa0\x80\x7f\xc2\x85");
	want("\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST(test_numbers)
{
	static const double d[] = { 0.1, 1.0 / 3, 1e300, DBL_MIN, DBL_MAX,
	    5e-324, -0.0, 123456789.0 };
	static const float s[] = { 0.1f, 1.0f / 3, FLT_MAX, FLT_MIN, 1e-45f };
	struct json_out j;
	unsigned wrong = 0;
	size_t i;

	begin(&j);
	json_out_open(&j, NULL, '[');
	json_out_f64(&j, NULL, 0.1);
	json_out_f32(&j, NULL, 0.1f);
	json_out_f64(&j, NULL, 49.5);
	json_out_f64(&j, NULL, (double)NAN);
	json_out_f64(&j, NULL, (double)INFINITY);
	json_out_f32(&j, NULL, -INFINITY);
	json_out_close(&j);
	want("[0.1,0.1,49.5,null,null,null]");
	for (i = 0; i < sizeof(d) / sizeof(d[0]); i++) {
		begin(&j);
		json_out_f64(&j, NULL, d[i]);
		(void)fclose(f);
		wrong += strtod(text, NULL) != d[i];
		free(text);
	}
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		begin(&j);
		json_out_f32(&j, NULL, s[i]);
		(void)fclose(f);
		wrong += strtof(text, NULL) != s[i];
		free(text);
	}
	ok(wrong == 0, "what is read back is the same number");
}
