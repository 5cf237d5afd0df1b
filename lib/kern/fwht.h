/*
 * fwht, flip and nearest of kern.h with vectors of eight values, shared by the
 * x86 tables; for this directory only.  Every value goes through the stages in
 * the order of kern.h, so that the bits are those of kern_ref in whatever order
 * the values are worked on.
 */
#ifndef ACE_KERN_FWHT_H
#define ACE_KERN_FWHT_H

#ifdef __AVX2__

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kern/ref.h"

enum { FWHT_LEAF = 64, FWHT_CACHED = 8192 };

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

/* dot += v * a, norm += v * v of four values */
static inline void
fit_four(__m256d *dot, __m256d *norm, __m128 v, __m128 a)
{
	__m256d w = _mm256_cvtps_pd(v);

	*dot = _mm256_add_pd(*dot, _mm256_mul_pd(w, _mm256_cvtps_pd(a)));
	*norm = _mm256_add_pd(*norm, _mm256_mul_pd(w, w));
}

/* The codes of eight values. */
static inline __m256i
fit_eight(__m256d dot[2], __m256d norm[2], const float *x, __m256 inv,
    const __m256 *t, __m256 c, unsigned levels)
{
	__m256 y = _mm256_loadu_ps(x), v, a;
	__m256i j = _mm256_setzero_si256();
	unsigned k;

	a = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_mul_ps(y, inv));
	for (k = 0; k + 1 < levels; k++)
		j = _mm256_sub_epi32(j, _mm256_castps_si256(
		    _mm256_cmp_ps(a, t[k], _CMP_GT_OQ)));
	v = _mm256_permutevar8x32_ps(c, j);
	fit_four(&dot[0], &norm[0], _mm256_castps256_ps128(v),
	    _mm256_castps256_ps128(a));
	fit_four(&dot[1], &norm[1], _mm256_extractf128_ps(v, 1),
	    _mm256_extractf128_ps(a, 1));
	return _mm256_add_epi32(_mm256_add_epi32(j, j),
	    _mm256_srli_epi32(_mm256_castps_si256(y), 31));
}

static inline void
nearest_avx2(unsigned char *code, const float *x, size_t n, float inv,
    const float *t, const float *c, unsigned levels, double sum[2])
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
	__m256d dot[4], norm[4];
	__m256 vt[8], vc, vi = _mm256_set1_ps(inv);
	float table[8] = { 0 };
	struct kern_fit f;
	__m256i a, b;
	size_t i;

	memcpy(table, c, levels * sizeof(*c));
	vc = _mm256_loadu_ps(table);
	for (i = 0; i < 8; i++)
		vt[i] = _mm256_set1_ps(i + 1 < levels ? t[i] : 0);
	for (i = 0; i < 4; i++)
		dot[i] = norm[i] = _mm256_setzero_pd();
	for (i = 0; i < n / 16 * 16; i += 16) {
		a = fit_eight(dot, norm, x + i, vi, vt, vc, levels);
		b = fit_eight(dot + 2, norm + 2, x + i + 8, vi, vt, vc, levels);
		a = _mm256_packs_epi32(a, b);
		a = _mm256_packus_epi16(a, a);
		a = _mm256_permutevar8x32_epi32(a, order);
		_mm_storeu_si128((__m128i *)(void *)(code + i),
		    _mm256_castsi256_si128(a));
	}
	for (i = 0; i < 4; i++) {
		_mm256_storeu_pd(f.dot + 4 * i, dot[i]);
		_mm256_storeu_pd(f.norm + 4 * i, norm[i]);
	}
	kern_ref_fit(code, x, n / 16 * 16, n, inv, t, c, levels, &f);
	kern_ref_fit_fold(&f, sum);
}

#undef FWHT_PAIR

#endif
#endif
