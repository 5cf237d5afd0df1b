#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_tcq.h"
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

/* ---- ecq ---- */

#include "kern/kern_ecq_impl.h"
#include "kern/kern_ecq_wide.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 2")

/* Compare with symbols below this without a branch: a mispredicted branch would cost more. */
enum { SURE = 4 };

/* Compute the spans of the symbols of context c. */
INLINE void
span_column(const struct kern_ecq *m, unsigned c, uint32_t t[KERN_ECQ_SYMBOLS])
{
	unsigned s;

	for (s = 0; s < KERN_ECQ_SYMBOLS; s++)
		t[s] = m->first[s][c] |
		    (uint32_t)(m->first[s + 1][c] - m->first[s][c]) << 16;
}

/* ecq_spans for chunks with one context: the context's spans are two vectors, computed when
 * first needed after the tables changed. Return the number of values in whole chunks. */
INLINE size_t
spans_one(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	uint32_t t[KERN_ECQ_CONTEXTS][KERN_ECQ_SYMBOLS], made = 0;
	struct column count = { .used = 0 };
	__m256i low, high, s, v;
	unsigned c;
	size_t i, j;

	for (i = 0; i + LANES <= n; i += LANES) {
		c = kern_ecq_context(KERN_ECQ_LEVEL(code[i]));
		if ((made >> c & 1) == 0)
			span_column(m, c, t[c]);
		made |= 1u << c;
		low = _mm256_loadu_si256((const void *)t[c]);
		high = _mm256_loadu_si256((const void *)(t[c] + 8));
		s = _mm256_srli_epi16(_mm256_loadu_si256((const void *)(code + i)), 6);
		column_count(&count, c, s);
		for (j = 0; j < LANES; j += 8) {
			s = _mm256_srli_epi32(_mm256_cvtepu16_epi32(
			    _mm_loadu_si128((const void *)(code + i + j))), 6);
			v = _mm256_castps_si256(_mm256_blendv_ps(
			    _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(
			    low, s)), _mm256_castsi256_ps(
			    _mm256_permutevar8x32_epi32(high, s)),
			    _mm256_castsi256_ps(_mm256_slli_epi32(s, 28))));
			_mm256_storeu_si256((void *)(span + i + j), v);
		}
		if (column_learn(&count, m))
			made = 0;
	}
	column_take(&count, m);
	return i;
}

/* The lanes of a chunk, in two halves. */
struct pair {
	__m256i v[2];
};

INLINE struct pair
load(const int32_t a[LANES])
{
	const __m256i *p = (const void *)a;
	struct pair r = { { _mm256_loadu_si256(p), _mm256_loadu_si256(p + 1) } };

	return r;
}

INLINE void
store(void *a, struct pair r)
{
	__m256i *p = a;

	_mm256_storeu_si256(p, r.v[0]);
	_mm256_storeu_si256(p + 1, r.v[1]);
}

/* Return for each lane j of eight the number of 1 bits in the j low bits of mask. */
INLINE __m256i
below(unsigned mask)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t v = ((mask * ones & 0x8040201008040201) +
	    0x7f7f7f7f7f7f7f7f) >> 7 & ones;

	v = v * ones - v;
	return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)&v));
}

struct found {
	struct pair s, first, next;
};

INLINE int
above(struct found *f, const struct pair *slot, __m256i ta, __m256i tb)
{
	const __m256i one = _mm256_set1_epi32(1);
	__m256i t[2] = { ta, tb }, k[2];
	int i;

	UNROLL
	for (i = 0; i < 2; i++) {
		k[i] = _mm256_cmpgt_epi32(slot->v[i], _mm256_sub_epi32(t[i], one));
		f->first.v[i] = _mm256_blendv_epi8(f->first.v[i], t[i], k[i]);
		f->next.v[i] = _mm256_blendv_epi8(_mm256_min_epi32(
		    f->next.v[i], t[i]), f->next.v[i], k[i]);
		f->s.v[i] = _mm256_sub_epi32(f->s.v[i], k[i]);
	}
	k[0] = _mm256_or_si256(k[0], k[1]);
	return !_mm256_testz_si256(k[0], k[0]);
}

INLINE __m256i
look(const uint16_t *row, __m256i c)
{
	return _mm256_and_si256(_mm256_set1_epi32(0xffff),
	    _mm256_i32gather_epi32((const void *)row, c, 2));
}

/* Find the symbol of each lane's slot. odd: lanes of TCQ's second quantiser, whose tables
 * follow those of m; NULL for ECQ. */
INLINE struct found
find(const struct kern_ecq *m, const int32_t l[LANES], int same,
    const struct pair *slot, const struct pair *odd)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i all = _mm256_set1_epi32(1 << KERN_ECQ_BITS);
	struct found f = { { { zero, zero } }, { { zero, zero } },
		{ { all, all } } };
	const __m256i behind = _mm256_set1_epi32(sizeof(*m) / 2);
	unsigned one = kern_ecq_context((unsigned)l[0]), i;
	int32_t c[LANES], j;
	struct pair at;
	__m256i t, u;

	if (same) {
		for (i = 1; i < SURE || i <= m->top; i++) {
			t = u = _mm256_set1_epi32(m->first[i][one]);
			if (odd != NULL) {
				u = _mm256_set1_epi32((m + 1)->first[i][one]);
				at.v[0] = _mm256_blendv_epi8(t, u, odd->v[0]);
				u = _mm256_blendv_epi8(t, u, odd->v[1]);
				t = at.v[0];
			}
			if (!above(&f, slot, t, u) && i >= SURE)
				break;
		}
		return f;
	}
	ALL
		c[j] = (int32_t)kern_ecq_context((unsigned)l[j]);
	at = load(c);
	UNROLL
	for (j = 0; odd != NULL && j < 2; j++)
		at.v[j] = _mm256_add_epi32(at.v[j],
		    _mm256_and_si256(odd->v[j], behind));
	for (i = 1; i < SURE || i <= m->top; i++)
		if (!above(&f, slot, look(m->first[i], at.v[0]),
		    look(m->first[i], at.v[1])) && i >= SURE)
			break;
	return f;
}

/* Return the states of half of the lanes, each after one more symbol; *p has a word for
 * each lane. */
INLINE __m256i
next(__m256i x, __m256i slot, __m256i first, __m256i end, const unsigned char **p)
{
	__m256i k, w;
	unsigned mask;

	x = _mm256_mullo_epi32(_mm256_srli_epi32(x, KERN_ECQ_BITS),
	    _mm256_sub_epi32(end, first));
	x = _mm256_add_epi32(x, _mm256_sub_epi32(slot, first));
	k = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), _mm256_setzero_si256());
	mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(k));
	w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)*p));
	w = _mm256_permutevar8x32_epi32(w, below(mask));
	*p += 2 * __builtin_popcount(mask);
	return _mm256_blendv_epi8(x, _mm256_or_si256(_mm256_slli_epi32(x, 16), w), k);
}

static int
ecq_get(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	const __m256i low = _mm256_set1_epi32((1 << KERN_ECQ_BITS) - 1);
	int32_t l[LANES], s[LANES];
	struct pair x, slot;
	struct found f;
	const unsigned char *p = g->p;
	size_t i;
	int same, j;

	if (g->states != LANES)
		return kern_ecq_get(m, g, code, n);
	x = load((const void *)g->x);
	for (i = 0; i + LANES <= n && g->end - p >= 2 * LANES; i += LANES) {
		same = loop_levels(&m->e, l);
		UNROLL
		for (j = 0; j < 2; j++)
			slot.v[j] = _mm256_and_si256(x.v[j], low);
		f = find(m, l, same, &slot, NULL);
		UNROLL
		for (j = 0; j < 2; j++)
			x.v[j] = next(x.v[j], slot.v[j], f.first.v[j], f.next.v[j], &p);
		store(s, f.s);
		loop_codes(code + i, l, s);
		loop_count(m, l, s, same);
		loop_done(&m->e, l, s, same);
		kern_ecq_learn(m);
	}
	store(g->x, x);
	g->p = p;
	return kern_ecq_get_some(m, g, code + i, n - i);
}

/* Return the lanes whose state x must output a word before a symbol of f slots. */
INLINE __m256i
full(__m256i x, __m256i f)
{
	__m256i most = _mm256_slli_epi32(f, 32 - KERN_ECQ_BITS);

	return _mm256_cmpeq_epi32(_mm256_max_epu32(x, most), x);
}

/* Return the states x of half of the lanes after symbols of f slots; v: their spans; k:
 * the lanes that output a word. The quotient x / f or x / 2^16 / f is below 2^17, inv is
 * less than 1 / f by 4 to 6 parts of 2^24, and each of three roundings is less than 1. So
 * q is the quotient or one less, which the remainder decides; its product is computed in
 * parallel with the product of q and the rest. */
INLINE __m256i
into(__m256i x, __m256i v, __m256i f, __m256i k)
{
	const __m256i low = _mm256_set1_epi32(0xffff);
	__m256 inv = _mm256_div_ps(_mm256_set1_ps(1 - 0x5p-24f),
	    _mm256_cvtepi32_ps(f)), y;
	__m256i rest = _mm256_sub_epi32(_mm256_set1_epi32(1 << KERN_ECQ_BITS),
	    f), high = _mm256_srli_epi32(x, 16), q, left;

	y = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(65536),
	    _mm256_cvtepi32_ps(high)),
	    _mm256_cvtepi32_ps(_mm256_and_si256(x, low)));
	inv = _mm256_blendv_ps(inv, _mm256_mul_ps(inv,
	    _mm256_set1_ps(0x1p-16f)), _mm256_castsi256_ps(k));
	q = _mm256_cvttps_epi32(_mm256_mul_ps(y, inv));
	x = _mm256_blendv_epi8(x, high, k);
	left = _mm256_sub_epi32(x, _mm256_mullo_epi32(q, f));
	x = _mm256_add_epi32(x, _mm256_and_si256(v, low));
	x = _mm256_add_epi32(x, _mm256_mullo_epi32(q, rest));
	return _mm256_add_epi32(x, _mm256_andnot_si256(
	    _mm256_cmpgt_epi32(f, left), rest));
}

static unsigned char *
ecq_put(uint32_t *state, unsigned states, const uint32_t *span,
    size_t n, unsigned char *w)
{
	size_t i = n - n % LANES;
	uint32_t at[LANES];
	struct pair x, v, f, k;
	unsigned mask;
	int j;

	if (states != LANES)
		return kern_ecq_put(state, states, span, n, w);
	w = kern_ecq_put(state, states, span + i, n - i, w);
	x = load((const void *)state);
	for (; i > 0; i -= LANES) {
		v = load((const void *)(span + i - LANES));
		UNROLL
		for (j = 0; j < 2; j++) {
			f.v[j] = _mm256_srli_epi32(v.v[j], 16);
			k.v[j] = full(x.v[j], f.v[j]);
		}
		mask = (unsigned)_mm256_movemask_ps(
		    _mm256_castsi256_ps(k.v[0])) |
		    (unsigned)_mm256_movemask_ps(
		    _mm256_castsi256_ps(k.v[1])) << 8;
		store(at, x);
		/* few lanes output a word: store the words one by one, the last first */
		for (; mask != 0; mask ^= 1u << j) {
			j = 31 - __builtin_clz(mask);
			w -= 2;
			memcpy(w, &at[j], 2);
		}
		UNROLL
		for (j = 0; j < 2; j++)
			x.v[j] = into(x.v[j], v.v[j], f.v[j], k.v[j]);
	}
	store(state, x);
	return w;
}

/* Decode the values of ECQ, or of TCQ if `two' is 1. */
INLINE void
values(float *x, const uint16_t *code, const uint32_t *mark, size_t n,
    const float *of, int two)
{
	const __m256 low = _mm256_loadu_ps(of), high = _mm256_loadu_ps(of + 8);
	__m256i s, neg, some;
	const __m256i symbol = _mm256_set1_epi32(KERN_ECQ_SYMBOLS - 1);
	unsigned mask, signs;
	size_t i, j;
	__m256 v;

	for (i = 0; i + LANES <= n; i += LANES) {
		signs = *mark++ & 0xffff;
		for (j = i; j < i + LANES; j += 8) {
			s = _mm256_srli_epi32(_mm256_cvtepu16_epi32(
			    _mm_loadu_si128((const void *)(code + j))), 6);
			some = _mm256_cmpgt_epi32(_mm256_and_si256(s, symbol),
			    _mm256_setzero_si256());
			mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(some));
			neg = _mm256_srlv_epi32(
			    _mm256_set1_epi32((int)signs), below(mask));
			neg = _mm256_and_si256(_mm256_slli_epi32(neg, 31), some);
			signs >>= __builtin_popcount(mask);
			v = _mm256_blendv_ps(
			    _mm256_permutevar8x32_ps(low, s),
			    _mm256_permutevar8x32_ps(high, s),
			    _mm256_castsi256_ps(_mm256_slli_epi32(s, 28)));
			if (two)
				v = _mm256_blendv_ps(v, _mm256_blendv_ps(
				    _mm256_permutevar8x32_ps(
				    _mm256_loadu_ps(of + 16), s),
				    _mm256_permutevar8x32_ps(
				    _mm256_loadu_ps(of + 24), s),
				    _mm256_castsi256_ps(_mm256_slli_epi32(s,
				    28))), _mm256_castsi256_ps(
				    _mm256_slli_epi32(s, 27)));
			_mm256_storeu_ps(x + j, _mm256_xor_ps(v,
			    _mm256_castsi256_ps(neg)));
		}
	}
	kern_ecq_values(x + i, code + i, mark, n - i, of);
}

/* Return the mask, one bit per lane, of 16 lanes of 16 bits. */
INLINE unsigned
mask_of(__m256i k)
{
	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(
	    _mm256_castsi256_si128(k), _mm256_extracti128_si256(k, 1)));
}

/* Return one bit for each lane in the mask `some', from the lowest lane on: 1 where neg, of
 * 16 bits per lane, is not 0. */
INLINE uint32_t
signs(__m256i neg, unsigned some)
{
	const struct sort_pair k = sort_widen(neg);
	const int low = __builtin_popcount(some & 255);

	return sort_sum(_mm256_add_epi32(_mm256_and_si256(k.v[0],
	    _mm256_sllv_epi32(_mm256_set1_epi32(1), below(some & 255))),
	    _mm256_and_si256(k.v[1], _mm256_sllv_epi32(
	    _mm256_set1_epi32(1 << low), below(some >> 8)))));
}

static void
ecq_marks(const uint16_t *code, const int16_t *q, size_t n, uint32_t *mark,
    unsigned escape)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i c, l, rest, some;
	unsigned mask, neg;
	size_t i;

	for (i = 0; i + LANES <= n; i += LANES) {
		c = _mm256_and_si256(_mm256_loadu_si256((const void *)(code + i)),
		    _mm256_set1_epi16(1023));
		l = _mm256_and_si256(c, _mm256_set1_epi16(63));
		rest = _mm256_or_si256(_mm256_cmpgt_epi16(l,
		    _mm256_set1_epi16(KERN_ECQ_CONTEXTS - 1)),
		    _mm256_cmpgt_epi16(c, _mm256_set1_epi16(
		    (short)((escape << 6) - 1))));
		some = _mm256_cmpgt_epi16(c, _mm256_set1_epi16(63));
		mask = mask_of(some);
		neg = q == NULL ? 0 : signs(_mm256_and_si256(some, _mm256_cmpgt_epi16(
		    zero, _mm256_loadu_si256((const void *)(q + i)))), mask);
		*mark++ = neg | (uint32_t)__builtin_popcount(mask) << 16 |
		    (uint32_t)!_mm256_testz_si256(rest, rest) << 24;
	}
	kern_ecq_marks(code + i, q != NULL ? q + i : NULL, n - i, mark, escape);
}

static void
ecq_spans(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	size_t i = m->e.mode == KERN_ECQ_ABOVE ? spans_above(m, code, n, span, 0) :
	    spans_one(m, code, n, span);

	kern_ecq_spans(m, code + i, n - i, span + i);
}

static void
ecq_values(float *x, const uint16_t *code, const uint32_t *mark, size_t n,
    const float of[KERN_ECQ_SYMBOLS])
{
	values(x, code, mark, n, of, 0);
}

static void
tcq_values(float *x, const uint16_t *code, const uint32_t *mark, size_t n,
    const float of[2 * KERN_ECQ_SYMBOLS])
{
	values(x, code, mark, n, of, 1);
}

#include "kern/kern_tcq_avx2.h"

static int
tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	const __m256i low = _mm256_set1_epi32((1 << KERN_ECQ_BITS) - 1);
	struct banks b = { { { 0 } } };
	__m256i state = tcq_states(m), c, s;
	int32_t l[LANES], a[LANES];
	struct pair x, slot, odd;
	struct found f;
	const unsigned char *p = g->p;
	uint16_t at[LANES];
	size_t i;
	int same, j;

	if (g->states != LANES)
		return kern_tcq_get(m, g, code, n);
	x = load((const void *)g->x);
	for (i = 0; i + LANES <= n && g->end - p >= 2 * LANES; i += LANES) {
		same = loop_levels(&m->m.e, l);
		c = tcq_quantiser(state);
		odd.v[0] = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(c));
		odd.v[1] = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(c, 1));
		UNROLL
		for (j = 0; j < 2; j++) {
			slot.v[j] = _mm256_and_si256(x.v[j], low);
			odd.v[j] = _mm256_cmpgt_epi32(odd.v[j], _mm256_setzero_si256());
		}
		f = find(&m->m, l, same, &slot, &odd);
		UNROLL
		for (j = 0; j < 2; j++)
			x.v[j] = next(x.v[j], slot.v[j], f.first.v[j], f.next.v[j], &p);
		s = sort_narrow((struct sort_pair){ { f.s.v[0], f.s.v[1] } });
		state = tcq_next(state, s);
		store(a, f.s);
		loop_codes(code + i, l, a);
		c = _mm256_or_si256(c, _mm256_loadu_si256((const void *)(code + i)));
		_mm256_storeu_si256((void *)(code + i), c);
		banks_places(at, code + i);
		if (m->m.e.mode != KERN_ECQ_PLAIN) {
			ALL
				a[j] = kern_tcq_counted((unsigned)a[j],
				    kern_ecq_shift((unsigned)l[j]));
			loop_follow(&m->m.e, a);
		}
		(void)banks_learn(&b, &m->m, at, 1);
	}
	banks_take(&b, &m->m, 1);
	tcq_keep(m, state);
	store(g->x, x);
	g->p = p;
	return kern_tcq_get(m, g, code + i, n - i);
}

#define ROWS \
	WIDE_ROWS, \
	.ecq_sort = kern_ecq_sort_wide, \
	.ecq_spans = ecq_spans, \
	.ecq_marks = ecq_marks, \
	.ecq_low = kern_ecq_low_wide, \
	.ecq_values = ecq_values, \
	.tcq_sort = tcq_sort, \
	.tcq_spans = tcq_spans, \
	.tcq_walk = tcq_walk, \
	.tcq_values = tcq_values

const struct kern kern_avx2 = {
	.name = "avx2", ROWS,
	.at_least = wide_at_least, .ecq_put = ecq_put,
	.ecq_get = ecq_get, .tcq_get = tcq_get
};
const struct kern kern_avx512 = {
	.name = "avx512", ROWS,
	.at_least = kern_avx512_at_least, .ecq_put = kern_avx512_put,
	.ecq_get = kern_avx512_get, .tcq_get = kern_avx512_tcq_get
};

#else

const struct kern kern_avx2 = { .name = NULL }, kern_avx512 = { .name = NULL };

#endif
