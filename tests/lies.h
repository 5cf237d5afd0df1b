/*
 * Invalid bodies of 16 values in one row, for all codecs but f32 and q8 (breaks.h has those).
 * Each body breaks one rule of ace-stream(5), VALUE CODECS.
 */
#ifndef LIES_H
#define LIES_H

enum {
	LIE_F16, LIE_EXACT, LIE_SIGN, LIE_TOPK,
	LIE_TOPK_PLACE, LIE_QSGD, LIE_ECQ, LIE_ECQ_PLAIN, LIE_ECQ_ROWS,
	LIE_LOWRANK, LIE_NONZERO,
	LIE_LZ4_END, LIE_LOWRANK_NAN, LIE_TCQ, LIE_TCQ_LEVEL, LIE_TCQ_STATE,
	LIE_TCQ_BITS, LIE_TCQ_FINE
};

#define LIE_FF8 255, 255, 255, 255, 255, 255, 255, 255
#define LIE_MOST4 127, 127, 127, 127, 127, 127, 127, 127

static const struct lie {
	unsigned char codec, param, n, body[40];	/* n: bytes of the body */
} lies[] = {
	[LIE_F16] = { 1, 0, 31, { 0 } },	/* not 2 bytes per value */
	/* frequencies that sum to 3 */
	[LIE_EXACT] = { 17, 0, 8, { 3, 6, 1, 1, 1, 0, 252, 1 } },
	[LIE_SIGN] = { 6, 0, 4, { 0x80, 0x7f } },	/* infinite mean */
	[LIE_TOPK] = { 7, 0, 20, { 17 } },	/* 17 values of 16 */
	/* the first position is 16, beyond the row */
	[LIE_TOPK_PLACE] = { 7, 0, 6, { 1, 0, 0, 128, 66 } },
	/* codes of 7, which exceed s = 3 */
	[LIE_QSGD] = { 8, 3, 20, { 0, 0, 0x80, 0x3f, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	    7, 7, 7, 7 } },
	/* the code does not end where the body does */
	[LIE_ECQ] = { 9, 0, 31, { 0, 0x80, 0x3f, 0, 0, 64 + 20, 3, LIE_FF8,
	    LIE_FF8, LIE_FF8 } },
	[LIE_ECQ_PLAIN] = { 9, 0, 30, { 0, 0x80, 0x3f, 0, 0, 20, 3 } },
	/* mode ABOVE, for which one row is too few */
	[LIE_ECQ_ROWS] = { 9, 0, 10, { 0, 0x80, 0x3f, 0, 0, 128 + 20, 3 } },
	/* a scale of 2^201, beyond the limit */
	[LIE_LOWRANK] = { 11, 1, 18, { 201 } },
	/* one value, which is infinite */
	[LIE_NONZERO] = { 16, 0, 6, { 1, 1, 0, 0, 0x80, 0x7f } },
	/* a plane that ends with 4 literals after a match */
	[LIE_LZ4_END] = { 17, 0, 17, { 2, 9, 0x17, 1, 1, 0, 0x40, 1, 2, 3, 4,
	    1, 0, 1, 0, 1, 0 } },
	/* products beyond f32 of both signs, whose sum is NaN */
	[LIE_LOWRANK_NAN] = { 11, 2, 34, { 0, 0, LIE_MOST4, 0x7f, 0xff, 0x7f,
	    0xff, 0x7f, 0xff, 0x7f, 0xff, LIE_MOST4, LIE_MOST4 } },
	/* the code does not end where the body does */
	[LIE_TCQ] = { 18, 0, 33, { 0, 0x80, 0x3f, 0, 0, 0, 0, 64 + 20, 3, LIE_FF8,
	    LIE_FF8, LIE_FF8 } },
	/* |q| is 32768, one more than allowed */
	[LIE_TCQ_LEVEL] = { 18, 0, 37, { 0, 128, 63, 0, 0, 0, 0, 42, 14, 0, 103, 17, 200, 12, 0, 0,
	    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 167,
	    255, 249 } },
	/* a coder's final state is not its initial one */
	[LIE_TCQ_STATE] = { 18, 0, 37, { 0, 128, 63, 0, 0, 0, 0, 42, 14, 0, 207, 163, 252, 142, 0,
	    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31,
	    167, 255, 251 } },
	/* a sixth sign bit where five are allowed */
	[LIE_TCQ_BITS] = { 18, 0, 14, { 0, 128, 63, 0, 0, 0, 0, 17, 2, 182, 132, 29, 74, 177 } },
	/* 15 uncoded bits of an escape */
	[LIE_TCQ_FINE] = { 18, 0, 38, { 0, 128, 63, 0, 0, 0, 0, 42, 14, 15, 103, 17, 142, 12, 0, 0,
	    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30,
	    167, 255, 249 } },
};

/* Rows of mkgolden's table: a file's name, the function f that makes it, and the body. */
#define LIES(f) \
	{ "corrupt-f16-body", f, LIE_F16 }, \
	{ "corrupt-exact-body", f, LIE_EXACT }, \
	{ "corrupt-sign-body", f, LIE_SIGN }, \
	{ "corrupt-topk-body", f, LIE_TOPK }, \
	{ "corrupt-topk-place", f, LIE_TOPK_PLACE }, \
	{ "corrupt-qsgd-body", f, LIE_QSGD }, \
	{ "corrupt-ecq-body", f, LIE_ECQ }, \
	{ "corrupt-ecq-plain-body", f, LIE_ECQ_PLAIN }, \
	{ "corrupt-ecq-rows-body", f, LIE_ECQ_ROWS }, \
	{ "corrupt-lowrank-body", f, LIE_LOWRANK }, \
	{ "corrupt-nonzero-body", f, LIE_NONZERO }, \
	{ "corrupt-exact-lz4-end", f, LIE_LZ4_END }, \
	{ "corrupt-lowrank-nan", f, LIE_LOWRANK_NAN }, \
	{ "corrupt-tcq-body", f, LIE_TCQ }, \
	{ "corrupt-tcq-level", f, LIE_TCQ_LEVEL }, \
	{ "corrupt-tcq-state", f, LIE_TCQ_STATE }, \
	{ "corrupt-tcq-bits", f, LIE_TCQ_BITS }, \
	{ "corrupt-tcq-fine", f, LIE_TCQ_FINE }

#endif
