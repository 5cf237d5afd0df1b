/*
 * Loops whose code is the same for vectors of any width, WIDE_BYTES: included
 * once in the file of each table, which says what its processor calls the
 * product of two even lanes, the upper and the lower halves of the products of
 * even and of odd lanes in one vector, the four ways to zip two vectors, what
 * makes lanes of 32 bits narrower or wider, and of f64 the lesser, what is before
 * the point, and v where a is less than b, 0 elsewhere.  All else is written with vector
 * types of the compiler, because the code is the same; kern_ref.c has its
 * meaning.
 */
#include <string.h>

#include "base/rng.h"
#include "kern/kern.h"
#include "kern/ref.h"

#ifdef WIDE_BYTES

#define WIDE_VECTOR(t, bytes) t __attribute__((vector_size(bytes)))

typedef WIDE_VECTOR(uint32_t, WIDE_BYTES) wide_u32;
typedef WIDE_VECTOR(int32_t, WIDE_BYTES) wide_i32;
typedef WIDE_VECTOR(uint64_t, WIDE_BYTES) wide_u64;
typedef WIDE_VECTOR(int64_t, WIDE_BYTES) wide_i64;
typedef WIDE_VECTOR(double, WIDE_BYTES) wide_f64;
/* as many lanes as there are of f64 */
typedef WIDE_VECTOR(uint32_t, WIDE_BYTES / 2) wide_half;
typedef WIDE_VECTOR(int32_t, WIDE_BYTES / 2) wide_ihalf;
typedef WIDE_VECTOR(float, WIDE_BYTES / 2) wide_fhalf;

enum { WIDE_LANES = WIDE_BYTES / 4, WIDE_HALF = WIDE_BYTES / 8 };

/* Philox's round: the 64-bit products of all lanes, their halves apart. */
static inline void
wide_round(wide_u32 c[4], const wide_u32 key[2])
{
	const wide_u64 m0 = (wide_u64){ 0 } + 0xD2511F53u;
	const wide_u64 m1 = (wide_u64){ 0 } + 0xCD9E8D57u;
	wide_u64 even = WIDE_MUL((wide_u64)c[0], m0);
	wide_u64 odd = WIDE_MUL(WIDE_ODD(c[0]), m0);
	wide_u32 h0 = WIDE_HIGHS(even, odd), l0 = WIDE_LOWS(even, odd), h1, l1;

	even = WIDE_MUL((wide_u64)c[2], m1);
	odd = WIDE_MUL(WIDE_ODD(c[2]), m1);
	h1 = WIDE_HIGHS(even, odd);
	l1 = WIDE_LOWS(even, odd);
	c[0] = h1 ^ c[1] ^ key[0];
	c[2] = h0 ^ c[3] ^ key[1];
	c[1] = l1;
	c[3] = l0;
}

/* As many blocks side by side as there are lanes.  The lanes stand so that
 * zipping within 128 bits leaves the blocks in order. */
static void
wide_noise(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t *out, size_t n)
{
	wide_u32 c[4], place, z[4], key[10][2];
	int i;

	for (i = 0; i < WIDE_LANES; i++)
		place[i] = (uint32_t)(i % 4 * (WIDE_LANES / 4) + i / 4);
	for (i = 0; i < 10; i++) {
		key[i][0] = (wide_u32){ 0 } + ((uint32_t)seed +
		    (uint32_t)i * 0x9E3779B9u);
		key[i][1] = (wide_u32){ 0 } + ((uint32_t)(seed >> 32) +
		    (uint32_t)i * 0xBB67AE85u);
	}
	for (; n >= WIDE_LANES; n -= WIDE_LANES, block += WIDE_LANES) {
		c[0] = place + block;
		c[1] = (wide_u32){ 0 } + group;
		c[2] = (wide_u32){ 0 } + (uint32_t)step;
		c[3] = (wide_u32){ 0 } + (uint32_t)(step >> 32);
#pragma GCC unroll 10
		for (i = 0; i < 10; i++)
			wide_round(c, key[i]);
		z[0] = WIDE_LOW32(c[0], c[1]);
		z[1] = WIDE_LOW32(c[2], c[3]);
		z[2] = WIDE_HIGH32(c[0], c[1]);
		z[3] = WIDE_HIGH32(c[2], c[3]);
		c[0] = WIDE_LOW64(z[0], z[1]);
		c[1] = WIDE_HIGH64(z[0], z[1]);
		c[2] = WIDE_LOW64(z[2], z[3]);
		c[3] = WIDE_HIGH64(z[2], z[3]);
		memcpy(out, c, sizeof(c));
		out += 4 * WIDE_LANES;
	}
	rng_fill(seed, step, group, block, out, n);
}

static size_t
wide_powers(unsigned char *code, const float *x, const uint32_t *noise,
    size_t n, int top)
{
	const int32_t least = top + 2 > 1 ? top + 2 : 1;
	wide_u32 u, mag, r;
	wide_i32 d, odd = { 0 }, normal, some;
	size_t i, count = 0;
	int j;

	for (i = 0; i + WIDE_LANES <= n; i += WIDE_LANES) {
		memcpy(&u, x + i, sizeof(u));
		memcpy(&r, noise + i, sizeof(r));
		mag = u & 0x7fffffff;
		normal = (wide_i32)(mag >> 23) >= least;
		some = mag != 0;
		d = top + 127 - (wide_i32)((mag + (r >> 9)) >> 23);
		d = (d & (d > 0)) + 1;
		d |= (wide_i32)(u >> 24 & 0x80);
		odd -= ~normal & some;
		d = (normal & d) | (~normal & some & KERN_POWERS_ODD);
		WIDE_PUT8(code + i, d);
	}
	for (j = 0; j < WIDE_LANES; j++)
		count += (uint32_t)odd[j];
	return count + kern_ref_powers(code + i, x + i, noise + i, n - i, top);
}

/* |x| of as many values as there are lanes of f64; their signs as 0 and 1. */
static inline wide_f64
wide_load(const float *x, wide_half *sign)
{
	wide_fhalf f;
	wide_half u;

	memcpy(&u, x, sizeof(u));
	*sign = u >> 31;
	u &= 0x7fffffff;
	memcpy(&f, &u, sizeof(f));
	return __builtin_convertvector(f, wide_f64);
}

static void
wide_levels(uint16_t *q, const float *x, const uint32_t *noise, size_t n,
    double inv, unsigned s)
{
	const wide_f64 most = (wide_f64){ 0 } + (double)s;
	const wide_f64 one = (wide_f64){ 0 } + 1;
	wide_f64 v, a, l, r;
	wide_i64 sign;
	wide_fhalf f;
	wide_half u;
	size_t i;

	for (i = 0; i + WIDE_HALF <= n; i += WIDE_HALF) {
		memcpy(&f, x + i, sizeof(f));
		memcpy(&u, noise + i, sizeof(u));
		v = __builtin_convertvector(f, wide_f64);
		sign = (wide_i64)v & INT64_MIN;
		a = (wide_f64)((wide_i64)v & INT64_MAX) * inv * (double)s;
		r = __builtin_convertvector((wide_ihalf)(u >> 8), wide_f64) *
		    0x1p-24;
		/* at s there is nothing left to be rounded up */
		a = WIDE_MIN(a, most);
		l = WIDE_WHOLE(a);
		l += WIDE_WHERE_LESS(r, a - l, one);
		/* s + l, or s - l where x is negative */
		l = (wide_f64)((wide_i64)l ^ sign) + most;
		WIDE_PUT16_HALF(q + i, __builtin_convertvector(l,
		    wide_ihalf));
	}
	kern_ref_levels(q + i, x + i, noise + i, n - i, inv, s);
}

static void
wide_ternary(unsigned char *t, const float *x, const uint32_t *noise,
    size_t n, float s)
{
	wide_f64 a, r;
	wide_half u, sign;
	size_t i;

	for (i = 0; i + WIDE_HALF <= n; i += WIDE_HALF) {
		a = wide_load(x + i, &sign) * 4294967296.0;
		memcpy(&u, noise + i, sizeof(u));
		/* from 32 bits without a sign: exact */
		r = __builtin_convertvector((wide_ihalf)(u ^ 0x80000000u),
		    wide_f64) + 2147483648.0;
		WIDE_PUT8_HALF(t + i, (sign + 1) &
		    (wide_half)WIDE_LESS(r * (double)s < a));
	}
	kern_ref_ternary(t + i, x + i, noise + i, n - i, s);
}

static void
wide_split(unsigned char *p, const float *x, size_t n)
{
	wide_u32 u;
	size_t i;

	for (i = 0; i + WIDE_LANES <= n; i += WIDE_LANES) {
		memcpy(&u, x + i, sizeof(u));
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

	for (i = 0; i + WIDE_LANES <= n; i += WIDE_LANES) {
		u = WIDE_GET8(p + i) << 24 | WIDE_GET8(p + n + i) << 16 |
		    WIDE_GET8(p + 2 * n + i) << 8 | WIDE_GET8(p + 3 * n + i);
		u = u >> 1 | u << 31;
		memcpy(x + i, &u, sizeof(u));
	}
	kern_ref_join(x, p, i, n);
}

#define WIDE_ROWS \
	.split = wide_split, \
	.join = wide_join, \
	.noise = wide_noise, \
	.powers = wide_powers, \
	.levels = wide_levels, \
	.ternary = wide_ternary

#endif
