/*
 * The value codecs turn an f32 array into the body of one group's record, and back. Each
 * codec has one row in the table below, which one file of this folder defines. The rest of
 * the program asks the functions below about the properties of a codec.
 */
#ifndef ACE_CODEC_H
#define ACE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

struct err;
struct kern_stat;

/* The codecs: number, name in enum codec_id (after CODEC_), and the row in the codec's
 * file (codec_impl.h). Outside its file, only a lossless codec needs another line, in
 * codec_exact. Numbers rise and are never reused (ace-stream(5), VALUE CODECS). 15 is the
 * escape below; 2, 3, 5, 10 and 12 to 14 are reserved. */
#define CODEC_TABLE(X) \
	X(0, F32, plain_f32) \
	X(1, F16, plain_f16) \
	X(4, Q8, block_q8) \
	X(6, SIGN, block_sign) \
	X(7, TOPK, topk_codec) \
	X(8, QSGD, qsgd_codec) \
	X(9, ECQ, ecq_codec) \
	X(11, LOWRANK, lowrank_codec) \
	X(16, NONZERO, nonzero_codec) \
	X(17, EXACT, exact_codec) \
	X(18, TCQ, tcq_codec)

/* The codec number of a record: CODEC_F32 and so on. */
#define CODEC_NUMBER(number, name, row) CODEC_##name = number,
enum codec_id {
	CODEC_TABLE(CODEC_NUMBER)
	CODEC_MAX,		/* largest number of the table plus 1 */
	CODEC_ESCAPE = 15,	/* in a directory: the codec's number follows */
	CODEC_NONE = 255,	/* in a plan: the group is not sent */
	CODEC_ID_MOST = 65534	/* largest number that a directory may hold */
};
#undef CODEC_NUMBER

/* How to code one group: an entry of a plan. */
struct codec_plan {
	uint32_t codec;		/* enum codec_id */
	uint8_t param;		/* parameter byte; the record may get another (codec_param) */
	float arg;		/* the fraction or step in the name, if it has one */
};

/* Data about a group that both sides know without transmission. */
struct codec_ctx {
	uint64_t seed;		/* from run and device, so that devices' noise is independent */
	uint64_t step;		/* the shard's step */
	uint32_t group;		/* number of the group in the model */
	uint32_t cols;		/* row length: last dim of the tensor; 1 if absent or >= 2^32 */
	uint64_t offset;	/* first element's index in its tensor */
};

/* Parse a codec name as users write it (-c, --levels), for example "topk:0.01". Return
 * -ERR_USAGE if the name is unknown or its argument is out of range. */
int codec_parse(const char *s, struct codec_plan *plan, struct err *e);

/* Write the name of a plan, such as "topk:0.01", or "codec-N" if codec N is unknown, and
 * return buf. This is the inverse of codec_parse. CODEC_ARG is the size of the argument and
 * CODEC_TEXT that of the whole name, in bytes with the closing NUL. */
enum { CODEC_ARG = 32, CODEC_TEXT = 48 };
const char *codec_format(const struct codec_plan *plan, char buf[CODEC_TEXT]);
/* Return the i-th of the codecs' names, aliases included, NULL after the last; not "none". */
const char *codec_word(unsigned i);
/* Return the codec's name without an argument, such as "topk", or "none" for CODEC_NONE; NULL
 * if it is unknown. */
const char *codec_name(uint32_t codec);

/* Return 1 if this version has a codec with the number; 0 for CODEC_ESCAPE and CODEC_NONE. */
int codec_known(uint64_t codec);

/* Return 1 if a plan of this known codec may have this parameter byte. */
int codec_takes(uint32_t codec, uint8_t param);
/* Return 1 if decoding restores every f32 bit for bit, whatever the parameter byte. */
static inline int
codec_exact(uint32_t codec)
{
	return codec == CODEC_F32 || codec == CODEC_NONZERO || codec == CODEC_EXACT;
}

/* Return 1 if the values can be decoded from the body and its codec_ctx, and for a parameter
 * that no decoder takes. Other bodies need the old values or the tensor's type. */
static inline int
codec_values(uint32_t codec, uint8_t param)
{
	return codec != CODEC_EXACT || param == 0 || !codec_takes(codec, param);
}

/*
 * Properties of a plan's codec; 0 if its number is unknown. CODEC_NONE has a fixed size.
 *
 * codec_dense(plan)    every value is coded, as precisely as by q8 or better
 * codec_sparse(plan)   most values, or all small ones, become 0
 * codec_fixed(plan)    the size of values that are not all 0 depends only on the group's
 *                      shape, so that codec_size and the estimated bytes are exact
 */
int codec_dense(const struct codec_plan *plan);
int codec_sparse(const struct codec_plan *plan);
int codec_fixed(const struct codec_plan *plan);

/* Return the record's parameter byte, or -1 if the encoder chooses it. */
int codec_param(const struct codec_plan *plan);

/*
 * codec_rate(plan): return 1 if the plan's argument can be changed gradually to
 * trade bytes for error.
 *
 * codec_turn(plan, f): return the plan made coarser by the factor f > 0.  A step is
 * multiplied by f; a fraction is divided by f (a chunk keeps a whole number of values).
 * The result is clamped to what the codec accepts; a plan that has no rate parameter is
 * returned unchanged.
 */
int codec_rate(const struct codec_plan *plan);
struct codec_plan codec_turn(const struct codec_plan *plan, double f);

/* codec_shared(effort): return the codec for shards in which all groups have the same
 * step (sync/allot.h). The effort, 1 to CODEC_EFFORT_MOST, limits CPU time; of the codecs
 * that it allows, the one returned needs the fewest bytes at the same error.
 * codec_shares(name):
 * return the number of the codec with that name if groups can share its step, else
 * CODEC_NONE. */
enum { CODEC_EFFORT_MOST = 9, CODEC_EFFORT = 3 };	/* CODEC_EFFORT: default */
uint32_t codec_shared(unsigned effort);
uint32_t codec_shares(const char *name);

/* Return the plan in the form that error feedback needs: for decoded values x', ||x -
 * x'||^2 < ||x||^2 unless nothing is kept. An unbiased code whose variance omega
 * ||x||^2 exceeds ||x||^2 meets this only if it is scaled by 1 / (1 + omega)
 * (Karimireddy et al. 2019; Beznosikov et al. 2020). We use the scale of least error
 * for the given values instead, which is at least as good. Other plans are returned
 * unchanged; bodies keep their size. */
struct codec_plan codec_contracting(const struct codec_plan *plan);

/*
 * Append the body of x f32[n] to out and set the record's parameter byte. Return 0; -ERR_USAGE
 * if the plan is not valid or kern_get fails; -ERR_DATA if a value is not finite; or -ERR_SYS.
 * On an error append nothing.
 *
 * For f32, f16 and exact the difference between x and its decoded value is exact
 * in f32: a value too large for the codec becomes the largest value whose difference is
 * exact (0 for f16 and |x| >= 2^39).
 */
int codec_encode(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, size_t n, struct buf *out, uint8_t *param, struct err *e);

/* The last body of the same group that was sent. The encoder of lowrank starts its search
 * from this body; readers do not need the body. */
struct codec_last {
	uint32_t codec;
	uint8_t param;
	const unsigned char *body;
	size_t len;
};

/* If the rate parameter of last->codec can be read from the body, set *plan to the plan
 * with this parameter and return 1. Otherwise return 0; *plan is then of no use. */
int codec_turned(const struct codec_last *last, struct codec_plan *plan);

/* codec_encode_after: like codec_encode, given the last body, which may be NULL, corrupt
 * or from another codec. If y is not NULL, y[n], which must not be x, is set to the values that
 * codec_decode returns (-ERR_DATA if one is beyond f32); this is usually much faster than
 * decoding. seen: statistics of x, or NULL. codec_after(plan): return 1 if the codec uses the
 * last body. */
int codec_after(const struct codec_plan *plan);
int codec_encode_after(const struct codec_plan *plan,
    const struct codec_ctx *ctx, const struct codec_last *last, const float *x,
    size_t n, const struct kern_stat *seen, struct buf *out, uint8_t *param,
    float *y, struct err *e);

/* Decode exactly len bytes to exactly n values. Return 0, -ERR_SYS, -ERR_USAGE if kern_get
 * fails, or -ERR_DATA with "corrupt", "unsupported" or, if codec_values returns 0, "mismatch".
 * Values that are not finite are corrupt, except in F32, F16 and EXACT. */
int codec_decode(uint32_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e);

/* Decode into y f32[n] a body that codec_encode made from x f32[n] with this plan. seen:
 * statistics of x, or NULL; param: the record's. This is faster than codec_decode if the codec
 * has the function `again'. */
int codec_again(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, const struct kern_stat *seen, uint8_t param,
    const unsigned char *body, size_t len, float *y, size_t n, struct err *e);

/* The values in the body of a sparse codec, at rising positions; all others are +0.
 * Start with CODEC_LIST_INIT; a list can be reused for further bodies. */
struct codec_list {
	uint32_t *pos;		/* [k] */
	float *x;		/* [k] */
	size_t k, cap;
};
#define CODEC_LIST_INIT { NULL, NULL, 0, 0 }

void codec_list_release(struct codec_list *l);

/* codec_lists(codec): return 1 if codec_decode_list can decode the codec.
 * codec_decode_list: like codec_decode, but store only the values of the body in a list,
 * so that the time does not depend on n. */
int codec_lists(uint32_t codec);
int codec_decode_list(uint32_t codec, uint8_t param,
    const struct codec_ctx *ctx, const unsigned char *body, size_t len,
    size_t n, struct codec_list *l, struct err *e);

/* Return the largest size in bytes of a body of n values; 0 if the codec is unknown. */
size_t codec_bound(const struct codec_plan *plan, size_t n);

/* Return the size in bytes of a body of n values that are not all 0, if the size does not depend
 * on the values; otherwise return codec_bound. */
size_t codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx, size_t n);

#endif
