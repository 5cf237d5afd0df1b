#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_tcq.h"
#include "kern/ref.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && \
    defined(__AVX512VL__) && defined(__AVX512DQ__)

#include <immintrin.h>
#include <string.h>

#include "kern/kern_ecq_wide.h"

enum { LANES = KERN_ECQ_LANES };

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i
lanes(void)
{
	return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

size_t
kern_avx512_at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	__m512i place = lanes(), v;
	__mmask16 k;
	size_t i, m = 0;

	for (i = 0; i + LANES <= n; i += LANES) {
		v = _mm512_and_si512(_mm512_loadu_si512(x + i),
		    _mm512_set1_epi32(INT32_MAX));
		k = _mm512_cmpge_epu32_mask(v, _mm512_set1_epi32((int)t));
		/* m <= i, so that `at' has room for all lanes */
		_mm512_storeu_si512(at + m, _mm512_maskz_compress_epi32(k, place));
		m += (unsigned)__builtin_popcount(k);
		place = _mm512_add_epi32(place, _mm512_set1_epi32(LANES));
	}
	return m + kern_ref_at_least(at + m, x, i, n, t);
}

/* ---- ecq ---- */

/* Return a row of tables at the contexts c, 32 bits each. */
static inline __m512i
row(const uint16_t t[KERN_ECQ_WIDTH], __m512i c)
{
	return _mm512_maskz_permutexvar_epi16(0x55555555, c, _mm512_loadu_si512(t));
}

static inline __m512i
contexts(__m512i l)
{
	__m512i top = _mm512_set1_epi32(KERN_ECQ_CONTEXTS);

	return _mm512_mask_add_epi32(l, _mm512_cmpge_epi32_mask(l, top),
	    _mm512_set1_epi32(KERN_ECQ_CONTEXTS - 2),
	    _mm512_and_si512(l, _mm512_set1_epi32(1)));
}

static inline __m512i
shifts(__m512i l)
{
	return _mm512_srli_epi32(_mm512_max_epi32(_mm512_sub_epi32(l,
	    _mm512_set1_epi32(KERN_ECQ_CONTEXTS - 2)),
	    _mm512_setzero_si512()), 1);
}

static inline __m512i
counted(__m512i l, __m512i s)
{
	return _mm512_min_epi32(_mm512_sllv_epi32(s, shifts(l)),
	    _mm512_set1_epi32(KERN_ECQ_CAP));
}

/* Set *l to the levels of a full chunk. If the model gives a single level, set *one to it and
 * return 1; otherwise return 0. */
INLINE int
levels(const struct kern_ecq_expect *e, int *one, __m512i *l)
{
	__m512i a, z = _mm512_setzero_si512();

	*one = (int)e->level;
	if (e->mode == KERN_ECQ_PLAIN || kern_ecq_gain(e, one)) {
		*l = _mm512_set1_epi32(*one);
		return 1;
	}
	a = _mm512_add_epi32(_mm512_loadu_si512(e->above + e->at - e->stride),
	    _mm512_set1_epi32(e->base));
	a = _mm512_srli_epi32(_mm512_castps_si512(_mm512_cvtepi32_ps(a)), 20);
	a = _mm512_add_epi32(a, _mm512_set1_epi32(*one));
	*l = _mm512_min_epi32(_mm512_max_epi32(_mm512_srai_epi32(a, 2), z),
	    _mm512_set1_epi32(KERN_ECQ_LEVELS - 1));
	return 0;
}

/* Update the means with the magnitudes of a chunk. */
INLINE void
done(struct kern_ecq_expect *e, __m512i mag)
{
	__m512i old = _mm512_setzero_si512(), d;
	uint32_t sum, expected = 0;

	if (e->mode == KERN_ECQ_PLAIN)
		return;
	sum = (uint32_t)_mm512_reduce_add_epi32(mag);
	if (e->mode == KERN_ECQ_ABOVE) {
		if (e->row > 0)
			old = _mm512_loadu_si512(e->above + e->at - e->stride);
		expected = (uint32_t)_mm512_reduce_add_epi32(old);
		d = _mm512_sub_epi32(_mm512_slli_epi32(mag, 12), old);
		d = _mm512_mullo_epi32(d, _mm512_set1_epi32(kern_ecq_pace(e->row)));
		_mm512_storeu_si512(e->above + e->at,
		    _mm512_add_epi32(old, _mm512_srai_epi32(d, 8)));
	}
	kern_ecq_follow(e, sum, expected, LANES);
}

/* For each lane's slot: its symbol; its symbol's first slot; the next symbol's first slot. */
struct found {
	__m512i s, first, next;
};

static inline __mmask16
above(struct found *f, __m512i slot, __m512i t)
{
	__mmask16 k = _mm512_cmpge_epu32_mask(slot, t);

	f->first = _mm512_mask_mov_epi32(f->first, k, t);
	f->next = _mm512_mask_min_epu32(f->next, (__mmask16)~k, f->next, t);
	f->s = _mm512_mask_sub_epi32(f->s, k, f->s, _mm512_set1_epi32(-1));
	return k;
}

/* Compare with symbols below this without a branch: a mispredicted branch would cost more. */
enum { SURE = 4 };

/* A chunk before it is decoded. */
struct chunk {
	__m512i l, c;		/* levels; contexts, unless same is 1 */
	unsigned one;		/* the context if same is 1 */
	int same;
	__mmask16 odd;		/* lanes of TCQ's second quantiser */
};

/* Return where symbol i begins in each lane. */
static inline __m512i
begins(const struct kern_ecq *m, const struct chunk *h, unsigned i, int two)
{
	__m512i t;

	if (h->same) {
		t = _mm512_set1_epi32(m->first[i][h->one]);
		return two ? _mm512_mask_set1_epi32(t, h->odd,
		    (m + 1)->first[i][h->one]) : t;
	}
	t = row(m->first[i], h->c);
	return two ? _mm512_mask_mov_epi32(t, h->odd, row((m + 1)->first[i], h->c)) : t;
}

/* Return the symbols of slots. The tables of TCQ's second quantiser follow m. */
static inline struct found
symbols(const struct kern_ecq *m, const struct chunk *h, __m512i slot, int two)
{
	struct found f = { _mm512_setzero_si512(), _mm512_setzero_si512(),
		_mm512_set1_epi32(1 << KERN_ECQ_BITS) };
	unsigned i, top = m->top;

	for (i = 1; i < SURE; i++)
		(void)above(&f, slot, begins(m, h, i, two));
	for (; i <= top && above(&f, slot, begins(m, h, i, two)) != 0; i++)
		continue;
	return f;
}

/* Copy the group of `states' lanes that begins at lane `from' to all groups of lanes. */
static inline __m512i
spread(__m512i x, unsigned states, unsigned from)
{
	if (states == LANES)
		return x;
	return _mm512_permutexvar_epi32(_mm512_add_epi32(
	    _mm512_and_si512(lanes(), _mm512_set1_epi32((int)states - 1)),
	    _mm512_set1_epi32((int)from)), x);
}

/* Take the words that lanes k need from *p. Return -1 if there are too few. */
INLINE int
take(const unsigned char **p, const unsigned char *end, __mmask16 k, __m512i *w)
{
	size_t room = (size_t)(end - *p) / 2;
	unsigned n = (unsigned)__builtin_popcount(k);

	if (n > room)
		return -1;
	*w = _mm512_maskz_expand_epi32(k, _mm512_cvtepu16_epi32(
	    room >= LANES ? _mm256_loadu_si256((const void *)
	    *p) : _mm256_maskz_loadu_epi16((__mmask16)((1u << room) - 1),
	    *p)));
	*p += 2 * n;
	return 0;
}

/* Decode a chunk's symbols, in each turn as many as there are states. Every group of `states'
 * lanes holds the states; each turn uses one group. Return 0, or -1 if words are missing. */
INLINE int
decode(const struct kern_ecq *m, const struct chunk *h, unsigned states,
    __m512i *x, struct kern_ecq_get *g, __m512i *s, int two)
{
	__m512i slot, w, y;
	struct found f;
	__mmask16 k, turn = (__mmask16)((1u << states) - 1);
	unsigned i;

	for (i = 0; i < LANES; i += states) {
		slot = _mm512_and_si512(*x,
		    _mm512_set1_epi32((1 << KERN_ECQ_BITS) - 1));
		f = symbols(m, h, slot, two);
		y = _mm512_mullo_epi32(_mm512_srli_epi32(*x, KERN_ECQ_BITS),
		    _mm512_sub_epi32(f.next, f.first));
		y = _mm512_add_epi32(y, _mm512_sub_epi32(slot, f.first));
		k = _mm512_mask_cmplt_epu32_mask((__mmask16)(turn << i), y,
		    _mm512_set1_epi32(KERN_ECQ_LOW));
		if (take(&g->p, g->end, k, &w) < 0)
			return -1;
		y = _mm512_mask_or_epi32(y, k, _mm512_slli_epi32(y, 16), w);
		*x = spread(y, states, i);
		*s = states == LANES ? f.s : _mm512_mask_mov_epi32(*s,
		    (__mmask16)(turn << i), f.s);
	}
	return 0;
}

/* ecq_get for 4, 8 or 16 states; mode is a constant at each call. */
INLINE int
get(struct kern_ecq *m, struct kern_ecq_get *from, uint16_t *code, size_t n,
    unsigned states, enum kern_ecq_mode mode)
{
	__m512i x = spread(_mm512_maskz_loadu_epi32(
	    (__mmask16)((1u << states) - 1), from->x), states, 0);
	__m512i s = _mm512_setzero_si512();
	struct kern_ecq_get g = *from;
	struct chunk h = { s, s, 0, 0, 0 };
	struct column count = { .used = 0 };
	struct banks b;
	uint16_t at[LANES];
	size_t i;
	int one;

	if (mode == KERN_ECQ_ABOVE)
		memset(&b, 0, sizeof(b));
	for (i = 0; i + LANES <= n; i += LANES) {
		h.same = levels(&m->e, &one, &h.l) || mode != KERN_ECQ_ABOVE;
		if (h.same)
			h.one = kern_ecq_context((unsigned)one);
		else
			h.c = contexts(h.l);
		if (decode(m, &h, states, &x, &g, &s, 0) < 0)
			return -1;
		_mm256_storeu_si256((__m256i *)(void *)(code + i),
		    _mm512_cvtepi32_epi16(_mm512_or_si512(h.l,
		    _mm512_slli_epi32(s, 6))));
		if (mode == KERN_ECQ_ABOVE)
			banks_places(at, code + i);
		else
			column_count(&count, h.one, _mm512_cvtepi32_epi16(s));
		if (mode != KERN_ECQ_PLAIN)
			done(&m->e, counted(h.l, s));
		if (mode == KERN_ECQ_ABOVE)
			(void)banks_learn(&b, m, at, 0);
		else
			(void)column_learn(&count, m);
	}
	if (mode == KERN_ECQ_ABOVE)
		banks_take(&b, m, 0);
	else
		column_take(&count, m);
	_mm512_mask_storeu_epi32(g.x, (__mmask16)((1u << states) - 1), x);
	*from = g;
	return kern_ecq_get_some(m, from, code + i, n - i);
}

INLINE int
get_mode(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n,
    unsigned states)
{
	return m->e.mode == KERN_ECQ_PLAIN ?
	    get(m, g, code, n, states, KERN_ECQ_PLAIN) :
	    m->e.mode == KERN_ECQ_LEFT ?
	    get(m, g, code, n, states, KERN_ECQ_LEFT) :
	    get(m, g, code, n, states, KERN_ECQ_ABOVE);
}

int
kern_avx512_get(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	return g->states == LANES ? get_mode(m, g, code, n, LANES) :
	    g->states >= 4 ? get_mode(m, g, code, n, g->states) :
	    kern_ecq_get(m, g, code, n);
}

/* Return states x after symbols of f slots; k: lanes that output a word. The quotient x
 * / f or x / 2^16 / f is below 2^17, c / f is less than 1 / f by 4 to 6 parts of 2^24,
 * and each rounding is less than 1. So q is the quotient or one less, which the
 * remainder decides. The remainder fits 16 bits, so a 16-bit product suffices, which is twice
 * as fast; the product of q and the rest is computed in parallel. */
INLINE __m512i
into(__m512i x, __m512i v, __m512i f, __mmask16 k)
{
	const __m512 c = _mm512_set1_ps(1 - 0x5p-24f);
	__m512 inv = _mm512_div_ps(c, _mm512_cvtepi32_ps(f));
	__m512i rest = _mm512_sub_epi32(
	    _mm512_set1_epi32(1 << KERN_ECQ_BITS), f), q, left;

	inv = _mm512_mask_mul_ps(inv, k, inv, _mm512_set1_ps(0x1p-16f));
	q = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_cvtepu32_ps(x), inv));
	x = _mm512_mask_srli_epi32(x, k, x, 16);
	left = _mm512_sub_epi16(x, _mm512_mullo_epi16(q, f));
	left = _mm512_and_si512(left, _mm512_set1_epi32(0xffff));
	x = _mm512_add_epi32(x, _mm512_and_si512(v, _mm512_set1_epi32(0xffff)));
	x = _mm512_add_epi32(x, _mm512_mullo_epi32(q, rest));
	return _mm512_mask_add_epi32(x, _mm512_cmpge_epi32_mask(left, f), x, rest);
}

unsigned char *
kern_avx512_put(uint32_t *state, unsigned states, const uint32_t *span,
    size_t n, unsigned char *w)
{
	size_t whole = n - n % LANES, i;
	__m512i x, f, v;
	__mmask16 k, turn = (__mmask16)((1u << states) - 1);
	unsigned out, j;

	if (states < LANES / 2)
		return kern_ecq_put(state, states, span, n, w);
	w = kern_ecq_put(state, states, span + whole, n - whole, w);
	x = spread(_mm512_maskz_loadu_epi32(turn, state), states, 0);
	for (i = whole, j = LANES; i > 0; i -= j == LANES ? LANES : 0) {
		j -= states;
		v = _mm512_loadu_si512(span + i - LANES);
		f = _mm512_srli_epi32(v, 16);
		k = _mm512_mask_cmpge_epu32_mask((__mmask16)(turn << j), x,
		    _mm512_slli_epi32(f, 32 - KERN_ECQ_BITS));
		out = (unsigned)__builtin_popcount(k);
		w -= 2 * out;
		_mm256_mask_storeu_epi16(w, (__mmask16)((1u << out) - 1),
		    _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(k, x)));
		x = spread(into(x, v, f, k), states, j);
		j = j == 0 ? LANES : j;
	}
	_mm512_mask_storeu_epi32(state, turn, x);
	return w;
}

#include "kern/kern_tcq_avx2.h"

INLINE int
tcq_get_from(struct kern_tcq *m, struct kern_ecq_get *from, uint16_t *code,
    size_t n, unsigned states)
{
	__m512i x = spread(_mm512_maskz_loadu_epi32(
	    (__mmask16)((1u << states) - 1), from->x), states, 0);
	const __m512i one = _mm512_set1_epi32(1);
	struct banks b = { { { 0 } } };
	struct kern_ecq_get g = *from;
	__m512i s = _mm512_setzero_si512(), odd;
	__m256i state = tcq_states(m), c;
	struct chunk h = { s, s, 0, 0, 0 };
	uint16_t at[LANES];
	size_t i;
	int level;

	for (i = 0; i + LANES <= n; i += LANES) {
		h.same = levels(&m->m.e, &level, &h.l);
		h.one = kern_ecq_context((unsigned)level);
		if (!h.same)
			h.c = contexts(h.l);
		h.odd = _mm256_movepi16_mask(_mm256_slli_epi16(state, 15));
		if (decode(&m->m, &h, states, &x, &g, &s, 1) < 0)
			return -1;
		c = _mm512_cvtepi32_epi16(_mm512_or_si512(h.l,
		    _mm512_slli_epi32(s, 6)));
		_mm256_storeu_si256((void *)(code + i), _mm256_or_si256(c,
		    tcq_quantiser(state)));
		state = tcq_next(state, _mm512_cvtepi32_epi16(s));
		banks_places(at, code + i);
		if (m->m.e.mode != KERN_ECQ_PLAIN) {
			odd = _mm512_and_si512(s, one);
			s = _mm512_sllv_epi32(_mm512_sub_epi32(s, odd), shifts(h.l));
			done(&m->m.e, _mm512_min_epi32(_mm512_or_si512(s, odd),
			    _mm512_set1_epi32(KERN_ECQ_CAP)));
		}
		(void)banks_learn(&b, &m->m, at, 1);
	}
	banks_take(&b, &m->m, 1);
	tcq_keep(m, state);
	_mm512_mask_storeu_epi32(g.x, (__mmask16)((1u << states) - 1), x);
	*from = g;
	return kern_tcq_get(m, from, code + i, n - i);
}

int
kern_avx512_tcq_get(struct kern_tcq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	return g->states == LANES ? tcq_get_from(m, g, code, n, LANES) :
	    g->states >= 4 ? tcq_get_from(m, g, code, n, g->states) :
	    kern_tcq_get(m, g, code, n);
}

#endif
