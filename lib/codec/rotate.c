#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/codec.h"
#include "codec/rotate.h"

enum { FIRST = 0, SECOND = 1 << 20, CHUNK = 4096,
	CACHED = 8192 };

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

/* y[i] = scale * x[i], in f64, negated where bit i is 1; y may be x, and n is
 * CHUNK or less. */
static void
flip(float *y, const float *x, double scale, const uint32_t *bits, size_t n)
{
	uint32_t u[32];
	float v[32];
	size_t i, j, m;

	for (i = 0; i < n; i += m) {
		m = n - i < 32 ? n - i : 32;
		memset(u, 0, sizeof(u));
		memcpy(u, x + i, m * sizeof(*x));
		for (j = 0; j < 32; j++)
			u[j] ^= (uint32_t)((bits[i / 32] & 1u << j) != 0) << 31;
		memcpy(v, u, sizeof(v));
		for (j = 0; j < 32; j++)
			v[j] = (float)((double)v[j] * scale);
		memcpy(y + i, v, m * sizeof(*y));
	}
}

/* y = scale * D x; block: FIRST or SECOND. */
static void
signs(const struct codec_ctx *c, uint32_t block, float *y, const float *x,
    size_t n, double scale)
{
	uint32_t bits[CHUNK / 32];
	size_t i, m;

	for (i = 0; i < n; i += m) {
		m = n - i < CHUNK ? n - i : CHUNK;
		rng_fill(c->seed, c->step, c->group, block + (uint32_t)(i / 128),
		    bits, (m + 127) / 128);
		flip(y + i, x + i, scale, bits, m);
	}
}

/* Stages 1 and 2, n a multiple of 4. */
static void
stages_first(float *x, size_t n)
{
	float a, b, c, d;
	size_t i;

	for (i = 0; i < n; i += 4) {
		a = x[i] + x[i + 1];
		b = x[i] - x[i + 1];
		c = x[i + 2] + x[i + 3];
		d = x[i + 2] - x[i + 3];
		x[i] = a + c;
		x[i + 1] = b + d;
		x[i + 2] = a - c;
		x[i + 3] = b - d;
	}
}

/* Stages h and 2h, of four runs of h values. */
static void
stages_two(float *restrict x, float *restrict y, float *restrict z,
    float *restrict w, size_t h)
{
	float a, b, c, d;
	size_t i;

	for (i = 0; i < h; i++) {
		a = x[i] + y[i];
		b = x[i] - y[i];
		c = z[i] + w[i];
		d = z[i] - w[i];
		x[i] = a + c;
		y[i] = b + d;
		z[i] = a - c;
		w[i] = b - d;
	}
}

static void
stage_one(float *restrict x, float *restrict y, size_t h)
{
	float a;
	size_t i;

	for (i = 0; i < h; i++) {
		a = x[i] - y[i];
		x[i] += y[i];
		y[i] = a;
	}
}

/* Stages h, 2h, ... below n. */
static void
stages(float *x, size_t n, size_t h)
{
	size_t i;

	if (h == 1 && n >= 4) {
		stages_first(x, n);
		h = 4;
	}
	for (; 4 * h <= n; h *= 4)
		for (i = 0; i < n; i += 4 * h)
			stages_two(x + i, x + i + h, x + i + 2 * h,
			    x + i + 3 * h, h);
	if (h < n)
		stage_one(x, x + h, h);
}

/*
 * The Walsh-Hadamard transform in place, n a power of 2: for h = 1, 2, 4 ...
 * n / 2: (a, b) = (a + b, a - b) of the values a at j and b at j + h, for all j
 * with bit h clear; f32.  Every value goes through the stages in this order,
 * so the bits do not depend on the order of the values.
 */
static void
transform(float *x, size_t n)
{
	size_t part = n < CACHED ? n : CACHED, i;

	for (i = 0; i < n; i += part)
		stages(x + i, part, 1);
	stages(x, n, part);
}

void
rotate_there(const struct codec_ctx *c, float *y, const float *x, size_t n,
    double scale)
{
	size_t m = power_below(n), i;
	double unit = 1 / sqrt((double)m);

	signs(c, FIRST, y, x, m, scale * unit);
	transform(y, m);
	if (m == n)
		return;
	for (i = m; i < n; i++)
		y[i] = (float)((double)x[i] * scale);
	y += n - m;
	signs(c, SECOND, y, y, m, unit);
	transform(y, m);
}

void
rotate_back(const struct codec_ctx *c, float *y, size_t n, double scale)
{
	size_t m = power_below(n), i;
	double unit = 1 / sqrt((double)m);

	if (m != n) {
		transform(y + n - m, m);
		signs(c, SECOND, y + n - m, y + n - m, m, unit);
		for (i = m; i < n; i++)
			y[i] = (float)((double)y[i] * scale);
	}
	transform(y, m);
	signs(c, FIRST, y, y, m, scale * unit);
}
