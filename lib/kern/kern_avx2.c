#include "kern/fwht.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/ref.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>
#include <string.h>

#include "base/bytes.h"

#define WIDE_BYTES 32
#define WIDE_MUL(a, b) (wide_u64)_mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define WIDE_ODD(a) _mm256_shuffle_epi32((__m256i)(a), 0xf5)
#define WIDE_HIGHS(even, odd) (wide_u32)_mm256_blend_epi32( \
	_mm256_shuffle_epi32((__m256i)(even), 0xf5), (__m256i)(odd), 0xaa)
#define WIDE_LOWS(even, odd) (wide_u32)_mm256_blend_epi32((__m256i)(even), \
	_mm256_shuffle_epi32((__m256i)(odd), 0xa0), 0xaa)
#define WIDE_LOW32(a, b) \
	(wide_u32)_mm256_unpacklo_epi32((__m256i)(a), (__m256i)(b))
#define WIDE_HIGH32(a, b) \
	(wide_u32)_mm256_unpackhi_epi32((__m256i)(a), (__m256i)(b))
#define WIDE_LOW64(a, b) \
	(wide_u32)_mm256_unpacklo_epi64((__m256i)(a), (__m256i)(b))
#define WIDE_HIGH64(a, b) \
	(wide_u32)_mm256_unpackhi_epi64((__m256i)(a), (__m256i)(b))
#define WIDE_PUT8(p, v) put8(p, (__m256i)(v))
#define WIDE_PUT16_HALF(p, v) _mm_storel_epi64((void *)(p), \
	_mm_packus_epi32((__m128i)(v), (__m128i)(v)))
#define WIDE_PUT8_HALF(p, v) put8_half(p, (__m128i)(v))
#define WIDE_GET8(p) (wide_u32)_mm256_cvtepu8_epi32( \
	_mm_loadl_epi64((const void *)(p)))
#define WIDE_MIN(a, b) (wide_f64)_mm256_min_pd((__m256d)(a), (__m256d)(b))
#define WIDE_WHOLE(a) (wide_f64)_mm256_round_pd((__m256d)(a), \
	_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define WIDE_WHERE_LESS(a, b, v) (wide_f64)_mm256_and_pd(_mm256_cmp_pd( \
	(__m256d)(a), (__m256d)(b), _CMP_LT_OQ), (__m256d)(v))
#define WIDE_LESS(v) narrow64((__m256i)(v))

/* The low bytes of the lanes, which are below 256. */
static inline void
put8(unsigned char *p, __m256i v)
{
	__m128i t = _mm_packus_epi32(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));

	_mm_storel_epi64((void *)p, _mm_packus_epi16(t, t));
}

static inline void
put8_half(unsigned char *p, __m128i v)
{
	int32_t u;

	v = _mm_packus_epi32(v, v);
	u = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
	memcpy(p, &u, sizeof(u));
}

/* The low 32 bits of each 64. */
static inline __m128i
narrow64(__m256i v)
{
	return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(v,
	    _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

#include "kern/wide.h"

/* How many of n values fill vectors of w; the rest is left to kern_ref. */
#define WHOLE(n, w) ((n) / (w) * (w))

static __m256i
mag8(__m256 x)
{
	return _mm256_and_si256(_mm256_castps_si256(x),
	    _mm256_set1_epi32(0x7fffffff));
}

/* All ones where the magnitude m is infinite or NaN. */
static __m256i
wild8(__m256i m)
{
	return _mm256_cmpgt_epi32(m, _mm256_set1_epi32(0x7f7fffff));
}

static unsigned
count8(__m256i mask)
{
	return (unsigned)__builtin_popcount(
	    (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

static uint32_t
max8(__m256i v)
{
	uint32_t t[8], max = 0;
	size_t i;

	_mm256_storeu_si256((__m256i *)(void *)t, v);
	for (i = 0; i < 8; i++)
		max = t[i] > max ? t[i] : max;
	return max;
}

static __m256d
low4(__m256 x)
{
	return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}

static __m256d
high4(__m256 x)
{
	return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

static __m256
canonical8(__m256 y)
{
	return _mm256_blendv_ps(y,
	    _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)),
	    _mm256_cmp_ps(y, y, _CMP_UNORD_Q));
}

static void
stat(const float *x, size_t n, struct kern_stat *s)
{
	struct kern_lanes l;
	__m256d sum[4], sq[4], ab[4], d[4];
	__m256i max = _mm256_setzero_si256();
	size_t i, h, j;

	memset(&l, 0, sizeof(l));
	for (j = 0; j < 4; j++)
		sum[j] = sq[j] = ab[j] = _mm256_setzero_pd();
	for (i = 0; i < WHOLE(n, 16); i += 16) {
		for (h = 0; h < 2; h++) {
			__m256 v = _mm256_loadu_ps(x + i + 8 * h);
			__m256i m = mag8(v), w = wild8(m);

			m = _mm256_andnot_si256(w, m);
			v = _mm256_andnot_ps(_mm256_castsi256_ps(w), v);
			l.nonfinite += count8(w);
			l.nonzero += 8 - count8(_mm256_cmpeq_epi32(m,
			    _mm256_setzero_si256()));
			max = _mm256_max_epi32(max, m);
			d[2 * h] = low4(v);
			d[2 * h + 1] = high4(v);
		}
		for (j = 0; j < 4; j++) {
			sum[j] = _mm256_add_pd(sum[j], d[j]);
			sq[j] = _mm256_add_pd(sq[j], _mm256_mul_pd(d[j], d[j]));
			ab[j] = _mm256_add_pd(ab[j], _mm256_andnot_pd(
			    _mm256_set1_pd(-0.0), d[j]));
		}
	}
	for (j = 0; j < 4; j++) {
		_mm256_storeu_pd(l.sum + 4 * j, sum[j]);
		_mm256_storeu_pd(l.sumsq + 4 * j, sq[j]);
		_mm256_storeu_pd(l.sumabs + 4 * j, ab[j]);
	}
	l.max_bits = max8(max);
	kern_ref_lanes(x, i, n, &l);
	kern_ref_fold(&l, s);
}

static uint32_t
max_bits(const float *x, size_t n)
{
	__m256i a = _mm256_setzero_si256(), b = a;
	uint32_t m, t;
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16) {
		a = _mm256_max_epi32(a, mag8(_mm256_loadu_ps(x + i)));
		b = _mm256_max_epi32(b, mag8(_mm256_loadu_ps(x + i + 8)));
	}
	m = max8(_mm256_max_epi32(a, b));
	t = kern_ref_max_bits(x + i, n - i);
	return m > t ? m : t;
}

static size_t
first_nonfinite(const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		if (count8(wild8(mag8(_mm256_loadu_ps(x + i)))) != 0)
			break;
	return i + kern_ref_first_nonfinite(x + i, n - i);
}

static size_t
at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	const __m256i v = _mm256_set1_epi32((int)t);
	size_t i, m = 0;
	unsigned k;
	__m256i a;

	for (i = 0; i < WHOLE(n, 8); i += 8) {
		a = mag8(_mm256_loadu_ps(x + i));
		a = _mm256_cmpeq_epi32(_mm256_max_epu32(a, v), a);
		k = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(a));
		for (; k != 0; k &= k - 1)
			at[m++] = (uint32_t)i + (uint32_t)__builtin_ctz(k);
	}
	return m + kern_ref_at_least(at + m, x, i, n, t);
}

static void
axpy64(double *acc, double w, const float *x, size_t n)
{
	__m256d g = _mm256_set1_pd(w);
	size_t i;

	for (i = 0; i < WHOLE(n, 4); i += 4)
		_mm256_storeu_pd(acc + i, _mm256_add_pd(
		    _mm256_loadu_pd(acc + i), _mm256_mul_pd(g,
		    _mm256_cvtps_pd(_mm_loadu_ps(x + i)))));
	kern_ref_axpy64(acc + i, w, x + i, n - i);
}

static void
narrow(float *y, const double *acc, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm256_storeu_ps(y + i, canonical8(_mm256_set_m128(
		    _mm256_cvtpd_ps(_mm256_loadu_pd(acc + i + 4)),
		    _mm256_cvtpd_ps(_mm256_loadu_pd(acc + i)))));
	kern_ref_narrow(y + i, acc + i, n - i);
}

static void
add_scaled(float *y, const float *a, float g, const float *b, size_t n)
{
	__m256 k = _mm256_set1_ps(g);
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm256_storeu_ps(y + i, canonical8(_mm256_add_ps(
		    _mm256_loadu_ps(a + i),
		    _mm256_mul_ps(k, _mm256_loadu_ps(b + i)))));
	kern_ref_add_scaled(y + i, a + i, g, b + i, n - i);
}

static void
sub(float *y, const float *a, const float *b, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm256_storeu_ps(y + i, canonical8(_mm256_sub_ps(
		    _mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i))));
	kern_ref_sub(y + i, a + i, b + i, n - i);
}

static void
to_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm_storeu_si128((__m128i *)(void *)(h + i), _mm256_cvtps_ph(
		    _mm256_loadu_ps(x + i),
		    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	kern_ref_to_f16(h + i, x + i, n - i);
}

static void
from_f16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm256_storeu_ps(x + i, _mm256_cvtph_ps(
		    _mm_loadu_si128((const __m128i *)(const void *)(h + i))));
	kern_ref_from_f16(x + i, h + i, n - i);
}

/* bf16 in the low half of each of 8. */
static __m256i
bf8(__m256 x)
{
	__m256i u = _mm256_castps_si256(x), top = _mm256_srli_epi32(u, 16);
	__m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
	__m256i even = _mm256_and_si256(top, _mm256_set1_epi32(1));
	__m256i near = _mm256_srli_epi32(_mm256_add_epi32(u,
	    _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff))), 16);

	return _mm256_blendv_epi8(near,
	    _mm256_or_si256(top, _mm256_set1_epi32(0x40)), nan);
}

static void
to_bf16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm256_storeu_si256((__m256i *)(void *)(h + i),
		    _mm256_permute4x64_epi64(_mm256_packus_epi32(
		    bf8(_mm256_loadu_ps(x + i)),
		    bf8(_mm256_loadu_ps(x + i + 8))), 0xd8));
	kern_ref_to_bf16(h + i, x + i, n - i);
}

static void
from_bf16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm256_storeu_ps(x + i, _mm256_castsi256_ps(_mm256_slli_epi32(
		    _mm256_cvtepu16_epi32(_mm_loadu_si128(
		    (const __m128i *)(const void *)(h + i))), 16)));
	kern_ref_from_bf16(x + i, h + i, n - i);
}

/* The value of largest magnitude of a block, the negative one of two. */
static float
extreme32(const __m256 v[4])
{
	__m256 lo = _mm256_min_ps(_mm256_min_ps(v[0], v[1]),
	    _mm256_min_ps(v[2], v[3]));
	__m256 hi = _mm256_max_ps(_mm256_max_ps(v[0], v[1]),
	    _mm256_max_ps(v[2], v[3]));
	/* -lo in the low half, hi in the high half: one maximum for both */
	__m256 neg = _mm256_xor_ps(lo, _mm256_set1_ps(-0.0f));
	__m256 t = _mm256_max_ps(_mm256_permute2f128_ps(neg, hi, 0x20),
	    _mm256_permute2f128_ps(neg, hi, 0x31));
	float a, b;

	t = _mm256_max_ps(t, _mm256_permute_ps(t, 0x4e));
	t = _mm256_max_ps(t, _mm256_permute_ps(t, 0xb1));
	a = _mm256_cvtss_f32(t);
	b = _mm_cvtss_f32(_mm256_extractf128_ps(t, 1));
	return a >= b ? -a : b;
}

/* Computes the codes of a block, in order; the scale to *p. */
static __m256i
codes32(unsigned char *p, const float *x, float codes, uint16_t top)
{
	__m256 lo = _mm256_set1_ps(-codes), hi = _mm256_set1_ps(codes - 1);
	__m256 v[4], f;
	__m256i c[4];
	uint16_t s;
	int j;

	for (j = 0; j < 4; j++)
		v[j] = _mm256_loadu_ps(x + 8 * j);
	s = kern_ref_scale(extreme32(v), codes, top);
	bytes_set16(p, s);
	if (s == 0)
		return _mm256_setzero_si256();
	f = _mm256_set1_ps(bytes_f32((uint32_t)s << 16));
	for (j = 0; j < 4; j++)
		c[j] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(
		    _mm256_div_ps(v[j], f), lo), hi));
	c[0] = _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]),
	    _mm256_packs_epi32(c[2], c[3]));
	return _mm256_permutevar8x32_epi32(c[0],
	    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void
q8(unsigned char *p, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 34)
		_mm256_storeu_si256((__m256i *)(void *)(p + 2),
		    codes32(p, x + i, 128, KERN_Q8_TOP));
	kern_ref_q8(p, x + i, n - i);
}

/* 32 signed bytes times a scale. */
static void
spread32(float *x, __m128i a, __m128i b, const unsigned char *p)
{
	__m256 s = _mm256_set1_ps(bytes_f32((uint32_t)bytes_le16(p) << 16));
	__m128i t[4];
	int j;

	t[0] = a;
	t[1] = _mm_srli_si128(a, 8);
	t[2] = b;
	t[3] = _mm_srli_si128(b, 8);
	for (j = 0; j < 4; j++)
		_mm256_storeu_ps(x + 8 * j, _mm256_mul_ps(s,
		    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(t[j]))));
}

static void
unq8(float *x, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 34)
		spread32(x + i,
		    _mm_loadu_si128((const __m128i *)(const void *)(p + 2)),
		    _mm_loadu_si128((const __m128i *)(const void *)(p + 18)),
		    p);
	kern_ref_unq8(x + i, p, n - i);
}

static void
q4(unsigned char *p, const float *x, size_t n)
{
	__m256i c;
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 18) {
		c = _mm256_and_si256(codes32(p, x + i, 8, KERN_Q4_TOP),
		    _mm256_set1_epi8(15));
		c = _mm256_maddubs_epi16(c, _mm256_set1_epi16(0x1001));
		c = _mm256_packus_epi16(c, c);
		c = _mm256_permute4x64_epi64(c, 0x08);
		_mm_storeu_si128((__m128i *)(void *)(p + 2),
		    _mm256_castsi256_si128(c));
	}
	kern_ref_q4(p, x + i, n - i);
}

static void
unq4(float *x, const unsigned char *p, size_t n)
{
	__m128i c, lo, hi, eight = _mm_set1_epi8(8), m = _mm_set1_epi8(15);
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32, p += 18) {
		c = _mm_loadu_si128((const __m128i *)(const void *)(p + 2));
		lo = _mm_and_si128(c, m);
		hi = _mm_and_si128(_mm_srli_epi16(c, 4), m);
		lo = _mm_sub_epi8(_mm_xor_si128(lo, eight), eight);
		hi = _mm_sub_epi8(_mm_xor_si128(hi, eight), eight);
		spread32(x + i, _mm_unpacklo_epi8(lo, hi),
		    _mm_unpackhi_epi8(lo, hi), p);
	}
	kern_ref_unq4(x + i, p, n - i);
}

static void
sign(unsigned char *p, const float *x, size_t n)
{
	double lane[KERN_LANES];
	__m256d s[4];
	__m256 v, a;
	size_t i, j, h;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		for (j = 0; j < 4; j++)
			s[j] = _mm256_setzero_pd();
		for (j = 0; j < 32; j += 2)
			for (h = 0; h < 2; h++) {
				v = _mm256_loadu_ps(x + i + 8 * (j + h));
				p[2 + j + h] =
				    (unsigned char)_mm256_movemask_ps(v);
				a = _mm256_castsi256_ps(mag8(v));
				s[2 * h] = _mm256_add_pd(s[2 * h], low4(a));
				s[2 * h + 1] = _mm256_add_pd(s[2 * h + 1],
				    high4(a));
			}
		for (j = 0; j < 4; j++)
			_mm256_storeu_pd(lane + 4 * j, s[j]);
		bytes_set16(p, kern_ref_sign_scale(lane, 256));
	}
	kern_ref_sign(p, x + i, n - i);
}

static void
unsign(float *x, const unsigned char *p, size_t n)
{
	__m256i bit = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
	__m256i top = _mm256_set1_epi32((int)0x80000000), s, b;
	size_t i, j;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		s = _mm256_set1_epi32((int)((uint32_t)bytes_le16(p) << 16));
		for (j = 0; j < 32; j++) {
			b = _mm256_and_si256(top, _mm256_sllv_epi32(
			    _mm256_set1_epi32(p[2 + j]), bit));
			_mm256_storeu_ps(x + i + 8 * j,
			    _mm256_castsi256_ps(_mm256_or_si256(s, b)));
		}
	}
	kern_ref_unsign(x + i, p, n - i);
}

/* Eight quantised values as 32-bit numbers. */
static __m256i
deadzone8(const float *x, __m256 inv, __m256 dead, __m256 r)
{
	__m256 v = _mm256_loadu_ps(x);
	__m256 a = _mm256_mul_ps(_mm256_castsi256_ps(mag8(v)), inv);
	__m256i q = _mm256_cvttps_epi32(_mm256_min_ps(_mm256_add_ps(a, r),
	    _mm256_set1_ps(KERN_QMAX)));

	q = _mm256_andnot_si256(_mm256_castps_si256(
	    _mm256_cmp_ps(a, dead, _CMP_LT_OQ)), q);
	/* the sign of x, or of 1 where x is 0 */
	return _mm256_sign_epi32(q, _mm256_or_si256(_mm256_castps_si256(v),
	    _mm256_set1_epi32(1)));
}

static void
deadzone(int16_t *q, const float *x, size_t n, float inv, float dead, float r)
{
	__m256 vi = _mm256_set1_ps(inv), vd = _mm256_set1_ps(dead);
	__m256 vr = _mm256_set1_ps(r);
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm256_storeu_si256((__m256i *)(void *)(q + i),
		    _mm256_permute4x64_epi64(_mm256_packs_epi32(
		    deadzone8(x + i, vi, vd, vr),
		    deadzone8(x + i + 8, vi, vd, vr)), 0xd8));
	kern_ref_deadzone(q + i, x + i, n - i, inv, dead, r);
}

const struct kern kern_avx2 = {
	.name = "avx2",
	KERN_OWN_ROWS,
	.flip = flip_avx2,
	.nearest = nearest_avx2,
	.fwht = fwht_avx2,
	WIDE_ROWS,
	.ecq_sort = kern_avx2_ecq_sort,
	.ecq_spans = kern_avx2_ecq_spans,
	.ecq_put = kern_avx2_ecq_put,
	.ecq_get = kern_avx2_ecq_get,
	.ecq_marks = kern_avx2_ecq_marks,
	.ecq_values = kern_avx2_ecq_values,
	.ecq_centers = kern_avx2_ecq_centers,
	.ecq_told = kern_avx2_ecq_told,
};

#else

const struct kern kern_avx2 = { .name = NULL };

#endif
