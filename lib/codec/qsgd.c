/*
 * QSGD with s levels, equation (6) of ACE-Sync:
 *
 *   Q(g)_i = sign(g_i) * ||g||_2 * q_i,   q_i = l/s or (l+1)/s,
 *   l = floor(a), a = s |g_i| / ||g||_2,  P(q_i = (l+1)/s) = a - l
 *
 * (Alistarh et al. 2017, section 3.1), unbiased.  ||g||_2 is the group's norm.
 * The noise is base/rng.h's, keyed by seed, step, group and element.
 *
 *   body := f32 norm  ( packed codes s + sign * l, each as wide as 2s )  the
 *   codes only when the norm is not 0
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/impl.h"
#include "kern/kern.h"

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	int r = arg_number(arg, 1, 255, &plan->arg, e);

	if (r < 0)
		return r;
	plan->param = (uint8_t)plan->arg;
	if ((float)plan->param != plan->arg)
		return err_set(e, ERR_USAGE, "levels are a whole number");
	return 0;
}

static void
format(const struct codec_plan *plan, char buf[24])
{
	arg_print((float)plan->param, buf);
}

static unsigned
width(unsigned s)
{
	unsigned w = 1;

	while (2 * s >> w != 0)
		w++;
	return w;
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	unsigned w = width(plan->param);

	return 4 + n / 8 * w + (n % 8 * w + 7) / 8;
}

static float
norm_of(const struct codec_in *in)
{
	struct kern_stat s;
	double norm;

	in->kern->stat(in->x, in->n, &s);
	norm = sqrt(s.sumsq);
	return norm < 0x1.fffffep127 ? (float)norm : 0x1.fffffep127f;
}

static unsigned
code(float x, double inv, unsigned s, uint32_t noise)
{
	double a = fabs((double)x) * inv * (double)s, l = floor(a);

	l += (double)rng_unit(noise) < a - l;
	if (l > (double)s)
		l = (double)s;
	return x < 0 ? s - (unsigned)l : s + (unsigned)l;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned s = in->plan->param, w = width(s), have = 0;
	const struct codec_ctx *c = in->ctx;
	unsigned char *p = out->p + out->n;
	float norm = norm_of(in);
	double inv = 1 / (double)norm;
	uint32_t noise[4], acc = 0;
	size_t i;

	if (s == 0)
		return err_set(e, ERR_USAGE, "codec qsgd: 0 levels");
	*param = (uint8_t)s;
	bytes_put_f32(p, &norm, 1);
	p += 4;
	for (i = 0; norm > 0 && i < in->n; i++) {
		if (i % 4 == 0)
			rng_block(c->seed, c->step, c->group,
			    (uint32_t)(i / 4), noise);
		acc |= code(in->x[i], inv, s, noise[i % 4]) << have;
		for (have += w; have >= 8; have -= 8, acc >>= 8)
			*p++ = (unsigned char)acc;
	}
	if (have != 0)
		*p++ = (unsigned char)acc;
	out->n = (size_t)(p - out->p);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	unsigned s = o->param, w = width(s), have = 0, c;
	uint32_t bits = bytes_next32(b), acc = 0;
	const unsigned char *p;
	double unit;
	size_t i;

	if (s == 0)
		return err_set(e, ERR_DATA, "unsupported: qsgd with 0 levels");
	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->bad || bits >= 0x7f800000)
		return codec_corrupt("qsgd", "bad norm", e);
	if (bits == 0)
		return 0;
	p = bytes_take(b, o->n / 8 * w + (o->n % 8 * w + 7) / 8);
	if (p == NULL)
		return codec_corrupt("qsgd", "body too short", e);
	unit = (double)bytes_f32(bits) / (double)s;
	for (i = 0; i < o->n; i++) {
		for (; have < w; have += 8)
			acc |= (uint32_t)*p++ << have;
		c = acc & ((1u << w) - 1);
		acc >>= w;
		have -= w;
		if (c > 2 * s)
			return codec_corrupt("qsgd", "level too large", e);
		o->x[i] = (float)(((double)c - (double)s) * unit);
	}
	return acc == 0 ? 0 : codec_corrupt("qsgd", "padding not zero", e);
}

const struct codec_impl qsgd_codec = {
	.name = "qsgd", .parse = parse, .format = format, .bound = bound,
	.encode = encode, .decode = decode, .max_param = 255
};
