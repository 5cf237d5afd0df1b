#include "base/bytes.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "kern/ref.h"

/* What the loops of wide.h mean. */

#define MAG 0x7fffffffu			/* everything but the sign */

void
kern_ref_split(unsigned char *p, const float *x, size_t i0, size_t n)
{
	uint32_t u;
	size_t i;

	for (i = i0; i < n; i++) {
		u = bytes_u32(x[i]);
		u = u << 1 | u >> 31;
		p[i] = (unsigned char)(u >> 24);
		p[n + i] = (unsigned char)(u >> 16);
		p[2 * n + i] = (unsigned char)(u >> 8);
		p[3 * n + i] = (unsigned char)u;
	}
}

void
kern_ref_join(float *x, const unsigned char *p, size_t i0, size_t n)
{
	uint32_t u;
	size_t i;

	for (i = i0; i < n; i++) {
		u = (uint32_t)p[i] << 24 | (uint32_t)p[n + i] << 16 |
		    (uint32_t)p[2 * n + i] << 8 | p[3 * n + i];
		x[i] = bytes_f32(u >> 1 | u << 31);
	}
}

size_t
kern_ref_powers(unsigned char *code, const float *x, const uint32_t *noise,
    size_t n, int top)
{
	const int least = top + 2 > 1 ? top + 2 : 1;
	uint32_t u, mag;
	size_t i, odd = 0;
	int d;

	for (i = 0; i < n; i++) {
		u = bytes_u32(x[i]);
		mag = u & MAG;
		d = top + 127 - (int)((mag + (noise[i] >> 9)) >> 23);
		code[i] = (unsigned char)((d > 0 ? d + 1 : 1) |
		    (int)(u >> 24 & 0x80));
		if (mag == 0)
			code[i] = 0;
		else if ((int)(mag >> 23) < least) {
			code[i] = KERN_POWERS_ODD;
			odd++;
		}
	}
	return odd;
}

void
kern_ref_levels(uint16_t *q, const float *x, const uint32_t *noise, size_t n,
    double inv, unsigned s)
{
	unsigned l;
	size_t i;
	double a;

	for (i = 0; i < n; i++) {
		a = (double)bytes_f32(bytes_u32(x[i]) & MAG) * inv * (double)s;
		l = a < (double)s ? (unsigned)a : s;
		l += l < s && (double)rng_unit(noise[i]) < a - (double)l;
		q[i] = (uint16_t)(bytes_u32(x[i]) >> 31 ? s - l : s + l);
	}
}

void
kern_ref_ternary(unsigned char *t, const float *x, const uint32_t *noise,
    size_t n, float s)
{
	uint32_t u;
	size_t i;

	for (i = 0; i < n; i++) {
		u = bytes_u32(x[i]);
		t[i] = (double)noise[i] * (double)s <
		    (double)bytes_f32(u & MAG) * 4294967296.0 ?
		    (unsigned char)(1 + (u >> 31)) : 0;
	}
}
