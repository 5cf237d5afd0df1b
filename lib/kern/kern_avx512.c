#include "kern/fwht.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/ref.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && \
    defined(__AVX512VL__) && defined(__AVX512DQ__)

#include <immintrin.h>
#include <string.h>

#include "base/bytes.h"

#define WIDE_BYTES 64
#define WIDE_MUL(a, b) (wide_u64)_mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#define WIDE_ODD(a) _mm512_shuffle_epi32((__m512i)(a), (_MM_PERM_ENUM)0xf5)
#define WIDE_HIGHS(even, odd) (wide_u32)_mm512_mask_shuffle_epi32( \
	(__m512i)(odd), 0x5555, (__m512i)(even), (_MM_PERM_ENUM)0xf5)
#define WIDE_LOWS(even, odd) (wide_u32)_mm512_mask_shuffle_epi32( \
	(__m512i)(even), 0xaaaa, (__m512i)(odd), (_MM_PERM_ENUM)0xa0)
#define WIDE_LOW32(a, b) \
	(wide_u32)_mm512_unpacklo_epi32((__m512i)(a), (__m512i)(b))
#define WIDE_HIGH32(a, b) \
	(wide_u32)_mm512_unpackhi_epi32((__m512i)(a), (__m512i)(b))
#define WIDE_LOW64(a, b) \
	(wide_u32)_mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b))
#define WIDE_HIGH64(a, b) \
	(wide_u32)_mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b))
#define WIDE_PUT8(p, v) _mm_storeu_si128((void *)(p), \
	_mm512_cvtepi32_epi8((__m512i)(v)))
#define WIDE_PUT16_HALF(p, v) _mm_storeu_si128((void *)(p), \
	_mm256_cvtepi32_epi16((__m256i)(v)))
#define WIDE_PUT8_HALF(p, v) _mm_storel_epi64((void *)(p), \
	_mm256_cvtepi32_epi8((__m256i)(v)))
#define WIDE_GET8(p) (wide_u32)_mm512_cvtepu8_epi32( \
	_mm_loadu_si128((const void *)(p)))
#define WIDE_MIN(a, b) (wide_f64)_mm512_min_pd((__m512d)(a), (__m512d)(b))
#define WIDE_WHOLE(a) (wide_f64)_mm512_roundscale_pd((__m512d)(a), \
	_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define WIDE_WHERE_LESS(a, b, v) (wide_f64)_mm512_maskz_mov_pd( \
	_mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_LT_OQ), \
	(__m512d)(v))
#define WIDE_LESS(v) _mm512_cvtepi64_epi32((__m512i)(v))
#include "kern/wide.h"

/* How many of n values fill vectors of w; the rest is left to kern_ref. */
#define WHOLE(n, w) ((n) / (w) * (w))

static __m512i
mag16(__m512 x)
{
	return _mm512_and_si512(_mm512_castps_si512(x),
	    _mm512_set1_epi32(0x7fffffff));
}

static __mmask16
wild16(__m512i m)
{
	return _mm512_cmpgt_epi32_mask(m, _mm512_set1_epi32(0x7f7fffff));
}

static __m512d
low8(__m512 x)
{
	return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}

static __m512d
high8(__m512 x)
{
	return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

static __m512
canonical16(__m512 y)
{
	return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), y,
	    _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

static void
stat(const float *x, size_t n, struct kern_stat *s)
{
	struct kern_lanes l;
	__m512d sum[2], sq[2], ab[2], d[2];
	__m512i max = _mm512_setzero_si512();
	size_t i, j;

	memset(&l, 0, sizeof(l));
	for (j = 0; j < 2; j++)
		sum[j] = sq[j] = ab[j] = _mm512_setzero_pd();
	for (i = 0; i < WHOLE(n, 16); i += 16) {
		__m512 v = _mm512_loadu_ps(x + i);
		__m512i m = mag16(v);
		__mmask16 w = wild16(m);

		m = _mm512_mask_mov_epi32(m, w, _mm512_setzero_si512());
		v = _mm512_mask_mov_ps(v, w, _mm512_setzero_ps());
		l.nonfinite += (unsigned)__builtin_popcount(w);
		l.nonzero += (unsigned)__builtin_popcount(
		    _mm512_test_epi32_mask(m, m));
		max = _mm512_max_epi32(max, m);
		d[0] = low8(v);
		d[1] = high8(v);
		for (j = 0; j < 2; j++) {
			sum[j] = _mm512_add_pd(sum[j], d[j]);
			sq[j] = _mm512_add_pd(sq[j], _mm512_mul_pd(d[j], d[j]));
			ab[j] = _mm512_add_pd(ab[j], _mm512_abs_pd(d[j]));
		}
	}
	for (j = 0; j < 2; j++) {
		_mm512_storeu_pd(l.sum + 8 * j, sum[j]);
		_mm512_storeu_pd(l.sumsq + 8 * j, sq[j]);
		_mm512_storeu_pd(l.sumabs + 8 * j, ab[j]);
	}
	l.max_bits = (uint32_t)_mm512_reduce_max_epi32(max);
	kern_ref_lanes(x, i, n, &l);
	kern_ref_fold(&l, s);
}

static uint32_t
max_bits(const float *x, size_t n)
{
	__m512i a = _mm512_setzero_si512(), b = a;
	uint32_t m, t;
	size_t i;

	for (i = 0; i < WHOLE(n, 32); i += 32) {
		a = _mm512_max_epi32(a, mag16(_mm512_loadu_ps(x + i)));
		b = _mm512_max_epi32(b, mag16(_mm512_loadu_ps(x + i + 16)));
	}
	m = (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(a, b));
	t = kern_ref_max_bits(x + i, n - i);
	return m > t ? m : t;
}

static size_t
first_nonfinite(const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		if (wild16(mag16(_mm512_loadu_ps(x + i))) != 0)
			break;
	return i + kern_ref_first_nonfinite(x + i, n - i);
}

static size_t
at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	__m512i place = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6,
	    5, 4, 3, 2, 1, 0), v = _mm512_set1_epi32((int)t);
	__mmask16 k;
	size_t i, m = 0;

	for (i = 0; i < WHOLE(n, 16); i += 16) {
		k = _mm512_cmpge_epu32_mask(mag16(_mm512_loadu_ps(x + i)), v);
		/* m is at most i, so that there is room for all lanes */
		_mm512_storeu_si512(at + m,
		    _mm512_maskz_compress_epi32(k, place));
		m += (unsigned)__builtin_popcount(k);
		place = _mm512_add_epi32(place, _mm512_set1_epi32(16));
	}
	return m + kern_ref_at_least(at + m, x, i, n, t);
}

static void
axpy64(double *acc, double w, const float *x, size_t n)
{
	__m512d g = _mm512_set1_pd(w);
	size_t i;

	for (i = 0; i < WHOLE(n, 8); i += 8)
		_mm512_storeu_pd(acc + i, _mm512_add_pd(
		    _mm512_loadu_pd(acc + i), _mm512_mul_pd(g,
		    _mm512_cvtps_pd(_mm256_loadu_ps(x + i)))));
	kern_ref_axpy64(acc + i, w, x + i, n - i);
}

static void
narrow(float *y, const double *acc, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm512_storeu_ps(y + i, canonical16(_mm512_insertf32x8(
		    _mm512_castps256_ps512(
		    _mm512_cvtpd_ps(_mm512_loadu_pd(acc + i))),
		    _mm512_cvtpd_ps(_mm512_loadu_pd(acc + i + 8)), 1)));
	kern_ref_narrow(y + i, acc + i, n - i);
}

static void
add_scaled(float *y, const float *a, float g, const float *b, size_t n)
{
	__m512 k = _mm512_set1_ps(g);
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm512_storeu_ps(y + i, canonical16(_mm512_add_ps(
		    _mm512_loadu_ps(a + i),
		    _mm512_mul_ps(k, _mm512_loadu_ps(b + i)))));
	kern_ref_add_scaled(y + i, a + i, g, b + i, n - i);
}

static void
sub(float *y, const float *a, const float *b, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm512_storeu_ps(y + i, canonical16(_mm512_sub_ps(
		    _mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i))));
	kern_ref_sub(y + i, a + i, b + i, n - i);
}

static void
to_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm256_storeu_si256((__m256i *)(void *)(h + i),
		    _mm512_cvtps_ph(_mm512_loadu_ps(x + i),
		    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	kern_ref_to_f16(h + i, x + i, n - i);
}

static void
from_f16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm512_storeu_ps(x + i, _mm512_cvtph_ps(_mm256_loadu_si256(
		    (const __m256i *)(const void *)(h + i))));
	kern_ref_from_f16(x + i, h + i, n - i);
}

static void
to_bf16(uint16_t *h, const float *x, size_t n)
{
	__m512i u, top, near;
	__m512 v;
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16) {
		v = _mm512_loadu_ps(x + i);
		u = _mm512_castps_si512(v);
		top = _mm512_srli_epi32(u, 16);
		near = _mm512_add_epi32(_mm512_and_si512(top,
		    _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
		near = _mm512_srli_epi32(_mm512_add_epi32(u, near), 16);
		near = _mm512_mask_or_epi32(near,
		    _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), top,
		    _mm512_set1_epi32(0x40));
		_mm256_storeu_si256((__m256i *)(void *)(h + i),
		    _mm512_cvtepi32_epi16(near));
	}
	kern_ref_to_bf16(h + i, x + i, n - i);
}

static void
from_bf16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16)
		_mm512_storeu_ps(x + i, _mm512_castsi512_ps(_mm512_slli_epi32(
		    _mm512_cvtepu16_epi32(_mm256_loadu_si256(
		    (const __m256i *)(const void *)(h + i))), 16)));
	kern_ref_from_bf16(x + i, h + i, n - i);
}

/* The value of largest magnitude of a block, the negative one of two. */
static float
extreme32(__m512 a, __m512 b)
{
	__m512 lo = _mm512_min_ps(a, b), hi = _mm512_max_ps(a, b);
	__m512 neg = _mm512_xor_ps(lo, _mm512_set1_ps(-0.0f)), t;
	__m256 r;
	float l, h;

	/* -lo in the low half, hi in the high half: one maximum for both */
	t = _mm512_max_ps(_mm512_shuffle_f32x4(neg, hi, 0x44),
	    _mm512_shuffle_f32x4(neg, hi, 0xee));
	t = _mm512_max_ps(t, _mm512_shuffle_f32x4(t, t, 0xb1));
	t = _mm512_max_ps(t, _mm512_permute_ps(t, 0x4e));
	t = _mm512_max_ps(t, _mm512_permute_ps(t, 0xb1));
	r = _mm512_extractf32x8_ps(t, 1);
	l = _mm512_cvtss_f32(t);
	h = _mm256_cvtss_f32(r);
	return l >= h ? -l : h;
}

/* Computes the codes of a block, in order; the scale to *p. */
static __m256i
codes32(unsigned char *p, const float *x, float codes, uint16_t top)
{
	__m512 lo = _mm512_set1_ps(-codes), hi = _mm512_set1_ps(codes - 1), f;
	__m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
	uint16_t s = kern_ref_scale(extreme32(a, b), codes, top);

	bytes_set16(p, s);
	if (s == 0)
		return _mm256_setzero_si256();
	f = _mm512_set1_ps(bytes_f32((uint32_t)s << 16));
	a = _mm512_min_ps(_mm512_max_ps(_mm512_div_ps(a, f), lo), hi);
	b = _mm512_min_ps(_mm512_max_ps(_mm512_div_ps(b, f), lo), hi);
	return _mm256_set_m128i(_mm512_cvtepi32_epi8(_mm512_cvtps_epi32(b)),
	    _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
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

/* x[32]: 32 signed bytes times a scale. */
static void
spread32(float *x, __m128i a, __m128i b, const unsigned char *p)
{
	__m512 s = _mm512_set1_ps(bytes_f32((uint32_t)bytes_le16(p) << 16));

	_mm512_storeu_ps(x, _mm512_mul_ps(s,
	    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(a))));
	_mm512_storeu_ps(x + 16, _mm512_mul_ps(s,
	    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b))));
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
		_mm_storeu_si128((__m128i *)(void *)(p + 2),
		    _mm256_cvtepi16_epi8(c));
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
	__m512d s, t;
	__m512 v, a;
	size_t i, j;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		s = t = _mm512_setzero_pd();
		for (j = 0; j < 16; j++) {
			v = _mm512_loadu_ps(x + i + 16 * j);
			bytes_set16(p + 2 + 2 * j, (uint16_t)
			    _mm512_movepi32_mask(_mm512_castps_si512(v)));
			a = _mm512_castsi512_ps(mag16(v));
			s = _mm512_add_pd(s, low8(a));
			t = _mm512_add_pd(t, high8(a));
		}
		_mm512_storeu_pd(lane, s);
		_mm512_storeu_pd(lane + 8, t);
		bytes_set16(p, kern_ref_sign_scale(lane, 256));
	}
	kern_ref_sign(p, x + i, n - i);
}

static void
unsign(float *x, const unsigned char *p, size_t n)
{
	__m512i top = _mm512_set1_epi32((int)0x80000000), s;
	size_t i, j;

	for (i = 0; i < WHOLE(n, 256); i += 256, p += 34) {
		s = _mm512_set1_epi32((int)((uint32_t)bytes_le16(p) << 16));
		for (j = 0; j < 16; j++)
			_mm512_storeu_ps(x + i + 16 * j, _mm512_castsi512_ps(
			    _mm512_mask_or_epi32(s,
			    bytes_le16(p + 2 + 2 * j), s, top)));
	}
	kern_ref_unsign(x + i, p, n - i);
}

static void
deadzone(int16_t *q, const float *x, size_t n, float inv, float dead, float r)
{
	__m512 vi = _mm512_set1_ps(inv), vd = _mm512_set1_ps(dead);
	__m512 vr = _mm512_set1_ps(r), v, a;
	__m512i t;
	size_t i;

	for (i = 0; i < WHOLE(n, 16); i += 16) {
		v = _mm512_loadu_ps(x + i);
		a = _mm512_mul_ps(_mm512_castsi512_ps(mag16(v)), vi);
		t = _mm512_maskz_cvttps_epi32(
		    _mm512_cmp_ps_mask(a, vd, _CMP_NLT_UQ),
		    _mm512_min_ps(_mm512_add_ps(a, vr),
		    _mm512_set1_ps(KERN_QMAX)));
		t = _mm512_mask_sub_epi32(t,
		    _mm512_movepi32_mask(_mm512_castps_si512(v)),
		    _mm512_setzero_si512(), t);
		_mm256_storeu_si256((__m256i *)(void *)(q + i),
		    _mm512_cvtepi32_epi16(t));
	}
	kern_ref_deadzone(q + i, x + i, n - i, inv, dead, r);
}

const struct kern kern_avx512 = {
	.name = "avx512",
	KERN_OWN_ROWS,
	.flip = flip_avx2,
	.nearest = nearest_avx2,
	.fwht = fwht_avx2,
	WIDE_ROWS,
	.ecq_sort = kern_avx512_ecq_sort,
	.ecq_spans = kern_avx512_ecq_spans,
	.ecq_put = kern_avx512_ecq_put,
	.ecq_get = kern_avx512_ecq_get,
	.ecq_marks = kern_avx512_ecq_marks,
	.ecq_values = kern_avx512_ecq_values,
	.ecq_centers = kern_avx512_ecq_centers,
	.ecq_told = kern_avx512_ecq_told,
};

#else

const struct kern kern_avx512 = { .name = NULL };

#endif
