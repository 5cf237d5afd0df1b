#include <float.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/stat.h"
#include "kern/kern.h"

enum { FIELDS = 256, WAYS = 4 };

/* Count the values by exponent field, in four tables, so that two equal neighbours need
 * not wait for each other's store. */
static void
fields(const float *x, size_t n, uint32_t count[FIELDS])
{
	uint32_t way[WAYS][FIELDS];
	size_t i;

	memset(way, 0, sizeof(way));
	for (i = 0; i + WAYS <= n; i += WAYS) {
		way[0][bytes_u32(x[i]) >> 23 & 255]++;
		way[1][bytes_u32(x[i + 1]) >> 23 & 255]++;
		way[2][bytes_u32(x[i + 2]) >> 23 & 255]++;
		way[3][bytes_u32(x[i + 3]) >> 23 & 255]++;
	}
	for (; i < n; i++)
		way[0][bytes_u32(x[i]) >> 23 & 255]++;
	for (i = 0; i < FIELDS; i++)
		count[i] = way[0][i] + way[1][i] + way[2][i] + way[3][i];
}

/* Return the octave of a magnitude: its exponent field, or a number below 1 if it is
 * subnormal. */
static int
octave(uint32_t m)
{
	if (m >> 23 != 0)
		return (int)(m >> 23);
	return 9 - __builtin_clz(m);
}

static void
histogram(const float *x, size_t n, struct stat_group *s)
{
	uint32_t count[FIELDS], m;
	int top = octave(bytes_u32(s->max_abs)), f, b;
	size_t i;

	fields(x, n, count);
	for (f = 1; f <= top; f++) {
		b = top - f < STAT_BINS - 1 ? top - f : STAT_BINS - 1;
		s->hist[b] += count[f];
	}
	if (count[0] == n - s->nonzero)
		return;				/* no subnormal values */
	for (i = 0; i < n; i++) {
		m = bytes_u32(x[i]) & 0x7fffffff;
		if (m == 0 || m >> 23 != 0)
			continue;
		b = top - octave(m);
		s->hist[b < STAT_BINS - 1 ? b : STAT_BINS - 1]++;
	}
}

/* Limit a finite sum to f32. */
static float
narrow(double v)
{
	if (v > (double)FLT_MAX)
		return FLT_MAX;
	return v < -(double)FLT_MAX ? -FLT_MAX : (float)v;
}

void
stat_group_from(const float *x, size_t n, const struct kern_stat *t,
    struct stat_group *s)
{
	memset(s, 0, sizeof(*s));
	s->n = (uint32_t)n;
	s->nonzero = (uint32_t)t->nonzero;
	s->sumsq = narrow(t->sumsq);
	s->sumabs = narrow(t->sumabs);
	s->sum = narrow(t->sum);
	s->max_abs = t->max_abs;
	if (t->nonzero != 0)
		histogram(x, n, s);
}

size_t
stat_group_of(const float *x, size_t n, struct stat_group *s)
{
	const struct kern *k = kern_get(NULL);
	struct kern_stat t;

	if (k == NULL)
		k = kern_list()[0];
	k->stat(x, n, &t);
	if (t.nonfinite != 0)
		return 1 + kern_first_nonfinite(x, n);
	stat_group_from(x, n, &t, s);
	return 0;
}
