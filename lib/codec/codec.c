#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/impl.h"
#include "kern/kern.h"

static const struct codec_impl *const table[CODEC_MAX] = {
	[CODEC_F32] = &raw_f32,
	[CODEC_F16] = &raw_f16,
	[CODEC_BF16] = &raw_bf16,
	[CODEC_LOSSLESS] = &lossless_planes,
	[CODEC_Q8] = &block_q8,
	[CODEC_Q4] = &block_q4,
	[CODEC_SIGN] = &block_sign,
	[CODEC_TOPK] = &topk_codec,
	[CODEC_QSGD] = &qsgd_codec,
	[CODEC_ECQ] = &ecq_codec,
	[CODEC_TERN] = &tern_codec,
	[CODEC_LOWRANK] = &lowrank_codec,
	[CODEC_I64] = &fixed_i64,
	[CODEC_NATURAL] = &natural_codec,
	[CODEC_EDEN] = &eden_codec,
};

/* Other names: parse says what they mean. */
static const struct {
	const struct codec_impl *impl;
	uint8_t codec;
} alias[] = {
	{ &topk_threshold, CODEC_TOPK },
	{ &topk_chunk, CODEC_TOPK },
};
enum { ALIASES = sizeof(alias) / sizeof(alias[0]) };

static const struct codec_impl *
find(uint8_t codec)
{
	return codec < CODEC_MAX ? table[codec] : NULL;
}

int
codec_corrupt(const char *codec, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "corrupt: %s in a group coded %s", what,
	    codec);
}

int
codec_no_arg(const char *arg, struct codec_plan *plan, struct err *e)
{
	(void)plan;
	if (arg != NULL)
		return err_set(e, ERR_USAGE, "takes no argument");
	return 0;
}

const char *
codec_name(uint8_t codec)
{
	const struct codec_impl *c = find(codec);

	if (codec == CODEC_NONE)
		return "none";
	return c != NULL ? c->name : NULL;
}

/* The codec whose name is the first len bytes of s; its number. */
static const struct codec_impl *
named(const char *s, size_t len, uint8_t *codec)
{
	const struct codec_impl *c;
	unsigned i;

	for (i = 0; i < CODEC_MAX + ALIASES; i++) {
		c = i < CODEC_MAX ? table[i] : alias[i - CODEC_MAX].impl;
		*codec = i < CODEC_MAX ? (uint8_t)i :
		    alias[i - CODEC_MAX].codec;
		if (c != NULL && strlen(c->name) == len &&
		    memcmp(c->name, s, len) == 0)
			return c;
	}
	return NULL;
}

int
codec_parse(const char *s, struct codec_plan *plan, struct err *e)
{
	const char *colon = strchr(s, ':');
	size_t len = colon != NULL ? (size_t)(colon - s) : strlen(s);
	const struct codec_impl *c;

	memset(plan, 0, sizeof(*plan));
	if (strcmp(s, "none") == 0) {
		plan->codec = CODEC_NONE;
		return 0;
	}
	c = named(s, len, &plan->codec);
	if (c == NULL)
		return err_set(e, ERR_USAGE, "codec '%s': no such codec", s);
	if (c->parse(colon != NULL ? colon + 1 : NULL, plan, e) < 0)
		return err_before(e, -ERR_USAGE, "codec '%s': ", s);
	return 0;
}

const char *
codec_format(const struct codec_plan *plan, char buf[32])
{
	const struct codec_impl *c = find(plan->codec);
	const char *name = codec_name(plan->codec);
	char arg[24] = "";

	if (name == NULL) {
		(void)snprintf(buf, 32, "codec-%u", plan->codec);
		return buf;
	}
	if (c != NULL && c->title != NULL)
		name = c->title(plan);
	if (c != NULL && c->format != NULL)
		c->format(plan, arg);
	(void)snprintf(buf, 32, "%.9s%.22s", name, arg);
	return buf;
}

int
codec_sparse(const struct codec_plan *plan)
{
	return plan->codec == CODEC_TOPK || plan->codec == CODEC_ECQ ||
	    (plan->codec == CODEC_EDEN && plan->arg < 1);
}

size_t
codec_bound(const struct codec_plan *plan, size_t n)
{
	const struct codec_impl *c = find(plan->codec);

	return c != NULL ? c->bound(plan, n) : 0;
}

size_t
codec_size(const struct codec_plan *plan, const struct codec_ctx *ctx, size_t n)
{
	const struct codec_impl *c = find(plan->codec);

	if (c == NULL || n == 0)
		return 0;
	return c->size != NULL ? c->size(plan, ctx, n) : c->bound(plan, n);
}

int
codec_encode(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const float *x, size_t n, struct buf *out, uint8_t *param, struct err *e)
{
	return codec_encode_after(plan, ctx, NULL, x, n, out, param, e);
}

int
codec_encode_after(const struct codec_plan *plan, const struct codec_ctx *ctx,
    const struct codec_last *last, const float *x, size_t n, struct buf *out,
    uint8_t *param, struct err *e)
{
	const struct codec_impl *c = find(plan->codec);
	struct codec_in in = { plan, ctx, kern_get(e), x, n, 0, last };
	size_t start = out->n;
	int r;

	if (in.kern == NULL)
		return -ERR_USAGE;
	if (c == NULL)
		return err_set(e, ERR_USAGE, "no codec %u", plan->codec);
	in.max_bits = in.kern->max_bits(x, n);
	if (in.max_bits >= 0x7f800000)
		return err_set(e, ERR_DATA,
		    "corrupt: value %zu of a group is not finite",
		    in.kern->first_nonfinite(x, n));
	*param = 0;
	if (n == 0)
		return 0;			/* nothing is an empty body */
	if ((r = buf_room(out, c->bound(plan, n), e)) < 0)
		return r;
	r = c->encode(&in, out, param, e);
	if (r < 0)
		out->n = start;
	return r;
}

int
codec_decode(uint8_t codec, uint8_t param, const struct codec_ctx *ctx,
    const unsigned char *body, size_t len, float *x, size_t n, struct err *e)
{
	const struct codec_impl *c = find(codec);
	struct codec_out o = { param, ctx, kern_get(e), x, n };
	struct bytes b = BYTES(body, len);
	int r;

	if (o.kern == NULL)
		return -ERR_USAGE;
	if (c == NULL)
		return err_set(e, ERR_DATA, "unsupported: codec %u", codec);
	if (param > c->max_param)
		return err_set(e, ERR_DATA,
		    "unsupported: parameter %u of codec %s", param, c->name);
	if (n == 0)
		return len == 0 ? 0 : codec_corrupt(c->name, "body too long", e);
	if ((r = c->decode(&o, &b, e)) < 0)
		return r;
	if (b.bad || b.at != b.n)
		return codec_corrupt(c->name, "body too long", e);
	if (!c->raw && o.kern->max_bits(x, n) >= 0x7f800000)
		return codec_corrupt(c->name, "value not finite", e);
	return 0;
}
