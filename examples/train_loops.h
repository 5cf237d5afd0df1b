/*
 * The model's loops over values.  Sums use eight lanes that are folded by halves, so that
 * the compiler can use vectors without permission to reorder: the bits are the same with and
 * without vectors.
 */
#ifndef TRAIN_LOOPS_H
#define TRAIN_LOOPS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "train_model.h"

enum { LANES = 8 };

static inline real
fold(const real s[LANES])
{
	return ((s[0] + s[4]) + (s[2] + s[6])) +
	    ((s[1] + s[5]) + (s[3] + s[7]));
}

static inline real
dot(const real *a, const real *b, size_t n)
{
	const size_t whole = n / LANES * LANES;
	real s[LANES] = { 0 };
	size_t i, j;

	for (i = 0; i < whole; i += LANES)
		for (j = 0; j < LANES; j++)
			s[j] += a[i + j] * b[i + j];
	for (i = whole; i < n; i++)
		s[i - whole] += a[i] * b[i];
	return fold(s);
}

static inline real
largest(const real *x, size_t n)
{
	const size_t whole = n / LANES * LANES;
	real s[LANES];
	size_t i, j;

	for (j = 0; j < LANES; j++)
		s[j] = x[0];
	for (i = 0; i < whole; i += LANES)
		for (j = 0; j < LANES; j++)
			s[j] = x[i + j] > s[j] ? x[i + j] : s[j];
	for (i = whole; i < n; i++)
		s[0] = x[i] > s[0] ? x[i] : s[0];
	for (j = 1; j < LANES; j++)
		s[0] = s[j] > s[0] ? s[j] : s[0];
	return s[0];
}

/* Return e^x for -87 <= x <= 0, and e^-87 below: 2^k e^r with x = k ln2 + r, |r| <= ln2/2,
 * and the Taylor polynomial of degree 6 (relative error below 3e-7).  The library's expf
 * is as accurate, but compilers do not vectorise it. */
static inline float
exp_fast(float x)
{
	const float magic = 12582912.0f;	/* 1.5 2^23: rounds by adding */
	union { float f; int32_t i; } k;
	float r, p;

	x = x < -87.0f ? -87.0f : x;
	k.f = x * 1.44269504f + magic;
	r = k.f - magic;
	x = (x - r * 0.693359375f) + r * 2.12194440e-4f;
	p = 1.0f / 720;
	p = p * x + 1.0f / 120;
	p = p * x + 1.0f / 24;
	p = p * x + 1.0f / 6;
	p = p * x + 0.5f;
	p = p * x + 1.0f;
	p = p * x + 1.0f;
	k.i = (int32_t)((uint32_t)(k.i - 0x4b400000 + 127) << 23);
	return p * k.f;
}

static inline real
expo(real x)
{
	return sizeof x == sizeof(float) ? (real)exp_fast((float)x) :
	    (real)exp((double)x);
}

/* Set x[i] = e^(a x[i] - max), where max is the largest a x[i].  Return the sum. */
static inline real
exponentials(real *x, size_t n, real a, real max)
{
	const size_t whole = n / LANES * LANES;
	real s[LANES] = { 0 };
	size_t i, j;

	for (i = 0; i < n; i++)
		x[i] = expo(a * x[i] - max);
	for (i = 0; i < whole; i += LANES)
		for (j = 0; j < LANES; j++)
			s[j] += x[i + j];
	for (i = whole; i < n; i++)
		s[i - whole] += x[i];
	return fold(s);
}

static inline void
scale(real *x, size_t n, real a)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] *= a;
}

/* Set r = max(r, 0) and a = r^2. */
static inline void
square_relu(real *restrict a, real *restrict r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		r[i] = r[i] > 0 ? r[i] : 0;
		a[i] = r[i] * r[i];
	}
}

/* Replace d loss / d a, in da, by d loss / d r. */
static inline void
square_relu_back(real *restrict da, const real *restrict r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		da[i] *= 2 * r[i];
}

#endif
