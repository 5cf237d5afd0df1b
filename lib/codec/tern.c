/*
 * TERN: -s, 0 or s, in blocks of 320 values with their own s.
 *
 *   unbiased   P(x' = sign(x) s) = |x| / s, else 0; s = max |x|
 *              (TernGrad, Wen et al. 2017, equation 3)
 *   with error feedback (codec_contracting)
 *              x' = sign(x) s if |x| > s / 2, s the mean of those |x|:
 *              the least error (Lloyd's iteration, 12 steps from 1.224 rms,
 *              the optimum for Gaussian values)
 *
 *   body := nothing                     all values are 0
 *         | per block: bf16 s  bytes of 5 values, t0 + 3 t1 + ... + 81 t4
 *
 * t = 0, 1, 2 stands for 0, s, -s; the last byte is padded with 0.  Random numbers:
 * base/rng.h, keyed by seed, step, group and element.  A scale per block is ours: TernGrad
 * has one per layer.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/levels.h"
#include "kern/kern.h"

enum { BLOCK = 320, FIVE = 5, STEPS = 12, TOP = 0x7f7f, BYTES = 243,
	LANES = 8 };
/* The plan's argument for the least error; a plan in a stream cannot have it. */
#define MSE INFINITY

static void
contract(struct codec_plan *plan)
{
	plan->arg = MSE;
}

static size_t
size_of(size_t n)
{
	return n / BLOCK * (2 + BLOCK / FIVE) + (n % BLOCK == 0 ? 0 :
	    2 + (n % BLOCK + FIVE - 1) / FIVE);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return size_of(n);
}

/* Return the least bf16 value that is not below v, but at most TOP. */
static uint16_t
bf16_up(float v)
{
	const uint32_t u = (bytes_u32(v) + 0xffff) >> 16;

	return (uint16_t)(u < TOP ? u : TOP);
}

/* Return the mean of the a[i] above t, or 0 if there are none. a[i] is added in lane i %
 * 8. */
static double
mean_above(const float a[BLOCK], float t)
{
	float v, sum[LANES] = { 0 };
	double all = 0;
	int m[LANES] = { 0 }, count = 0;
	size_t i, l;

	for (i = 0; i < BLOCK; i += LANES)
		for (l = 0; l < LANES; l++) {
			v = a[i + l] > t ? a[i + l] : 0;
			m[l] += a[i + l] > t;
			sum[l] += v;
		}
	for (l = 0; l < LANES; l++) {
		all += (double)sum[l];
		count += m[l];
	}
	return count != 0 ? all / count : 0;
}

/* Return about the s with the least error for these values, divided by their rms. */
static double
lloyd(const float *x, size_t n, double rms)
{
	float a[BLOCK] = { 0 };
	double s = 1.224, last = 0;
	size_t i;
	int k;

	if (!(rms > 0))
		return 0;
	for (i = 0; i < n; i++)
		a[i] = (float)(fabs((double)x[i]) / rms);
	for (k = 0; k < STEPS && s != last && s > 0; k++) {
		last = s;
		s = mean_above(a, (float)(s / 2));
	}
	return s;
}

static uint16_t
scale(const struct codec_in *in, const float *x, size_t n)
{
	struct kern_stat st;
	double rms;

	in->kern->stat(x, n, &st);
	rms = sqrt(st.sumsq / (double)n);
	return in->plan->arg == MSE ? levels_bf16(lloyd(x, n, rms) * rms) :
	    bf16_up(st.max_abs);
}

/* Set t[i] to the digit of value `at' + i, for n values. */
static void
digits(const struct codec_in *in, size_t at, size_t n, float s, unsigned char *t)
{
	const struct codec_ctx *c = in->ctx;
	const float *x = in->x + at;
	double half = (double)s / 2, r, less[BLOCK];
	uint32_t noise[BLOCK], some, neg;
	uint64_t u[BLOCK];
	size_t i;

	if (in->plan->arg == MSE)
		for (i = 0; i < n; i++)
			less[i] = half - fabs((double)x[i]);
	else {
		rng_fill(c->seed, c->step, c->group, (uint32_t)(at / 4), noise,
		    (n + 3) / 4);
		for (i = 0; i < n; i++) {
			/* exact conversion of uint32 to double through a signed
			 * integer */
			r = (double)(int32_t)(noise[i] ^ 0x80000000u) + 0x1p31;
			less[i] = r * (double)s - fabs((double)x[i]) * 0x1p32;
		}
	}
	memcpy(u, less, n * sizeof(*u));
	for (i = 0; i < n; i++) {
		some = (uint32_t)(u[i] >> 63);		/* 1 if less[i] < 0 */
		neg = bytes_u32(x[i]) >> 31;
		t[i] = (unsigned char)(some + (some & neg));
	}
}

static void
values(float *y, const unsigned char *t, size_t n, uint32_t h)
{
	const float v = bytes_f32(h << 16), value[3] = { 0, v, -v };
	size_t i;

	for (i = 0; i < n; i++)
		y[i] = value[t[i]];
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char t[BLOCK], *p = out->p + out->n;
	size_t at, i, n;
	uint16_t h;

	if (in->max_bits == 0) {
		if (in->y != NULL)
			memset(in->y, 0, in->n * sizeof(*in->y));
		return 0;
	}
	for (at = 0; at < in->n; at += n) {
		n = in->n - at < BLOCK ? in->n - at : BLOCK;
		h = scale(in, in->x + at, n);
		memset(t, 0, sizeof(t));
		digits(in, at, n, bytes_f32((uint32_t)h << 16), t);
		bytes_set16(p, h);
		if (in->y != NULL)
			values(in->y + at, t, n, h);
		for (p += 2, i = 0; i < n; i += FIVE)
			*p++ = (unsigned char)(t[i] + 3 * t[i + 1] +
			    9 * t[i + 2] + 27 * t[i + 3] + 81 * t[i + 4]);
	}
	out->n = (size_t)(p - out->p);
	return 0;
}

static int
decode_block(float *x, const unsigned char *p, size_t n)
{
	uint32_t h = bytes_le16(p), v = 0;
	float value[3] = { 0, 0, 0 };
	size_t i, j;

	if (h > TOP)
		return -1;
	value[1] = bytes_f32(h << 16);
	value[2] = -value[1];
	for (p += 2, i = 0; i < n; i += FIVE) {
		v = *p++;
		if (v >= BYTES)
			return -1;
		for (j = i; j < i + FIVE && j < n; j++, v /= 3)
			x[j] = value[v % 3];
	}
	return v == 0 ? 0 : -1;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const unsigned char *p;
	size_t at, n;

	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->n == 0)
		return 0;
	p = bytes_take(b, size_of(o->n));
	if (p == NULL)
		return codec_corrupt("tern", "the body is too short", e);
	for (at = 0; at < o->n; at += n, p += size_of(n)) {
		n = o->n - at < BLOCK ? o->n - at : BLOCK;
		if (decode_block(o->x + at, p, n) < 0)
			return codec_corrupt("tern", "a scale or byte is out of range", e);
	}
	return 0;
}

/* Estimate the error per value, coded as the nearest of -s, 0 and s. Its block's largest
 * value is x[i], and the others are drawn from points i and later; sum[j]: sum of the
 * magnitudes of points j and later. */
static double
nearest(const struct estimate *m, const double *sum, unsigned i)
{
	double rest = m->count[i] + m->n - m->nonzero;
	double few = rest > 0 ? (BLOCK - 1) / rest : 0, all, n, up, s, last;
	unsigned j = i;
	int k;

	all = m->x[i] * m->x[i] + few * m->energy[i];
	s = 1.224 * sqrt(all / (double)BLOCK);
	n = up = 0;
	for (k = 0, last = 0; k < STEPS && s != last; k++) {
		last = s;
		for (j = i; j < m->points && m->x[j] > s / 2; j++)
			;
		n = 1 + few * (m->count[i] - m->count[j]);
		up = m->x[i] + few * (sum[i] - sum[j]);
		s = up / n;
	}
	return (all - 2 * s * up + n * s * s) / (double)BLOCK;
}

/* Estimate the error per value, coded as s with probability min(|x| / s, 1). */
static double
drawn(const struct estimate *m, const double *sum, unsigned i)
{
	double rest = m->count[i] + m->n - m->nonzero;
	double few = rest > 0 ? (BLOCK - 1) / rest : 0, s = m->x[i], error;

	/* each value has the error x (s - x) */
	error = s * sum[i] - m->energy[i];
	return few * error / (double)BLOCK;
}

/* Average the error over the distribution of a block's maximum, P(max <= x) =
 * F(x)^320. */
static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	double above = 0, was = 1, f, p, all = 0;
	const int mse = plan->arg == MSE;
	double sum[ESTIMATE_POINTS + 1];
	unsigned i;

	sum[m->points] = 0;
	for (i = m->points; i-- > 0;)
		sum[i] = sum[i + 1] + m->w[i] * m->x[i];
	for (i = 0; i < m->points; i++) {
		above += m->w[i];
		f = above < m->n ? 1 - above / m->n : 0;
		p = f * f * f * f * f;			/* 320 = 5 * 64 */
		p *= p, p *= p, p *= p, p *= p, p *= p, p *= p;
		all += (was - p) * (mse ? nearest(m, sum, i) : drawn(m, sum, i));
		was = p;
	}
	*error = fmin(all * m->n, mse ? m->sumsq : HUGE_VAL);
}

const struct codec_impl tern_codec = {
	.name = "tern", .parse = codec_no_arg, .contract = contract, .bound = bound,
	.encode = encode, .decode = decode, .gives_y = 1, .fixed = 1, .estimate = estimated
};
