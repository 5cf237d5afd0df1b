/*
 * The decisions of TCQ in vectors of eight lanes, whose eight paths stay in
 * registers: what kern_avx2.c and kern_avx512.c share.  The same operations as
 * kern_tcq.c's, in the same order.
 */
#ifndef ACE_KERN_TCQ_AVX2_H
#define ACE_KERN_TCQ_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kern/kern.h"
#include "kern/kern_tcq.h"

#define TCQ_INLINE static inline __attribute__((always_inline))

/* Eight values of a chunk, and what their levels' symbols cost. */
struct tcq_eight {
	__m256 a;		/* |x| / step */
	__m256i shift;
	__m256i row;		/* of the costs of quantiser 0 */
	const float *one;	/* or the row of all; NULL where they differ */
};

TCQ_INLINE struct tcq_eight
tcq_load(const struct kern_tcq_walk *w, size_t i)
{
	const __m256i most = _mm256_set1_epi32(KERN_ECQ_CONTEXTS - 1);
	struct tcq_eight h;
	__m256i l, above;
	__m128i c;

	h.a = _mm256_and_ps(_mm256_loadu_ps(w->x + i), _mm256_castsi256_ps(
	    _mm256_set1_epi32(0x7fffffff)));
	h.a = _mm256_min_ps(_mm256_mul_ps(h.a, _mm256_set1_ps(w->inv)),
	    _mm256_set1_ps(KERN_TCQ_FAR));
	c = _mm_and_si128(_mm_loadu_si128((const void *)(w->code + i)),
	    _mm_set1_epi16(63));
	l = _mm256_cvtepu16_epi32(c);
	above = _mm256_cmpgt_epi32(l, most);
	/* (l - 22) / 2, and 22 + l % 2 */
	h.shift = _mm256_and_si256(above, _mm256_srli_epi32(_mm256_sub_epi32(l,
	    _mm256_set1_epi32(KERN_ECQ_CONTEXTS - 2)), 1));
	l = _mm256_blendv_epi8(l, _mm256_add_epi32(_mm256_and_si256(l,
	    _mm256_set1_epi32(1)), _mm256_set1_epi32(KERN_ECQ_CONTEXTS - 2)),
	    above);
	h.row = _mm256_slli_epi32(l, 4);
	c = _mm_xor_si128(c, _mm_broadcastw_epi16(c));
	h.one = _mm_testz_si128(c, c) ?
	    w->cost[0][_mm256_cvtsi256_si32(l)] : NULL;
	return h;
}

TCQ_INLINE __m256
tcq_cost(const struct kern_tcq_walk *w, const struct tcq_eight *h, unsigned u,
    __m256i s)
{
	const float *p;

	if (h->one == NULL)
		return _mm256_i32gather_ps(w->cost[u][0],
		    _mm256_add_epi32(h->row, s), 4);
	p = h->one + u * KERN_ECQ_CONTEXTS * KERN_ECQ_SYMBOLS;
	return _mm256_blendv_ps(
	    _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), s),
	    _mm256_permutevar8x32_ps(_mm256_loadu_ps(p + 8), s),
	    _mm256_castsi256_ps(_mm256_slli_epi32(s, 28)));
}

TCQ_INLINE __m256
tcq_way(const struct kern_tcq_walk *w, const struct tcq_eight *h, unsigned u,
    unsigned p, __m256i *k)
{
	const __m256 off = _mm256_set1_ps((float)((int)(2 * p) - (int)u));
	const __m256i most = _mm256_set1_epi32(KERN_QMAX / 2);
	__m256i j, near, s;
	__m256 d, all, none, zero;

	j = _mm256_cvttps_epi32(_mm256_add_ps(_mm256_mul_ps(
	    _mm256_sub_ps(h->a, off), _mm256_set1_ps(0.25f)),
	    _mm256_set1_ps(KERN_TCQ_ROUND)));
	if (p == 0)
		j = _mm256_max_epi32(j, _mm256_set1_epi32(1));
	j = _mm256_min_epi32(j, most);
	near = _mm256_cmpgt_epi32(_mm256_set1_epi32(p == 0 ? 2 : 1), j);
	d = _mm256_blendv_ps(_mm256_set1_ps(w->center[u][2]),
	    _mm256_set1_ps(w->center[u][p == 0]), _mm256_castsi256_ps(near));
	d = _mm256_sub_ps(h->a, _mm256_add_ps(_mm256_add_ps(
	    _mm256_cvtepi32_ps(_mm256_slli_epi32(j, 2)), off), d));
	d = _mm256_mul_ps(d, d);
	if (p != 0)
		d = _mm256_andnot_ps(_mm256_castsi256_ps(
		    _mm256_cmpeq_epi32(j, most)), d);
	s = _mm256_min_epi32(_mm256_srlv_epi32(j, h->shift),
	    _mm256_set1_epi32(7));
	s = _mm256_add_epi32(_mm256_slli_epi32(s, 1),
	    _mm256_set1_epi32((int)p));
	all = _mm256_add_ps(d, tcq_cost(w, h, u, s));
	j = _mm256_add_epi32(_mm256_slli_epi32(j, 1),
	    _mm256_set1_epi32((int)p));
	if (p != 0) {
		*k = j;
		return all;
	}
	none = _mm256_add_ps(_mm256_mul_ps(h->a, h->a),
	    tcq_cost(w, h, u, _mm256_setzero_si256()));
	zero = _mm256_cmp_ps(none, all, _CMP_LE_OQ);
	*k = _mm256_andnot_si256(_mm256_castps_si256(zero), j);
	return _mm256_blendv_ps(all, none, zero);
}

/* Half of each of the whole chunks. */
static void
tcq_forward(const struct kern_tcq_walk *w, size_t chunks, unsigned half,
    struct kern_tcq_ends *ends)
{
	__m256 was[KERN_TCQ_STATES], now[KERN_TCQ_STATES], cost[KERN_TCQ_WAYS];
	__m256 low, high;
	struct tcq_eight h;
	unsigned char *from;
	unsigned n, s, v;
	size_t i;
	__m256i k;

	for (n = 0; n < KERN_TCQ_STATES; n++)
		was[n] = _mm256_loadu_ps(ends->cost[n] + 8 * half);
	for (i = 0; i < chunks; i++) {
		h = tcq_load(w, i * KERN_ECQ_LANES + 8 * half);
		_Pragma("GCC unroll 4")
		for (v = 0; v < KERN_TCQ_WAYS; v++) {
			cost[v] = tcq_way(w, &h, v / 2, v % 2, &k);
			_mm_storeu_si128((void *)(w->way[i][v] + 8 * half),
			    _mm_packs_epi32(_mm256_castsi256_si128(k),
			    _mm256_extracti128_si256(k, 1)));
		}
		from = (unsigned char *)w->from[i] + half;
		_Pragma("GCC unroll 8")
		for (n = 0; n < KERN_TCQ_STATES; n++) {
			s = n >> 2 | ((n ^ n >> 2) & 1) << 1;
			v = (s & 1) * 2 + (n >> 1 & 1);
			low = _mm256_add_ps(was[s], cost[v]);
			high = _mm256_add_ps(was[s | 4], cost[v ^ 1]);
			from[2 * n] = (unsigned char)_mm256_movemask_ps(
			    _mm256_cmp_ps(high, low, _CMP_LT_OQ));
			now[n] = _mm256_min_ps(high, low);
		}
		_Pragma("GCC unroll 8")
		for (n = 0; n < KERN_TCQ_STATES; n++)
			was[n] = _mm256_sub_ps(now[n], now[0]);
	}
	for (n = 0; n < KERN_TCQ_STATES; n++)
		_mm256_storeu_ps(ends->cost[n] + 8 * half, was[n]);
}

/* The way back through the whole chunks, of one half, from these states. */
static void
tcq_back(const struct kern_tcq_walk *w, size_t chunks, unsigned half,
    __m256i n, int16_t *q)
{
	const __m256i one = _mm256_set1_epi32(1);
	const __m256i bit = _mm256_add_epi32(_mm256_set1_epi32((int)(8 * half)),
	    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	__m256i b, up, u, k[KERN_TCQ_WAYS];
	__m256 x;
	unsigned v;
	size_t i;

	for (i = chunks; i-- > 0;) {
		b = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(
		    _mm_loadu_si128((const void *)w->from[i])), n);
		b = _mm256_and_si256(_mm256_srlv_epi32(b, bit), one);
		for (v = 0; v < KERN_TCQ_WAYS; v++)
			k[v] = _mm256_cvtepi16_epi32(_mm_loadu_si128(
			    (const void *)(w->way[i][v] + 8 * half)));
		/* u is the third bit of n, the parity its second or the other */
		u = _mm256_slli_epi32(n, 29);
		up = _mm256_slli_epi32(_mm256_xor_si256(
		    _mm256_srli_epi32(n, 1), b), 31);
		for (v = 0; v < 2; v++)
			k[v] = _mm256_castps_si256(_mm256_blendv_ps(
			    _mm256_castsi256_ps(k[2 * v]),
			    _mm256_castsi256_ps(k[2 * v + 1]),
			    _mm256_castsi256_ps(up)));
		k[0] = _mm256_castps_si256(_mm256_blendv_ps(
		    _mm256_castsi256_ps(k[0]), _mm256_castsi256_ps(k[1]),
		    _mm256_castsi256_ps(u)));
		x = _mm256_cmp_ps(_mm256_loadu_ps(w->x + i * KERN_ECQ_LANES +
		    8 * half), _mm256_setzero_ps(), _CMP_LT_OQ);
		k[0] = _mm256_sub_epi32(_mm256_xor_si256(k[0],
		    _mm256_castps_si256(x)), _mm256_castps_si256(x));
		_mm_storeu_si128((void *)(q + i * KERN_ECQ_LANES + 8 * half),
		    _mm_packs_epi32(_mm256_castsi256_si128(k[0]),
		    _mm256_extracti128_si256(k[0], 1)));
		u = _mm256_srli_epi32(n, 2);
		n = _mm256_or_si256(u, _mm256_or_si256(_mm256_slli_epi32(
		    _mm256_and_si256(_mm256_xor_si256(n, u), one), 1),
		    _mm256_slli_epi32(b, 2)));
	}
}

static void
tcq_walk(const struct kern_tcq_walk *w, int16_t *q)
{
	size_t chunks = w->n / KERN_ECQ_LANES;
	uint32_t state[KERN_ECQ_LANES];
	struct kern_tcq_ends ends;
	unsigned half;

	kern_tcq_walk_start(&ends);
	for (half = 0; half < 2; half++)
		tcq_forward(w, chunks, half, &ends);
	kern_tcq_walk_some(w, chunks * KERN_ECQ_LANES, &ends);
	kern_tcq_walk_back(w, chunks * KERN_ECQ_LANES, &ends, state, q);
	for (half = 0; half < 2; half++)
		tcq_back(w, chunks, half, _mm256_loadu_si256(
		    (const void *)(state + 8 * half)), q);
}

#undef TCQ_INLINE

#endif
