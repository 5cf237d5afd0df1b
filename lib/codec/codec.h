/*
 * The value codecs: f32 arrays <-> the body of one group's record.
 * One file per codec, one row of table.h: what a codec is, its row says, and
 * who wants to know asks here.
 */
#ifndef ACE_CODEC_H
#define ACE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "codec/table.h"

struct codec_impl;
struct err;
struct estimate;

/* The codec number of a record (ace-stream(5), VALUE CODECS): CODEC_F32 and
 * so on, from the table. */
#define CODEC_NUMBER(number, name, row) CODEC_##name = number,
enum codec_id {
	CODEC_TABLE(CODEC_NUMBER)
	CODEC_MAX,		/* one more than the greatest of the table */
	CODEC_ESCAPE = 15,	/* in a directory: the number follows */
	CODEC_NONE = 255,	/* in a plan: the group is not sent */
	CODEC_PRIVATE = 1 << 14,	/* and above: nobody's, codec_register */
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

/* codec_format: the inverse, "topk:0.01".  Returns buf.  CODEC_ARG: bytes of
 * what follows the name, its end too. */
enum { CODEC_ARG = 32, CODEC_TEXT = 48 };
const char *codec_format(const struct codec_plan *plan, char buf[CODEC_TEXT]);
const char *codec_name(uint32_t codec);	/* "topk"; NULL when unknown */

/* codec_exact(codec, param): 1 when decoding gives every f32 bit for bit. */
static inline int
codec_exact(uint32_t codec, uint8_t param)
{
	return codec == CODEC_F32 || (codec == CODEC_LOSSLESS && param == 0);
}

/*
 * codec_register(row, id): one more codec, for this process, under a private
 * number (CODEC_PRIVATE and above; another reader refuses it): for tests, and
 * for programs of others.  The row is kept, not copied; not while other
 * threads code.  -ERR_USAGE when the number or the name is taken, or there
 * are eight already.
 */
int codec_register(const struct codec_impl *row, uint32_t id, struct err *e);

/*
 * What a codec is.  None of these is true of a number that is unknown; none
 * is of fixed size.
 *
 * codec_dense(plan): 1 when every value takes 8 bits or more.
 * codec_sparse(plan): 1 when most values, or all small ones, become zero.
 * codec_fixed(plan): 1 when the rate depends on the group's shape only, so
 * that codec_size, and the rate foretold, are exact.
 */
int codec_dense(const struct codec_plan *plan);
int codec_sparse(const struct codec_plan *plan);
int codec_fixed(const struct codec_plan *plan);

/* codec_param(plan): the parameter byte the record will have; -1 when only
 * coding tells. */
int codec_param(const struct codec_plan *plan);

/*
 * codec_knob(plan): 1 when the argument is a knob that turns as finely as one
 * likes.  codec_turn(plan, f): the plan coarser by the factor f > 0, fewer
 * bytes where f > 1: a step or a threshold times f; a fraction, or bits,
 * divided by f (chunks keep whole numbers); within what the codec takes.
 * Without a knob the plan as it is.
 */
int codec_knob(const struct codec_plan *plan);
struct codec_plan codec_turn(const struct codec_plan *plan, double f);

/*
 * What coding will cost and lose, foretold from statistics (estimate.h says
 * of what, and how well).
 *
 * rate     bytes of the body; -1 when only coding tells
 * error    sum of squared differences; -1 when only coding tells, infinite
 *          when the codec cannot carry the group (f16 overflow)
 *
 * codec_rate, codec_error: one of the two, at the price of both.
 */
void codec_foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *rate, double *error);
int64_t codec_rate(const struct codec_plan *plan, const struct estimate *m);
double codec_error(const struct codec_plan *plan, const struct estimate *m);

/*
 * codec_encode(plan, ctx, x, n, out, param, e): appends the body to out.  Of
 * f32, f16, bf16, i64 and lossless x - dec(code(x)) is exact in f32, for every
 * finite x: what does not fit becomes the largest value that leaves an exact
 * difference (for f16 and |x| >= 2^40, zero).
 *
 * x      f32[n]    finite (-ERR_DATA otherwise, nothing appended)
 * param            the record's parameter byte
 */
int codec_encode(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, size_t n, struct buf *out, uint8_t *param, struct err *e);

/* The body of the same group one step before: lowrank starts from what it
 * found then.  No reader needs it. */
struct codec_last {
	uint32_t codec;
	uint8_t param;
	const unsigned char *body;
	size_t len;
};

/* codec_encode_after: the same when that is known; last may be NULL, of
 * another codec, or no body at all.  codec_after(plan): 1 when it matters. */
int codec_after(const struct codec_plan *plan);
int codec_encode_after(const struct codec_plan *plan,
    const struct codec_ctx *ctx, const struct codec_last *last, const float *x,
    size_t n, struct buf *out, uint8_t *param, struct err *e);

/*
 * codec_decode(codec, param, ctx, body, len, x, n, e): exactly len bytes give
 * exactly n values, or -ERR_DATA with a message that begins with "corrupt" or
 * "unsupported".  Never reads outside body, never writes outside x; a decoded
 * value that is not finite is refused (corrupt) except from F32, F16, BF16 and
 * LOSSLESS, which carry what they were given.
 */
int codec_decode(uint32_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e);

/* codec_bound(plan, n): no body of n values is longer. */
size_t codec_bound(const struct codec_plan *plan, size_t n);

/* codec_size(plan, ctx, n): the bytes of n values that are not all 0, where
 * they do not depend on the values; codec_bound otherwise. */
size_t codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx,
    size_t n);

#endif
