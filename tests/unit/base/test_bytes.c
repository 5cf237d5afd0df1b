
#include "../test.h"
#include "base/bytes.h"

/* Decode n bytes as a number; *bad: 1 if they do not hold a valid one. */
static uint64_t
number(const char *p, size_t n, int *bad)
{
	struct bytes b = BYTES((const unsigned char *)p, n);
	const uint64_t v = bytes_varint(&b);

	*bad = b.bad;
	return v;
}

static int
refused(const char *p, size_t n)
{
	int bad;

	return number(p, n, &bad) == 0 && bad;
}

TEST(test_varints)
{
	int bad;

	ok(number("\x00", 1, &bad) == 0 && !bad, "0");
	ok(number("\x7f", 1, &bad) == 127 && !bad, "one byte");
	ok(number("\x80\x01", 2, &bad) == 128 && !bad, "two");
	ok(number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, &bad) ==
	    UINT64_MAX && !bad, "the largest");
	ok(refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),
	    "more than 64 bits");
	ok(refused("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11),
	    "an eleventh byte");
	ok(refused("\x80\x00", 2), "a number longer than needed");
	ok(refused("\x80", 1), "a number that is cut");
}
