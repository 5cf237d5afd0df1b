#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/ref.h"

#if defined(__aarch64__) && defined(__ARM_NEON) && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#include <arm_neon.h>
#include <string.h>

#include "base/bytes.h"

#define WIDE_BYTES 16
#define WIDE_MUL(a, b) (wide_u64)vmull_u32( \
	vmovn_u64((uint64x2_t)(a)), vmovn_u64((uint64x2_t)(b)))
#define WIDE_ODD(a) ((wide_u64)(a) >> 32)
#define WIDE_HIGHS(even, odd) \
	(wide_u32)vtrn2q_u32((uint32x4_t)(even), (uint32x4_t)(odd))
#define WIDE_LOWS(even, odd) \
	(wide_u32)vtrn1q_u32((uint32x4_t)(even), (uint32x4_t)(odd))
#define WIDE_LOW32(a, b) \
	(wide_u32)vzip1q_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define WIDE_HIGH32(a, b) \
	(wide_u32)vzip2q_u32((uint32x4_t)(a), (uint32x4_t)(b))
#define WIDE_LOW64(a, b) \
	(wide_u32)vzip1q_u64((uint64x2_t)(a), (uint64x2_t)(b))
#define WIDE_HIGH64(a, b) \
	(wide_u32)vzip2q_u64((uint64x2_t)(a), (uint64x2_t)(b))
#define WIDE_PUT8(p, v) put8(p, (uint32x4_t)(v))
#define WIDE_PUT16_HALF(p, v) put16_half(p, (uint32x2_t)(v))
#define WIDE_PUT8_HALF(p, v) put8_half(p, (uint32x2_t)(v))
#define WIDE_GET8(p) (wide_u32)get8(p)
#define WIDE_MIN(a, b) (wide_f64)vminq_f64((float64x2_t)(a), (float64x2_t)(b))
#define WIDE_WHOLE(a) (wide_f64)vrndq_f64((float64x2_t)(a))
#define WIDE_WHERE_LESS(a, b, v) (wide_f64)vandq_u64(vcltq_f64( \
	(float64x2_t)(a), (float64x2_t)(b)), (uint64x2_t)(v))
#define WIDE_LESS(v) vmovn_s64((int64x2_t)(v))

/* The low bytes of the lanes. */
static inline void
put8(unsigned char *p, uint32x4_t v)
{
	uint16x4_t t = vmovn_u32(v);
	uint32_t u = vget_lane_u32(vreinterpret_u32_u8(
	    vmovn_u16(vcombine_u16(t, t))), 0);

	memcpy(p, &u, sizeof(u));
}

static inline uint32x4_t
get8(const unsigned char *p)
{
	uint32_t u;

	memcpy(&u, p, sizeof(u));
	return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(u))));
}

static inline void
put16_half(uint16_t *p, uint32x2_t v)
{
	p[0] = (uint16_t)vget_lane_u32(v, 0);
	p[1] = (uint16_t)vget_lane_u32(v, 1);
}

static inline void
put8_half(unsigned char *p, uint32x2_t v)
{
	p[0] = (unsigned char)vget_lane_u32(v, 0);
	p[1] = (unsigned char)vget_lane_u32(v, 1);
}

#include "kern/wide.h"

/* How many of n values fill vectors of w; the rest is left to kern_ref. */
#define WHOLE(n, w) ((n) / (w) * (w))

static uint32x4_t
mag4(float32x4_t x)
{
	return vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x7fffffff));
}

/* All ones where the magnitude m is infinite or NaN. */
static uint32x4_t
wild4(uint32x4_t m)
{
	return vcgeq_u32(m, vdupq_n_u32(0x7f800000));
}

static unsigned
count4(uint32x4_t mask)
{
	return vaddvq_u32(vshrq_n_u32(mask, 31));
}

static float32x4_t
canonical4(float32x4_t y)
{
	return vbslq_f32(vceqq_f32(y, y), y,
	    vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000)));
}

static void
stat(const float *x, size_t n, struct kern_stat *s)
{
	struct kern_lanes l;
	float64x2_t sum[8], sq[8], ab[8], d;
	uint32x4_t max = vdupq_n_u32(0);
	size_t i, j;

	memset(&l, 0, sizeof(l));
	for (j = 0; j < 8; j++)
		sum[j] = sq[j] = ab[j] = vdupq_n_f64(0);
	for (i = 0; i < WHOLE(n, 16); i += 16) {
		float32x4_t v[4];

		for (j = 0; j < 4; j++) {
			uint32x4_t m, w;

			v[j] = vld1q_f32(x + i + 4 * j);
			m = mag4(v[j]);
			w = wild4(m);
			m = vbicq_u32(m, w);
			v[j] = vreinterpretq_f32_u32(vbicq_u32(
			    vreinterpretq_u32_f32(v[j]), w));
			l.nonfinite += count4(w);
			l.nonzero += count4(vtstq_u32(m, m));
			max = vmaxq_u32(max, m);
		}
		for (j = 0; j < 8; j++) {
			d = j % 2 == 0 ? vcvt_f64_f32(vget_low_f32(v[j / 2])) :
			    vcvt_high_f64_f32(v[j / 2]);
			sum[j] = vaddq_f64(sum[j], d);
			sq[j] = vaddq_f64(sq[j], vmulq_f64(d, d));
			ab[j] = vaddq_f64(ab[j], vabsq_f64(d));
		}
	}
	for (j = 0; j < 8; j++) {
		vst1q_f64(l.sum + 2 * j, sum[j]);
		vst1q_f64(l.sumsq + 2 * j, sq[j]);
		vst1q_f64(l.sumabs + 2 * j, ab[j]);
	}
	l.max_bits = vmaxvq_u32(max);
	kern_ref_lanes(x, i, n, &l);
	kern_ref_fold(&l, s);
}

static uint32_t
max_bits(const float *x, size_t n)
{
	uint32x4_t a = vdupq_n_u32(0), b = a;
	uint32_t m, t;
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8) {
		a = vmaxq_u32(a, mag4(vld1q_f32(x + i)));
		b = vmaxq_u32(b, mag4(vld1q_f32(x + i + 4)));
	}
	m = vmaxvq_u32(vmaxq_u32(a, b));
	t = kern_ref_max_bits(x + i, n - i);
	return m > t ? m : t;
}

static size_t
first_nonfinite(const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		if (vmaxvq_u32(mag4(vld1q_f32(x + i))) >= 0x7f800000)
			break;
	return i + kern_ref_first_nonfinite(x + i, n - i);
}

static size_t
at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	const uint32x4_t v = vdupq_n_u32(t);
	size_t i, m = 0;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		if (vmaxvq_u32(vcgeq_u32(mag4(vld1q_f32(x + i)), v)) != 0)
			m += kern_ref_at_least(at + m, x, i, i + 4, t);
	return m + kern_ref_at_least(at + m, x, i, n, t);
}

static void
axpy64(double *acc, double w, const float *x, size_t n)
{
	float64x2_t g = vdupq_n_f64(w);
	float32x4_t v;
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4) {
		v = vld1q_f32(x + i);
		vst1q_f64(acc + i, vaddq_f64(vld1q_f64(acc + i),
		    vmulq_f64(g, vcvt_f64_f32(vget_low_f32(v)))));
		vst1q_f64(acc + i + 2, vaddq_f64(vld1q_f64(acc + i + 2),
		    vmulq_f64(g, vcvt_high_f64_f32(v))));
	}
	kern_ref_axpy64(acc + i, w, x + i, n - i);
}

static void
narrow(float *y, const double *acc, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1q_f32(y + i, canonical4(vcvt_high_f32_f64(
		    vcvt_f32_f64(vld1q_f64(acc + i)), vld1q_f64(acc + i + 2))));
	kern_ref_narrow(y + i, acc + i, n - i);
}

static void
add_scaled(float *y, const float *a, float g, const float *b, size_t n)
{
	float32x4_t k = vdupq_n_f32(g);
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1q_f32(y + i, canonical4(vaddq_f32(vld1q_f32(a + i),
		    vmulq_f32(k, vld1q_f32(b + i)))));
	kern_ref_add_scaled(y + i, a + i, g, b + i, n - i);
}

static void
sub(float *y, const float *a, const float *b, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1q_f32(y + i, canonical4(vsubq_f32(vld1q_f32(a + i),
		    vld1q_f32(b + i))));
	kern_ref_sub(y + i, a + i, b + i, n - i);
}

static void
to_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1_u16(h + i, vreinterpret_u16_f16(
		    vcvt_f16_f32(vld1q_f32(x + i))));
	kern_ref_to_f16(h + i, x + i, n - i);
}

static void
from_f16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1q_f32(x + i, vcvt_f32_f16(
		    vreinterpret_f16_u16(vld1_u16(h + i))));
	kern_ref_from_f16(x + i, h + i, n - i);
}

static void
to_bf16(uint16_t *h, const float *x, size_t n)
{
	uint32x4_t u, top, near, nan;
	float32x4_t v;
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4) {
		v = vld1q_f32(x + i);
		u = vreinterpretq_u32_f32(v);
		top = vshrq_n_u32(u, 16);
		near = vaddq_u32(vandq_u32(top, vdupq_n_u32(1)),
		    vdupq_n_u32(0x7fff));
		near = vshrq_n_u32(vaddq_u32(u, near), 16);
		nan = vorrq_u32(top, vdupq_n_u32(0x40));
		vst1_u16(h + i, vmovn_u32(vbslq_u32(vceqq_f32(v, v), near,
		    nan)));
	}
	kern_ref_to_bf16(h + i, x + i, n - i);
}

static void
from_bf16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		vst1q_f32(x + i, vreinterpretq_f32_u32(
		    vshll_n_u16(vld1_u16(h + i), 16)));
	kern_ref_from_bf16(x + i, h + i, n - i);
}

/* The value of largest magnitude of a block, the negative one of two. */
static float
extreme32(const float32x4_t v[8])
{
	float32x4_t lo = v[0], hi = v[0];
	float a, b;
	int j;

	for (j = 1; j < 8; j++) {
		lo = vminq_f32(lo, v[j]);
		hi = vmaxq_f32(hi, v[j]);
	}
	a = -vminvq_f32(lo);
	b = vmaxvq_f32(hi);
	return a >= b ? -a : b;
}

/* Computes the codes of a block, in order, to c; the scale to *p. */
static void
codes32(int8x16_t c[2], unsigned char *p, const float *x, float codes,
    uint16_t top)
{
	float32x4_t lo = vdupq_n_f32(-codes), hi = vdupq_n_f32(codes - 1);
	float32x4_t v[8], f;
	int16x8_t t[4];
	uint16_t s;
	int j;

	for (j = 0; j < 8; j++)
		v[j] = vld1q_f32(x + 4 * j);
	s = kern_ref_scale(extreme32(v), codes, top);
	bytes_set16(p, s);
	c[0] = c[1] = vdupq_n_s8(0);
	if (s == 0)
		return;
	f = vdupq_n_f32(bytes_f32((uint32_t)s << 16));
	for (j = 0; j < 8; j++)
		v[j] = vminq_f32(vmaxq_f32(vdivq_f32(v[j], f), lo), hi);
	for (j = 0; j < 4; j++)
		t[j] = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(v[2 * j])),
		    vmovn_s32(vcvtnq_s32_f32(v[2 * j + 1])));
	c[0] = vcombine_s8(vmovn_s16(t[0]), vmovn_s16(t[1]));
	c[1] = vcombine_s8(vmovn_s16(t[2]), vmovn_s16(t[3]));
}

static void
q8(unsigned char *p, const float *x, size_t n)
{
	int8x16_t c[2];
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 34) {
		codes32(c, p, x + i, 128, KERN_Q8_TOP);
		vst1q_u8(p + 2, vreinterpretq_u8_s8(c[0]));
		vst1q_u8(p + 18, vreinterpretq_u8_s8(c[1]));
	}
	kern_ref_q8(p, x + i, n - i);
}

/* 16 signed bytes times a scale. */
static void
spread16(float *x, int8x16_t c, float32x4_t s)
{
	int16x8_t a = vmovl_s8(vget_low_s8(c)), b = vmovl_high_s8(c);

	vst1q_f32(x, vmulq_f32(s,
	    vcvtq_f32_s32(vmovl_s16(vget_low_s16(a)))));
	vst1q_f32(x + 4, vmulq_f32(s, vcvtq_f32_s32(vmovl_high_s16(a))));
	vst1q_f32(x + 8, vmulq_f32(s,
	    vcvtq_f32_s32(vmovl_s16(vget_low_s16(b)))));
	vst1q_f32(x + 12, vmulq_f32(s, vcvtq_f32_s32(vmovl_high_s16(b))));
}

static float32x4_t
scale_of(const unsigned char *p)
{
	return vdupq_n_f32(bytes_f32((uint32_t)bytes_le16(p) << 16));
}

static void
unq8(float *x, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 34) {
		spread16(x + i, vreinterpretq_s8_u8(vld1q_u8(p + 2)),
		    scale_of(p));
		spread16(x + i + 16, vreinterpretq_s8_u8(vld1q_u8(p + 18)),
		    scale_of(p));
	}
	kern_ref_unq8(x + i, p, n - i);
}

static void
q4(unsigned char *p, const float *x, size_t n)
{
	uint8x16_t a, b;
	int8x16_t c[2];
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 18) {
		codes32(c, p, x + i, 8, KERN_Q4_TOP);
		a = vreinterpretq_u8_s8(vuzp1q_s8(c[0], c[1]));
		b = vreinterpretq_u8_s8(vuzp2q_s8(c[0], c[1]));
		vst1q_u8(p + 2, vorrq_u8(vandq_u8(a, vdupq_n_u8(15)),
		    vshlq_n_u8(b, 4)));
	}
	kern_ref_q4(p, x + i, n - i);
}

static void
unq4(float *x, const unsigned char *p, size_t n)
{
	int8x16_t lo, hi;
	uint8x16_t c;
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 18) {
		c = vld1q_u8(p + 2);
		/* to the top of the byte and, signed, back */
		lo = vshrq_n_s8(vreinterpretq_s8_u8(vshlq_n_u8(c, 4)), 4);
		hi = vshrq_n_s8(vreinterpretq_s8_u8(c), 4);
		spread16(x + i, vzip1q_s8(lo, hi), scale_of(p));
		spread16(x + i + 16, vzip2q_s8(lo, hi), scale_of(p));
	}
	kern_ref_unq4(x + i, p, n - i);
}

static void
sign(unsigned char *p, const float *x, size_t n)
{
	static const int32_t place[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	double lane[KERN_LANES];
	float64x2_t s[8];
	size_t i, j, h;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		for (j = 0; j < 8; j++)
			s[j] = vdupq_n_f64(0);
		for (j = 0; j < 64; j++) {
			float32x4_t v = vld1q_f32(x + i + 4 * j);
			float32x4_t a = vabsq_f32(v);
			uint32x4_t b = vshlq_u32(
			    vshrq_n_u32(vreinterpretq_u32_f32(v), 31),
			    vld1q_s32(place + j % 2 * 4));
			unsigned char bits = (unsigned char)vaddvq_u32(b);

			p[2 + j / 2] = (unsigned char)(j % 2 == 0 ? bits :
			    p[2 + j / 2] | bits);
			h = j % 4 * 2;
			s[h] = vaddq_f64(s[h], vcvt_f64_f32(vget_low_f32(a)));
			s[h + 1] = vaddq_f64(s[h + 1], vcvt_high_f64_f32(a));
		}
		for (j = 0; j < 8; j++)
			vst1q_f64(lane + 2 * j, s[j]);
		bytes_set16(p, kern_ref_sign_scale(lane, 256));
	}
	kern_ref_sign(p, x + i, n - i);
}

static void
unsign(float *x, const unsigned char *p, size_t n)
{
	static const int32_t place[8] = { 31, 30, 29, 28, 27, 26, 25, 24 };
	uint32x4_t top = vdupq_n_u32(0x80000000), s, b;
	size_t i, j;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		s = vdupq_n_u32((uint32_t)bytes_le16(p) << 16);
		for (j = 0; j < 64; j++) {
			b = vshlq_u32(vdupq_n_u32(p[2 + j / 2]),
			    vld1q_s32(place + j % 2 * 4));
			vst1q_f32(x + i + 4 * j, vreinterpretq_f32_u32(
			    vorrq_u32(s, vandq_u32(top, b))));
		}
	}
	kern_ref_unsign(x + i, p, n - i);
}

static int16x4_t
deadzone4(const float *x, float32x4_t inv, float32x4_t dead, float32x4_t r)
{
	float32x4_t v = vld1q_f32(x), a = vmulq_f32(vabsq_f32(v), inv);
	int32x4_t q = vcvtq_s32_f32(vminq_f32(vaddq_f32(a, r),
	    vdupq_n_f32(KERN_QMAX)));
	uint32x4_t neg = vreinterpretq_u32_s32(vshrq_n_s32(
	    vreinterpretq_s32_f32(v), 31));

	q = vreinterpretq_s32_u32(vbicq_u32(vreinterpretq_u32_s32(q),
	    vcltq_f32(a, dead)));
	return vmovn_s32(vbslq_s32(neg, vnegq_s32(q), q));
}

static void
deadzone(int16_t *q, const float *x, size_t n, float inv, float dead, float r)
{
	float32x4_t vi = vdupq_n_f32(inv), vd = vdupq_n_f32(dead);
	float32x4_t vr = vdupq_n_f32(r);
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		vst1q_s16(q + i, vcombine_s16(deadzone4(x + i, vi, vd, vr),
		    deadzone4(x + i + 4, vi, vd, vr)));
	kern_ref_deadzone(q + i, x + i, n - i, inv, dead, r);
}

/* a + b and a - b inside a vector: what is swapped plus what changed signs,
 * the same sums. */
static float32x4_t
fwht4(float32x4_t v)
{
	static const uint32_t minus[8] = {
		0, 0x80000000, 0, 0x80000000, 0, 0, 0x80000000, 0x80000000
	};
	uint32x4_t s1 = vld1q_u32(minus), s2 = vld1q_u32(minus + 4);

	v = vaddq_f32(vrev64q_f32(v), vreinterpretq_f32_u32(
	    veorq_u32(vreinterpretq_u32_f32(v), s1)));
	return vaddq_f32(vextq_f32(v, v, 2), vreinterpretq_f32_u32(
	    veorq_u32(vreinterpretq_u32_f32(v), s2)));
}

static void
fwht(float *x, size_t n)
{
	float32x4_t a, b;
	size_t h, i, j;

	if (n < 4) {
		kern_ref_fwht(x, n);
		return;
	}
	for (i = 0; i < n; i += 4)
		vst1q_f32(x + i, fwht4(vld1q_f32(x + i)));
	for (h = 4; h < n; h *= 2)
		for (i = 0; i < n; i += 2 * h)
			for (j = i; j < i + h; j += 4) {
				a = vld1q_f32(x + j);
				b = vld1q_f32(x + j + h);
				vst1q_f32(x + j, vaddq_f32(a, b));
				vst1q_f32(x + j + h, vsubq_f32(a, b));
			}
}

const struct kern kern_neon = {
	.name = "neon",
	KERN_OWN_ROWS,
	.flip = kern_ref_flip,
	.nearest = kern_ref_nearest,
	.fwht = fwht,
	WIDE_ROWS,
	.ecq_sort = kern_ecq_sort,
	.ecq_spans = kern_ecq_spans,
	.ecq_put = kern_ecq_put,
	.ecq_get = kern_ecq_get,
	.ecq_marks = kern_ecq_marks,
	.ecq_values = kern_ecq_values,
	.ecq_centers = kern_ecq_centers,
	.ecq_told = kern_ecq_told,
};

#else

const struct kern kern_neon = { .name = NULL };

#endif
