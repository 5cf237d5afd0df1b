/*
 * LOSSLESS: the bytes of f32 (parameter 0), or of the nearest bf16 (1), in planes.
 *
 *   body  := planes of 4 or 2 bytes (planes.h), most significant first
 *
 * The sign is moved below the mantissa first, so that the exponent, in which gradients
 * have little entropy (2.6 bits), is a plane by itself.
 */
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/planes.h"
#include "kern/kern.h"

enum { F32 = 0, BF16 = 1 };

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	if (arg == NULL || strcmp(arg, "f32") == 0)
		plan->param = F32;
	else if (strcmp(arg, "bf16") == 0)
		plan->param = BF16;
	else
		return err_set(e, ERR_USAGE, "expected f32 or bf16");
	return 0;
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	if (plan->param == BF16)
		memcpy(buf, ":bf16", 6);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return planes_bound(n, plan->param == BF16 ? 2 : 4);
}

static int
encode_f32(const struct codec_in *in, unsigned char **out, struct err *e)
{
	unsigned char *s = alloc_raw(in->n, 4, e);

	if (s == NULL)
		return -ERR_SYS;
	in->kern->split(s, in->x, in->n);
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	*out = planes_put(*out, s, in->n, 4);
	alloc_free(s);
	return 0;
}

static int
encode_bf16(const struct codec_in *in, unsigned char **out, struct err *e)
{
	size_t n = in->n, i;
	uint16_t *h = alloc_raw(n, 2, e);
	unsigned char *s = h != NULL ? alloc_raw(n, 2, e) : NULL;
	uint32_t u;

	if (s == NULL) {
		alloc_free(h);
		return -ERR_SYS;
	}
	in->kern->to_bf16(h, in->x, n);
	for (i = 0; i < n; i++) {
		u = h[i];
		u -= (u & 0x7fff) == 0x7f80;	/* never infinite, as with BF16 */
		if (in->y != NULL)
			in->y[i] = bytes_f32(u << 16);
		u = u << 1 | u >> 15;
		s[i] = (unsigned char)(u >> 8);
		s[n + i] = (unsigned char)u;
	}
	*out = planes_put(*out, s, n, 2);
	alloc_free(s);
	alloc_free(h);
	return 0;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char *p = out->p + out->n;
	int r;

	*param = in->plan->param;
	r = *param == BF16 ? encode_bf16(in, &p, e) : encode_f32(in, &p, e);
	if (r == 0)
		out->n = (size_t)(p - out->p);
	return r;
}

static void
join_bf16(float *x, const unsigned char *s, size_t n)
{
	size_t i;
	uint32_t u;

	for (i = 0; i < n; i++) {
		u = (uint32_t)s[i] << 8 | s[n + i];
		x[i] = bytes_f32((u >> 1 | (u & 1) << 15) << 16);
	}
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t planes = o->param == BF16 ? 2 : 4;
	unsigned char *s = alloc_raw(o->n, 4, e);
	int r = 0;

	if (s == NULL)
		return -ERR_SYS;
	if (planes_get(b, s, o->n, planes) < 0)
		r = codec_corrupt("lossless", "a byte plane is damaged", e);
	else if (o->param == BF16)
		join_bf16(o->x, s, o->n);
	else
		o->kern->join(o->x, s, o->n);
	alloc_free(s);
	return r;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = 0;
}

const struct codec_impl lossless_planes = {
	.name = "lossless", .parse = parse, .format = format, .bound = bound,
	.encode = encode, .decode = decode, .max_param = BF16,
	.raw = 1, .dense = 1, .gives_y = 1, .estimate = estimated
};
