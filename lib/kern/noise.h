/*
 * The loops of the codecs that round at random, for tables with vectors of
 * NOISE_BYTES: included once in the file of each, which says what its processor
 * calls the product of two even lanes, the four ways to zip two vectors, and
 * what makes the lanes of 32 bits narrower.  All else is written with vector
 * types of the compiler, because the code is the same; kern_ref.c has its
 * meaning.
 */
#include <string.h>

#include "base/rng.h"
#include "kern/kern.h"
#include "kern/ref.h"

#define NOISE_VECTOR(t, bytes) t __attribute__((vector_size(bytes)))

typedef NOISE_VECTOR(uint32_t, NOISE_BYTES) noise_u32;
typedef NOISE_VECTOR(int32_t, NOISE_BYTES) noise_i32;
typedef NOISE_VECTOR(uint64_t, NOISE_BYTES) noise_u64;
typedef NOISE_VECTOR(int64_t, NOISE_BYTES) noise_i64;
typedef NOISE_VECTOR(double, NOISE_BYTES) noise_f64;
/* as many lanes as there are of f64 */
typedef NOISE_VECTOR(uint32_t, NOISE_BYTES / 2) noise_half;
typedef NOISE_VECTOR(int32_t, NOISE_BYTES / 2) noise_ihalf;
typedef NOISE_VECTOR(float, NOISE_BYTES / 2) noise_fhalf;

enum { NOISE_LANES = NOISE_BYTES / 4, NOISE_HALF = NOISE_BYTES / 8 };

/* Philox's round: the 64-bit products of all lanes, their halves apart. */
static inline void
noise_round(noise_u32 c[4], uint32_t k0, uint32_t k1)
{
	const noise_u64 low = (noise_u64){ 0 } + 0xffffffffu;
	const noise_u64 m0 = (noise_u64){ 0 } + 0xD2511F53u;
	const noise_u64 m1 = (noise_u64){ 0 } + 0xCD9E8D57u;
	noise_u64 even = NOISE_MUL((noise_u64)c[0], m0);
	noise_u64 odd = NOISE_MUL((noise_u64)c[0] >> 32, m0);
	noise_u32 h0 = (noise_u32)(even >> 32 | (odd & ~low)), h1;
	noise_u32 l0 = (noise_u32)((even & low) | odd << 32), l1;

	even = NOISE_MUL((noise_u64)c[2], m1);
	odd = NOISE_MUL((noise_u64)c[2] >> 32, m1);
	h1 = (noise_u32)(even >> 32 | (odd & ~low));
	l1 = (noise_u32)((even & low) | odd << 32);
	c[0] = h1 ^ c[1] ^ k0;
	c[2] = h0 ^ c[3] ^ k1;
	c[1] = l1;
	c[3] = l0;
}

/* As many blocks side by side as there are lanes.  The lanes stand so that
 * zipping within 128 bits leaves the blocks in order. */
static void
noise_fill(uint64_t seed, uint64_t step, uint32_t group, uint32_t block,
    uint32_t *out, size_t n)
{
	noise_u32 c[4], place, z[4];
	uint32_t k0, k1;
	int i;

	for (i = 0; i < NOISE_LANES; i++)
		place[i] = (uint32_t)(i % 4 * (NOISE_LANES / 4) + i / 4);
	for (; n >= NOISE_LANES; n -= NOISE_LANES, block += NOISE_LANES) {
		k0 = (uint32_t)seed;
		k1 = (uint32_t)(seed >> 32);
		c[0] = place + block;
		c[1] = (noise_u32){ 0 } + group;
		c[2] = (noise_u32){ 0 } + (uint32_t)step;
		c[3] = (noise_u32){ 0 } + (uint32_t)(step >> 32);
		for (i = 0; i < 10; i++) {
			noise_round(c, k0, k1);
			k0 += 0x9E3779B9u;
			k1 += 0xBB67AE85u;
		}
		z[0] = NOISE_LOW32(c[0], c[1]);
		z[1] = NOISE_LOW32(c[2], c[3]);
		z[2] = NOISE_HIGH32(c[0], c[1]);
		z[3] = NOISE_HIGH32(c[2], c[3]);
		c[0] = NOISE_LOW64(z[0], z[1]);
		c[1] = NOISE_HIGH64(z[0], z[1]);
		c[2] = NOISE_LOW64(z[2], z[3]);
		c[3] = NOISE_HIGH64(z[2], z[3]);
		memcpy(out, c, sizeof(c));
		out += 4 * NOISE_LANES;
	}
	rng_fill(seed, step, group, block, out, n);
}

static size_t
noise_powers(unsigned char *code, const float *x, const uint32_t *noise,
    size_t n, int top)
{
	const int32_t least = top + 2 > 1 ? top + 2 : 1;
	noise_u32 u, mag, r;
	noise_i32 d, odd = { 0 }, normal, some;
	size_t i, count = 0;
	int j;

	for (i = 0; i + NOISE_LANES <= n; i += NOISE_LANES) {
		memcpy(&u, x + i, sizeof(u));
		memcpy(&r, noise + i, sizeof(r));
		mag = u & 0x7fffffff;
		normal = (noise_i32)(mag >> 23) >= least;
		some = mag != 0;
		d = top + 127 - (noise_i32)((mag + (r >> 9)) >> 23);
		d = (d & (d > 0)) + 1;
		d |= (noise_i32)(u >> 24 & 0x80);
		odd -= ~normal & some;
		d = (normal & d) | (~normal & some & KERN_POWERS_ODD);
		NOISE_PUT8(code + i, d);
	}
	for (j = 0; j < NOISE_LANES; j++)
		count += (uint32_t)odd[j];
	return count + kern_ref_powers(code + i, x + i, noise + i, n - i, top);
}

/* |x| of as many values as there are lanes of f64; their signs as 0 and 1. */
static inline noise_f64
noise_load(const float *x, noise_half *sign)
{
	noise_fhalf f;
	noise_half u;

	memcpy(&u, x, sizeof(u));
	*sign = u >> 31;
	u &= 0x7fffffff;
	memcpy(&f, &u, sizeof(f));
	return __builtin_convertvector(f, noise_f64);
}

static void
noise_levels(uint16_t *q, const float *x, const uint32_t *noise, size_t n,
    double inv, unsigned s)
{
	const double most = (double)s;
	noise_f64 a, l, r;
	noise_half u, sign;
	noise_ihalf c;
	noise_i64 less;
	size_t i;

	for (i = 0; i + NOISE_HALF <= n; i += NOISE_HALF) {
		a = noise_load(x + i, &sign) * inv * most;
		memcpy(&u, noise + i, sizeof(u));
		r = __builtin_convertvector((noise_ihalf)(u >> 8), noise_f64) *
		    0x1p-24;
		less = a < most;
		l = (noise_f64)((less & (noise_i64)a) |
		    (~less & (noise_i64)((noise_f64){ 0 } + most)));
		c = __builtin_convertvector(l, noise_ihalf);
		l = __builtin_convertvector(c, noise_f64);
		less = (l < most) & (r < a - l);
		c -= (noise_ihalf)NOISE_LESS(less);
		/* s + l, or s - l where x is negative */
		c = (c ^ -(noise_ihalf)sign) + (noise_ihalf)sign + (int32_t)s;
		NOISE_PUT16_HALF(q + i, c);
	}
	kern_ref_levels(q + i, x + i, noise + i, n - i, inv, s);
}

static void
noise_ternary(unsigned char *t, const float *x, const uint32_t *noise,
    size_t n, float s)
{
	noise_f64 a, r;
	noise_half u, sign;
	size_t i;

	for (i = 0; i + NOISE_HALF <= n; i += NOISE_HALF) {
		a = noise_load(x + i, &sign) * 4294967296.0;
		memcpy(&u, noise + i, sizeof(u));
		/* from 32 bits without a sign: exact */
		r = __builtin_convertvector((noise_ihalf)(u ^ 0x80000000u),
		    noise_f64) + 2147483648.0;
		NOISE_PUT8_HALF(t + i, (sign + 1) &
		    (noise_half)NOISE_LESS(r * (double)s < a));
	}
	kern_ref_ternary(t + i, x + i, noise + i, n - i, s);
}

#define NOISE_ROWS \
	.noise = noise_fill, \
	.powers = noise_powers, \
	.levels = noise_levels, \
	.ternary = noise_ternary
