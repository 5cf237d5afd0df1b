/*
 * Q8, Q4, SIGN: blocks of values that share a bf16 scale; kern.h has the arithmetic.
 *
 * The scale is bf16 because an f16 scale below 6e-8 would be 0, and the whole block with it.
 * Values are divided by the rounded scale, because that is the one that the reader has.
 */
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "kern/kern.h"

enum { QBLOCK = 32, SIGNBLOCK = 256 };	/* values that share a scale */

static size_t
bound_q8(const struct codec_plan *plan, size_t n)
{
	return KERN_Q8_SIZE(n);
}

static size_t
bound_q4(const struct codec_plan *plan, size_t n)
{
	return KERN_Q4_SIZE(n);
}

static size_t
bound_sign(const struct codec_plan *plan, size_t n)
{
	return KERN_SIGN_SIZE(n);
}

static int
encode_q8(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	in->kern->q8(out->p + out->n, in->x, in->n);
	out->n += KERN_Q8_SIZE(in->n);
	return 0;
}

static int
encode_q4(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	in->kern->q4(out->p + out->n, in->x, in->n);
	out->n += KERN_Q4_SIZE(in->n);
	return 0;
}

static int
encode_sign(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	in->kern->sign(out->p + out->n, in->x, in->n);
	out->n += KERN_SIGN_SIZE(in->n);
	return 0;
}

/* Return 1 if the scale of every block has a magnitude of at most top. */
static int
scales_good(const unsigned char *p, size_t len, size_t stride, uint32_t mask,
    uint32_t top)
{
	size_t i;

	for (i = 0; i < len; i += stride)
		if ((bytes_le16(p + i) & mask) > top)
			return 0;
	return 1;
}

static int
decode_q8(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t len = KERN_Q8_SIZE(o->n);
	const unsigned char *p = bytes_take(b, len);

	if (p == NULL)
		return codec_corrupt("q8", "the body is too short", e);
	if (!scales_good(p, len, 34, 0x7fff, KERN_Q8_TOP))
		return codec_corrupt("q8", "a scale is larger than the codec allows", e);
	o->kern->unq8(o->x, p, o->n);
	return 0;
}

static int
decode_q4(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t len = KERN_Q4_SIZE(o->n);
	const unsigned char *p = bytes_take(b, len);

	if (p == NULL)
		return codec_corrupt("q4", "the body is too short", e);
	if (!scales_good(p, len, 18, 0x7fff, KERN_Q4_TOP))
		return codec_corrupt("q4", "a scale is larger than the codec allows", e);
	if (o->n % 2 != 0 && p[len - 1] >> 4 != 0)
		return codec_corrupt("q4", "bits after the last value are not 0", e);
	o->kern->unq4(o->x, p, o->n);
	return 0;
}

static int
decode_sign(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t len = KERN_SIGN_SIZE(o->n);
	const unsigned char *p = bytes_take(b, len);

	if (p == NULL)
		return codec_corrupt("sign", "the body is too short", e);
	if (!scales_good(p, len, 34, 0xffff, KERN_SIGN_TOP))
		return codec_corrupt("sign", "a mean is larger than the codec allows", e);
	if (o->n % 8 != 0 && p[len - 1] >> o->n % 8 != 0)
		return codec_corrupt("sign", "bits after the last value are not 0", e);
	o->kern->unsign(o->x, p, o->n);
	return 0;
}

/* Estimate the error of blocks of 32 values whose step is the block's maximum / levels.
 * It is averaged over that maximum, for which P(max <= x) = F(x)^32. Values below half a
 * step become 0; the others have an error of step^2 / 12. */
static double
blocks(const struct estimate *m, double levels)
{
	double above = 0, p, was = 1, f, step, part, sum = 0, below;
	unsigned i, k, j = 0;

	for (i = 0; i < m->points; i++) {
		above += m->w[i];
		f = above < m->n ? 1 - above / m->n : 0;
		for (p = f, k = 1; k < QBLOCK; k *= 2)
			p *= p;
		part = was - p;			/* probability that the maximum is x[i] */
		was = p;
		step = m->x[i] / levels;
		while (j < m->points && m->x[j] > step / 2)
			j++;
		/* number of values that are at most x[i] */
		below = m->n - (above - m->w[i]);
		if (j > i && below > 0)
			sum += part * m->n / below * (m->energy[j] +
			    (m->count[i] - m->count[j]) * step * step / 12);
	}
	return sum;
}

static void
estimated_q8(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = blocks(m, 127);
}

static void
estimated_q4(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = blocks(m, 8);
}

/* Estimate the error: n times the variance of |x| within a block. */
static void
estimated_sign(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	double mean = m->n > 0 ? m->sumabs / m->n : 0;
	double var = m->n > 0 ? m->sumsq / m->n - mean * mean : 0;

	if (var < 0)
		var = 0;
	*error = m->n * var * (1 - 1.0 / (double)SIGNBLOCK);
}

const struct codec_impl block_q8 = {
	.name = "q8", .parse = codec_no_arg, .bound = bound_q8,
	.encode = encode_q8, .decode = decode_q8, .dense = 1, .fixed = 1,
	.estimate = estimated_q8
};
const struct codec_impl block_q4 = {
	.name = "q4", .parse = codec_no_arg, .bound = bound_q4,
	.encode = encode_q4, .decode = decode_q4, .fixed = 1,
	.estimate = estimated_q4
};
const struct codec_impl block_sign = {
	.name = "sign", .parse = codec_no_arg, .bound = bound_sign,
	.encode = encode_sign, .decode = decode_sign, .fixed = 1,
	.estimate = estimated_sign
};
