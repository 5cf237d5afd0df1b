#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/codec.h"
#include "codec/rotate.h"
#include "kern/kern.h"

enum { FIRST = 0, SECOND = 1 << 20, CHUNK = 4096 };

static size_t
power_below(size_t n)
{
	size_t m = 1;

	while (m <= n / 2)
		m *= 2;
	return m;
}

size_t
rotate_split(size_t n)
{
	return n - power_below(n);
}

/* y = scale * D x; block: FIRST or SECOND. */
static void
signs(const struct kern *k, const struct codec_ctx *c, uint32_t block,
    float *y, const float *x, size_t n, double scale)
{
	uint32_t bits[CHUNK / 32];
	size_t i, j, m;

	for (i = 0; i < n; i += m) {
		m = n - i < CHUNK ? n - i : CHUNK;
		for (j = 0; j < m; j += 128)
			rng_block(c->seed, c->step, c->group,
			    block + (uint32_t)((i + j) / 128), bits + j / 32);
		k->flip(y + i, x + i, scale, bits, m);
	}
}

void
rotate_there(const struct kern *k, const struct codec_ctx *c, float *y,
    const float *x, size_t n, double scale)
{
	size_t m = power_below(n), i;
	double unit = 1 / sqrt((double)m);

	signs(k, c, FIRST, y, x, m, scale * unit);
	k->fwht(y, m);
	if (m == n)
		return;
	for (i = m; i < n; i++)
		y[i] = (float)((double)x[i] * scale);
	y += n - m;
	signs(k, c, SECOND, y, y, m, unit);
	k->fwht(y, m);
}

void
rotate_back(const struct kern *k, const struct codec_ctx *c, float *y,
    size_t n, double scale)
{
	size_t m = power_below(n), i;
	double unit = 1 / sqrt((double)m);

	if (m != n) {
		k->fwht(y + n - m, m);
		signs(k, c, SECOND, y + n - m, y + n - m, m, unit);
		for (i = m; i < n; i++)
			y[i] = (float)((double)y[i] * scale);
	}
	k->fwht(y, m);
	signs(k, c, FIRST, y, y, m, scale * unit);
}
