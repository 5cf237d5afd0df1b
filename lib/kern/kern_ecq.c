#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_ecq_impl.h"

enum { TRUST = 256 };		/* sum of a context's initial counts */

/* Magnitudes are assumed to be geometric, with a mean above that of the level (kern_ecq.h). */
const uint16_t kern_ecq_some[KERN_ECQ_CONTEXTS] = {
	353, 437, 542, 678, 852, 1077, 1369, 1752, 2254,
	2914, 3783, 4923, 6410, 8331, 10779, 13833, 17540, 21889,
	26780, 32023, 37355, 42492, 47185, 51267,
};

int
kern_ecq_rows(size_t cols, size_t n)
{
	size_t stride = cols;

	if (stride < KERN_ECQ_LANES)
		stride *= (KERN_ECQ_LANES + cols - 1) / cols;
	return cols > 1 && stride <= n / 2;
}

void
kern_ecq_start(struct kern_ecq *m, enum kern_ecq_mode mode, unsigned level,
    size_t cols, uint64_t offset, int32_t *above)
{
	uint32_t mean = (2 + level % 2) << level / 2 >> 1;	/* in units of 2^-10 */

	memset(m, 0, sizeof(*m));
	m->e.near = m->e.far = m->e.near_above = m->e.far_above = mean << 6;
	m->e.base = (int32_t)(mean / 2 + 2);
	m->e.above = above;
	m->e.stride = cols < KERN_ECQ_LANES ?
	    (KERN_ECQ_LANES + cols - 1) / cols * cols : cols;
	m->e.cols = cols;
	m->e.col = offset % cols;
	m->e.level = level;
	m->e.mode = mode;
}

void
kern_ecq_tables(struct kern_ecq *m, unsigned top)
{
	uint32_t t, more, next;
	unsigned c, s;

	m->top = top;
	for (s = 0; s <= KERN_ECQ_SYMBOLS; s++)
		for (c = 0; c < KERN_ECQ_WIDTH; c++)
			m->first[s][c] = s > 0 ? 1u << KERN_ECQ_BITS : 0;
	for (c = 0; c < KERN_ECQ_WIDTH; c++) {
		t = kern_ecq_some[c < KERN_ECQ_CONTEXTS ? c : KERN_ECQ_CONTEXTS - 1];
		more = (t * t >> 16) + 2048;
		m->count[0][c] = TRUST - (t >> 8);
		for (s = 1; s <= top; s++, t = next) {
			next = s < top ? t * more >> 16 : 0;
			m->count[s][c] = (t >> 8) - (next >> 8);
		}
	}
	kern_ecq_change(m);
}

void
kern_ecq_levels(const struct kern_ecq_expect *e, uint8_t l[KERN_ECQ_LANES])
{
	uint32_t v;
	size_t i;
	int gain;

	if (e->mode == KERN_ECQ_PLAIN) {
		memset(l, (int)e->level, KERN_ECQ_LANES);
		return;
	}
	if (kern_ecq_gain(e, &gain)) {
		memset(l, gain, KERN_ECQ_LANES);
		return;
	}
	for (i = 0; i < KERN_ECQ_LANES; i++) {
		v = (uint32_t)(e->above[e->at - e->stride + i] + e->base);
		l[i] = (uint8_t)kern_ecq_level((int)kern_ecq_eighths(v) + (127 << 3) + gain);
	}
}

void
kern_ecq_done(struct kern_ecq_expect *e, const int32_t mag[KERN_ECQ_LANES], size_t k)
{
	int32_t *a = e->above, old, rate = kern_ecq_pace(e->row);
	uint32_t sum = 0, expected = 0;
	size_t i;

	for (i = 0; i < k; i++) {
		sum += (uint32_t)mag[i];
		if (e->mode != KERN_ECQ_ABOVE)
			continue;
		old = e->row > 0 ? a[e->at + i - e->stride] : 0;
		expected += (uint32_t)old;
		a[e->at + i] = old + (((mag[i] << 12) - old) * rate >> 8);
	}
	kern_ecq_follow(e, sum, expected, k);
}

/* ---- the passes, value by value ---- */

static int32_t
counted(unsigned l, unsigned s)
{
	uint32_t a = s << kern_ecq_shift(l);

	return a < KERN_ECQ_CAP ? (int32_t)a : KERN_ECQ_CAP;
}

void
kern_ecq_sort_some(struct kern_ecq_sorted *t, const int16_t *q, size_t from, size_t n)
{
	int32_t mag[KERN_ECQ_LANES];
	uint8_t l[KERN_ECQ_LANES];
	uint32_t a, s;
	size_t i, j, k;

	for (i = from; i < n; i += k) {
		k = n - i < KERN_ECQ_LANES ? n - i : KERN_ECQ_LANES;
		kern_ecq_levels(&t->m->e, l);
		for (j = 0; j < k; j++) {
			a = (uint32_t)(q[i + j] < 0 ? -q[i + j] : q[i + j]);
			s = a >> kern_ecq_shift(l[j]);
			s = s < KERN_ECQ_SYMBOLS ? s : KERN_ECQ_SYMBOLS - 1;
			t->top = s > t->top ? s : t->top;
			t->code[i + j] = KERN_ECQ_CODE(l[j], s);
			mag[j] = counted(l[j], s);
		}
		kern_ecq_done(&t->m->e, mag, k);
	}
}

void
kern_ecq_spans(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	size_t i;

	for (i = 0; i < n; i++) {
		span[i] = kern_ecq_span(m, kern_ecq_context(KERN_ECQ_LEVEL(code[i])),
		    KERN_ECQ_SYMBOL(code[i]));
		if ((i + 1) % KERN_ECQ_LANES == 0)
			kern_ecq_learn(m);
	}
}

/* Encode a symbol of f slots from `first' on: return the next state x / f * 2^15 + x % f +
 * first = x + x / f * (2^15 - f) + first, after writing a word if x is too large. x / f is
 * the integer part of x * v / 2^47, v = floor(2^47 / f) + 1: x is below 2^17 f and f below
 * 2^15, so the product is below 2^64, and x * v / 2^47 exceeds x / f by less than 1 / f
 * (Granlund and Montgomery 1994). Rounding 2^47 / f to f64 does not change its floor. */
static inline __attribute__((always_inline)) uint32_t
put_one(uint32_t x, uint32_t span, unsigned char **w)
{
	uint32_t f = span >> 16, first = span & 0xffff;
	uint64_t v = (uint64_t)(int64_t)(0x1p47 / (double)(int32_t)f) + 1;

	if (x >= f << (32 - KERN_ECQ_BITS)) {
		*w -= 2;
		bytes_set16(*w, (uint16_t)x);
		x >>= 16;
	}
	return x + first + (uint32_t)(x * v >> 47) * ((1u << KERN_ECQ_BITS) - f);
}

/* Encode with up to four states, kept in registers; n is a multiple of four. */
static inline __attribute__((always_inline)) unsigned char *
put_few(uint32_t *state, unsigned states, const uint32_t *span, size_t n,
    unsigned char *w)
{
	uint32_t x[4] = { 0 };
	unsigned j;

	for (j = 0; j < states; j++)
		x[j] = state[j];
	for (; n > 0; n -= 4) {
		x[3 % states] = put_one(x[3 % states], span[n - 1], &w);
		x[2 % states] = put_one(x[2 % states], span[n - 2], &w);
		x[1 % states] = put_one(x[1 % states], span[n - 3], &w);
		x[0] = put_one(x[0], span[n - 4], &w);
	}
	for (j = 0; j < states; j++)
		state[j] = x[j];
	return w;
}

unsigned char *
kern_ecq_put(uint32_t *state, unsigned states, const uint32_t *span, size_t n,
    unsigned char *w)
{
	uint32_t *at;

	while (n % 4 != 0 || (n > 0 && states > 4)) {
		at = &state[--n & (states - 1)];
		*at = put_one(*at, span[n], &w);
	}
	return states == 1 ? put_few(state, 1, span, n, w) :
	    states == 2 ? put_few(state, 2, span, n, w) :
	    put_few(state, 4, span, n, w);
}

int
kern_ecq_get_some(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	int32_t mag[KERN_ECQ_LANES];
	uint8_t l[KERN_ECQ_LANES];
	size_t i, j, k;
	int s;

	for (i = 0; i < n; i += k) {
		k = n - i < KERN_ECQ_LANES ? n - i : KERN_ECQ_LANES;
		kern_ecq_levels(&m->e, l);
		for (j = 0; j < k; j++) {
			if ((s = kern_ecq_symbol(m, g, &g->x[j & (g->states - 1)],
			    kern_ecq_context(l[j]))) < 0)
				return -1;
			code[i + j] = KERN_ECQ_CODE(l[j], s);
			mag[j] = counted(l[j], (unsigned)s);
		}
		kern_ecq_done(&m->e, mag, k);
		if (k == KERN_ECQ_LANES)
			kern_ecq_learn(m);
	}
	return 0;
}

void
kern_ecq_marks(const uint16_t *code, const int16_t *q, size_t n,
    uint32_t *mark, unsigned escape)
{
	uint32_t signs, k, rest;
	size_t i;

	for (i = 0; i < n; ) {
		signs = k = rest = 0;
		do {
			if (KERN_ECQ_SYMBOL(code[i]) != 0) {
				if (q != NULL && q[i] < 0)
					signs |= 1u << k;
				k++;
			}
			rest |= !kern_ecq_whole(code[i], escape);
		} while (++i < n && i % KERN_ECQ_LANES != 0);
		*mark++ = signs | k << 16 | rest << 24;
	}
}

void
kern_ecq_low(const int16_t q[KERN_ECQ_LANES], const uint16_t code[KERN_ECQ_LANES],
    unsigned two, uint64_t low[4], uint64_t bits[4])
{
	unsigned i, n = 0, shift, sign;
	uint64_t v = 0;
	uint32_t a;

	for (i = 0; i < KERN_ECQ_LANES; i++) {
		shift = kern_ecq_shift(KERN_ECQ_LEVEL(code[i]));
		a = (uint32_t)(q[i] < 0 ? -q[i] : q[i]);
		sign = (KERN_ECQ_SYMBOL(code[i]) == 0) & (a != 0);
		a = (a >> two & ((1u << shift) - 1)) | (sign & (q[i] < 0)) << shift;
		v |= (uint64_t)a << n;
		n += shift + sign;	/* at most 11 bits */
		if (i % 4 != 3)
			continue;
		low[i / 4] = v;
		bits[i / 4] = n;
		v = n = 0;
	}
}

void
kern_ecq_values(float *x, const uint16_t *code, const uint32_t *mark, size_t n,
    const float *of)
{
	uint32_t signs = 0, some;
	size_t i;

	for (i = 0; i < n; i++) {
		if (i % KERN_ECQ_LANES == 0)
			signs = mark[i / KERN_ECQ_LANES] & 0xffff;
		some = KERN_ECQ_SYMBOL(code[i]) != 0;
		x[i] = bytes_f32(bytes_u32(of[code[i] >> 6]) ^ (some & signs) << 31);
		signs >>= some;
	}
}

void
kern_ecq_centers(const int16_t *q, const float *x, size_t n, float inv,
    int64_t sum[3], uint32_t count[3])
{
	uint32_t a;
	size_t i;

	for (i = 0; i < n; i++) {
		a = (uint32_t)(q[i] < 0 ? -q[i] : q[i]);
		if (a == 0 || a == KERN_QMAX)
			continue;
		a = a < 3 ? a - 1 : 2;
		sum[a] += (int32_t)((bytes_f32(bytes_u32(x[i]) & 0x7fffffff) *
		    inv - (float)(q[i] < 0 ? -q[i] : q[i])) * 65536);
		count[a]++;
	}
}

void
kern_ecq_decoded(float *y, const int16_t *q, const float *x, size_t n,
    const float delta[4], float step)
{
	uint32_t a;
	size_t i;
	float v;

	for (i = 0; i < n; i++) {
		a = (uint32_t)(q[i] < 0 ? -q[i] : q[i]);
		v = ((float)(int32_t)a + delta[a < 3 ? a : 3]) * step;
		y[i] = a == 0 ? 0 : a == KERN_QMAX ? x[i] : q[i] < 0 ? -v : v;
	}
}

/* ---- the passes, chunk by chunk ---- */

void
kern_ecq_sort(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n)
{
	loop_sort(t, k, q, n);
}

/* Decode the symbol of a value in context c from state *x. Return -1 if a word is
 * missing. */
static inline __attribute__((always_inline)) int32_t
get_few_one(const struct kern_ecq *m, unsigned c, uint32_t *x, struct kern_ecq_get *g)
{
	uint32_t slot = *x & ((1u << KERN_ECQ_BITS) - 1), from = 0;
	uint32_t next = m->first[1][c];
	int32_t s = 0;

	while (slot >= next) {		/* well predicted, since most symbols are 0 */
		from = next;
		next = m->first[++s + 1][c];
	}
	*x = (next - from) * (*x >> KERN_ECQ_BITS) + slot - from;
	if (*x >= KERN_ECQ_LOW)
		return s;
	if (g->end - g->p < 2)
		return -1;
	*x = *x << 16 | bytes_le16(g->p);
	g->p += 2;
	return s;
}

/* Decode whole chunks with up to four states, kept in registers. Return the number of
 * decoded values, or n + 1 if words are missing. */
static inline __attribute__((always_inline)) size_t
get_few(struct kern_ecq *m, struct kern_ecq_get *from, uint16_t *code,
    size_t n, unsigned states)
{
	struct kern_ecq_get g = *from;
	int32_t l[LANES], s[LANES], bad;
	unsigned c[LANES];
	uint32_t x[4] = { 0 };
	int j, same;
	size_t i;

	for (j = 0; j < (int)states; j++)
		x[j] = g.x[j];
	for (i = 0; i + LANES <= n; i += LANES) {
		same = loop_levels(&m->e, l);
		ALL
			c[j] = kern_ecq_context((unsigned)l[j]);
		for (j = 0, bad = 0; j < LANES; j += 4) {
			s[j] = get_few_one(m, c[j], &x[0], &g);
			s[j + 1] = get_few_one(m, c[j + 1], &x[1 % states], &g);
			s[j + 2] = get_few_one(m, c[j + 2], &x[2 % states], &g);
			s[j + 3] = get_few_one(m, c[j + 3], &x[3 % states], &g);
			bad |= s[j] | s[j + 1] | s[j + 2] | s[j + 3];
		}
		if (bad < 0)
			return n + 1;
		loop_codes(code + i, l, s);
		loop_count(m, l, s, same);
		loop_done(&m->e, l, s, same);
		kern_ecq_learn(m);
	}
	for (j = 0; j < (int)states; j++)
		g.x[j] = x[j];
	*from = g;
	return i;
}

int
kern_ecq_get(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	size_t i = g->states == 1 ? get_few(m, g, code, n, 1) :
	    g->states == 2 ? get_few(m, g, code, n, 2) :
	    g->states == 4 ? get_few(m, g, code, n, 4) : 0;

	return i > n ? -1 : kern_ecq_get_some(m, g, code + i, n - i);
}
