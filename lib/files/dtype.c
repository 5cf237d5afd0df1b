#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "files/dtype.h"
#include "format/schema.h"

/* Effect of converting one value. */
enum { DTYPE_BEYOND = -1, DTYPE_EXACT = 0, DTYPE_ROUNDED = 1 };

size_t
dtype_size(unsigned dtype)
{
	static const unsigned char size[SCHEMA_NDTYPE] = { 4, 2, 2, 8, 4, 8,
		1, 1, 1, 1, 1, 2, 1, 0, 2, 4, 8
	};

	return dtype < SCHEMA_NDTYPE ? size[dtype] : 0;
}

uint64_t
dtype_bytes(unsigned dtype, uint64_t n)
{
	return dtype == SCHEMA_F4 ? n / 2 + n % 2 : n * dtype_size(dtype);
}

/* ---- to f32 ---- */

static uint32_t
dtype_f16_bits(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exp = (h >> 10) & 0x1f, man = h & 0x3ff;

	if (exp == 31)
		return sign | 0x7f800000 | man << 13;
	if (exp != 0)
		return sign | (exp + 112) << 23 | man << 13;
	return sign | bytes_u32((float)man * 0x1p-24f);
}

static int
dtype_f64_bits(uint64_t u, uint32_t *out)
{
	uint64_t man = u & 0xfffffffffffff;
	double d;
	float f;

	if ((u >> 52 & 0x7ff) == 0x7ff) {
		*out = (uint32_t)(u >> 32 & 0x80000000) | 0x7f800000 |
		    (uint32_t)(man >> 29);
		if (man != 0 && man >> 29 == 0)
			*out |= 0x400000;	/* a NaN stays a NaN */
		return (man & 0x1fffffff) != 0 ? DTYPE_ROUNDED : DTYPE_EXACT;
	}
	memcpy(&d, &u, sizeof(d));
	f = (float)d;
	*out = bytes_u32(f);
	if (isinf(f))
		return DTYPE_BEYOND;
	return (double)f == d ? DTYPE_EXACT : DTYPE_ROUNDED;
}

static int
dtype_int_bits(int64_t v, uint32_t *out)
{
	float f = (float)v;

	*out = bytes_u32(f);
	/* 2^63 cannot be converted back to int64_t */
	return f < 0x1p63f && (int64_t)f == v ? DTYPE_EXACT : DTYPE_ROUNDED;
}

/* Return the f32 bits of an f8 E4M3 value: 4 exponent bits, 3 mantissa bits; no infinity,
 * one NaN per sign. */
static uint32_t
dtype_f8_bits(unsigned char c)
{
	uint32_t sign = (uint32_t)(c & 0x80) << 24;
	int exp = c >> 3 & 15, man = c & 7;

	if ((c & 0x7f) == 0x7f)
		return sign | 0x7fc00000;
	return sign | bytes_u32(exp == 0 ? ldexpf((float)man, -9) :
	    ldexpf((float)(8 + man), exp - 10));
}

static int
dtype_one(unsigned dtype, const unsigned char *p, uint32_t *out)
{
	switch (dtype) {
	case SCHEMA_F16:
		*out = dtype_f16_bits(bytes_le16(p));
		return DTYPE_EXACT;
	case SCHEMA_BF16:
		*out = (uint32_t)bytes_le16(p) << 16;
		return DTYPE_EXACT;
	case SCHEMA_F64:
		return dtype_f64_bits(bytes_le64(p), out);
	case SCHEMA_I32:
		return dtype_int_bits((int32_t)bytes_le32(p), out);
	case SCHEMA_I64:
		return dtype_int_bits((int64_t)bytes_le64(p), out);
	case SCHEMA_U8:
	case SCHEMA_BOOL:
		*out = bytes_u32((float)p[0]);
		return dtype == SCHEMA_BOOL && p[0] > 1 ? DTYPE_BEYOND : DTYPE_EXACT;
	case SCHEMA_I8:
		return dtype_int_bits((int8_t)p[0], out);
	case SCHEMA_I16:
		return dtype_int_bits((int16_t)bytes_le16(p), out);
	case SCHEMA_F8E4M3:
		*out = dtype_f8_bits(p[0]);
		return DTYPE_EXACT;
	case SCHEMA_F8E5M2:
		*out = dtype_f16_bits((uint16_t)(p[0] << 8));
		return DTYPE_EXACT;
	default:
		*out = bytes_le32(p);
		return DTYPE_EXACT;
	}
}

size_t
dtype_to_f32(unsigned dtype, int round, const unsigned char *p, float *x,
    size_t n, uint64_t *rounded)
{
	size_t size = dtype_size(dtype), i;
	uint32_t u;
	int how;

	if (dtype == SCHEMA_F32) {
		bytes_get_f32(x, p, n);
		return n;
	}
	for (i = 0; i < n; i++) {
		how = dtype_one(dtype, p + i * size, &u);
		if (how == DTYPE_BEYOND || (how == DTYPE_ROUNDED && !round))
			return i;
		*rounded += how == DTYPE_ROUNDED;
		memcpy(x + i, &u, sizeof(u));
	}
	return n;
}

/* ---- from f32 ---- */

/* Write the f32 of bits u as f16 to p. Return 0, or -1 if a finite value would become infinite. */
static int
dtype_put_f16(uint32_t u, unsigned char *p)
{
	uint32_t a = u & 0x7fffffff, h;
	uint32_t sign = u >> 16 & 0x8000;

	if (a >= 0x7f800000) {
		h = 0x7c00 | (a >> 13 & 0x3ff);
		if (a > 0x7f800000 && (h & 0x3ff) == 0)
			h |= 0x200;		/* a NaN stays a NaN */
	} else if (a >= 0x477ff000) {		/* 65520: half way to 2^16 */
		return -1;
	} else if (a >= 0x38800000) {		/* 2^-14: normal */
		h = (a + 0xfff + (a >> 13 & 1)) >> 13;
		h -= 112 << 10;
	} else {				/* subnormal: only rintf rounds */
		h = (uint32_t)rintf(bytes_f32(a) * 0x1p24f);
	}
	bytes_set16(p, (uint16_t)(sign | h));
	return 0;
}

static int
dtype_put_bf16(uint32_t u, unsigned char *p)
{
	uint32_t a = u & 0x7fffffff, h;

	if (a > 0x7f800000) {
		h = u >> 16;
		if ((h & 0x7f) == 0)
			h |= 0x40;
	} else {
		h = (u + 0x7fff + (u >> 16 & 1)) >> 16;
		if (a != 0x7f800000 && (h & 0x7fff) == 0x7f80)
			return -1;
	}
	bytes_set16(p, (uint16_t)h);
	return 0;
}

static void
dtype_put_f64(uint32_t u, unsigned char *p)
{
	uint64_t w;
	double d;

	if ((u & 0x7f800000) == 0x7f800000) {
		w = (uint64_t)(u & 0x80000000) << 32 | (uint64_t)0x7ff << 52 |
		    (uint64_t)(u & 0x7fffff) << 29;
	} else {
		d = (double)bytes_f32(u);
		memcpy(&w, &d, sizeof(w));
	}
	bytes_set64(p, w);
}

static int
dtype_put_int(unsigned dtype, float f, unsigned char *p)
{
	const unsigned size = (unsigned)dtype_size(dtype);
	const int sign = dtype != SCHEMA_U8 && dtype != SCHEMA_BOOL;
	const double d = (double)f, top = dtype == SCHEMA_BOOL ? 2 :
	    (double)((uint64_t)1 << (8 * size - (unsigned)sign));
	uint64_t v;
	unsigned k;

	if (!(d >= (sign ? -top : 0) && d < top) || rint(d) != d)
		return -1;
	v = (uint64_t)(int64_t)d;
	for (k = 0; k < size; k++)
		p[k] = (unsigned char)(v >> 8 * k);
	return 0;
}

/* Convert f to f8. Return 0, or -1 if the type does not have the value. */
static int
dtype_put_f8(unsigned dtype, float f, unsigned char *p)
{
	uint32_t u = bytes_u32(f), back;
	unsigned char c[2];
	int exp = 0, v;

	if (dtype == SCHEMA_F8E5M2) {
		if (dtype_put_f16(u, c) < 0)
			return -1;
		p[0] = c[1];
	} else {
		/* the magnitudes are 0 to 7 times 2^-9, then 8 to 15 times 2^-9, 2^-8, ... */
		if (isfinite(f) && !(fabsf(f) <= 448))
			return -1;
		if (isfinite(f))
			(void)frexpf(f, &exp);
		exp = exp < -5 || f == 0 ? -5 : exp;
		v = isfinite(f) ? (int)ldexpf(fabsf(f), 4 - exp) : 127;
		p[0] = (unsigned char)((u >> 24 & 0x80) |
		    (isfinite(f) ? (unsigned)(8 * (exp + 5) + v) : 127u));
	}
	(void)dtype_one(dtype, p, &back);
	return bytes_f32(back) == f || (isnan(f) && isnan(bytes_f32(back))) ? 0 : -1;
}

size_t
dtype_from_f32(unsigned dtype, const float *x, unsigned char *p, size_t n)
{
	size_t size = dtype_size(dtype), i;
	int bad = 0;
	uint32_t u;

	if (dtype == SCHEMA_F32) {
		bytes_put_f32(p, x, n);
		return n;
	}
	for (i = 0; i < n; i++, p += size) {
		memcpy(&u, x + i, sizeof(u));
		if (dtype == SCHEMA_F16)
			bad = dtype_put_f16(u, p);
		else if (dtype == SCHEMA_BF16)
			bad = dtype_put_bf16(u, p);
		else if (dtype == SCHEMA_F64)
			dtype_put_f64(u, p);
		else if (dtype == SCHEMA_F8E4M3 || dtype == SCHEMA_F8E5M2)
			bad = dtype_put_f8(dtype, x[i], p);
		else
			bad = dtype_put_int(dtype, x[i], p);
		if (bad)
			return i;
	}
	return n;
}

void
dtype_swap(unsigned dtype, unsigned char *p, size_t n)
{
	size_t size = dtype_size(dtype), i, k;
	unsigned char c;

	for (i = 0; i < n; i++, p += size)
		for (k = 0; k < size / 2; k++) {
			c = p[k];
			p[k] = p[size - 1 - k];
			p[size - 1 - k] = c;
		}
}

void
dtype_text(unsigned dtype, const unsigned char *p, char out[32])
{
	uint64_t u;
	uint32_t v;
	double d;

	if (dtype == SCHEMA_I32 || dtype == SCHEMA_I64) {
		(void)snprintf(out, 32, "%lld", dtype == SCHEMA_I32 ?
		    (long long)(int32_t)bytes_le32(p) : (long long)bytes_le64(p));
		return;
	}
	if (dtype == SCHEMA_F64) {
		u = bytes_le64(p);
		memcpy(&d, &u, sizeof(d));
	} else {
		(void)dtype_one(dtype, p, &v);
		d = (double)bytes_f32(v);
	}
	(void)snprintf(out, 32, "%.17g", d);
}
