#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/ref.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && \
    defined(__AVX512VL__) && defined(__AVX512DQ__)

#include <immintrin.h>
#include <string.h>

#define WIDE_BYTES 64
#define WIDE_LOW(v) (wide_f64)_mm512_cvtps_pd( \
	_mm512_castps512_ps256((__m512)(v)))
#define WIDE_HIGH(v) (wide_f64)_mm512_cvtps_pd( \
	_mm512_extractf32x8_ps((__m512)(v), 1))
#define WIDE_NARROW(a, b) (wide_f32)_mm512_insertf32x8( \
	_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)(a))), \
	_mm512_cvtpd_ps((__m512d)(b)), 1)
#define WIDE_MIN(a, b) (wide_f32)_mm512_min_ps((__m512)(a), (__m512)(b))
#define WIDE_MAX(a, b) \
	(wide_u32)_mm512_max_epu32((__m512i)(a), (__m512i)(b))
#define WIDE_TOP(v) (uint32_t)_mm512_reduce_max_epu32((__m512i)(v))
#define WIDE_BITS(v) (unsigned)_mm512_movepi32_mask((__m512i)(v))
#define WIDE_PUT8(p, v) _mm_storeu_si128((void *)(p), \
	_mm512_cvtepi32_epi8((__m512i)(v)))
#define WIDE_PUT16(p, v) _mm256_storeu_si256((void *)(p), \
	_mm512_cvtepi32_epi16((__m512i)(v)))
#define WIDE_PUT32(p, v) _mm256_storeu_si256((void *)(p), _mm256_set_m128i( \
	_mm512_cvtsepi32_epi8((__m512i)(v)[1]), \
	_mm512_cvtsepi32_epi8((__m512i)(v)[0])))
#define WIDE_GET8(p) (wide_u32)_mm512_cvtepu8_epi32( \
	_mm_loadu_si128((const void *)(p)))
#define WIDE_GET16(p) (wide_u32)_mm512_cvtepi16_epi32( \
	_mm256_loadu_si256((const void *)(p)))
#define WIDE_PUT_F16(p, v) _mm256_storeu_si256((void *)(p), \
	_mm512_cvtps_ph((__m512)(v), \
	_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define WIDE_GET_F16(p) (wide_f32)_mm512_cvtph_ps( \
	_mm256_loadu_si256((const void *)(p)))
#define WIDE_OF4(t, i) (wide_f32)_mm512_permutevar_ps( \
	_mm512_broadcast_f32x4(_mm_loadu_ps(t)), (__m512i)(i))
#define WIDE_PACK(at, m, place) _mm512_storeu_si512(at, \
	_mm512_maskz_compress_epi32((__mmask16)(m), (__m512i)(place)))
#include "kern/wide.h"

const struct kern kern_avx512 = {
	.name = "avx512",
	WIDE_ROWS,
	.ecq_sort = kern_avx512_ecq_sort,
	.ecq_spans = kern_avx512_ecq_spans,
	.ecq_put = kern_avx512_ecq_put,
	.ecq_get = kern_avx512_ecq_get,
	.ecq_marks = kern_avx512_ecq_marks,
	.ecq_values = kern_avx512_ecq_values,
};

#else

const struct kern kern_avx512 = { .name = NULL };

#endif
