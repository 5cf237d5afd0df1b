#include <float.h>
#include <string.h>

#include "base/bytes.h"
#include "kern/kern.h"
#include "kern/kern_ecq.h"
#include "kern/kern_tcq.h"
#include "kern/kern_marks.h"
#include "kern/ref.h"

/* With another evaluation method the bits would differ from those of other machines;
 * FLOAT in the Makefile sets the method. */
_Static_assert(FLT_EVAL_METHOD == 0, "f32 is not computed in f32");

#define MAG 0x7fffffffu			/* all bits but the sign */
#define INF 0x7f800000u
#define NAN_BITS 0x7fc00000u		/* the canonical NaN (kern.h) */

static float
canonical(float y)
{
	return y == y ? y : bytes_f32(NAN_BITS);
}

void
kern_ref_lanes(const float *x, size_t i0, size_t n, struct kern_lanes *l)
{
	size_t i;

	for (i = i0; i < n; i++) {
		uint32_t m = bytes_u32(x[i]) & MAG;
		size_t j = i % KERN_LANES;

		if (m >= INF) {
			l->nonfinite++;
			continue;
		}
		l->sum[j] += (double)x[i];
		l->sumsq[j] += (double)x[i] * (double)x[i];
		l->sumabs[j] += (double)bytes_f32(m);
		l->nonzero += m != 0;
		if (m > l->max_bits)
			l->max_bits = m;
	}
}

static double
fold(const double lane[KERN_LANES])
{
	double v[KERN_LANES];
	size_t h, j;

	memcpy(v, lane, sizeof(v));
	for (h = KERN_LANES / 2; h > 0; h /= 2)
		for (j = 0; j < h; j++)
			v[j] += v[j + h];
	return v[0];
}

void
kern_ref_fold(const struct kern_lanes *l, struct kern_stat *s)
{
	s->sum = fold(l->sum);
	s->sumsq = fold(l->sumsq);
	s->sumabs = fold(l->sumabs);
	s->max_abs = bytes_f32(l->max_bits);
	s->nonzero = l->nonzero;
	s->nonfinite = l->nonfinite;
}

static void
kern_ref_stat(const float *x, size_t n, struct kern_stat *s)
{
	struct kern_lanes l;

	memset(&l, 0, sizeof(l));
	kern_ref_lanes(x, 0, n, &l);
	kern_ref_fold(&l, s);
}

uint32_t
kern_ref_max_bits(const float *x, size_t n)
{
	uint32_t m, max = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		m = bytes_u32(x[i]) & MAG;
		if (m > max)
			max = m;
	}
	return max;
}

size_t
kern_first_nonfinite(const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((bytes_u32(x[i]) & MAG) >= INF)
			break;
	return i;
}

size_t
kern_ref_at_least(uint32_t *at, const float *x, size_t i0, size_t n, uint32_t t)
{
	size_t i, m = 0;

	for (i = i0; i < n; i++) {
		at[m] = (uint32_t)i;
		m += (bytes_u32(x[i]) & MAG) >= t;
	}
	return m;
}

static size_t
at_least(uint32_t *at, const float *x, size_t n, uint32_t t)
{
	return kern_ref_at_least(at, x, 0, n, t);
}

void
kern_ref_axpy64(double *acc, double w, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		acc[i] += w * (double)x[i];
}

void
kern_ref_narrow(float *y, const double *acc, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		y[i] = canonical((float)acc[i]);
}

void
kern_ref_add_scaled(float *y, const float *a, float g, const float *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		y[i] = canonical(a[i] + g * b[i]);
}

static uint16_t
to_f16(uint32_t u)
{
	uint32_t sign = u >> 16 & 0x8000, m = u & MAG, half, shift;

	if (m >= INF)
		return (uint16_t)(sign | 0x7c00 |
		    (m > INF ? 0x200 | (m >> 13 & 0x3ff) : 0));
	if (m >= 0x477ff000)			/* 65520: rounds past 65504 */
		return (uint16_t)(sign | 0x7c00);
	if (m >= 0x38800000) {			/* 2^-14: normal in f16 */
		m += 0xfff + (m >> 13 & 1);	/* to nearest even */
		return (uint16_t)(sign | (m - 0x38000000) >> 13);
	}
	if (m <= 0x33000000)			/* 2^-25, a tie with zero */
		return (uint16_t)sign;
	shift = 126 - (m >> 23);		/* subnormal: units of 2^-24 */
	m = (m & 0x7fffff) | 0x800000;
	half = ((uint32_t)1 << (shift - 1)) - 1 + (m >> shift & 1);
	return (uint16_t)(sign | (m + half) >> shift);
}

void
kern_ref_to_f16(uint16_t *h, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		h[i] = to_f16(bytes_u32(x[i]));
}

static uint32_t
from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, m = h & 0x7fff;

	if (m > 0x7c00)
		return sign | NAN_BITS | (m & 0x3ff) << 13;
	if (m == 0x7c00)
		return sign | INF;
	if (m >= 0x400)
		return sign | ((m << 13) + 0x38000000);
	/* m units of 2^-24, exact in f32 */
	return sign | bytes_u32((float)m * 0x1p-24f);
}

void
kern_ref_from_f16(float *x, const uint16_t *h, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = bytes_f32(from_f16(h[i]));
}

static uint16_t
to_bf16(uint32_t u)
{
	if ((u & MAG) > INF)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

uint16_t
kern_ref_scale(float m)
{
	uint16_t s = to_bf16(bytes_u32(m / -128));

	if ((s & 0x7fff) == 0)
		return 0;
	if ((s & 0x7fff) > KERN_Q8_TOP)
		s = (uint16_t)((s & 0x8000) | KERN_Q8_TOP);
	return s;
}

/* Return the value with the largest magnitude; of x and -x, the negative one. */
static float
extreme(const float *x, size_t n)
{
	float lo = 0, hi = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		lo = x[i] < lo ? x[i] : lo;
		hi = x[i] > hi ? x[i] : hi;
	}
	return -lo >= hi ? lo : hi;
}

/* Return x / s rounded to nearest even, limited to -128 .. 127. */
static int
quantise(float x, float s)
{
	const float magic = 12582912.0f;	/* 1.5 * 2^23: adding it rounds */
	float v = x / s;

	v = v < -128 ? -128 : v;
	v = v > 127 ? 127 : v;
	return (int)((v + magic) - magic);
}

void
kern_ref_q8(unsigned char *p, const float *x, size_t n)
{
	size_t i, m;
	uint16_t s;
	float f;

	for (; n > 0; n -= m, x += m) {
		m = n < KERN_QBLOCK ? n : KERN_QBLOCK;
		s = kern_ref_scale(extreme(x, m));
		f = bytes_f32((uint32_t)s << 16);
		bytes_set16(p, s);
		p += 2;
		for (i = 0; i < m; i++)
			*p++ = (unsigned char)(s != 0 ? quantise(x[i], f) : 0);
	}
}

void
kern_ref_unq8(float *x, const unsigned char *p, size_t n)
{
	size_t i, m;
	float s;

	for (; n > 0; n -= m, x += m) {
		m = n < KERN_QBLOCK ? n : KERN_QBLOCK;
		s = bytes_f32((uint32_t)bytes_le16(p) << 16);
		p += 2;
		for (i = 0; i < m; i++)
			x[i] = s * (float)(int8_t)*p++;
	}
}

uint16_t
kern_ref_sign_scale(const double lane[KERN_LANES], size_t n)
{
	uint16_t s = to_bf16(bytes_u32((float)(fold(lane) / (double)n)));

	return s > KERN_SIGN_TOP ? KERN_SIGN_TOP : s;
}

void
kern_ref_sign(unsigned char *p, const float *x, size_t n)
{
	double lane[KERN_LANES];
	size_t i, m;
	uint32_t u;

	for (; n > 0; n -= m, x += m) {
		m = n < KERN_SIGN_BLOCK ? n : KERN_SIGN_BLOCK;
		memset(lane, 0, sizeof(lane));
		memset(p + 2, 0, (m + 7) / 8);
		for (i = 0; i < m; i++) {
			u = bytes_u32(x[i]);
			lane[i % KERN_LANES] += (double)bytes_f32(u & MAG);
			p[2 + i / 8] = (unsigned char)(p[2 + i / 8] |
			    (u >> 31) << i % 8);
		}
		bytes_set16(p, kern_ref_sign_scale(lane, m));
		p += 2 + (m + 7) / 8;
	}
}

void
kern_ref_unsign(float *x, const unsigned char *p, size_t n)
{
	size_t i, m;
	uint32_t s;

	for (; n > 0; n -= m, x += m) {
		m = n < KERN_SIGN_BLOCK ? n : KERN_SIGN_BLOCK;
		s = (uint32_t)bytes_le16(p) << 16;
		for (i = 0; i < m; i++)
			x[i] = bytes_f32(s |
			    (uint32_t)(p[2 + i / 8] >> i % 8 & 1) << 31);
		p += 2 + (m + 7) / 8;
	}
}

void
kern_ref_deadzone(int16_t *q, const float *x, size_t n, float inv, float dead, float r)
{
	size_t i;
	float a;
	int v;

	for (i = 0; i < n; i++) {
		a = bytes_f32(bytes_u32(x[i]) & MAG) * inv;
		v = a < dead ? 0 : a + r < KERN_QMAX ? (int)(a + r) : KERN_QMAX;
		q[i] = (int16_t)(x[i] < 0 ? -v : v);
	}
}

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

static void
split(unsigned char *p, const float *x, size_t n)
{
	kern_ref_split(p, x, 0, n);
}

static void
join(float *x, const unsigned char *p, size_t n)
{
	kern_ref_join(x, p, 0, n);
}

const struct kern kern_ref = {
	.name = "ref",
	.stat = kern_ref_stat,
	.max_bits = kern_ref_max_bits,
	.at_least = at_least,
	.axpy64 = kern_ref_axpy64,
	.narrow = kern_ref_narrow,
	.add_scaled = kern_ref_add_scaled,
	.to_f16 = kern_ref_to_f16,
	.from_f16 = kern_ref_from_f16,
	.q8 = kern_ref_q8,
	.unq8 = kern_ref_unq8,
	.sign = kern_ref_sign,
	.unsign = kern_ref_unsign,
	.deadzone = kern_ref_deadzone,
	.split = split,
	.join = join,
	.marks = kern_marks, .ranked = kern_ranked, .marked = kern_marked,
	.ecq_centers = kern_ecq_centers,
	.ecq_decoded = kern_ecq_decoded,
	KERN_TCQ_ROWS
};
