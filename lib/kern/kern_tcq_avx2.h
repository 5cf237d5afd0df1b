/*
 * The passes of TCQ for kern_avx2.c; kern_avx512.c uses parts of them. A chunk is a vector
 * of 16 bits per lane, and so are the costs of each of the eight paths, which stay in
 * registers. The operations and their order are those of kern_tcq.c.
 */
#ifndef ACE_KERN_TCQ_AVX2_H
#define ACE_KERN_TCQ_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "kern/kern.h"
#include "kern/kern_ecq_wide.h"
#include "kern/kern_tcq.h"

/* Return the states after a chunk, from the parities of its symbols. */
WIDE_INLINE __m256i
tcq_next(__m256i state, __m256i symbols)
{
	const __m256i one = _mm256_set1_epi16(1);
	__m256i low = _mm256_and_si256(state, one), up = _mm256_srli_epi16(state, 2);

	up = _mm256_and_si256(_mm256_xor_si256(up, symbols), one);
	state = _mm256_xor_si256(low, _mm256_srli_epi16(state, 1));
	return _mm256_or_si256(_mm256_and_si256(state, one), _mm256_or_si256(
	    _mm256_slli_epi16(up, 1), _mm256_slli_epi16(low, 2)));
}

WIDE_INLINE __m256i
tcq_states(const struct kern_tcq *m)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)m->state));
}

WIDE_INLINE void
tcq_keep(struct kern_tcq *m, __m256i state)
{
	_mm_storeu_si128((void *)m->state, _mm_packus_epi16(
	    _mm256_castsi256_si128(state), _mm256_extracti128_si256(state, 1)));
}

/* Return the quantiser of each state, shifted to its bit of a code. */
WIDE_INLINE __m256i
tcq_quantiser(__m256i state)
{
	return _mm256_slli_epi16(_mm256_and_si256(state, _mm256_set1_epi16(1)), 10);
}

static inline unsigned
tcq_sort(struct kern_tcq *m, const int16_t *q, size_t n, uint16_t *code)
{
	struct kern_ecq_expect e = m->m.e;
	__m256i state = tcq_states(m), most = _mm256_setzero_si256(), u;
	struct sort_chunk in;
	unsigned top, rest;
	size_t i;

	for (i = 0; i + KERN_ECQ_LANES <= n; i += KERN_ECQ_LANES) {
		in = sort_load(q + i, 1);
		in.s = sort_by(&e, &in, code + i, 1);
		most = _mm256_max_epu16(most, in.s);
		u = _mm256_or_si256(tcq_quantiser(state),
		    _mm256_loadu_si256((const void *)(code + i)));
		_mm256_storeu_si256((void *)(code + i), u);
		state = tcq_next(state, in.s);
	}
	m->m.e = e;
	tcq_keep(m, state);
	top = sort_most(most);
	rest = kern_tcq_sort(m, q + i, n - i, code + i);
	return top > rest ? top : rest;
}

static inline void
tcq_spans(struct kern_tcq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	size_t i = spans_above(&m->m, code, n, span, 1);

	kern_tcq_spans(m, code + i, n - i, span + i);
}

/* ---- decisions ---- */

/* Return the positions of eight values. */
WIDE_INLINE __m256i
tcq_place(const struct kern_tcq_walk *w, size_t i)
{
	__m256 a = _mm256_and_ps(_mm256_loadu_ps(w->x + i), _mm256_castsi256_ps(
	    _mm256_set1_epi32(0x7fffffff)));

	a = _mm256_mul_ps(a, _mm256_set1_ps(w->inv));
	return _mm256_cvttps_epi32(_mm256_min_ps(a, _mm256_set1_ps(0x1p26f)));
}

/* Return the positions of a chunk, those from step KERN_TCQ_LAST on modulo 4 steps (as ways in
 * kern_tcq.c). *far: the lanes whose cells are at least KERN_TCQ_FAR. */
WIDE_INLINE __m256i
tcq_near(const struct kern_tcq_walk *w, size_t i, __m256i *far)
{
	const __m256i last = _mm256_set1_epi32(KERN_TCQ_LAST * KERN_TCQ_FINE);
	struct sort_pair at, k;
	__m256i over;
	int j;

#pragma GCC unroll 2
	for (j = 0; j < 2; j++) {
		at.v[j] = tcq_place(w, i + 8 * (size_t)j);
		k.v[j] = _mm256_cmpgt_epi32(at.v[j], _mm256_set1_epi32(
		    KERN_TCQ_FAR * KERN_TCQ_FINE - KERN_TCQ_AHEAD - 1));
		over = _mm256_cmpgt_epi32(at.v[j], _mm256_sub_epi32(last,
		    _mm256_set1_epi32(1)));
		at.v[j] = _mm256_blendv_epi8(at.v[j], _mm256_or_si256(last,
		    _mm256_and_si256(at.v[j], _mm256_set1_epi32(
		    4 * KERN_TCQ_FINE - 1))), over);
	}
	*far = _mm256_permute4x64_epi64(_mm256_packs_epi32(k.v[0], k.v[1]), 0xd8);
	return sort_narrow(at);
}

/* Transpose columns 0..5 of a matrix whose rows 0..7 are in the lower halves of r and
 * 8..15 in the upper halves. */
WIDE_INLINE void
tcq_turn(const __m256i r[8], __m256i c[6])
{
	__m256i a[8], b[4], d[2];
	int i;

#pragma GCC unroll 4
	for (i = 0; i < 4; i++) {
		a[i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
		a[i + 4] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
	}
#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		b[i] = _mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
		b[i + 2] = _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
		d[i] = _mm256_unpacklo_epi32(a[2 * i + 4], a[2 * i + 5]);
	}
#pragma GCC unroll 3
	for (i = 0; i < 3; i++) {
		__m256i low = i < 2 ? b[2 * i] : d[0];
		__m256i high = i < 2 ? b[2 * i + 1] : d[1];

		c[2 * i] = _mm256_unpacklo_epi64(low, high);
		c[2 * i + 1] = _mm256_unpackhi_epi64(low, high);
	}
}

/* Set c[] to the costs of the symbols of a chunk's cells: a column per way, then one for 0
 * per u. */
WIDE_INLINE void
tcq_costs(const struct kern_tcq_walk *w, size_t i, __m256i cell, __m256i c[6])
{
	const __m256i levels = _mm256_set1_epi16(KERN_ECQ_CONTEXTS);
	const uint16_t *cost = (const void *)w->cost;	/* all rows */
	uint16_t at[KERN_ECQ_LANES];
	__m256i r[8], l;
	int j;

	l = _mm256_and_si256(_mm256_loadu_si256((const void *)(w->code + i)),
	    _mm256_set1_epi16(63));
	l = _mm256_mullo_epi16(_mm256_min_epu16(l, levels),
	    _mm256_set1_epi16(KERN_TCQ_CELLS));
	_mm256_storeu_si256((void *)at, _mm256_add_epi16(l, cell));
#pragma GCC unroll 8
	for (j = 0; j < 8; j++)
		r[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(
		    _mm_loadu_si128((const void *)(cost + 8 * at[j]))),
		    _mm_loadu_si128((const void *)(cost + 8 * at[j + 8])), 1);
	tcq_turn(r, c);
}

/* Return the square of d in 2^-10 of a squared step. */
WIDE_INLINE __m256i
tcq_square(__m256i d)
{
	d = _mm256_slli_epi16(d, 4);
	return _mm256_mulhi_epu16(d, d);
}

/* Compute the cost of each value coded each way; none[u]: lanes whose even way of u codes 0. */
WIDE_INLINE void
tcq_ways(const struct kern_tcq_walk *w, size_t i, __m256i cost[KERN_TCQ_WAYS],
    __m256i none[2])
{
	__m256i far, at = tcq_near(w, i, &far), cell, zero, j, d, c[6];
	unsigned v, u, p;

	cell = _mm256_srli_epi16(_mm256_add_epi16(at,
	    _mm256_set1_epi16(KERN_TCQ_AHEAD)), 9);
	tcq_costs(w, i, cell, c);
	zero = tcq_square(_mm256_min_epu16(at, _mm256_set1_epi16(4095)));
#pragma GCC unroll 4
	for (v = 0; v < KERN_TCQ_WAYS; v++) {
		u = v / 2;
		p = v % 2;
		/* four steps for each j; the last centre serves all larger j */
		j = _mm256_subs_epu16(_mm256_add_epi16(cell, _mm256_set1_epi16(
		    (short)(u + 1))), _mm256_set1_epi16((short)(2 * p)));
		j = _mm256_and_si256(j, _mm256_set1_epi16(~3));
		if (p == 0)
			j = _mm256_max_epi16(j, _mm256_set1_epi16(4));
		d = _mm256_blendv_epi8(_mm256_set1_epi16(w->center[u][p == 0]),
		    _mm256_set1_epi16(w->center[u][2]), _mm256_cmpgt_epi16(j,
		    _mm256_set1_epi16(p == 0 ? 4 : 0)));
		d = _mm256_add_epi16(_mm256_add_epi16(d,
		    _mm256_slli_epi16(j, 9)), _mm256_set1_epi16((short)(
		    ((int)(2 * p) - (int)u) * KERN_TCQ_FINE)));
		d = tcq_square(_mm256_abs_epi16(_mm256_sub_epi16(at, d)));
		cost[v] = _mm256_adds_epu16(d, c[v]);
		if (p != 0)
			continue;
		d = _mm256_adds_epu16(zero, c[4 + u]);
		d = _mm256_min_epu16(d, cost[v]);
		none[u] = _mm256_cmpeq_epi16(d, _mm256_adds_epu16(zero, c[4 + u]));
		cost[v] = _mm256_blendv_epi8(d, _mm256_set1_epi16(KERN_TCQ_NEVER), far);
	}
}

/* Store one bit per lane of two vectors, 16 bits for each vector. */
WIDE_INLINE void
tcq_bits(uint16_t *p, __m256i a, __m256i b)
{
	uint32_t m = (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(
	    _mm256_packs_epi16(a, b), 0xd8));

	memcpy(p, &m, sizeof(m));
}

static inline void
tcq_forward(const struct kern_tcq_walk *w, size_t chunks, struct kern_tcq_ends *ends)
{
	__m256i was[KERN_TCQ_STATES], now[KERN_TCQ_STATES], k[KERN_TCQ_STATES];
	__m256i cost[KERN_TCQ_WAYS], none[2], low, least;
	unsigned n, s, v;
	size_t i;

	for (n = 0; n < KERN_TCQ_STATES; n++)
		was[n] = _mm256_loadu_si256((const void *)ends->cost[n]);
	for (i = 0; i < chunks; i++) {
		tcq_ways(w, i * KERN_ECQ_LANES, cost, none);
		_Pragma("GCC unroll 8")
		for (n = 0; n < KERN_TCQ_STATES; n++) {
			s = n >> 2 | ((n ^ n >> 2) & 1) << 1;
			v = (s & 1) * 2 + (n >> 1 & 1);
			low = _mm256_adds_epu16(was[s], cost[v]);
			now[n] = _mm256_min_epu16(low,
			    _mm256_adds_epu16(was[s | 4], cost[v ^ 1]));
			k[n] = _mm256_cmpeq_epi16(low, now[n]);
		}
		_Pragma("GCC unroll 4")
		for (n = 0; n < KERN_TCQ_STATES; n += 2)
			tcq_bits(w->from[i] + n, k[n], k[n + 1]);
		tcq_bits(w->from[i] + n, none[0], none[1]);
		least = _mm256_min_epu16(_mm256_min_epu16(
		    _mm256_min_epu16(now[0], now[1]),
		    _mm256_min_epu16(now[2], now[3])), _mm256_min_epu16(
		    _mm256_min_epu16(now[4], now[5]),
		    _mm256_min_epu16(now[6], now[7])));
		_Pragma("GCC unroll 8")
		for (n = 0; n < KERN_TCQ_STATES; n++)
			was[n] = _mm256_sub_epi16(now[n], least);
	}
	for (n = 0; n < KERN_TCQ_STATES; n++)
		_mm256_storeu_si256((void *)ends->cost[n], was[n]);
}

/* Trace the paths of half of the lanes, which end in the states n, back through the whole
 * chunks, and set their levels in q. */
static inline void
tcq_back(const struct kern_tcq_walk *w, size_t chunks, unsigned half,
    __m256i n, int16_t *q)
{
	const __m256i one = _mm256_set1_epi32(1);
	const __m256i bit = _mm256_add_epi32(_mm256_set1_epi32((int)(8 * half)),
	    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	__m256i b, p, u, up, k, none, far;
	const uint16_t *from;
	__m128i t;
	size_t i, at;

	for (i = chunks; i-- > 0;) {
		at = i * KERN_ECQ_LANES + 8 * half;
		from = w->from[i];
		b = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(
		    _mm_loadu_si128((const void *)from)), n);
		b = _mm256_andnot_si256(_mm256_srlv_epi32(b, bit), one);
		u = _mm256_srli_epi32(n, 2);
		p = _mm256_xor_si256(_mm256_and_si256(_mm256_srli_epi32(n, 1), one), b);
		k = _mm256_srli_epi32(_mm256_add_epi32(tcq_place(w, at),
		    _mm256_set1_epi32(KERN_TCQ_AHEAD)), 9);
		far = _mm256_cmpgt_epi32(k, _mm256_set1_epi32(KERN_TCQ_FAR - 1));
		k = _mm256_sub_epi32(_mm256_add_epi32(k, _mm256_add_epi32(u,
		    one)), _mm256_slli_epi32(p, 1));
		k = _mm256_srli_epi32(_mm256_max_epi32(k, _mm256_setzero_si256()), 2);
		k = _mm256_max_epi32(k, _mm256_xor_si256(p, one));
		k = _mm256_blendv_epi8(k, _mm256_set1_epi32(KERN_QMAX / 2), far);
		k = _mm256_or_si256(_mm256_slli_epi32(k, 1), p);
		none = _mm256_srlv_epi32(_mm256_blendv_epi8(
		    _mm256_set1_epi32(from[KERN_TCQ_STATES]),
		    _mm256_set1_epi32(from[KERN_TCQ_STATES + 1]),
		    _mm256_cmpeq_epi32(u, one)), bit);
		none = _mm256_andnot_si256(p, _mm256_and_si256(none, one));
		k = _mm256_andnot_si256(_mm256_cmpeq_epi32(none, one), k);
		up = _mm256_castps_si256(_mm256_cmp_ps(_mm256_loadu_ps(w->x + at),
		    _mm256_setzero_ps(), _CMP_LT_OQ));
		k = _mm256_sub_epi32(_mm256_xor_si256(k, up), up);
		t = _mm_packs_epi32(_mm256_castsi256_si128(k),
		    _mm256_extracti128_si256(k, 1));
		_mm_storeu_si128((void *)(q + at), t);
		n = _mm256_or_si256(u, _mm256_or_si256(_mm256_slli_epi32(
		    _mm256_and_si256(_mm256_xor_si256(n, u), one), 1),
		    _mm256_slli_epi32(b, 2)));
	}
}

static inline void
tcq_walk(const struct kern_tcq_walk *w, int16_t *q)
{
	size_t chunks = w->n / KERN_ECQ_LANES;
	uint32_t state[KERN_ECQ_LANES];
	struct kern_tcq_ends ends;
	unsigned half;

	kern_tcq_walk_start(&ends);
	tcq_forward(w, chunks, &ends);
	kern_tcq_walk_some(w, chunks * KERN_ECQ_LANES, &ends);
	kern_tcq_walk_back(w, chunks * KERN_ECQ_LANES, &ends, state, q);
	for (half = 0; half < 2; half++)
		tcq_back(w, chunks, half, _mm256_loadu_si256(
		    (const void *)(state + 8 * half)), q);
}

#endif
