/*
 * Passes of ECQ over whole chunks in plain C that compilers vectorise; used by
 * kern_ecq.c and kern_avx2.c.
 */
#ifndef ACE_KERN_ECQ_IMPL_H
#define ACE_KERN_ECQ_IMPL_H

#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"

enum { LANES = KERN_ECQ_LANES };

#define ALL for (j = 0; j < LANES; j++)

/* Compute the levels of a chunk. Return 1 if the model gives the chunk a single level. */
static inline int
loop_levels(const struct kern_ecq_expect *e, int32_t l[LANES])
{
	int32_t v[LANES];
	float f[LANES];
	int one = (int)e->level, j;

	if (e->mode == KERN_ECQ_PLAIN || kern_ecq_gain(e, &one)) {
		ALL
			l[j] = one;
		return 1;
	}
	memcpy(v, e->above + e->at - e->stride, sizeof(v));
	ALL
		f[j] = (float)(v[j] + e->base);
	memcpy(v, f, sizeof(v));
	ALL {
		v[j] = ((v[j] >> 20) + one) >> 2;
		v[j] = v[j] < 0 ? 0 : v[j];
		l[j] = v[j] < KERN_ECQ_LEVELS ? v[j] : KERN_ECQ_LEVELS - 1;
	}
	return 0;
}

/* Update the means with the magnitudes of a chunk. */
static inline void
loop_follow(struct kern_ecq_expect *e, int32_t mag[LANES])
{
	int32_t old[LANES] = { 0 }, rate = kern_ecq_pace(e->row);
	uint32_t sum = 0, expected = 0;
	int j;

	ALL {
		mag[j] = mag[j] < KERN_ECQ_CAP ? mag[j] : KERN_ECQ_CAP;
		sum += (uint32_t)mag[j];
	}
	if (e->mode == KERN_ECQ_ABOVE) {
		if (e->row > 0)
			memcpy(old, e->above + e->at - e->stride, sizeof(old));
		ALL {
			expected += (uint32_t)old[j];
			old[j] += ((mag[j] << 12) - old[j]) * rate >> 8;
		}
		memcpy(e->above + e->at, old, sizeof(old));
	}
	kern_ecq_follow(e, sum, expected, LANES);
}

/* Update the means with the symbols s of levels l; same: 1 if all levels are l[0]. */
static inline void
loop_done(struct kern_ecq_expect *e, const int32_t l[LANES], const int32_t s[LANES],
    int same)
{
	int32_t mag[LANES];
	int j, shift;

	if (e->mode == KERN_ECQ_PLAIN)
		return;
	shift = (int)kern_ecq_shift((unsigned)l[0]);
	if (same)
		ALL
			mag[j] = s[j] << shift;
	else
		ALL
			mag[j] = s[j] << kern_ecq_shift((unsigned)l[j]);
	loop_follow(e, mag);
}

static inline void
loop_codes(uint16_t *code, const int32_t l[LANES], const int32_t s[LANES])
{
	int j;

	ALL
		code[j] = (uint16_t)(l[j] | s[j] << 6);
}

static inline void
loop_count(struct kern_ecq *m, const int32_t l[LANES], const int32_t s[LANES], int same)
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

/* Code a chunk by one model. Return the greatest symbol, at least top. */
static inline int32_t
loop_sort_one(struct kern_ecq *m, const int32_t a[LANES], uint16_t *code, int32_t top)
{
	int32_t l[LANES], s[LANES];
	int same = loop_levels(&m->e, l), j;
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
	loop_done(&m->e, l, s, same);
	return top;
}

static inline void
loop_sort(struct kern_ecq_sorted *t, unsigned k, const int16_t *q, size_t n)
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
			top[w] = loop_sort_one(t[w].m, a, t[w].code + i, top[w]);
	}
	for (w = 0; w < k; w++) {
		t[w].top = (unsigned)top[w];
		kern_ecq_sort_some(&t[w], q, i, n);
	}
}

#endif
