/*
 * The value codecs: f32 arrays <-> the body of one group's record.
 * One file per codec; this is the table that names them.
 */
#ifndef ACE_CODEC_H
#define ACE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;

/* The codec byte of a record (ace-stream(5), VALUE CODECS).  Numbers are
 * never used again for another meaning. */
enum codec_id {
	CODEC_F32 = 0,		/* param 0 */
	CODEC_F16 = 1,
	CODEC_BF16 = 2,
	CODEC_LOSSLESS = 3,	/* byte planes of f32 (param 0) or bf16 (1) */
	CODEC_Q8 = 4,		/* blocks of 32, bf16 scale */
	CODEC_Q4 = 5,
	CODEC_SIGN = 6,		/* blocks with the mean magnitude */
	CODEC_TOPK = 7,		/* param: value code, 0 = f16 */
	CODEC_QSGD = 8,		/* param: levels s; equation (6) of ACE-Sync */
	CODEC_ECQ = 9,
	CODEC_TERN = 10,
	CODEC_LOWRANK = 11,
	CODEC_I64 = 12,
	CODEC_NATURAL = 13,
	CODEC_EDEN = 14,
	CODEC_MAX = 15,
	CODEC_ESCAPE = 15,	/* in a directory: the number follows */
	CODEC_PRIVATE = 1 << 14,	/* and above: anybody's */
	CODEC_ID_MOST = 65534,	/* the largest number that can be said */
	CODEC_NONE = 255	/* in a plan: the group is not sent */
};

/* How to code one group: what a plan entry says. */
struct codec_plan {
	uint8_t codec;		/* enum codec_id */
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

/* codec_format: the inverse, for reports: "topk:0.01".  Returns buf. */
const char *codec_format(const struct codec_plan *plan, char buf[32]);
const char *codec_name(uint8_t codec);	/* "topk"; NULL when unknown */

/* codec_exact(codec, param): 1 when decoding gives every f32 bit for bit. */
static inline int
codec_exact(uint8_t codec, uint8_t param)
{
	return codec == CODEC_F32 || (codec == CODEC_LOSSLESS && param == 0);
}

/* codec_sparse(plan): 1 when most values, or all small ones, become zero. */
int codec_sparse(const struct codec_plan *plan);

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
	uint8_t codec, param;
	const unsigned char *body;
	size_t len;
};

/* codec_encode_after: the same when that is known; last may be NULL, of
 * another codec, or no body at all. */
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
int codec_decode(uint8_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e);

/* codec_bound(plan, n): no body of n values is longer. */
size_t codec_bound(const struct codec_plan *plan, size_t n);

/* codec_size(plan, ctx, n): the bytes of n values that are not all 0, where
 * they do not depend on the values; codec_bound otherwise. */
size_t codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx,
    size_t n);

#endif
