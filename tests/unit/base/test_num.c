/* Numbers in text: each unit, both ends of a range, and text that is not a number. */
#include <float.h>

#include "../test.h"
#include "base/err.h"
#include "base/num.h"

static struct err e;

static int
says(int r, const char *want)
{
	return r == -ERR_USAGE && strcmp(ERR_MSG(&e), want) == 0;
}

TEST(test_whole)
{
	static const char *const none[] = { "", " 5", "+5", "-5", "5 ", "5.0",
	    "0x5", "5e1", "five", "18446744073709551616",
	    "100000000000000000000000" };
	uint64_t v = 7;
	size_t i, wrong = 0;

	ok(num_u64(&v, "2", 2, 5, "-n", &e) == 0 && v == 2, "the least");
	ok(num_u64(&v, "5", 2, 5, "-n", &e) == 0 && v == 5, "the most");
	ok(num_u64(&v, "010", 2, 10, "-n", &e) == 0 && v == 10,
	    "a number is decimal, whatever it begins with");
	err_clear(&e);
	ok(says(num_u64(&v, "1", 2, 5, "-n", &e),
	    "-n '1' is not a whole number from 2 to 5"), "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(says(num_u64(&v, "6", 2, 5, "-n", &e),
	    "-n '6' is not a whole number from 2 to 5"), "%s", ERR_MSG(&e));
	ok(num_u64(&v, "18446744073709551615", 0, UINT64_MAX, "-n", &e) == 0 &&
	    v == UINT64_MAX, "the largest 64-bit number");
	v = 7;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		wrong += num_u64(&v, none[i], 0, UINT64_MAX, "-n", NULL) !=
		    -ERR_USAGE || v != 7;
	ok(wrong == 0, "%zu texts that are not a whole number", i);
}

TEST(test_real)
{
	static const char *const none[] = { "", "x", "1x", "1 ", "nan", "inf",
	    "-inf", "1e999", "1,5", "0x10", " 5", "1p3" };
	double v = 7;
	size_t i, wrong = 0;

	ok(num_f64(&v, "0", 0, 1, "-a", &e) == 0 && v == 0, "the least");
	ok(num_f64(&v, "1", 0, 1, "-a", &e) == 0 && v == 1, "the most");
	ok(num_f64(&v, "-2.5e-1", -1, 1, "-a", &e) == 0 && v == -0.25,
	    "a sign and an exponent");
	err_clear(&e);
	ok(says(num_f64(&v, "1.001", 0, 1, "-a", &e),
	    "-a '1.001' is not a number from 0 to 1"), "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(says(num_f64(&v, "-0.1", 0, 1, "-a", &e),
	    "-a '-0.1' is not a number from 0 to 1"), "%s", ERR_MSG(&e));
	v = 7;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		wrong += num_f64(&v, none[i], -DBL_MAX, DBL_MAX, "-a", NULL) !=
		    -ERR_USAGE || v != 7;
	ok(wrong == 0, "%zu texts that are not a number", i);
}

struct unit {
	const char *text;
	double want;		/* < 0: refused */
};

TEST(test_sizes)
{
	static const struct unit t[] = {
		{ "0", 0 }, { "4096", 4096 }, { "3k", 3000 }, { "3K", 3000 },
		{ "1.5M", 1.5e6 }, { "2G", 2e9 }, { "2T", 2e12 },
		{ "3Ki", 3072 }, { "3Mi", 3145728 }, { "3Gi", 3221225472.0 },
		{ "8e18", 8e18 }, { "9e18", -1 }, { "1e300G", -1 },
		{ "-1", -1 }, { "-1k", -1 }, { "", -1 }, { "k", -1 },
		{ "1 k", 1000 }, { "1  k", -1 }, { "1 ", -1 }, { "1ki", -1 },
		{ "12.4 MB", 12.4e6 }, { "2KiB", 2048 }, { "5B", 5 },
		{ "0X10", -1 }, { " 5", -1 }, { "+0x1k", -1 }, { "1m", -1 }, { "0x10", -1 },
		{ "inf", -1 }, { "nan", -1 }, { "5 Mb", -1 }
	};
	uint64_t v;
	size_t i;
	int r;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		r = num_size(&v, t[i].text, "-b", NULL);
		ok(t[i].want < 0 ? r == -ERR_USAGE : r == 0 &&
		    v == (uint64_t)t[i].want, "size '%s'", t[i].text);
	}
	err_clear(&e);
	ok(says(num_size(&v, "10T0", "-b", &e), "-b '10T0' is not a size such "
	    "as 4096, 64k, 1.5M or 64Mi"), "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(says(num_size(&v, "1e10G", "-b", &e), "-b '1e10G': expected less than 9e18 bytes"),
	    "%s", ERR_MSG(&e));
}

TEST(test_units)
{
	static const struct unit rate[] = {
		{ "7bit", 7 }, { "7kbit", 7e3 }, { "7Mbit", 7e6 },
		{ "7Gbit", 7e9 }, { "7bit/s", 7 }, { "7kbit/s", 7e3 },
		{ "7 Mbit/s", 7e6 }, { "7Gbit/s", 7e9 }, { "0bit", 0 },
		{ "7", -1 }, { "7M", -1 }, { "7mbit", -1 }, { "-7bit", -1 },
		{ "7Mbit/h", -1 }, { "1e300Gbit", -1 }
	}, time[] = {
		{ "7", 7 }, { "7s", 7 }, { "7ms", 7e-3 }, { "7us", 7e-6 },
		{ "7m", 420 }, { "7h", 25200 }, { "0", 0 }, { "0.5h", 1800 },
		{ "7d", 604800 }, { "7 min", 420 }, { "7w", -1 }, { "-7s", -1 }, { "s", -1 },
		{ "inf", -1 }, { "0x7s", -1 }
	};
	double v;
	size_t i;
	int r;

	for (i = 0; i < sizeof(rate) / sizeof(rate[0]); i++) {
		r = num_rate(&v, rate[i].text, "-r", NULL);
		ok(rate[i].want < 0 ? r == -ERR_USAGE : r == 0 &&
		    v == rate[i].want, "rate '%s'", rate[i].text);
	}
	for (i = 0; i < sizeof(time) / sizeof(time[0]); i++) {
		r = num_time(&v, time[i].text, "-t", NULL);
		ok(time[i].want < 0 ? r == -ERR_USAGE : r == 0 &&
		    v > time[i].want * 0.999999 - 1e-12 &&
		    v < time[i].want * 1.000001 + 1e-12, "time '%s'", time[i].text);
	}
	err_clear(&e);
	ok(says(num_rate(&v, "7", "-r", &e),
	    "-r '7' is not a rate such as 5Mbit or 200kbit"), "%s", ERR_MSG(&e));
	err_clear(&e);
	ok(says(num_time(&v, "7w", "-t", &e),
	    "-t '7w' is not a time such as 10ms, 1.5s or 2m"), "%s", ERR_MSG(&e));
}

TEST(test_text)
{
	static const struct {
		double v;
		const char *want;
	} t[] = {
		{ 0, "0 bit/s" }, { 8, "8 bit/s" }, { 999.4, "999 bit/s" },
		{ 999.6, "1 kbit/s" }, { 5.002e7, "50 Mbit/s" },
		{ 49512136, "49.5 Mbit/s" }, { 1e9, "1 Gbit/s" },
		{ 2.5e12, "2.5 Tbit/s" }, { 1e30, "1000000000000000 Pbit/s" }
	};
	char out[NUM_TEXT];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		ok(strcmp(num_text(t[i].v, "bit/s", out), t[i].want) == 0,
		    "%g is '%s'", t[i].v, out);
}

TEST(test_choice)
{
	static const char *const names[] = { "auto", "require", "off", NULL };
	int v = 7;

	ok(num_choice(&v, "auto", names, "-c", &e) == 0 && v == 0 &&
	    num_choice(&v, "off", names, "-c", &e) == 0 && v == 2,
	    "the first and the last of a list");
	err_clear(&e);
	ok(says(num_choice(&v, "of", names, "-c", &e), "-c 'of': expected auto, "
	    "require or off") &&
	    v == 2, "a name is not abbreviated: %s", ERR_MSG(&e));
}
