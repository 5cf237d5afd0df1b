/*
 * QSGD with s levels, equation (6) of ACE-Sync:
 *
 *   Q(g)_i = sign(g_i) * ||g||_2 * q_i,   q_i = l/s or (l+1)/s,
 *   l = floor(a), a = s |g_i| / ||g||_2,  P(q_i = (l+1)/s) = a - l
 *
 * (Alistarh et al. 2017, section 3.1), unbiased.  ||g||_2 is the norm of the group.
 * Random numbers: base/rng.h, keyed by seed, step, group and element.
 *
 *   body := f32 norm  codes s + sign * l, packed, each as many bits as 2s has, or (if
 *                     shorter, s < 128) their rANS code, rans.h; no codes if the norm is
 *                     0
 *
 * qsgd:S:mse (ours) writes the norm that has the least error, s <g, l> / <l, l>, not
 * ||g||_2. It is biased, but makes the residual of error feedback smaller for any number
 * of levels.
 *
 * The paper codes the levels with Elias's code for integers. rANS takes fewer bytes,
 * close to the entropy of the levels.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/rng.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rans.h"
#include "kern/kern.h"

enum { NOISE = 1024,	/* random numbers per batch */
	LANES = 8 };
#define MSE 0.5F

/* ---- codes of a fixed width ---- */

/* Return the size in bytes of n codes of w bits. */
static inline size_t
bits_size(size_t n, unsigned w)
{
	return n / 8 * w + (n % 8 * w + 7) / 8;
}

/* Pack eight w-bit codes, one in each byte of v, into 8 w bits by joining neighbours
 * three times. */
static uint64_t
join(uint64_t v, unsigned w)
{
	const uint64_t m8 = 0x00ff00ff00ff00ffu, m16 = 0x0000ffff0000ffffu;
	const uint64_t m32 = 0x00000000ffffffffu;

	v = (v & m8) | (v >> (8 - w) & m8 << w);
	v = (v & m16) | (v >> (16 - 2 * w) & m16 << 2 * w);
	return (v & m32) | (v >> (32 - 4 * w) & m32 << 4 * w);
}

/* Undo join. */
static uint64_t
part(uint64_t v, unsigned w)
{
	const uint64_t m4 = ((uint64_t)1 << 4 * w) - 1;
	const uint64_t m2 = (((uint64_t)1 << 2 * w) - 1) * 0x100000001u;
	const uint64_t m1 = (((uint64_t)1 << w) - 1) * 0x1000100010001u;

	v = (v & m4) | (v >> 4 * w & m4) << 32;
	v = (v & m2) | (v >> 2 * w & m2) << 16;
	return (v & m1) | (v >> w & m1) << 8;
}

/* Pack n codes below 2^w, 1 <= w <= 8. Bits fill bytes from the least significant one;
 * the last byte is padded with 0. */
static void
bits_pack(unsigned char *p, const unsigned char *c, size_t n, unsigned w)
{
	unsigned char last[8] = { 0 }, t[8];
	const unsigned char *end = p + bits_size(n, w);
	size_t i;

	for (i = 0; i + 8 <= n && end - p >= 8; i += 8, p += w)
		bytes_set64(p, join(bytes_le64(c + i), w));
	for (; i + 8 <= n; i += 8, p += w) {
		bytes_set64(t, join(bytes_le64(c + i), w));
		memcpy(p, t, w);
	}
	if (i == n)
		return;
	memcpy(last, c + i, n - i);
	bytes_set64(t, join(bytes_le64(last), w));
	memcpy(p, t, bits_size(n - i, w));
}

/* Undo bits_pack. Return -1 if the padding is not 0. */
static int
bits_unpack(unsigned char *c, const unsigned char *p, size_t n, unsigned w)
{
	unsigned char t[8] = { 0 };
	const unsigned char *end = p + bits_size(n, w);
	uint64_t v;
	size_t i, size;

	for (i = 0; i + 8 <= n && end - p >= 8; i += 8, p += w)
		bytes_set64(c + i, part(bytes_le64(p), w));
	for (; i + 8 <= n; i += 8, p += w) {
		memcpy(t, p, w);
		bytes_set64(c + i, part(bytes_le64(t), w));
	}
	if (i == n)
		return 0;
	size = bits_size(n - i, w);
	memset(t, 0, sizeof(t));
	memcpy(t, p, size);
	v = bytes_le64(t);
	if (v >> (n - i) * w != 0)
		return -1;
	bytes_set64(t, part(v, w));
	memcpy(c + i, t, n - i);
	return 0;
}

/* Both the parameter and the plan's argument are the number of levels; mse adds 0.5 to
 * the argument. */
static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	char t[ARG_WORD];
	const int mse = arg_word(&arg, "mse", t);
	int r = arg_number(arg, 1, 255, &plan->arg, e);

	if (r < 0)
		return r;
	plan->param = (uint8_t)plan->arg;
	if ((float)plan->param != plan->arg)
		return err_set(e, ERR_USAGE, "expected a whole number of levels, 1 to 255");
	plan->arg += mse ? MSE : 0;
	return 0;
}

static void
contract(struct codec_plan *plan)
{
	plan->arg = (float)plan->param + MSE;
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	arg_print((float)plan->param, buf);
	if (plan->arg > (float)plan->param)
		memcpy(buf + strlen(buf), ":mse", 5);
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
	return 4 + bits_size(n, width(plan->param));
}

/* Pack codes of nine bits. */
static void
pack_wide(unsigned char *p, const uint16_t *q, size_t n)
{
	uint32_t acc = 0;
	unsigned have = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		acc |= (uint32_t)q[i] << have;
		for (have += 9; have >= 8; have -= 8, acc >>= 8)
			*p++ = (unsigned char)acc;
	}
	if (have != 0)
		*p = (unsigned char)acc;
}

/* Decode codes of at most eight bits. Return -1 if one is above 2 s. */
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

/* Write codes of at most eight bits; rc has room for their rANS code. Return the length
 * in bytes. */
static size_t
pack_narrow(unsigned char *p, const unsigned char *c, size_t n, unsigned w,
    unsigned char *rc)
{
	uint32_t count[RANS_SYMBOLS];
	size_t len = bits_size(n, w), coded = len;

	rans_count(c, n, count);
	if (rans_estimate(count, n) < len)
		coded = rans_put(rc, c, n, count);
	if (coded < len) {
		memcpy(p, rc, coded);
		return coded;
	}
	bits_pack(p, c, n, w);
	return len;
}

/* Quantise n <= NOISE values to s + l or, for x < 0, s - l, where l is a rounded randomly
 * up or down. a = s cannot be rounded up. */
static void
some_levels(uint16_t *q, const float *x, const uint32_t *noise, size_t n,
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
		q[i] = (uint16_t)(s + ((l ^ neg) - neg));
	}
}

/* Quantise all values into q or, if that is NULL, as bytes into c. */
static void
levels(const struct codec_in *in, uint16_t *q, unsigned char *c, double inv)
{
	const struct codec_ctx *x = in->ctx;
	uint16_t some[NOISE];
	uint32_t noise[NOISE];
	size_t i, j, k;

	for (i = 0; i < in->n; i += k) {
		k = in->n - i < NOISE ? in->n - i : NOISE;
		rng_fill(x->seed, x->step, x->group, (uint32_t)(i / 4), noise,
		    (k + 3) / 4);
		some_levels(some, in->x + i, noise, k, inv, in->plan->param);
		if (q != NULL)
			memcpy(q + i, some, k * sizeof(*q));
		else
			for (j = 0; j < k; j++)
				c[i + j] = (unsigned char)some[j];
	}
}

/* Return the norm with the least error for codes in q or, if q is NULL, in c. */
static float
least(const struct codec_in *in, const uint16_t *q, const unsigned char *c)
{
	const int s = in->plan->param;
	double dot[LANES] = { 0 }, norm[LANES] = { 0 }, l, xl = 0, ll = 0;
	size_t i;

	for (i = 0; i < in->n; i++) {
		l = (double)((q != NULL ? (int)q[i] : (int)c[i]) - s);
		dot[i % LANES] += (double)in->x[i] * l;
		norm[i % LANES] += l * l;
	}
	for (i = 0; i < LANES; i++) {
		xl += dot[i];
		ll += norm[i];
	}
	return ll > 0 && xl > 0 ? (float)fmin(s * (xl / ll), 0x1.fffffep127) : 0;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned s = in->plan->param, w = width(s);
	unsigned char *p = out->p + out->n, *tmp;
	struct kern_stat st;
	double unit = sqrt(codec_seen(in, &st)->sumsq);
	float norm = unit < 0x1.fffffep127 ? (float)unit : 0x1.fffffep127f;
	size_t i, n = in->n;
	uint16_t *q;

	*param = (uint8_t)s;
	bytes_put_f32(p, &norm, 1);
	out->n += 4;
	if (!(norm > 0)) {
		if (in->y != NULL)
			memset(in->y, 0, n * sizeof(*in->y));
		return 0;
	}
	if ((tmp = alloc_raw((w > 8 ? 2 : 1) * n + rans_bound(n), 1, e)) == NULL)
		return -ERR_SYS;
	q = (uint16_t *)(void *)tmp;
	levels(in, w > 8 ? q : NULL, tmp, 1 / (double)norm);
	if (in->plan->arg > (float)s)
		norm = least(in, w > 8 ? q : NULL, tmp);
	bytes_put_f32(p, &norm, 1);
	unit = (double)norm / (double)s;
	if (!(norm > 0)) {		/* all values were rounded to 0 */
		if (in->y != NULL)
			memset(in->y, 0, n * sizeof(*in->y));
	} else if (w > 8) {
		pack_wide(p + 4, q, n);
		out->n += bits_size(n, w);
		for (i = 0; in->y != NULL && i < n; i++)
			in->y[i] = (float)(((double)q[i] - (double)s) * unit);
	} else {
		out->n += pack_narrow(p + 4, tmp, n, w, tmp + n);
		if (in->y != NULL)
			(void)values(in->y, tmp, n, s, unit);
	}
	alloc_free(tmp);
	return 0;
}

static int
unpack_wide(const struct codec_out *o, const unsigned char *p, double unit)
{
	unsigned s = o->param, have = 0, c;
	uint32_t acc = 0;
	size_t i;

	for (i = 0; i < o->n; i++) {
		for (; have < 9; have += 8)
			acc |= (uint32_t)*p++ << have;
		c = acc & 511;
		acc >>= 9;
		have -= 9;
		if (c > 2 * s)
			return -1;
		o->x[i] = (float)(((double)c - (double)s) * unit);
	}
	return acc == 0 ? 0 : -1;
}

/* Decode len bytes of codes of at most eight bits; tmp has room for n bytes. */
static int
unpack_narrow(const struct codec_out *o, const unsigned char *p, size_t len,
    double unit, unsigned char *tmp)
{
	unsigned s = o->param, w = width(s);
	struct bytes b = BYTES(p, len);

	if (len < bits_size(o->n, w) ? rans_get(&b, tmp, o->n) < 0 :
	    bits_unpack(tmp, p, o->n, w) < 0)
		return -1;
	return values(o->x, tmp, o->n, s, unit);
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	unsigned s = o->param, w = width(s);
	uint32_t bits = bytes_next32(b);
	size_t len = b->n - b->at;
	const unsigned char *p;
	unsigned char *tmp;
	double unit;
	int r;

	if (b->bad || bits >= 0x7f800000)
		return codec_corrupt("qsgd", "the norm is incomplete or not finite", e);
	if (bits == 0) {
		memset(o->x, 0, o->n * sizeof(*o->x));
		return 0;
	}
	if (len > bits_size(o->n, w) || (w > 8 && len < bits_size(o->n, w)))
		return codec_corrupt("qsgd", CODEC_LENGTH, e);
	unit = (double)bytes_f32(bits) / (double)s;
	if ((tmp = alloc_raw(o->n, 1, e)) == NULL)
		return -ERR_SYS;
	p = bytes_take(b, len);
	r = w > 8 ? unpack_wide(o, p, unit) : unpack_narrow(o, p, len, unit, tmp);
	alloc_free(tmp);
	return r == 0 ? 0 : codec_corrupt("qsgd", "a code is out of range", e);
}

/* Estimate the bytes of the codes, packed or coded by rANS, whichever is less. */
static int64_t
bytes_of(const struct estimate *m, const struct codec_plan *plan)
{
	double count[256] = { 0 }, f, bytes, s = (double)plan->param;
	double unit = sqrt(m->sumsq) / s;
	double all = (double)bound(plan, (size_t)m->n);
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
	bytes = estimate_coded(m, count, plan->param);
	return (int64_t)(plan->param < 128 && bytes < all ? bytes : all);
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
	.name = "qsgd", .parse = parse, .format = format,
	.contract = contract, .bound = bound,
	.encode = encode, .decode = decode, .min_param = 1, .max_param = 255, .gives_y = 1,
	.estimate = estimated
};
