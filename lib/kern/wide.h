/*
 * The kernels of kern.h for vectors of WIDE_BYTES; kern_avx2.c and kern_neon.c include this
 * file.  They use vector types of the compiler; for what these cannot express, or what gcc
 * compiles badly, the including file defines:
 *
 *   WIDE_LOW(v) _HIGH(v)     the halves of a wide_f32, in f64
 *   WIDE_NARROW(a, b)        two such halves as one wide_f32
 *   WIDE_MIN(a, b)           of wide_f32, WIDE_MAX(a, b) of wide_u32
 *   WIDE_TOP(v)              the greatest lane of a wide_u32
 *   WIDE_BITS(v)             the top bit of each lane, lane 0's the lowest
 *   WIDE_PUT8(p, v)          stores lanes below 256 as bytes
 *   WIDE_PUT16(p, v)         stores lanes from -2^15 to 2^15 - 1 in 16 bits
 *   WIDE_PUT32(p, v)         stores 32 lanes as signed bytes, saturated
 *   WIDE_GET8(p) _GET16      loads unsigned bytes, signed 16-bit numbers
 *   WIDE_PUT_F16(p, v) _GET_F16  stores or loads a wide_f32 as f16
 *   WIDE_OF4(t, i)           t[the two low bits of i] of each lane
 *
 * Functions of kern_ref.c and kern_ecq.c compute the last values, which do not fill a vector.
 */
#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_marks.h"
#include "kern/ref.h"

#ifdef WIDE_BYTES

#define WIDE_VECTOR(t, bytes) t __attribute__((vector_size(bytes)))

typedef WIDE_VECTOR(uint32_t, WIDE_BYTES) wide_u32;
typedef WIDE_VECTOR(int32_t, WIDE_BYTES) wide_i32;
typedef WIDE_VECTOR(float, WIDE_BYTES) wide_f32;
typedef WIDE_VECTOR(double, WIDE_BYTES) wide_f64;
typedef WIDE_VECTOR(int64_t, WIDE_BYTES) wide_i64;

enum { WIDE_LANES = WIDE_BYTES / 4, WIDE_HALF = WIDE_BYTES / 8,
	/* number of vectors for the 16 lanes of sums, and for 32 values */
	WIDE_PARTS = KERN_LANES / WIDE_HALF, WIDE_BLOCK = 32 / WIDE_LANES };

#define WIDE_INLINE static inline __attribute__((always_inline))
/* write it before a loop of few iterations whose vectors must stay in registers */
#define WIDE_UNROLL _Pragma("GCC unroll 16")

#define WIDE_MAGIC 12582912.0f		/* 1.5 * 2^23, and its bits */
#define WIDE_MAGIC_BITS 0x4b400000

/* The number of values, of n, that fill whole vectors of w values. */
#define WIDE_WHOLE(n, w) ((n) / (size_t)(w) * (size_t)(w))

WIDE_INLINE wide_f32
wide_load(const float *x)
{
	wide_f32 v;

	memcpy(&v, x, sizeof(v));
	return v;
}

WIDE_INLINE wide_u32
wide_mag(wide_f32 v)
{
	return (wide_u32)v & 0x7fffffff;
}

/* Set the top bit of a lane if the magnitude m is infinite or NaN. */
WIDE_INLINE wide_u32
wide_wild(wide_u32 m)
{
	return m + 0x00800000;
}

/* Return the lanes of a where m is all ones, and those of b where m is 0. */
WIDE_INLINE wide_i32
wide_pick(wide_i32 m, wide_i32 a, wide_i32 b)
{
	return (m & a) | (~m & b);
}

/* Return the vector of the lanes' numbers. */
WIDE_INLINE wide_u32
wide_place(void)
{
	static const uint32_t place[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
		12, 13, 14, 15 };
	wide_u32 v;

	memcpy(&v, place, sizeof(v));
	return v;
}

/* Store y, with each NaN as the canonical NaN (kern.h). */
WIDE_INLINE void
wide_put(float *p, wide_f32 y)
{
	wide_i32 v = wide_pick(y == y, (wide_i32)y, (wide_i32){ 0 } + 0x7fc00000);

	memcpy(p, &v, sizeof(v));
}

/* Add d, its square and its magnitude to the lanes of the three sums. */
WIDE_INLINE void
wide_sum(wide_f64 d, wide_f64 *sum, wide_f64 *sq, wide_f64 *ab)
{
	*sum += d;
	*sq += d * d;
	*ab += (wide_f64)((wide_i64)d & INT64_MAX);
}

static void
wide_stat(const float *x, size_t n, struct kern_stat *s)
{
	wide_f64 sum[WIDE_PARTS] = { 0 }, sq[WIDE_PARTS] = { 0 };
	wide_f64 ab[WIDE_PARTS] = { 0 };
	wide_u32 max = { 0 }, some = { 0 }, odd = { 0 }, m, w;
	struct kern_lanes l;
	size_t i, j;
	wide_f32 v;

	memset(&l, 0, sizeof(l));
	for (i = 0; i < WIDE_WHOLE(n, 16); i += 16)
		WIDE_UNROLL
		for (j = 0; j < WIDE_PARTS; j += 2) {
			v = wide_load(x + i + j * WIDE_HALF);
			m = wide_mag(v);
			if (WIDE_BITS(wide_wild(m)) != 0) {
				w = (wide_u32)((wide_i32)wide_wild(m) >> 31);
				odd -= w;
				m &= ~w;
				v = (wide_f32)((wide_u32)v & ~w);
			}
			some += (m + 0x7fffffff) >> 31;
			max = WIDE_MAX(max, m);
			wide_sum(WIDE_LOW(v), &sum[j], &sq[j], &ab[j]);
			wide_sum(WIDE_HIGH(v), &sum[j + 1], &sq[j + 1], &ab[j + 1]);
		}
	memcpy(l.sum, sum, sizeof(sum));
	memcpy(l.sumsq, sq, sizeof(sq));
	memcpy(l.sumabs, ab, sizeof(ab));
	for (j = 0; j < WIDE_LANES; j++) {
		l.nonzero += some[j];
		l.nonfinite += odd[j];
	}
	l.max_bits = WIDE_TOP(max);
	kern_ref_lanes(x, i, n, &l);
	kern_ref_fold(&l, s);
}

static uint32_t
wide_max_bits(const float *x, size_t n)
{
	wide_u32 a = { 0 }, b = { 0 };
	uint32_t m, t;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, 2 * WIDE_LANES); i += 2 * WIDE_LANES) {
		a = WIDE_MAX(a, wide_mag(wide_load(x + i)));
		b = WIDE_MAX(b, wide_mag(wide_load(x + i + WIDE_LANES)));
	}
	m = WIDE_TOP(WIDE_MAX(a, b));
	t = kern_ref_max_bits(x + i, n - i);
	return m > t ? m : t;
}

static size_t
wide_at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	size_t i, m = 0;
	unsigned k;

	if (t > INT32_MAX)
		return 0;
	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		/* the difference is negative where the magnitude is at least t */
		k = WIDE_BITS(t - 1 - wide_mag(wide_load(x + i)));
		for (; k != 0; k &= k - 1)
			at[m++] = (uint32_t)i + (uint32_t)__builtin_ctz(k);
	}
	return m + kern_ref_at_least(at + m, x, i, n, t);
}

static void
wide_axpy64(double *acc, double w, const float *x, size_t n)
{
	wide_f64 a, b;
	wide_f32 v;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		v = wide_load(x + i);
		memcpy(&a, acc + i, sizeof(a));
		memcpy(&b, acc + i + WIDE_HALF, sizeof(b));
		a += w * WIDE_LOW(v);
		b += w * WIDE_HIGH(v);
		memcpy(acc + i, &a, sizeof(a));
		memcpy(acc + i + WIDE_HALF, &b, sizeof(b));
	}
	kern_ref_axpy64(acc + i, w, x + i, n - i);
}

static void
wide_narrow(float *y, const double *acc, size_t n)
{
	wide_f64 a, b;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		memcpy(&a, acc + i, sizeof(a));
		memcpy(&b, acc + i + WIDE_HALF, sizeof(b));
		wide_put(y + i, WIDE_NARROW(a, b));
	}
	kern_ref_narrow(y + i, acc + i, n - i);
}

static void
wide_add_scaled(float *y, const float *a, float g, const float *b, size_t n)
{
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES)
		wide_put(y + i, wide_load(a + i) + g * wide_load(b + i));
	kern_ref_add_scaled(y + i, a + i, g, b + i, n - i);
}

static void
wide_to_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES)
		WIDE_PUT_F16(h + i, wide_load(x + i));
	kern_ref_to_f16(h + i, x + i, n - i);
}

static void
wide_from_f16(float *x, const uint16_t *h, size_t n)
{
	wide_f32 v;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		v = WIDE_GET_F16(h + i);
		memcpy(x + i, &v, sizeof(v));
	}
	kern_ref_from_f16(x + i, h + i, n - i);
}

/* Store the scale of a block at p, then its codes. The bits rotated left by one are
 * largest for the largest magnitude; of two equal magnitudes, for the negative value. */
WIDE_INLINE void
wide_codes(unsigned char *p, const float *x)
{
	wide_f32 v[WIDE_BLOCK];
	wide_i32 q[WIDE_BLOCK];
	wide_u32 u, max = { 0 };
	uint32_t m;
	uint16_t s;
	float f;
	size_t j;

	WIDE_UNROLL
	for (j = 0; j < WIDE_BLOCK; j++) {
		v[j] = wide_load(x + j * WIDE_LANES);
		u = (wide_u32)v[j];
		max = WIDE_MAX(max, u << 1 | u >> 31);
	}
	m = WIDE_TOP(max);
	s = kern_ref_scale(bytes_f32(m >> 1 | m << 31));
	bytes_set16(p, s);
	if (s == 0) {
		memset(p + 2, 0, 32);
		return;
	}
	f = bytes_f32((uint32_t)s << 16);
	WIDE_UNROLL
	for (j = 0; j < WIDE_BLOCK; j++)
		/* adding WIDE_MAGIC rounds to the nearest integer, ties to even */
		q[j] = (wide_i32)(v[j] / f + WIDE_MAGIC) - WIDE_MAGIC_BITS;
	WIDE_PUT32(p + 2, q);
}

/* Multiply the 32 codes of a block by its scale. */
WIDE_INLINE void
wide_spread(float *x, const unsigned char *p)
{
	float s = bytes_f32((uint32_t)bytes_le16(p) << 16);
	wide_f32 v;
	wide_i32 q;
	size_t j;

	WIDE_UNROLL
	for (j = 0; j < WIDE_BLOCK; j++) {
		q = ((wide_i32)WIDE_GET8(p + 2 + j * WIDE_LANES) ^ 128) - 128;
		v = s * __builtin_convertvector(q, wide_f32);
		memcpy(x + j * WIDE_LANES, &v, sizeof(v));
	}
}

static void
wide_q8(unsigned char *p, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, 32); i += 32, p += 34)
		wide_codes(p, x + i);
	kern_ref_q8(p, x + i, n - i);
}

static void
wide_unq8(float *x, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, 32); i += 32, p += 34)
		wide_spread(x + i, p);
	kern_ref_unq8(x + i, p, n - i);
}

static void
wide_sign(unsigned char *p, const float *x, size_t n)
{
	wide_f64 sum[WIDE_PARTS];
	double lane[KERN_LANES];
	unsigned bits;
	size_t i, j, k;
	wide_f32 v;

	for (i = 0; i < WIDE_WHOLE(n, 256); i += 256, p += 34) {
		WIDE_UNROLL
		for (j = 0; j < WIDE_PARTS; j++)
			sum[j] = (wide_f64){ 0 };
		for (k = 0; k < 256; k += 16) {
			WIDE_UNROLL
			for (j = 0, bits = 0; j < WIDE_PARTS; j += 2) {
				v = wide_load(x + i + k + j * WIDE_HALF);
				bits |= WIDE_BITS((wide_u32)v) << j * WIDE_HALF;
				v = (wide_f32)wide_mag(v);
				sum[j] += WIDE_LOW(v);
				sum[j + 1] += WIDE_HIGH(v);
			}
			bytes_set16(p + 2 + k / 8, (uint16_t)bits);
		}
		memcpy(lane, sum, sizeof(lane));
		bytes_set16(p, kern_ref_sign_scale(lane, 256));
	}
	kern_ref_sign(p, x + i, n - i);
}

static void
wide_unsign(float *x, const unsigned char *p, size_t n)
{
	const wide_u32 up = 31 - wide_place();
	wide_u32 s, v;
	uint32_t bits;
	size_t i, j, k;

	for (i = 0; i < WIDE_WHOLE(n, 256); i += 256, p += 34) {
		s = (wide_u32){ 0 } + ((uint32_t)bytes_le16(p) << 16);
		for (k = 0; k < 256; k += 16) {
			bits = bytes_le16(p + 2 + k / 8);
			WIDE_UNROLL
			for (j = 0; j < 16; j += WIDE_LANES) {
				v = ((wide_u32){ 0 } + (bits >> j)) << up;
				v = s | (v & 0x80000000u);
				memcpy(x + i + k + j, &v, sizeof(v));
			}
		}
	}
	kern_ref_unsign(x + i, p, n - i);
}

static void
wide_deadzone(int16_t *q, const float *x, size_t n, float inv, float dead, float r)
{
	const wide_f32 most = (wide_f32){ 0 } + (float)KERN_QMAX;
	wide_f32 v, a;
	wide_i32 neg, c;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		v = wide_load(x + i);
		neg = (wide_i32)v >> 31;
		a = (wide_f32)wide_mag(v) * inv;
		c = __builtin_convertvector(WIDE_MIN(a + r, most), wide_i32);
		c &= ~(a < dead);
		WIDE_PUT16(q + i, (c ^ neg) - neg);
	}
	kern_ref_deadzone(q + i, x + i, n - i, inv, dead, r);
}

static void
wide_split(unsigned char *p, const float *x, size_t n)
{
	wide_u32 u;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		u = (wide_u32)wide_load(x + i);
		u = u << 1 | u >> 31;
		WIDE_PUT8(p + i, u >> 24);
		WIDE_PUT8(p + n + i, u >> 16 & 0xff);
		WIDE_PUT8(p + 2 * n + i, u >> 8 & 0xff);
		WIDE_PUT8(p + 3 * n + i, u & 0xff);
	}
	kern_ref_split(p, x, i, n);
}

static void
wide_join(float *x, const unsigned char *p, size_t n)
{
	wide_u32 u;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		u = WIDE_GET8(p + i) << 24 | WIDE_GET8(p + n + i) << 16 |
		    WIDE_GET8(p + 2 * n + i) << 8 | WIDE_GET8(p + 3 * n + i);
		u = u >> 1 | u << 31;
		memcpy(x + i, &u, sizeof(u));
	}
	kern_ref_join(x, p, i, n);
}

/* Return signed 16-bit numbers and their magnitudes. */
WIDE_INLINE wide_i32
wide_signed(const int16_t *q, wide_i32 *mag)
{
	wide_i32 v = (wide_i32)WIDE_GET16(q);

	*mag = (v ^ v >> 31) - (v >> 31);
	return v;
}

static void
wide_ecq_centers(const int16_t *q, const float *x, size_t n, float inv,
    int64_t sum[3], uint32_t count[3])
{
	enum { BLOCK = 4096 };	/* sums of this many values do not overflow 32 bits */
	wide_i32 a, d, k[3], part[3], some[3];
	size_t i = 0, j, l, end;

	while (i < WIDE_WHOLE(n, WIDE_LANES)) {
		end = n - i < BLOCK ? WIDE_WHOLE(n, WIDE_LANES) : i + BLOCK;
		WIDE_UNROLL
		for (j = 0; j < 3; j++)
			part[j] = some[j] = (wide_i32){ 0 };
		for (; i < end; i += WIDE_LANES) {
			(void)wide_signed(q + i, &a);
			d = __builtin_convertvector(((wide_f32)wide_mag(
			    wide_load(x + i)) * inv -
			    __builtin_convertvector(a, wide_f32)) * 65536,
			    wide_i32);
			k[0] = a == 1;
			k[1] = a == 2;
			k[2] = (a > 2) & (a < KERN_QMAX);
			WIDE_UNROLL
			for (j = 0; j < 3; j++) {
				part[j] += d & k[j];
				some[j] -= k[j];
			}
		}
		WIDE_UNROLL
		for (j = 0; j < 3; j++)
			for (l = 0; l < WIDE_LANES; l++) {
				sum[j] += part[j][l];
				count[j] += (uint32_t)some[j][l];
			}
	}
	kern_ecq_centers(q + i, x + i, n - i, inv, sum, count);
}

static void
wide_ecq_decoded(float *y, const int16_t *q, const float *x, size_t n,
    const float delta[4], float step)
{
	const float table[4] = { 0, delta[1], delta[2], delta[3] };
	wide_i32 s, a, at, v, own;
	size_t i;

	for (i = 0; i < WIDE_WHOLE(n, WIDE_LANES); i += WIDE_LANES) {
		s = wide_signed(q + i, &a);
		at = a | (3 - a) >> 31;		/* 3 also for larger a */
		v = (wide_i32)((__builtin_convertvector(a, wide_f32) +
		    WIDE_OF4(table, at)) * step) ^ (s & INT32_MIN);
		own = KERN_QMAX - 1 - a;
		if (WIDE_BITS(own) != 0)
			v = wide_pick(own >> 31, (wide_i32)wide_load(x + i), v);
		memcpy(y + i, &v, sizeof(v));
	}
	kern_ecq_decoded(y + i, q + i, x + i, n - i, delta, step);
}

#define WIDE_ROWS \
	.stat = wide_stat, \
	.max_bits = wide_max_bits, \
	.axpy64 = wide_axpy64, \
	.narrow = wide_narrow, \
	.add_scaled = wide_add_scaled, \
	.to_f16 = wide_to_f16, \
	.from_f16 = wide_from_f16, \
	.q8 = wide_q8, \
	.unq8 = wide_unq8, \
	.sign = wide_sign, \
	.unsign = wide_unsign, \
	.deadzone = wide_deadzone, \
	.split = wide_split, \
	.join = wide_join, \
	.marks = kern_marks, .ranked = kern_ranked, .marked = kern_marked, \
	.ecq_centers = wide_ecq_centers, \
	.ecq_decoded = wide_ecq_decoded

#endif
