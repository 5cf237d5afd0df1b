/*
 * What a codec is to the table in codec.c; not for other layers.
 */
#ifndef ACE_CODEC_IMPL_H
#define ACE_CODEC_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "codec/codec.h"

struct kern;

/* One group on its way into a body.  n > 0, x is finite. */
struct codec_in {
	const struct codec_plan *plan;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	const float *x;
	size_t n;
	uint32_t max_bits;	/* of the largest magnitude */
	const struct codec_last *last;	/* or NULL */
};

/* One body on its way to a group; n > 0, param was accepted. */
struct codec_out {
	uint8_t param;
	const struct codec_ctx *ctx;
	const struct kern *kern;
	float *x;
	size_t n;
};

struct codec_impl {
	const char *name;
	/* 0, or -ERR_USAGE; what follows the colon, NULL when there is none */
	int (*parse)(const char *arg, struct codec_plan *plan, struct err *e);
	/* what follows the name, ":0.01" or "", into buf[24] */
	void (*format)(const struct codec_plan *plan, char buf[24]);
	size_t (*bound)(const struct codec_plan *plan, size_t n);
	/* of values that are not all 0; NULL: the bound, or they matter */
	size_t (*size)(const struct codec_plan *plan,
	    const struct codec_ctx *ctx, size_t n);
	/* appends to out; room for bound() bytes is there, *param is 0 */
	int (*encode)(const struct codec_in *in, struct buf *out,
	    uint8_t *param, struct err *e);
	/* b holds the body; may leave bytes, which the table refuses */
	int (*decode)(const struct codec_out *o, struct bytes *b,
	    struct err *e);
	/* another name for some plans, which format's text follows; may be
	 * NULL */
	const char *(*title)(const struct codec_plan *plan);
	uint8_t max_param;	/* greater: unsupported */
	uint8_t raw;		/* may carry values that are not finite */
};

/* The error of a body that lies. */
int codec_corrupt(const char *codec, const char *what, struct err *e);

/* impl_... of codecs without an argument */
int codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e);

extern const struct codec_impl raw_f32, raw_f16, raw_bf16;
extern const struct codec_impl lossless_planes;
extern const struct codec_impl block_q8, block_q4, block_sign;
extern const struct codec_impl topk_codec;
extern const struct codec_impl topk_threshold, topk_chunk;	/* names only */
extern const struct codec_impl qsgd_codec;
extern const struct codec_impl ecq_codec;
extern const struct codec_impl fixed_i64;
extern const struct codec_impl tern_codec, natural_codec, lowrank_codec;
extern const struct codec_impl eden_codec;

#endif
