#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/ref.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>
#include <string.h>

#define WIDE_BYTES 32
#define WIDE_LOW(v) (wide_f64)_mm256_cvtps_pd( \
	_mm256_castps256_ps128((__m256)(v)))
#define WIDE_HIGH(v) (wide_f64)_mm256_cvtps_pd( \
	_mm256_extractf128_ps((__m256)(v), 1))
#define WIDE_NARROW(a, b) (wide_f32)_mm256_set_m128( \
	_mm256_cvtpd_ps((__m256d)(b)), _mm256_cvtpd_ps((__m256d)(a)))
#define WIDE_MIN(a, b) (wide_f32)_mm256_min_ps((__m256)(a), (__m256)(b))
#define WIDE_MAX(a, b) \
	(wide_u32)_mm256_max_epu32((__m256i)(a), (__m256i)(b))
#define WIDE_TOP(v) top8((__m256i)(v))
#define WIDE_BITS(v) (unsigned)_mm256_movemask_ps((__m256)(v))
#define WIDE_PUT8(p, v) put8(p, (__m256i)(v))
#define WIDE_PUT16(p, v) _mm_storeu_si128((void *)(p), \
	_mm_packs_epi32(_mm256_castsi256_si128((__m256i)(v)), \
	_mm256_extracti128_si256((__m256i)(v), 1)))
#define WIDE_PUT32(p, v) put32(p, (const void *)(v))
#define WIDE_GET8(p) (wide_u32)_mm256_cvtepu8_epi32( \
	_mm_loadl_epi64((const void *)(p)))
#define WIDE_GET16(p) (wide_u32)_mm256_cvtepi16_epi32( \
	_mm_loadu_si128((const void *)(p)))
#define WIDE_PUT_F16(p, v) _mm_storeu_si128((void *)(p), _mm256_cvtps_ph( \
	(__m256)(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define WIDE_GET_F16(p) (wide_f32)_mm256_cvtph_ps( \
	_mm_loadu_si128((const void *)(p)))
#define WIDE_OF4(t, i) (wide_f32)_mm256_permutevar_ps( \
	_mm256_broadcast_ps((const void *)(t)), (__m256i)(i))

static inline void
put8(unsigned char *p, __m256i v)
{
	__m128i t = _mm_packus_epi32(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));

	_mm_storel_epi64((void *)p, _mm_packus_epi16(t, t));
}

static inline void
put32(unsigned char *p, const __m256i v[4])
{
	_mm256_storeu_si256((void *)p, _mm256_permutevar8x32_epi32(
	    _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
	    _mm256_packs_epi32(v[2], v[3])),
	    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

static inline uint32_t
top8(__m256i v)
{
	__m128i t = _mm_max_epu32(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));

	t = _mm_max_epu32(t, _mm_shuffle_epi32(t, 0x4e));
	t = _mm_max_epu32(t, _mm_shuffle_epi32(t, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(t);
}

#include "kern/wide.h"

const struct kern kern_avx2 = {
	.name = "avx2",
	WIDE_ROWS,
	.ecq_sort = kern_avx2_ecq_sort,
	.ecq_spans = kern_avx2_ecq_spans,
	.ecq_put = kern_avx2_ecq_put,
	.ecq_get = kern_avx2_ecq_get,
	.ecq_marks = kern_avx2_ecq_marks,
	.ecq_values = kern_avx2_ecq_values,
};

#else

const struct kern kern_avx2 = { .name = NULL };

#endif
