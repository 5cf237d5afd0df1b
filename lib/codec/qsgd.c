/*
 * QSGD with s levels, equation (6) of ACE-Sync:
 *
 *   Q(g)_i = sign(g_i) * ||g||_2 * q_i,   q_i = l/s or (l+1)/s,
 *   l = floor(a), a = s |g_i| / ||g||_2,  P(q_i = (l+1)/s) = a - l
 *
 * (Alistarh et al. 2017, section 3.1), unbiased.  ||g||_2 is the norm of the group.
 * Random numbers: base/rng.h, keyed by seed, step, group and element.
 *
 *   body := f32 norm  codes s + k_i, k_i = sign(g_i) s q_i, a byte each, or (if shorter)
 *                     their rANS code, rans.h; no codes if the norm is 0
 *
 * With error feedback (codec_contracting) the norm is not ||g||_2 but s <g, k> / <k, k>,
 * which has the least error (ours). The code is then biased, but for any number of levels
 * it makes the residual smaller.
 *
 * The paper codes the levels with Elias's code for integers. rANS takes fewer bytes,
 * close to the entropy of the levels.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rans.h"
#include "kern/kern.h"

enum { NOISE = 1024,	/* random numbers per batch */
	MOST = 127,		/* most levels, so that a code fits a byte */
	LANES = 8 };

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return 4 + n;
}

/* Decode codes into x[n]; unit: the value of code s + 1. Return -1 if one is above 2 s, else 0. */
static int
values(float *x, const unsigned char *code, size_t n, unsigned s, double unit)
{
	float value[RANS_SYMBOLS];
	unsigned c, most = 0;
	size_t i;

	for (c = 0; c < RANS_SYMBOLS; c++)
		value[c] = (float)(((double)c - (double)s) * unit);
	for (i = 0; i < n; i++) {
		most = code[i] > most ? code[i] : most;
		x[i] = value[code[i]];
	}
	return most <= 2 * s ? 0 : -1;
}

/* Quantise n <= NOISE values to s + l or, for x < 0, s - l, where l is s |x| inv, at most s,
 * rounded up or down at random. */
static void
some_levels(unsigned char *q, const float *x, const uint32_t *noise, size_t n,
    double inv, int s)
{
	double a, most = s;
	int32_t l, neg;
	size_t i;

	for (i = 0; i < n; i++) {
		a = fabs((double)x[i]) * inv * most;
		a = a < most ? a : most;
		l = (int32_t)a;
		l += (double)(int32_t)(noise[i] >> 8) * 0x1p-24 < a - (double)l;
		neg = (int32_t)bytes_u32(x[i]) >> 31;
		q[i] = (unsigned char)(s + ((l ^ neg) - neg));
	}
}

static void
levels(const struct codec_in *in, unsigned char *q, double inv)
{
	const struct codec_ctx *x = in->ctx;
	uint32_t noise[NOISE];
	size_t i, k;

	for (i = 0; i < in->n; i += k) {
		k = in->n - i < NOISE ? in->n - i : NOISE;
		rng_fill(x->seed, x->step, x->group, (uint32_t)(i / 4), noise,
		    (k + 3) / 4);
		some_levels(q + i, in->x + i, noise, k, inv, in->plan->param);
	}
}

/* Return the norm at which decoding codes q has the least squared error. */
static float
least(const struct codec_in *in, const unsigned char *q)
{
	const int s = in->plan->param;
	double dot[LANES] = { 0 }, norm[LANES] = { 0 }, l, xl = 0, ll = 0;
	size_t i;

	for (i = 0; i < in->n; i++) {
		l = (double)(q[i] - s);
		dot[i % LANES] += (double)in->x[i] * l;
		norm[i % LANES] += l * l;
	}
	for (i = 0; i < LANES; i++) {
		xl += dot[i];
		ll += norm[i];
	}
	return ll > 0 && xl > 0 ? (float)fmin(s * (xl / ll), 0x1.fffffep127) : 0;
}

/* Write n codes, or their rANS code if that is shorter. rc: room for rans_bound(n) bytes.
 * Return the length in bytes. */
static size_t
put_codes(unsigned char *p, const unsigned char *c, size_t n, unsigned char *rc)
{
	uint32_t count[RANS_SYMBOLS];
	size_t len = n;

	rans_count(c, n, count);
	if (rans_estimate(count, n) < n)
		len = rans_put(rc, c, n, count);
	len = len < n ? len : n;
	memcpy(p, len < n ? rc : c, len);
	return len;
}

/* Write the body of values whose norm is above 0. c: room for n codes and their rANS
 * code. */
static void
encode_codes(const struct codec_in *in, float norm, unsigned char *c, struct buf *out)
{
	unsigned char *p = out->p + out->n;

	levels(in, c, 1 / (double)norm);
	if (in->plan->arg == CODEC_LEAST)
		norm = least(in, c);
	bytes_put_f32(p, &norm, 1);
	out->n += 4;
	if (norm > 0)
		out->n += put_codes(p + 4, c, in->n, c + in->n);
	else				/* all values were rounded to 0 */
		memset(c, in->plan->param, in->n);
	if (in->y != NULL)
		(void)values(in->y, c, in->n, in->plan->param,
		    (double)norm / (double)in->plan->param);
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	struct kern_stat st;
	double root = sqrt(codec_seen(in, &st)->sumsq);
	float norm = root < 0x1.fffffep127 ? (float)root : 0x1.fffffep127f;
	unsigned char *c;

	if (!(norm > 0)) {
		memset(out->p + out->n, 0, 4);
		out->n += 4;
		if (in->y != NULL)
			memset(in->y, 0, in->n * sizeof(*in->y));
		return 0;
	}
	if ((c = alloc_raw(in->n + rans_bound(in->n), 1, e)) == NULL)
		return -ERR_SYS;
	encode_codes(in, norm, c, out);
	alloc_free(c);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const uint32_t bits = bytes_next32(b);
	const double unit = (double)bytes_f32(bits) / (double)o->param;
	const size_t len = b->n - b->at;
	unsigned char *c;
	int r = 0;

	if (b->bad || bits >= 0x7f800000)
		return codec_corrupt("qsgd", "the norm is incomplete or not finite", e);
	if (bits == 0) {
		memset(o->x, 0, o->n * sizeof(*o->x));
		return 0;
	}
	if (len > o->n)
		return codec_corrupt("qsgd", CODEC_LENGTH, e);
	if ((c = alloc_raw(o->n, 1, e)) == NULL)
		return -ERR_SYS;
	if (len == o->n)
		memcpy(c, bytes_take(b, len), len);
	else
		r = rans_get(b, c, o->n);
	if (r < 0 || values(o->x, c, o->n, o->param, unit) < 0)
		r = codec_corrupt("qsgd", "a code is out of range", e);
	alloc_free(c);
	return r;
}

static int64_t
bytes_of(const struct estimate *m, const struct codec_plan *plan)
{
	double count[MOST + 1] = { 0 }, f, s = (double)plan->param;
	double unit = sqrt(m->sumsq) / s;
	unsigned i, l;

	if (!(unit > 0))
		return 4;
	count[0] = m->n;
	for (i = 0; i < m->points; i++) {
		f = m->x[i] / unit;
		l = f < s ? (unsigned)f : plan->param - 1u;
		f = f - l < 1 ? f - l : 1;
		count[l] += m->w[i] * (1 - f);
		count[l + 1] += m->w[i] * f;
		count[0] -= m->w[i];
	}
	return (int64_t)fmin(estimate_coded(m, count, plan->param), 4 + m->n);
}

/* Estimate the error of stochastic rounding to multiples of norm / levels. */
static double
error_of(const struct estimate *m, double levels)
{
	double unit = sqrt(m->sumsq) / levels, sum = 0, f;
	unsigned i;

	for (i = 0; i < m->points && unit > 0; i++) {
		f = m->x[i] / unit;
		f -= floor(f);
		sum += m->w[i] * unit * unit * f * (1 - f);
	}
	return sum;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*bytes = bytes_of(m, plan);
	*error = error_of(m, (double)plan->param);
}

const struct codec_impl qsgd_codec = {
	.name = "qsgd", .parse = codec_param_parse, .format = codec_param_format,
	.unbiased = 1, .bound = bound,
	.encode = encode, .decode = decode, .min_param = 1, .max_param = MOST, .gives_y = 1,
	.estimate = estimated
};
