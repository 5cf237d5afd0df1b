/*
 * Q8, SIGN: blocks of values that share a bf16 scale; kern.h has the arithmetic.
 *
 * The scale is bf16 because f16 would round scales up to 3e-8 to 0, and the whole block with
 * them. Values are divided by the rounded scale, because the reader has only that one.
 */
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "kern/kern.h"

enum { QBLOCK = 32, SIGNBLOCK = 256 };	/* values that share a scale */

static size_t
size_of(uint32_t codec, size_t n)
{
	return codec == CODEC_Q8 ? KERN_Q8_SIZE(n) : KERN_SIGN_SIZE(n);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return size_of(plan->codec, n);
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	const uint32_t codec = in->plan->codec;
	const struct kern *k = in->kern;

	(codec == CODEC_Q8 ? k->q8 : k->sign)(out->p + out->n, in->x, in->n);
	out->n += size_of(codec, in->n);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const int q8 = o->codec == CODEC_Q8;
	const size_t len = size_of(o->codec, o->n), block = 34;	/* bytes of a full block */
	const uint32_t mask = q8 ? 0x7fff : 0xffff;
	const uint32_t top = q8 ? KERN_Q8_TOP : KERN_SIGN_TOP;
	const unsigned last = q8 ? 0 : o->n % 8;
	const char *name = codec_name(o->codec);
	const unsigned char *p = bytes_take(b, len);
	size_t i;

	if (p == NULL)
		return codec_corrupt(name, "the body is too short", e);
	for (i = 0; i < len; i += block)
		if ((bytes_le16(p + i) & mask) > top)
			return codec_corrupt(name, q8 ? "a scale is larger than "
			    "the codec allows" : "a mean is larger than the codec "
			    "allows", e);
	if (last != 0 && p[len - 1] >> last != 0)
		return codec_corrupt(name, "bits after the last value are not 0", e);
	(q8 ? o->kern->unq8 : o->kern->unsign)(o->x, p, o->n);
	return 0;
}

/* Estimate the error of blocks of 32 values, with the step approximated as the block's
 * maximum / 127. Average it over the maximum's distribution, P(max <= x) = F(x)^32.
 * Values below half a step become 0; the others have an error of step^2 / 12. */
static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
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
		step = m->x[i] / 127;
		while (j < m->points && m->x[j] > step / 2)
			j++;
		/* number of values that are at most x[i] */
		below = m->n - (above - m->w[i]);
		if (j > i && below > 0)
			sum += part * m->n / below * (m->energy[j] +
			    (m->count[i] - m->count[j]) * step * step / 12);
	}
	*error = sum;
}

/* Estimate the error: n times the expected variance of |x| within a block. */
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
	.name = "q8", .parse = codec_no_arg, .bound = bound,
	.encode = encode, .decode = decode, .dense = 1, .fixed = 1,
	.estimate = estimated
};
const struct codec_impl block_sign = {
	.name = "sign", .parse = codec_no_arg, .bound = bound,
	.encode = encode, .decode = decode, .fixed = 1,
	.estimate = estimated_sign
};
