/*
 * The value codecs turn an f32 array into the body of one group's record, and
 * back.  Each codec has a file of its own and one row in the table below, which
 * says everything about it; the rest of the program learns it from the functions
 * below and never compares codec numbers.
 */
#ifndef ACE_CODEC_H
#define ACE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct codec_impl;
struct err;
struct kern_stat;

/*
 * The codecs there are: number, the name in enum codec_id (CODEC_ in front),
 * and the row in the codec's own file that says all about it (codec_impl.h).  This
 * is the one line that a codec needs outside its file; numbers rise, and none
 * is ever used again for another meaning (ace-stream(5), VALUE CODECS).  15 is
 * left out: in a directory it means that the number follows.  12 to 14 are
 * reserved.
 */
#define CODEC_TABLE(X) \
	X(0, F32, plain_f32) \
	X(1, F16, plain_f16) \
	X(2, BF16, plain_bf16) \
	X(3, LOSSLESS, lossless_planes) \
	X(4, Q8, block_q8) \
	X(5, Q4, block_q4) \
	X(6, SIGN, block_sign) \
	X(7, TOPK, topk_codec) \
	X(8, QSGD, qsgd_codec) \
	X(9, ECQ, ecq_codec) \
	X(10, TERN, tern_codec) \
	X(11, LOWRANK, lowrank_codec) \
	X(16, NONZERO, nonzero_codec) \
	X(17, EXACT, exact_codec) \
	X(18, TCQ, tcq_codec)

/* The codec number of a record: CODEC_F32 and so on. */
#define CODEC_NUMBER(number, name, row) CODEC_##name = number,
enum codec_id {
	CODEC_TABLE(CODEC_NUMBER)
	CODEC_MAX,		/* one more than the greatest of the table */
	CODEC_ESCAPE = 15,	/* in a directory: the number follows */
	CODEC_NONE = 255,	/* in a plan: the group is not sent */
	CODEC_PRIVATE = 1 << 14,	/* and above: see codec_register */
	CODEC_ID_MOST = 65534	/* the largest number that can be said */
};
#undef CODEC_NUMBER

/* How to code one group: what a plan entry says. */
struct codec_plan {
	uint32_t codec;		/* enum codec_id, or a private number */
	uint8_t param;		/* goes into the record */
	float arg;		/* the encoder's knob: top-k fraction, step */
};

/* What both sides know about a group without being told. */
struct codec_ctx {
	uint64_t seed;		/* from run and device: independent noise */
	uint64_t step;
	uint32_t group;
	uint32_t cols;		/* last dim of the tensor: row length, >= 1 */
	uint64_t offset;	/* of the group's first element in its tensor */
};

/*
 * codec_parse("topk:0.01", &plan, e): the names users write (-c, --levels).
 * -ERR_USAGE when unknown or the argument is out of range.
 */
int codec_parse(const char *s, struct codec_plan *plan, struct err *e);

/* codec_format(plan, buf): the inverse of codec_parse: writes a name such as
 * "topk:0.01" and returns buf.  CODEC_ARG and CODEC_TEXT are the bytes, with
 * the closing NUL, of the argument alone and of the whole. */
enum { CODEC_ARG = 32, CODEC_TEXT = 48 };
const char *codec_format(const struct codec_plan *plan, char buf[CODEC_TEXT]);
/* codec_word(i): the i-th of all names that users write, NULL behind the last. */
const char *codec_word(unsigned i);
const char *codec_name(uint32_t codec);	/* "topk"; NULL when unknown */

/* codec_known(codec): 1 when the number is one of this version's codecs.  15 is
 * none, although there are greater ones. */
int codec_known(uint64_t codec);

/* codec_takes(codec, param): 1 when a plan of a codec that is known may have the
 * parameter. */
int codec_takes(uint32_t codec, uint8_t param);
/* codec_exact(codec, param): 1 when decoding gives every f32 bit for bit. */
static inline int
codec_exact(uint32_t codec, uint8_t param)
{
	return codec == CODEC_F32 || codec == CODEC_NONZERO ||
	    codec == CODEC_EXACT ||
	    (codec == CODEC_LOSSLESS && param == 0);
}

/* codec_values(codec, param): 1 when a body is values to everybody, and not bits
 * that only who knows the old ones, or the type, can read. */
static inline int
codec_values(uint32_t codec, uint8_t param)
{
	return codec != CODEC_EXACT || param == 0;
}

/*
 * codec_register(row, id): adds a codec to this process, under a private
 * number (CODEC_PRIVATE and above), for tests and for programs that link the
 * library.  A reader that has not registered the number refuses it.  The row
 * is not copied, so it must stay; no other thread may be coding meanwhile.
 * 0, or -ERR_USAGE when the number or the name is taken, or eight codecs are
 * registered already.
 */
int codec_register(const struct codec_impl *row, uint32_t id, struct err *e);

/*
 * Questions about a codec.  The answer is 0 to each of them where the plan's
 * number is unknown.
 *
 * codec_dense(plan): 1 when every value takes 8 bits or more.
 * codec_sparse(plan): 1 when most values, or all small ones, become zero.
 * codec_fixed(plan): 1 when the bytes depend on the group's shape only, so
 * that codec_size, and what is foretold, are exact.
 */
int codec_dense(const struct codec_plan *plan);
int codec_sparse(const struct codec_plan *plan);
int codec_fixed(const struct codec_plan *plan);

/* codec_param(plan): the parameter byte the record will have, or -1 when that
 * is known only once the values are coded. */
int codec_param(const struct codec_plan *plan);

/*
 * codec_knob(plan): 1 when the plan's argument can be changed gradually to
 * trade bytes for error.
 *
 * codec_turn(plan, f): the plan made coarser by the factor f > 0, so that it
 * takes fewer bytes where f > 1.  A step is multiplied by f; a
 * fraction or a number of bits is divided by it (what a chunk keeps stays a
 * whole number).  The result is clamped to what the codec accepts; a plan
 * without a knob comes back unchanged.
 */
int codec_knob(const struct codec_plan *plan);
struct codec_plan codec_turn(const struct codec_plan *plan, double f);

/*
 * codec_shared(effort): the codec whose step all groups of a shard share, so that
 * one number says how they are coded (sync/allot.h): of several the one that takes
 * the fewest bytes for its error and no more work than that effort, 1 to
 * CODEC_EFFORT_MOST.
 * codec_shares(name): the number of the codec with that name when it is one of
 * these; CODEC_NONE otherwise.
 */
enum { CODEC_EFFORT_MOST = 9, CODEC_EFFORT = 3 };	/* usual: the second */
uint32_t codec_shared(unsigned effort);
uint32_t codec_shares(const char *name);

/*
 * codec_contracting(plan): the plan in the form that error feedback needs: with
 * x' what x decodes to, ||x - x'||^2 < ||x||^2 as long as anything is kept.  An
 * unbiased code whose variance omega ||x||^2 is larger than ||x||^2 has this
 * only when it is scaled by 1 / (1 + omega) (Karimireddy et al. 2019;
 * Beznosikov et al. 2020); what is written here is the scale of least error for
 * the values at hand, which is no worse.  Plans of other codecs come back
 * unchanged, and bodies have the same size.
 */
struct codec_plan codec_contracting(const struct codec_plan *plan);

/*
 * codec_encode(plan, ctx, x, n, out, param, e): appends the body to out.  For
 * f32, f16, bf16 and lossless the difference between x and what a reader
 * decodes is exact in f32, for every finite x: a value too large for the codec
 * becomes the largest one that leaves an exact difference (for f16 and
 * |x| >= 2^40 that is zero).
 *
 * x      f32[n]    finite (-ERR_DATA otherwise, nothing appended)
 * param            the record's parameter byte
 */
int codec_encode(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, size_t n, struct buf *out, uint8_t *param, struct err *e);

/* The body of the same group one step before, from which lowrank starts its
 * search.  Only an encoder uses it; a reader does not need it. */
struct codec_last {
	uint32_t codec;
	uint8_t param;
	const unsigned char *body;
	size_t len;
};

/* codec_turned(last, plan): the plan with a knob that a body was coded by: 1; 0: it
 * has none, or does not say. */
int codec_turned(const struct codec_last *last, struct codec_plan *plan);

/*
 * codec_encode_after: codec_encode, given the last body as well.  last may be
 * NULL, and what it holds may be of another codec or not a body at all.
 * Where y is not NULL, y[n] becomes what codec_decode makes of the body, which
 * for most codecs takes much less time than to decode it.  y is not x.
 * seen: the statistics of x, or NULL where they are not known.
 * codec_after(plan): 1 when the plan's codec makes use of the last body.
 */
int codec_after(const struct codec_plan *plan);
int codec_encode_after(const struct codec_plan *plan,
    const struct codec_ctx *ctx, const struct codec_last *last, const float *x,
    size_t n, const struct kern_stat *seen, struct buf *out, uint8_t *param,
    float *y, struct err *e);

/*
 * codec_decode(codec, param, ctx, body, len, x, n, e): exactly len bytes give
 * exactly n values, or -ERR_DATA with a message that begins with "corrupt" or
 * "unsupported".  Never reads outside body, never writes outside x; a decoded
 * value that is not finite is refused (corrupt) except from F32, F16, BF16 and
 * LOSSLESS, which carry what they were given.
 */
int codec_decode(uint32_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e);

/* codec_again(plan, ctx, x, seen, param, body, len, y, n, e): y f32[n] becomes
 * what codec_decode makes of a body that codec_encode made of x f32[n] under
 * that plan, in less time where the codec knows how. */
int codec_again(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, const struct kern_stat *seen, uint8_t param,
    const unsigned char *body, size_t len, float *y, size_t n, struct err *e);

/* The values that the body of a sparse codec lists, at rising positions; all
 * others of the group are +0.  Begins as CODEC_LIST_INIT and can be used for
 * one body after another. */
struct codec_list {
	uint32_t *pos;		/* [k] */
	float *x;		/* [k] */
	size_t k, cap;
};
#define CODEC_LIST_INIT { NULL, NULL, 0, 0 }

void codec_list_release(struct codec_list *l);

/* codec_lists(codec): 1 when the codec's bodies list values.
 * codec_decode_list: as codec_decode, of such a codec: the same values, but in
 * a list, so that the time it takes depends on their number only. */
int codec_lists(uint32_t codec);
int codec_decode_list(uint32_t codec, uint8_t param,
    const struct codec_ctx *ctx, const unsigned char *body, size_t len,
    size_t n, struct codec_list *l, struct err *e);

/* codec_bound(plan, n): the most bytes that a body of n values can take. */
size_t codec_bound(const struct codec_plan *plan, size_t n);

/* codec_size(plan, ctx, n): the bytes that the body of n values, not all 0,
 * takes, where that does not depend on the values; codec_bound otherwise. */
size_t codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx,
    size_t n);

#endif
