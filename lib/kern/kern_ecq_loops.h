/*
 * The passes of ECQ over whole chunks, in plain C that a compiler makes
 * vectors of: included once for each table, with PASS(x) the name of one.
 * What is left of a chunk is for kern_ecq_..., and a code with fewer states
 * than lanes, too.  PASS_OWN: get, values, marks, centers and told are the
 * table's own.
 */
#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"

enum { LANES = KERN_ECQ_LANES };

#define ALL for (j = 0; j < LANES; j++)

/* Computes the levels of a chunk; returns 1 when all are the same. */
static inline int
loop_levels(const struct kern_ecq *m, int32_t l[LANES])
{
	int32_t v[LANES];
	float f[LANES];
	int one = (int)m->level, j;

	if (m->mode == KERN_ECQ_PLAIN || kern_ecq_gain(m, &one)) {
		ALL
			l[j] = one;
		return 1;
	}
	memcpy(v, m->above + m->at - m->stride, sizeof(v));
	ALL
		f[j] = (float)(v[j] + m->base);
	memcpy(v, f, sizeof(v));
	ALL {
		v[j] = ((v[j] >> 20) + one) >> 2;
		v[j] = v[j] < 0 ? 0 : v[j];
		l[j] = v[j] < KERN_ECQ_LEVELS ? v[j] : KERN_ECQ_LEVELS - 1;
	}
	return 0;
}

/* Updates the means with the symbols s of levels l. */
static inline void
loop_done(struct kern_ecq *m, const int32_t l[LANES], const int32_t s[LANES],
    int same)
{
	int32_t mag[LANES], old[LANES] = { 0 }, rate = kern_ecq_pace(m->row);
	uint32_t sum = 0, expected = 0;
	int j, shift;

	if (m->mode == KERN_ECQ_PLAIN)
		return;
	shift = (int)kern_ecq_shift((unsigned)l[0]);
	if (same)
		ALL
			mag[j] = s[j] << shift;
	else
		ALL
			mag[j] = s[j] << kern_ecq_shift((unsigned)l[j]);
	ALL {
		mag[j] = mag[j] < KERN_ECQ_CAP ? mag[j] : KERN_ECQ_CAP;
		sum += (uint32_t)mag[j];
	}
	if (m->mode == KERN_ECQ_ABOVE) {
		if (m->row > 0)
			memcpy(old, m->above + m->at - m->stride, sizeof(old));
		ALL {
			expected += (uint32_t)old[j];
			old[j] += ((mag[j] << 12) - old[j]) * rate >> 8;
		}
		memcpy(m->above + m->at, old, sizeof(old));
	}
	kern_ecq_follow(m, sum, expected, LANES);
}

static inline void
loop_codes(uint16_t *code, const int32_t l[LANES], const int32_t s[LANES])
{
	int j;

	ALL
		code[j] = (uint16_t)(l[j] | s[j] << 6);
}

static inline void
loop_count(struct kern_ecq *m, const int32_t l[LANES], const int32_t s[LANES],
    int same)
{
	unsigned c = kern_ecq_context((unsigned)l[0]), i;
	uint32_t left = LANES, n;
	int j;

	if (!same) {
		ALL
			m->count[s[j]][kern_ecq_context((unsigned)l[j])] +=
			    KERN_ECQ_STEP;
		return;
	}
	for (i = 0; left > 0; i++) {
		n = 0;
		ALL
			n += s[j] > (int32_t)i;
		m->count[i][c] += KERN_ECQ_STEP * (left - n);
		left = n;
	}
}

#ifdef PASS

/* The codes of a chunk by one model; the greatest symbol, or top. */
static inline int32_t
loop_sort(struct kern_ecq *m, const int32_t a[LANES], uint16_t *code,
    int32_t top)
{
	int32_t l[LANES], s[LANES];
	int same = loop_levels(m, l), j;
	int shift = (int)kern_ecq_shift((unsigned)l[0]);

	if (same)
		ALL
			s[j] = a[j] >> shift;
	else
		ALL
			s[j] = a[j] >> kern_ecq_shift((unsigned)l[j]);
	ALL {
		s[j] = s[j] < KERN_ECQ_SYMBOLS ? s[j] : KERN_ECQ_SYMBOLS - 1;
		top = s[j] > top ? s[j] : top;
	}
	loop_codes(code, l, s);
	loop_done(m, l, s, same);
	return top;
}

void
PASS(sort)(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n)
{
	int32_t a[LANES], top[KERN_ECQ_MODES] = { 0 };
	unsigned w;
	size_t i;
	int j;

	for (i = 0; i + LANES <= n; i += LANES) {
		ALL
			a[j] = q[i + (size_t)j] < 0 ? -q[i + (size_t)j] :
			    q[i + (size_t)j];
		for (w = 0; w < k; w++)
			top[w] = loop_sort(t[w].m, a, t[w].code + i, top[w]);
	}
	for (w = 0; w < k; w++) {
		t[w].top = (unsigned)top[w];
		kern_ecq_sort_some(&t[w], q, i, n);
	}
}

void
PASS(spans)(struct kern_ecq *m, const uint16_t *code, size_t n, uint32_t *span)
{
	int32_t l[LANES], s[LANES];
	unsigned c;
	size_t i;
	int j;

	for (i = 0; i + LANES <= n; i += LANES) {
		ALL {
			l[j] = code[i + (size_t)j] & 63;
			s[j] = code[i + (size_t)j] >> 6;
		}
		ALL {
			c = kern_ecq_context((unsigned)l[j]);
			span[i + (size_t)j] = m->first[s[j]][c] |
			    (uint32_t)(m->first[s[j] + 1][c] -
			    m->first[s[j]][c]) << 16;
		}
		loop_count(m, l, s, m->mode != KERN_ECQ_ABOVE);
		kern_ecq_learn(m);
	}
	kern_ecq_spans_some(m, code + i, n - i, span + i);
}

#ifndef PASS_OWN

/* What the slots of a chunk hold. */
struct loop_found {
	int32_t s[LANES], first[LANES], next[LANES];
};

static inline void
loop_find(const struct kern_ecq *m, const int32_t l[LANES], int same,
    const int32_t slot[LANES], struct loop_found *f)
{
	int32_t t[LANES], some;
	unsigned c = kern_ecq_context((unsigned)l[0]), i;
	int j;

	ALL {
		f->s[j] = f->first[j] = 0;
		f->next[j] = 1 << KERN_ECQ_BITS;
	}
	for (i = 1, some = 1; some && i <= m->top; i++) {
		if (same)
			ALL
				t[j] = m->first[i][c];
		else
			ALL
				t[j] = m->first[i][kern_ecq_context(
				    (unsigned)l[j])];
		some = 0;
		ALL {
			f->next[j] = slot[j] < t[j] && t[j] < f->next[j] ?
			    t[j] : f->next[j];
			f->first[j] = slot[j] < t[j] ? f->first[j] : t[j];
			f->s[j] += slot[j] >= t[j];
			some |= slot[j] >= t[j];
		}
	}
}

/* The symbol of a value in context c, out of state *x; -1 when a word of it is
 * missing. */
static inline __attribute__((always_inline)) int32_t
loop_few_one(const struct kern_ecq *m, unsigned c, uint32_t *x,
    struct kern_ecq_get *g)
{
	uint32_t slot = *x & ((1u << KERN_ECQ_BITS) - 1), from = 0;
	uint32_t next = m->first[1][c];
	int32_t s = 0;

	while (slot >= next) {		/* most are 0: this is foreseen */
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

/* Whole chunks, with up to four states, that they stay in registers; how many
 * values that were, n + 1 when words are missing. */
static inline __attribute__((always_inline)) size_t
loop_few(struct kern_ecq *m, struct kern_ecq_get *from, uint16_t *code,
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
		same = loop_levels(m, l);
		ALL
			c[j] = kern_ecq_context((unsigned)l[j]);
		for (j = 0, bad = 0; j < LANES; j += 4) {
			s[j] = loop_few_one(m, c[j], &x[0], &g);
			s[j + 1] = loop_few_one(m, c[j + 1], &x[1 % states],
			    &g);
			s[j + 2] = loop_few_one(m, c[j + 2], &x[2 % states],
			    &g);
			s[j + 3] = loop_few_one(m, c[j + 3], &x[3 % states],
			    &g);
			bad |= s[j] | s[j + 1] | s[j + 2] | s[j + 3];
		}
		if (bad < 0)
			return n + 1;
		loop_codes(code + i, l, s);
		loop_count(m, l, s, same);
		loop_done(m, l, s, same);
		kern_ecq_learn(m);
	}
	for (j = 0; j < (int)states; j++)
		g.x[j] = x[j];
	*from = g;
	return i;
}

int
PASS(get)(struct kern_ecq *m, struct kern_ecq_get *g, uint16_t *code, size_t n)
{
	int32_t l[LANES], slot[LANES];
	uint32_t x[LANES];
	struct loop_found f;
	size_t i;
	int j, same;

	if (g->states != LANES) {
		i = g->states == 1 ? loop_few(m, g, code, n, 1) :
		    g->states == 2 ? loop_few(m, g, code, n, 2) :
		    g->states == 4 ? loop_few(m, g, code, n, 4) : 0;
		return i > n ? -1 : kern_ecq_get_some(m, g, code + i, n - i);
	}
	memcpy(x, g->x, sizeof(x));
	for (i = 0; i + LANES <= n; i += LANES) {
		same = loop_levels(m, l);
		ALL
			slot[j] = (int32_t)(x[j] & ((1 << KERN_ECQ_BITS) - 1));
		loop_find(m, l, same, slot, &f);
		ALL
			x[j] = (uint32_t)(f.next[j] - f.first[j]) *
			    (x[j] >> KERN_ECQ_BITS) +
			    (uint32_t)(slot[j] - f.first[j]);
		ALL {
			if (x[j] >= KERN_ECQ_LOW)
				continue;
			if (g->end - g->p < 2)
				return -1;
			x[j] = x[j] << 16 | bytes_le16(g->p);
			g->p += 2;
		}
		loop_codes(code + i, l, f.s);
		loop_count(m, l, f.s, same);
		loop_done(m, l, f.s, same);
		kern_ecq_learn(m);
	}
	memcpy(g->x, x, sizeof(x));
	return kern_ecq_get_some(m, g, code + i, n - i);
}

void
PASS(values)(float *x, const uint16_t *code, const uint32_t *mark, size_t n,
    const float of[KERN_ECQ_SYMBOLS])
{
	uint32_t bits[KERN_ECQ_SYMBOLS], v[LANES], signs, some;
	size_t i;
	int j;

	memcpy(bits, of, sizeof(bits));
	for (i = 0; i + LANES <= n; i += LANES) {
		signs = *mark++ & 0xffff;
		ALL {
			some = code[i + (size_t)j] >= 1 << 6;
			v[j] = bits[code[i + (size_t)j] >> 6] ^
			    (signs & some) << 31;
			signs >>= some;
		}
		memcpy(x + i, v, sizeof(v));
	}
	kern_ecq_values_some(x + i, code + i, mark, n - i, of);
}

void
PASS(centers)(const int16_t *q, const float *x, size_t n, float inv,
    int64_t sum[3], uint32_t count[3])
{
	int32_t a[LANES], d[LANES], k[3], t[3];
	float f[LANES];
	size_t i;
	int j;

	for (i = 0; i + LANES <= n; i += LANES) {
		memset(k, 0, sizeof(k));
		memset(t, 0, sizeof(t));
		memcpy(d, x + i, sizeof(d));
		ALL {
			a[j] = q[i + (size_t)j] < 0 ? -q[i + (size_t)j] :
			    q[i + (size_t)j];
			d[j] &= INT32_MAX;
		}
		memcpy(f, d, sizeof(f));
		ALL
			f[j] = a[j] < KERN_QMAX ? f[j] * inv - (float)a[j] : 0;
		ALL
			d[j] = (int32_t)(f[j] * 65536);
		ALL {
			t[0] += a[j] == 1 ? d[j] : 0;
			t[1] += a[j] == 2 ? d[j] : 0;
			t[2] += a[j] > 2 && a[j] < KERN_QMAX ? d[j] : 0;
			k[0] += a[j] == 1;
			k[1] += a[j] == 2;
			k[2] += a[j] > 2 && a[j] < KERN_QMAX;
		}
		for (j = 0; j < 3; j++) {
			sum[j] += t[j];
			count[j] += (uint32_t)k[j];
		}
	}
	kern_ecq_centers_some(q + i, x + i, n - i, inv, sum, count);
}

void
PASS(told)(float *y, const int16_t *q, const float *x, size_t n,
    const float delta[4], float step)
{
	int32_t a[LANES], v[LANES], neg[LANES], own[LANES];
	float f[LANES], d[LANES];
	size_t i;
	int j;

	for (i = 0; i + LANES <= n; i += LANES) {
		memcpy(own, x + i, sizeof(own));
		ALL {
			neg[j] = q[i + (size_t)j] < 0 ? INT32_MIN : 0;
			a[j] = q[i + (size_t)j] < 0 ? -q[i + (size_t)j] :
			    q[i + (size_t)j];
		}
		ALL {
			d[j] = a[j] == 1 ? delta[1] : delta[3];
			d[j] = a[j] == 2 ? delta[2] : d[j];
		}
		ALL
			f[j] = ((float)a[j] + d[j]) * step;
		memcpy(v, f, sizeof(v));
		ALL {
			v[j] ^= neg[j];
			v[j] = a[j] == KERN_QMAX ? own[j] : v[j];
			v[j] = a[j] != 0 ? v[j] : 0;
		}
		memcpy(y + i, v, sizeof(v));
	}
	kern_ecq_told_some(y + i, q + i, x + i, n - i, delta, step);
}

void
PASS(marks)(const uint16_t *code, const int16_t *q, size_t n, uint32_t *mark)
{
	uint32_t signs, k, rest, at;
	size_t i;
	int j;

	for (i = 0; i + LANES <= n; i += LANES) {
		signs = k = rest = at = 0;
		ALL {
			k += code[i + (size_t)j] >= 1 << 6;
			rest |= (code[i + (size_t)j] & 63) >=
			    KERN_ECQ_CONTEXTS;
			rest |= code[i + (size_t)j] >=
			    (KERN_ECQ_SYMBOLS - 1) << 6;
		}
		if (q != NULL && k != 0)
			ALL {
				signs |= (uint32_t)(q[i + (size_t)j] < 0) <<
				    at;
				at += code[i + (size_t)j] >= 1 << 6;
				signs &= (1u << at) - 1;
			}
		*mark++ = signs | k << 16 | rest << 24;
	}
	kern_ecq_marks_some(code + i, q != NULL ? q + i : NULL, n - i, mark);
}

#endif

#endif
