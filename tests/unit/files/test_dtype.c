/* Number types: every f16 and bf16, and the limits of the others. */
#include "base/bytes.h"
#include "base/rng.h"
#include "files/dtype.h"
#include "format/schema.h"

#include "../test.h"

/* Known values of IEEE 754-2008 binary16. */
TEST(test_known)
{
	static const struct {
		uint16_t h;
		float x;
	} t[] = {
		{ 0x0000, 0 }, { 0x3c00, 1 }, { 0xc000, -2 },
		{ 0x0001, 0x1p-24f }, { 0x03ff, 0x1.ff8p-15f },
		{ 0x0400, 0x1p-14f }, { 0x7bff, 65504 }, { 0x7c00, INFINITY },
		{ 0x3555, 0x1.554p-2f }
	};
	unsigned char b[2];
	uint64_t lost = 0;
	size_t i;
	float x;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bytes_set16(b, t[i].h);
		ok(dtype_to_f32(SCHEMA_F16, 0, b, &x, 1, &lost) == 1 &&
		    x == t[i].x, "f16 %04x is %g", t[i].h, (double)t[i].x);
		ok(dtype_from_f32(SCHEMA_F16, &t[i].x, b, 1) == 1 &&
		    bytes_le16(b) == t[i].h, "and back");
	}
}

static void
test_halves(unsigned dtype, const char *name)
{
	unsigned bad = 0, h;
	unsigned char b[2];
	uint64_t lost = 0;
	float x;

	for (h = 0; h < 65536; h++) {
		bytes_set16(b, (uint16_t)h);
		if (dtype_to_f32(dtype, 0, b, &x, 1, &lost) != 1)
			bad++;
		memset(b, 0xa5, 2);
		if (dtype_from_f32(dtype, &x, b, 1) != 1 || bytes_le16(b) != h)
			bad++;
	}
	ok(bad == 0 && lost == 0, "every %s goes to f32 and back, NaNs too",
	    name);
}

static float
half(unsigned dtype, uint16_t h)
{
	unsigned char b[2];
	uint64_t lost = 0;
	float x;

	bytes_set16(b, h);
	(void)dtype_to_f32(dtype, 0, b, &x, 1, &lost);
	return x;
}

/* Rounding gives the nearest value, and the even one of two equally near. top: last finite code. */
static void
test_nearest(unsigned dtype, uint16_t top, const char *name)
{
	uint32_t i, u[4], bad = 0, used = 0;
	unsigned char b[2];
	double d, up, down;
	uint16_t h;
	float x;

	for (i = 0; i < 200000; i++) {
		rng_block(1, 2, i, 3, u);
		/* 2^-31 to 2^19, beyond f16 at both ends; some half way between two values */
		u[0] = (u[0] & 0x7fffff) | (96 + u[1] % 50) << 23;
		if (u[2] % 4 == 0)
			u[0] &= dtype == SCHEMA_F16 ? 0x7ffff000 : 0x7fff8000;
		x = bytes_f32(u[0]);
		if (dtype_from_f32(dtype, &x, b, 1) != 1)
			continue;
		used++;
		h = bytes_le16(b);
		d = fabs((double)half(dtype, h) - (double)x);
		up = h < top ? fabs((double)half(dtype,
		    (uint16_t)(h + 1)) - (double)x) : 1e300;
		down = h > 0 ? fabs((double)half(dtype,
		    (uint16_t)(h - 1)) - (double)x) : 1e300;
		if (d > up || d > down || ((d == up || d == down) && (h & 1)))
			bad++;
	}
	ok(bad == 0 && used > 100000, "%s: to nearest even, %lu values", name,
	    (unsigned long)used);
}

/* Convert the value of these bits to *x, and set *lost to 1 if it was rounded, else to 0. Return
 * 1, or 0 if it is refused. */
static size_t
wide(unsigned dtype, int round, uint64_t bits, float *x, uint64_t *lost)
{
	unsigned char b[8];

	bytes_set64(b, bits);
	*lost = 0;
	return dtype_to_f32(dtype, round, b, x, 1, lost);
}

static uint64_t
bits_of(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

TEST(test_wide)
{
	uint64_t lost;
	float x;

	ok(wide(SCHEMA_I32, 0, 1 << 24, &x, &lost) == 1 && x == 0x1p24f,
	    "i32 2^24 is exact");
	ok(wide(SCHEMA_I32, 0, (1 << 24) + 1, &x, &lost) == 0,
	    "i32 2^24 + 1 is refused");
	ok(wide(SCHEMA_I32, 1, (1 << 24) + 1, &x, &lost) == 1 &&
	    x == 0x1p24f && lost == 1, "or rounded, and counted");
	ok(wide(SCHEMA_I64, 0, INT64_MAX, &x, &lost) == 0,
	    "i64 2^63 - 1 is refused");
	ok(wide(SCHEMA_I64, 1, INT64_MAX, &x, &lost) == 1 && x == 0x1p63f,
	    "or rounded");
	ok(wide(SCHEMA_I64, 0, (uint64_t)INT64_MIN, &x, &lost) == 1 &&
	    x == -0x1p63f, "i64 -2^63 is exact");
	ok(wide(SCHEMA_F64, 0, bits_of(0.5), &x, &lost) == 1 && x == 0.5f,
	    "f64 0.5 is exact");
	ok(wide(SCHEMA_F64, 0, bits_of(0.1), &x, &lost) == 0,
	    "f64 0.1 is refused");
	ok(wide(SCHEMA_F64, 1, bits_of(0.1), &x, &lost) == 1 && x == 0.1f &&
	    lost == 1, "or rounded");
	ok(wide(SCHEMA_F64, 1, bits_of(1e39), &x, &lost) == 0,
	    "f64 1e39 is refused even with rounding");
	ok(wide(SCHEMA_F64, 0, bits_of(-0.0), &x, &lost) == 1 &&
	    bytes_u32(x) == 0x80000000, "-0 keeps its sign");
	ok(wide(SCHEMA_F64, 0, bits_of(INFINITY), &x, &lost) == 1 &&
	    isinf(x), "infinity stays infinite");
	ok(wide(SCHEMA_F64, 0, 0x7ff0000020000000, &x, &lost) == 1 &&
	    bytes_u32(x) == 0x7f800001, "a NaN keeps a payload that fits");
	ok(wide(SCHEMA_F64, 0, 0x7ff0000000000001, &x, &lost) == 0 &&
	    wide(SCHEMA_F64, 1, 0x7ff0000000000001, &x, &lost) == 1 &&
	    isnan(x) && lost == 1, "too long a payload is refused; rounded, it is a NaN");
}

/* Each type can hold the values at its limits, and refuses those just beyond. */
TEST(test_edges)
{
	static const struct {
		unsigned dtype;
		float most, more;
	} t[] = {
		{ SCHEMA_U8, 255, 256 }, { SCHEMA_U8, 0, -1 },
		{ SCHEMA_BOOL, 1, 2 }, { SCHEMA_I8, 127, 128 },
		{ SCHEMA_I8, -128, -129 }, { SCHEMA_I16, 32767, 32768 },
		{ SCHEMA_I16, -32768, -32769 }, { SCHEMA_F8E4M3, 448, 480 },
		{ SCHEMA_F8E4M3, -448, -480 }, { SCHEMA_F8E4M3, 0x1p-9f,
		    0x1p-10f }, { SCHEMA_F8E5M2, 57344, 65536 },
		{ SCHEMA_F16, 65504, 65520 }, { SCHEMA_F16, -65504, -65520 },
		{ SCHEMA_BF16, 0x1.fep127f, 0x1.ffp127f },
		{ SCHEMA_I32, 0x1.fffffep30f, 0x1p31f }, { SCHEMA_I32, 2, 2.5f },
		{ SCHEMA_I32, -0x1p31f, -0x1.000002p31f },
		{ SCHEMA_I64, -0x1p63f, -0x1.000002p63f },
		{ SCHEMA_I64, 0x1.fffffep62f, 0x1p63f }, { SCHEMA_I64, 2, 2.5f },
		{ SCHEMA_I64, 0, NAN }
	};
	unsigned char b[8], two = 2;
	uint64_t lost = 0;
	size_t i;
	float x;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		ok(dtype_from_f32(t[i].dtype, &t[i].most, b, 1) == 1 &&
		    dtype_to_f32(t[i].dtype, 0, b, &x, 1, &lost) == 1 &&
		    x == t[i].most && lost == 0 &&
		    dtype_from_f32(t[i].dtype, &t[i].more, b, 1) == 0,
		    "%s can hold %g but not %g", schema_dtype_name(t[i].dtype),
		    (double)t[i].most, (double)t[i].more);
	ok(dtype_to_f32(SCHEMA_BOOL, 1, &two, &x, 1, &lost) == 0,
	    "a bool of 2 is refused, rounded or not");
	x = 65519.996f;
	ok(dtype_from_f32(SCHEMA_F16, &x, b, 1) == 1 && bytes_le16(b) == 0x7bff,
	    "just below 65520 is the largest f16");
}

TEST(test_narrow_nan)
{
	static const unsigned types[] = { SCHEMA_F16, SCHEMA_BF16, SCHEMA_F64 };
	float x = bytes_f32(0xff800001), y;
	unsigned char b[8];
	uint64_t lost = 0;
	size_t i;

	for (i = 0; i < 3; i++) {
		ok(dtype_from_f32(types[i], &x, b, 1) == 1 &&
		    dtype_to_f32(types[i], 0, b, &y, 1, &lost) == 1 &&
		    isnan(y) && signbit(y) != 0,
		    "a NaN whose payload is too small for %s stays one",
		    schema_dtype_name(types[i]));
	}
}

TEST(test_text)
{
	unsigned char b[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	char s[32];

	dtype_swap(SCHEMA_I32, b, 3);
	ok(memcmp(b, "\4\3\2\1\10\7\6\5\14\13\12\11", 12) == 0, "swapped");
	bytes_set64(b, bits_of(0.1));
	dtype_text(SCHEMA_F64, b, s);
	ok(strcmp(s, "0.10000000000000001") == 0, "f64 in words: %s", s);
	bytes_set64(b, (uint64_t)-16777217);
	dtype_text(SCHEMA_I64, b, s);
	ok(strcmp(s, "-16777217") == 0, "i64 in words: %s", s);
}

/* Codes of types that f32 holds exactly, to f32 and back: all valid codes of one byte, and 256
 * of i16. NaNs are not compared. */
static void
test_exact(unsigned dtype, const char *name)
{
	unsigned char p[2], back[2] = { 0, 0 };
	unsigned long wrong = 0;
	uint64_t rounded = 0;
	unsigned c, n = dtype == SCHEMA_BOOL ? 2 : 256;
	float x;

	for (c = 0; c < n; c++) {
		p[0] = (unsigned char)c;
		p[1] = (unsigned char)(255 - c);
		if (dtype_to_f32(dtype, 0, p, &x, 1, &rounded) != 1 ||
		    dtype_from_f32(dtype, &x, back, 1) != 1)
			wrong++;
		else if (x == x)
			wrong += memcmp(p, back, dtype_size(dtype)) != 0;
	}
	ok(wrong == 0 && rounded == 0, "%s: all codes, %lu wrong", name, wrong);
	x = 0.3f;
	ok(dtype_from_f32(dtype, &x, back, 1) == 0, "%s: 0.3 is none", name);
	x = 1e6f;
	ok(dtype_from_f32(dtype, &x, back, 1) == 0, "%s: 1e6 is none", name);
}

TEST(test_each)
{
	test_exact(SCHEMA_U8, "u8");
	test_exact(SCHEMA_BOOL, "bool");
	test_exact(SCHEMA_I8, "i8");
	test_exact(SCHEMA_I16, "i16");
	test_exact(SCHEMA_F8E4M3, "f8e4m3");
	test_exact(SCHEMA_F8E5M2, "f8e5m2");
	test_halves(SCHEMA_F16, "f16");
	test_halves(SCHEMA_BF16, "bf16");
	test_nearest(SCHEMA_F16, 0x7bff, "f16");
	test_nearest(SCHEMA_BF16, 0x7f7f, "bf16");
}
