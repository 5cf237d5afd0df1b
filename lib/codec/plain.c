/*
 * F32, F16: the values one after another.
 *
 * The difference x - code(x) is exact in f32. For |x| up to f16's largest value, 65504, the
 * difference is a multiple of the last place of x and at most half a place of f16. For
 * larger |x| the code is not infinity but f16's largest value, cut to a multiple of
 * x's last place. So the difference is less than 2^24 such places and also exact; the
 * residual keeps it. (F16 codes |x| >= 2^39 as 0 and does not suit such values.)
 */
#include <math.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "kern/kern.h"

enum { CHUNK = 1024 };

#define F16_OVER 0x477ff000u	/* 65520: the smallest value that rounds to infinity */

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return n * (plan->codec == CODEC_F32 ? 4 : 2);
}

static int
encode_f32(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	bytes_put_f32(out->p + out->n, in->x, in->n);
	out->n += in->n * 4;
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	return 0;
}

static int
decode_f32(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const unsigned char *p = bytes_take(b, o->n * 4);

	if (p == NULL)
		return codec_corrupt("f32", "the body is too short", e);
	bytes_get_f32(o->x, p, o->n);
	return 0;
}

/* Return the f16 code for a magnitude that overflows f16: 65504, cut as the file's head says.
 * m: its bits as f32. */
static uint16_t
largest_f16(uint32_t m)
{
	uint32_t top = 65504, ulp;
	int s = (int)(m >> 23) - 150;		/* last place of x: 2^s */
	uint32_t h;

	if (s > 15)
		return 0;
	ulp = s > 0 ? (uint32_t)1 << s : 1;
	top -= top % ulp;
	/* top < 2^16 has at most 11 significant bits */
	for (h = 30; top < 32768 && top != 0; top *= 2)
		h--;
	return top != 0 ? (uint16_t)(h << 10 | (top >> 5 & 0x3ff)) : 0;
}

static void
limit_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;
	uint32_t u;

	for (i = 0; i < n; i++) {
		u = bytes_u32(x[i]);
		if ((u & 0x7fffffff) >= F16_OVER)
			h[i] = (uint16_t)((u >> 16 & 0x8000) |
			    largest_f16(u & 0x7fffffff));
	}
}

static void
put16(struct buf *out, uint16_t *h, size_t n)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	size_t i;

	for (i = 0; i < n; i++)
		h[i] = __builtin_bswap16(h[i]);
#endif
	memcpy(out->p + out->n, h, 2 * n);
	out->n += 2 * n;
}

static void
get16(uint16_t *h, const unsigned char *p, size_t n)
{
	memcpy(h, p, 2 * n);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	while (n-- > 0)
		h[n] = __builtin_bswap16(h[n]);
#endif
}

static int
encode_f16(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	uint16_t h[CHUNK];
	size_t i, m;

	for (i = 0; i < in->n; i += m) {
		m = in->n - i < CHUNK ? in->n - i : CHUNK;
		in->kern->to_f16(h, in->x + i, m);
		if (in->max_bits >= F16_OVER)
			limit_f16(h, in->x + i, m);
		put16(out, h, m);
	}
	return 0;
}

static int
decode_f16(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const unsigned char *p = bytes_take(b, o->n * 2);
	uint16_t h[CHUNK];
	size_t i, m;

	if (p == NULL)
		return codec_corrupt("f16", "the body is too short", e);
	for (i = 0; i < o->n; i += m) {
		m = o->n - i < CHUNK ? o->n - i : CHUNK;
		get16(h, p + 2 * i, m);
		o->kern->from_f16(o->x + i, h, m);
	}
	return 0;
}

/* Estimate the error of rounding to f16, with 10 bits of mantissa and a last place of at
 * least 2^-24. */
static double
rounding(const struct estimate *m)
{
	double sum = 0, ulp;
	unsigned i;
	int exp;

	for (i = 0; i < m->points; i++) {
		(void)frexp(m->x[i], &exp);
		ulp = ldexp(1, exp - 11 > -24 ? exp - 11 : -24);
		sum += m->w[i] * fmin(ulp * ulp / 12, m->x[i] * m->x[i]);
	}
	return sum;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = m->max < 65520 ? rounding(m) : HUGE_VAL;
}

const struct codec_impl plain_f32 = {
	.name = "f32", .parse = codec_no_arg, .bound = bound,
	.encode = encode_f32, .decode = decode_f32, .raw = 1,
	.gives_y = 1, .dense = 1, .fixed = 1
};
const struct codec_impl plain_f16 = {
	.name = "f16", .parse = codec_no_arg, .bound = bound,
	.encode = encode_f16, .decode = decode_f16, .raw = 1,
	.dense = 1, .fixed = 1, .estimate = estimated
};
