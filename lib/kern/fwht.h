/*
 * fwht and flip of kern.h for vectors of eight, shared by the tables of x86;
 * not for other layers.  Stages run in kern.h's order on every value, so the
 * bits are kern_ref's whichever values are worked on first.
 */
#ifndef ACE_KERN_FWHT_H
#define ACE_KERN_FWHT_H

#ifdef __AVX2__

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kern/ref.h"

enum { FWHT_LEAF = 64, FWHT_CACHED = 4096 };

/* Stages 1, 2, 4: inside a vector. */
static inline __m256
fwht_inside(__m256 v)
{
	const __m256 s1 = _mm256_setr_ps(0, -0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f);
	const __m256 s2 = _mm256_setr_ps(0, 0, -0.0f, -0.0f, 0, 0, -0.0f, -0.0f);
	const __m256 s4 = _mm256_setr_ps(0, 0, 0, 0, -0.0f, -0.0f, -0.0f, -0.0f);

	v = _mm256_add_ps(_mm256_permute_ps(v, 0xb1), _mm256_xor_ps(v, s1));
	v = _mm256_add_ps(_mm256_permute_ps(v, 0x4e), _mm256_xor_ps(v, s2));
	return _mm256_add_ps(_mm256_permute2f128_ps(v, v, 1),
	    _mm256_xor_ps(v, s4));
}

#define FWHT_PAIR(a, b) do { \
	__m256 t_ = _mm256_sub_ps(a, b); \
	a = _mm256_add_ps(a, b); \
	b = t_; \
} while (0)

/* Stages h, 2h, 4h of x[0], x[h], ... x[7h], eight values each; leaf: the
 * stages inside a vector before them. */
static inline void
fwht_eight(float *x, size_t h, int leaf)
{
	__m256 v[8];
	size_t i;

	for (i = 0; i < 8; i++) {
		v[i] = _mm256_loadu_ps(x + i * h);
		if (leaf)
			v[i] = fwht_inside(v[i]);
	}
	for (i = 0; i < 8; i += 2)
		FWHT_PAIR(v[i], v[i + 1]);
	for (i = 0; i < 4; i++)
		FWHT_PAIR(v[i + i / 2 * 2], v[i + i / 2 * 2 + 2]);
	for (i = 0; i < 4; i++)
		FWHT_PAIR(v[i], v[i + 4]);
	for (i = 0; i < 8; i++)
		_mm256_storeu_ps(x + i * h, v[i]);
}

/* Stages h, 2h, ... below n. */
static inline void
fwht_stages(float *x, size_t n, size_t h)
{
	size_t i, j;
	__m256 a, b;

	for (; h < n; h *= 8) {
		if (n / h < 8)
			break;
		for (i = 0; i < n; i += 8 * h)
			for (j = 0; j < h; j += 8)
				fwht_eight(x + i + j, h, 0);
	}
	for (; h < n; h *= 2)
		for (i = 0; i < n; i += 2 * h)
			for (j = i; j < i + h; j += 8) {
				a = _mm256_loadu_ps(x + j);
				b = _mm256_loadu_ps(x + j + h);
				FWHT_PAIR(a, b);
				_mm256_storeu_ps(x + j, a);
				_mm256_storeu_ps(x + j + h, b);
			}
}

static inline void
fwht_avx2(float *x, size_t n)
{
	size_t part = n < FWHT_CACHED ? n : FWHT_CACHED, i, j;

	if (n < FWHT_LEAF) {
		kern_ref_fwht(x, n);
		return;
	}
	for (i = 0; i < n; i += part) {
		for (j = 0; j < part; j += FWHT_LEAF)
			fwht_eight(x + i + j, 8, 1);
		fwht_stages(x + i, part, FWHT_LEAF);
	}
	fwht_stages(x, n, part);
}

static inline void
flip_avx2(float *y, const float *x, double s, const uint32_t *bits, size_t n)
{
	const __m256i at = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
	const __m256i top = _mm256_set1_epi32((int)0x80000000);
	__m256d vs = _mm256_set1_pd(s);
	__m256i m;
	__m128 lo, hi;
	__m256 v;
	size_t i;

	for (i = 0; i < n / 8 * 8; i += 8) {
		m = _mm256_set1_epi32((int)(bits[i / 32] >> i % 32));
		m = _mm256_and_si256(_mm256_sllv_epi32(m, at), top);
		v = _mm256_xor_ps(_mm256_loadu_ps(x + i),
		    _mm256_castsi256_ps(m));
		lo = _mm256_cvtpd_ps(_mm256_mul_pd(
		    _mm256_cvtps_pd(_mm256_castps256_ps128(v)), vs));
		hi = _mm256_cvtpd_ps(_mm256_mul_pd(
		    _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)), vs));
		_mm256_storeu_ps(y + i, _mm256_set_m128(hi, lo));
	}
	for (; i < n; i++)
		kern_ref_flip(y + i, x + i, bits[i / 32] >> i % 32 & 1 ?
		    -s : s, &(uint32_t){ 0 }, 1);
}

#undef FWHT_PAIR

#endif
#endif
