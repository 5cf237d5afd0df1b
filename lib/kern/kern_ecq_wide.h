/*
 * The parts that kern_avx2.c and kern_avx512.c share: a chunk is one vector of 256 bits, 16
 * bits per value.  Terms are as in kern_ecq.h.
 *
 * ---- ecq_sort ----
 *
 * A chunk's expectation depends on the magnitudes of the chunk before. Those depend on
 * that chunk's expectation, because its level shifts them. Below level KERN_ECQ_CONTEXTS,
 * where most chunks are, nothing is shifted: a predictable branch takes the sum directly
 * from the values, and the dependency is a few sums and shifts per chunk.
 */
#ifndef ACE_KERN_ECQ_WIDE_H
#define ACE_KERN_ECQ_WIDE_H

#include <immintrin.h>

#include "kern/kern_ecq.h"

#define WIDE_INLINE static inline __attribute__((always_inline))

struct kern_tcq;

/* The kernels of kern_avx512.c. That table takes its other kernels from kern_avx2.c. */
size_t kern_avx512_at_least(uint32_t *at, const float *x, size_t n, uint32_t t);
int kern_avx512_get(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n);
int kern_avx512_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code,
    size_t n);
unsigned char *kern_avx512_put(uint32_t *state, unsigned states, const uint32_t *span,
    size_t n, unsigned char *w);

/* If `two', a constant at each call, is 1, symbols and magnitudes are TCQ's
 * (kern_tcq.h), which keep the lowest bit of a magnitude under any shift. */

/* A chunk's magnitudes. For levels that do not shift: the symbols and their sum. */
struct sort_chunk {
	__m256i a, s;
	uint32_t sum;
};

/* 16 lanes of 32 bits. */
struct sort_pair {
	__m256i v[2];
};

WIDE_INLINE __m256i
sort_min(__m256i v, int most)
{
	return _mm256_min_epu16(v, _mm256_set1_epi16((short)most));
}

WIDE_INLINE uint32_t
sort_sum(__m256i v)
{
	__m128i t = _mm_add_epi32(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));

	t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
	t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(t);
}

/* Return the sum of 16 values below 2^15. */
WIDE_INLINE uint32_t
sort_sum16(__m256i v)
{
	return sort_sum(_mm256_madd_epi16(v, _mm256_set1_epi16(1)));
}

WIDE_INLINE struct sort_pair
sort_widen(__m256i v)
{
	struct sort_pair r = { { _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)),
		_mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)) } };

	return r;
}

WIDE_INLINE __m256i
sort_narrow(struct sort_pair p)
{
	return _mm256_permute4x64_epi64(_mm256_packus_epi32(p.v[0], p.v[1]), 0xd8);
}

/* Return the symbols of magnitudes a; by: a >> shift. TCQ's lowest bit comes from a. */
WIDE_INLINE __m256i
sort_symbols(__m256i a, __m256i by, int two)
{
	const __m256i odd = _mm256_and_si256(a, _mm256_set1_epi16(1));

	if (!two)
		return sort_min(by, KERN_ECQ_SYMBOLS - 1);
	by = sort_min(_mm256_srli_epi16(by, 1), KERN_ECQ_SYMBOLS / 2 - 1);
	return _mm256_or_si256(_mm256_slli_epi16(by, 1), odd);
}

WIDE_INLINE struct sort_chunk
sort_load(const int16_t *q, int two)
{
	struct sort_chunk c;

	c.a = _mm256_abs_epi16(_mm256_loadu_si256((const void *)q));
	c.s = sort_symbols(c.a, c.a, two);
	c.sum = sort_sum16(c.s);
	return c;
}

/* Return the level of each column from the row above; gain: from kern_ecq_gain. */
WIDE_INLINE struct sort_pair
sort_levels(const struct kern_ecq_expect *e, int gain)
{
	const int32_t *p = e->above + e->at - e->stride;
	struct sort_pair l;
	__m256i v;
	int i;

#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		v = _mm256_add_epi32(_mm256_loadu_si256(
		    (const void *)(p + 8 * i)), _mm256_set1_epi32(e->base));
		v = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(v)), 20);
		v = _mm256_srai_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(gain)), 2);
		v = _mm256_max_epi32(v, _mm256_setzero_si256());
		l.v[i] = _mm256_min_epi32(v, _mm256_set1_epi32(KERN_ECQ_LEVELS - 1));
	}
	return l;
}

/* Return the symbols of a chunk whose levels shift; set *mag to the magnitudes that the
 * means use. */
WIDE_INLINE __m256i
sort_shifted(__m256i a, struct sort_pair l, struct sort_pair *mag, int two)
{
	const __m256i one = _mm256_set1_epi32(two);
	struct sort_pair s = sort_widen(a), k = s;
	__m256i shift;
	int i;

#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		shift = _mm256_srli_epi32(_mm256_max_epi32(_mm256_sub_epi32(
		    l.v[i], _mm256_set1_epi32(KERN_ECQ_CONTEXTS - 2)),
		    _mm256_setzero_si256()), 1);
		k.v[i] = _mm256_srlv_epi32(s.v[i], shift);
		if (two)
			k.v[i] = _mm256_slli_epi32(_mm256_min_epi32(
			    _mm256_srli_epi32(k.v[i], 1), _mm256_set1_epi32(
			    KERN_ECQ_SYMBOLS / 2 - 1)), 1);
		else
			k.v[i] = _mm256_min_epi32(k.v[i],
			    _mm256_set1_epi32(KERN_ECQ_SYMBOLS - 1));
		s.v[i] = _mm256_and_si256(s.v[i], one);
		mag->v[i] = _mm256_min_epi32(_mm256_or_si256(
		    _mm256_sllv_epi32(k.v[i], shift), s.v[i]),
		    _mm256_set1_epi32(KERN_ECQ_CAP));
		k.v[i] = _mm256_or_si256(k.v[i], s.v[i]);
	}
	return sort_narrow(k);
}

/* Update the columns' means with the magnitudes mag. Return the sum that they had
 * predicted. */
WIDE_INLINE uint32_t
sort_columns(struct kern_ecq_expect *e, struct sort_pair mag)
{
	const __m256i rate = _mm256_set1_epi32(kern_ecq_pace(e->row));
	__m256i old[2] = { _mm256_setzero_si256(), _mm256_setzero_si256() }, d;
	int32_t *p = e->above + e->at;
	int i;

#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		if (e->row > 0)
			old[i] = _mm256_loadu_si256((const void *)
			    (p - e->stride + 8 * i));
		d = _mm256_sub_epi32(_mm256_slli_epi32(mag.v[i], 12), old[i]);
		d = _mm256_srai_epi32(_mm256_mullo_epi32(d, rate), 8);
		_mm256_storeu_si256((void *)(p + 8 * i), _mm256_add_epi32(old[i], d));
	}
	return sort_sum(_mm256_add_epi32(old[0], old[1]));
}

/* Code a chunk of a single level by one model. Return its symbols. */
WIDE_INLINE __m256i
sort_one(struct kern_ecq_expect *e, const struct sort_chunk *c, int level,
    uint16_t *code, int two)
{
	const __m256i one = _mm256_set1_epi16((short)two);
	unsigned shift = kern_ecq_shift((unsigned)level);
	__m128i by = _mm_cvtsi32_si128((int)shift);
	__m256i s = c->s, mag = s;
	uint32_t sum = c->sum, expected = 0;

	if (__builtin_expect(shift != 0, 0)) {
		s = sort_symbols(c->a, _mm256_srl_epi16(c->a, by), two);
		mag = _mm256_sll_epi16(_mm256_andnot_si256(one, s), by);
		mag = sort_min(_mm256_or_si256(mag, _mm256_and_si256(one, s)),
		    KERN_ECQ_CAP);
		sum = sort_sum16(mag);
	}
	_mm256_storeu_si256((void *)code, _mm256_or_si256(
	    _mm256_set1_epi16((short)level), _mm256_slli_epi16(s, 6)));
	if (e->mode == KERN_ECQ_PLAIN)
		return s;
	if (e->mode == KERN_ECQ_ABOVE)
		expected = sort_columns(e, sort_widen(mag));
	kern_ecq_follow(e, sum, expected, KERN_ECQ_LANES);
	return s;
}

/* Code a chunk by one model. Return its symbols. */
WIDE_INLINE __m256i
sort_by(struct kern_ecq_expect *e, const struct sort_chunk *c, uint16_t *code, int two)
{
	const __m256i first = _mm256_set1_epi16(KERN_ECQ_CONTEXTS - 1);
	int level = (int)e->level;
	struct sort_pair l, mag;
	uint32_t sum = c->sum, expected;
	__m256i s = c->s, levels, high;

	if (e->mode == KERN_ECQ_PLAIN || kern_ecq_gain(e, &level))
		return sort_one(e, c, level, code, two);
	l = sort_levels(e, level);
	levels = sort_narrow(l);
	high = _mm256_cmpgt_epi16(levels, first);
	if (__builtin_expect(_mm256_testz_si256(high, high), 1)) {
		mag = sort_widen(s);
	} else {
		s = sort_shifted(c->a, l, &mag, two);
		sum = sort_sum(_mm256_add_epi32(mag.v[0], mag.v[1]));
	}
	_mm256_storeu_si256((void *)code, _mm256_or_si256(levels,
	    _mm256_slli_epi16(s, 6)));
	expected = sort_columns(e, mag);
	kern_ecq_follow(e, sum, expected, KERN_ECQ_LANES);
	return s;
}

WIDE_INLINE unsigned
sort_most(__m256i v)
{
	__m128i t = _mm_max_epu16(_mm256_castsi256_si128(v),
	    _mm256_extracti128_si256(v, 1));

	/* the processor has an instruction for the minimum of 8 lanes */
	t = _mm_minpos_epu16(_mm_sub_epi16(_mm_set1_epi16(-1), t));
	return 0xffff - (unsigned)_mm_extract_epi16(t, 0);
}

/* Run k models interleaved: each depends only on its own previous chunk.  Their
 * expectations stay in registers; k is a constant at each call. */
WIDE_INLINE void
sort(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n)
{
	struct kern_ecq_expect a = t[0].m->e, b = t[k > 1].m->e;
	struct kern_ecq_expect c = t[k - 1].m->e;
	__m256i most[KERN_ECQ_MODES] = { _mm256_setzero_si256(),
		_mm256_setzero_si256(), _mm256_setzero_si256() };
	struct sort_chunk in;
	unsigned w;
	size_t i;

	for (i = 0; i + KERN_ECQ_LANES <= n; i += KERN_ECQ_LANES) {
		in = sort_load(q + i, 0);
		most[0] = _mm256_max_epu16(most[0], sort_by(&a, &in, t[0].code + i, 0));
		if (k > 1)
			most[1] = _mm256_max_epu16(most[1],
			    sort_by(&b, &in, t[1].code + i, 0));
		if (k > 2)
			most[2] = _mm256_max_epu16(most[2],
			    sort_by(&c, &in, t[2].code + i, 0));
	}
	t[0].m->e = a;
	if (k > 1)
		t[1].m->e = b;
	if (k > 2)
		t[2].m->e = c;
	for (w = 0; w < k; w++) {
		t[w].top = sort_most(most[w]);
		kern_ecq_sort_some(&t[w], q, i, n);
	}
}

static inline void
kern_ecq_sort_wide(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n)
{
	if (k == 1)
		sort(t, 1, q, n);
	else if (k == 2)
		sort(t, 2, q, n);
	else
		sort(t, 3, q, n);
}

/*
 * ---- counts of symbols ----
 *
 * If a chunk's contexts differ, its symbols are counted one by one.  Most of them are
 * equal, so that each increment would wait for the store of the previous one.  So they
 * are counted in several banks by turns, until the tables change.
 */

enum { BANKS = 4, BANK = KERN_ECQ_SYMBOLS * KERN_ECQ_WIDTH };

struct banks {
	/* n[bank]: counters of ECQ, or of each quantiser of TCQ.  A bank has 64 bytes more than
	 * needed: loads and stores at the same offset of different pages would collide */
	uint32_t n[BANKS][2 * BANK + 16];
};

/* Set at[] to the counter of each value of a chunk: symbol * KERN_ECQ_WIDTH + context, for TCQ
 * plus BANK * quantiser. */
WIDE_INLINE void
banks_places(uint16_t at[KERN_ECQ_LANES], const uint16_t *code)
{
	__m256i v = _mm256_loadu_si256((const void *)code), c, high;

	c = _mm256_and_si256(v, _mm256_set1_epi16(63));
	high = _mm256_add_epi16(_mm256_and_si256(v, _mm256_set1_epi16(1)),
	    _mm256_set1_epi16(KERN_ECQ_CONTEXTS - 2));
	c = _mm256_blendv_epi8(c, high, _mm256_cmpgt_epi16(c,
	    _mm256_set1_epi16(KERN_ECQ_CONTEXTS - 1)));
	/* a symbol begins at bit 6 of a code, and at bit 5 here */
	v = _mm256_slli_epi16(_mm256_srli_epi16(v, 6), 5);
	_mm256_storeu_si256((void *)at, _mm256_or_si256(v, c));
}

/* Add the banks to the counts of m and, if `two' is 1, of the second quantiser, which
 * follows m. Clear the banks. */
static inline void
banks_take(struct banks *b, struct kern_ecq *m, unsigned two)
{
	const size_t n = (size_t)(m->top + 1) * KERN_ECQ_WIDTH;
	__m256i sum, *p;
	unsigned u;
	size_t i;
	int j;

	for (u = 0; u <= two; u++) {
		uint32_t *count = m[u].count[0];	/* all rows, one after another */

		for (i = 0; i < n; i += 8) {
			sum = _mm256_setzero_si256();
#pragma GCC unroll 4
			for (j = 0; j < BANKS; j++) {
				p = (void *)(b->n[j] + (size_t)u * BANK + i);
				sum = _mm256_add_epi32(sum, _mm256_loadu_si256(p));
				_mm256_storeu_si256(p, _mm256_setzero_si256());
			}
			p = (void *)(count + i);
			_mm256_storeu_si256(p, _mm256_add_epi32(
			    _mm256_loadu_si256(p), _mm256_mullo_epi32(sum,
			    _mm256_set1_epi32(KERN_ECQ_STEP))));
		}
	}
}

/* Count a chunk's symbols. Return 1 if there are new tables. */
WIDE_INLINE int
banks_learn(struct banks *b, struct kern_ecq *m, const uint16_t at[KERN_ECQ_LANES],
    unsigned two)
{
	unsigned u;
	int j;

#pragma GCC unroll 16
	for (j = 0; j < KERN_ECQ_LANES; j++)
		b->n[j % BANKS][at[j]]++;
	m[two].chunks += two;
	if (!kern_ecq_due(m))
		return 0;
	banks_take(b, m, two);
	for (u = 0; u <= two; u++)
		kern_ecq_change(m + u);
	return 1;
}

/* Compute the spans of all symbols. */
WIDE_INLINE void
banks_spans(const struct kern_ecq *m, uint32_t t[BANK])
{
	const size_t n = (size_t)(m->top + 1) * KERN_ECQ_WIDTH;
	const uint16_t *from = m->first[0];	/* all rows, one after another */
	__m256i first, next;
	size_t i;

	for (i = 0; i < n; i += 8) {
		first = _mm256_cvtepu16_epi32(_mm_loadu_si128(
		    (const void *)(from + i)));
		next = _mm256_cvtepu16_epi32(_mm_loadu_si128(
		    (const void *)(from + KERN_ECQ_WIDTH + i)));
		next = _mm256_slli_epi32(_mm256_sub_epi32(next, first), 16);
		_mm256_storeu_si256((void *)(t + i), _mm256_or_si256(first, next));
	}
}

/* ecq_spans for chunks with several contexts, or tcq_spans. Return the number of values in
 * whole chunks. */
WIDE_INLINE size_t
spans_above(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span,
    unsigned two)
{
	uint32_t t[2 * BANK];
	struct banks b = { { { 0 } } };
	uint16_t at[KERN_ECQ_LANES];
	unsigned u;
	size_t i, j;
	int new = 1;

	for (i = 0; i + KERN_ECQ_LANES <= n; i += KERN_ECQ_LANES) {
		for (u = 0; new && u <= two; u++)
			banks_spans(m + u, t + (size_t)u * BANK);
		banks_places(at, code + i);
		for (j = 0; j < KERN_ECQ_LANES; j++)
			span[i + j] = t[at[j]];
		new = banks_learn(&b, m, at, two);
	}
	banks_take(&b, m, two);
	return i;
}

/* ---- plain bits ---- */

/* Return the plain bits of eight values, and set *n to their numbers of bits. */
WIDE_INLINE __m256i
low_bits(__m256i q, __m256i code, __m128i two, __m256i *n)
{
	const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi32(1);
	__m256i shift = _mm256_sub_epi32(_mm256_and_si256(code,
	    _mm256_set1_epi32(63)), _mm256_set1_epi32(KERN_ECQ_CONTEXTS - 2));
	__m256i sign = _mm256_cmpeq_epi32(_mm256_and_si256(code,
	    _mm256_set1_epi32(15 << 6)), zero), a;

	shift = _mm256_srli_epi32(_mm256_max_epi32(shift, zero), 1);
	sign = _mm256_and_si256(_mm256_andnot_si256(_mm256_cmpeq_epi32(q, zero), sign),
	    one);
	*n = _mm256_add_epi32(shift, sign);
	sign = _mm256_and_si256(sign, _mm256_srli_epi32(q, 31));
	a = _mm256_srl_epi32(_mm256_abs_epi32(q), two);
	a = _mm256_andnot_si256(_mm256_sllv_epi32(_mm256_set1_epi32(-1), shift), a);
	return _mm256_or_si256(a, _mm256_sllv_epi32(sign, shift));
}

/* Join the bits of pairs of values. */
WIDE_INLINE __m256i
low_pairs(__m256i v, __m256i *n)
{
	const __m256i half = _mm256_set1_epi64x(0xffffffff);
	__m256i first = _mm256_and_si256(*n, half);

	*n = _mm256_add_epi64(first, _mm256_srli_epi64(*n, 32));
	return _mm256_or_si256(_mm256_and_si256(v, half),
	    _mm256_sllv_epi64(_mm256_srli_epi64(v, 32), first));
}

static inline void
kern_ecq_low_wide(const int16_t q[KERN_ECQ_LANES], const uint16_t code[KERN_ECQ_LANES],
    unsigned two, uint64_t low[4], uint64_t bits[4])
{
	const __m128i by = _mm_cvtsi32_si128((int)two);
	__m256i v[2], n[2], first;
	int i;

#pragma GCC unroll 2
	for (i = 0; i < 2; i++) {
		v[i] = low_bits(_mm256_cvtepi16_epi32(_mm_loadu_si128(
		    (const void *)(q + 8 * i))), _mm256_cvtepu16_epi32(
		    _mm_loadu_si128((const void *)(code + 8 * i))), by, &n[i]);
		v[i] = low_pairs(v[i], &n[i]);
	}
	/* the groups of four values come in the order 0 2 1 3 */
	first = _mm256_unpacklo_epi64(n[0], n[1]);
	v[0] = _mm256_or_si256(_mm256_unpacklo_epi64(v[0], v[1]), _mm256_sllv_epi64(
	    _mm256_unpackhi_epi64(v[0], v[1]), first));
	first = _mm256_add_epi64(first, _mm256_unpackhi_epi64(n[0], n[1]));
	_mm256_storeu_si256((void *)low, _mm256_permute4x64_epi64(v[0], 0xd8));
	_mm256_storeu_si256((void *)bits, _mm256_permute4x64_epi64(first, 0xd8));
}

/*
 * ---- counts of one context ----
 *
 * If a chunk has one context, all its symbols are counted together: lane s of a vector
 * has one bit for each value whose symbol is s.
 */

struct column {
	__m256i n[KERN_ECQ_CONTEXTS];	/* u16 for each symbol */
	uint32_t used;			/* bit c is 1 if n[c] has counts */
};

/* Count the symbols s of a chunk, 16 bits per value, in context c. */
WIDE_INLINE void
column_count(struct column *t, unsigned c, __m256i s)
{
	/* not[j]: 0 in the lanes whose number has bit j */
	const __m256i not[4] = { _mm256_set1_epi32(0xffff),
		_mm256_set1_epi64x(0xffffffff),
		_mm256_setr_epi64x(-1, 0, -1, 0), _mm256_setr_epi64x(-1, -1, 0, 0) };
	const __m256i bits = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2,
	    3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
	const __m256i four = _mm256_set1_epi8(15);
	__m256i v = _mm256_set1_epi8(-1);
	__m128i b = _mm_packus_epi16(_mm256_castsi256_si128(s),
	    _mm256_extracti128_si256(s, 1));
	int k;

#pragma GCC unroll 4
	for (k = 0; k < 4; k++)
		v = _mm256_and_si256(v, _mm256_xor_si256(not[k], _mm256_set1_epi16(
		    (short)_mm_movemask_epi8(_mm_slli_epi16(b, 7 - k)))));
	v = _mm256_add_epi8(_mm256_shuffle_epi8(bits, _mm256_and_si256(v, four)),
	    _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(v, 4),
	    four)));
	v = _mm256_maddubs_epi16(v, _mm256_set1_epi8(1));
	t->n[c] = (t->used >> c & 1) != 0 ? _mm256_add_epi16(t->n[c], v) : v;
	t->used |= 1u << c;
}

/* Add the counted symbols to the counts of m. */
static inline void
column_take(struct column *t, struct kern_ecq *m)
{
	uint16_t n[KERN_ECQ_SYMBOLS];
	unsigned c, s;

	for (; t->used != 0; t->used &= t->used - 1) {
		c = (unsigned)__builtin_ctz(t->used);
		_mm256_storeu_si256((void *)n, t->n[c]);
		for (s = 0; s <= m->top; s++)
			m->count[s][c] += (uint32_t)KERN_ECQ_STEP * n[s];
	}
}

WIDE_INLINE int
column_learn(struct column *t, struct kern_ecq *m)
{
	if (!kern_ecq_due(m))
		return 0;
	column_take(t, m);
	kern_ecq_change(m);
	return 1;
}

#endif
