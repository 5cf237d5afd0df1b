/*
 * NATURAL: a power of two, rounded up or down at random (Horvath et al. 2019,
 * section 2):
 *
 *   2^k <= |x| < 2^(k+1),  x' = sign(x) 2^(k+1) with P = |x| / 2^k - 1,
 *   else sign(x) 2^k:  E x' = x,  E (x' - x)^2 <= x^2 / 8
 *
 * The paper sends a sign and eight bits of exponent.  Here the exponent counts
 * down from the group's largest, and the bytes are entropy coded, which takes
 * less than four bits of most gradients.
 *
 *   body := nothing               all values are 0
 *         | i16 E  u8[n] code or  (shorter) rANS of them  (rans.h)
 *
 * code 0 is 0, otherwise sign * 128 + d, d = 1..127: 2^(E + 1 - d).  What is
 * below 2^(E - 126) becomes that or 0 at random.  The noise is base/rng.h's.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rans.h"

enum { DEPTH = 127, TOP = 127, MIN_TOP = -150, NOISE = 1024 };
enum { ODD = 128 };		/* no code: that of a negative zero */

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return 2 + n;
}

/* A value that is subnormal, zero or far below the largest. */
static unsigned
code_small(double a, int top, uint32_t noise)
{
	double part;
	int k;

	if (a < ldexp(1, top + 1 - DEPTH))	/* all of it or nothing */
		return (double)noise * 0x1p-32 < ldexp(a, DEPTH - 1 - top) ?
		    DEPTH : 0;
	part = 2 * frexp(a, &k) - 1;
	k += (double)noise * 0x1p-32 < part;
	return (unsigned)(top - k + 2);
}

/*
 * The codes of at most NOISE values.  Of most of them the noise goes into the
 * mantissa and may carry into the exponent; what is subnormal or below
 * 2^(top - 125) is ODD until the second loop.
 */
static void
code(unsigned char *s, const float *x, size_t n, int top,
    const uint32_t noise[NOISE])
{
	const int least = top + 2 > 1 ? top + 2 : 1;
	int u[NOISE], mag, d, c, odd = 0;
	size_t i;

	memcpy(u, x, n * sizeof(*x));
	for (i = 0; i < n; i++) {
		mag = u[i] & 0x7fffffff;
		d = top + 127 - ((mag + (int)(noise[i] >> 9)) >> 23);
		c = (d > 0 ? d + 1 : 1) | ((u[i] >> 31) & 128);
		c = mag >> 23 < least ? ODD : c;
		c = mag == 0 ? 0 : c;
		odd += c == ODD;
		s[i] = (unsigned char)c;
	}
	for (i = 0; odd > 0; i++) {
		if (s[i] != ODD)
			continue;
		odd--;
		c = (int)code_small(fabs((double)x[i]), top, noise[i]);
		s[i] = (unsigned char)(c == 0 ? 0 : c + (x[i] < 0 ? 128 : 0));
	}
}

/* The values of the codes; -1 when one is of a negative zero. */
static int
values(float *x, const unsigned char *s, size_t n, int top)
{
	unsigned char zero = 0;
	float value[256];
	size_t i;
	int d;

	value[0] = value[128] = 0;
	for (d = 1; d <= DEPTH; d++) {
		value[d] = (float)ldexp(1, top + 1 - d);
		value[128 + d] = -value[d];
	}
	for (i = 0; i < n; i++) {
		zero |= s[i] == 128;
		x[i] = value[s[i]];
	}
	return zero ? -1 : 0;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	const struct codec_ctx *c = in->ctx;
	unsigned char *p = out->p + out->n, *s, *coded = NULL;
	uint32_t count[RANS_SYMBOLS], noise[NOISE];
	size_t i, k, n = in->n, len = n;
	int top;

	if (in->max_bits == 0) {
		if (in->y != NULL)
			memset(in->y, 0, n * sizeof(*in->y));
		return 0;
	}
	top = ilogbf(bytes_f32(in->max_bits)) + 1;
	top = top < TOP ? top : TOP;
	bytes_set16(p, (uint16_t)top);
	s = p + 2;
	for (i = 0; i < n; i += k) {
		k = n - i < NOISE ? n - i : NOISE;
		rng_fill(c->seed, c->step, c->group, (uint32_t)(i / 4), noise,
		    (k + 3) / 4);
		code(s + i, in->x + i, k, top, noise);
	}
	if (in->y != NULL)
		(void)values(in->y, s, n, top);
	rans_count(s, n, count);
	if (rans_estimate(count, n) < n) {
		coded = alloc_raw(rans_bound(n), 1, e);
		if (coded == NULL)
			return -ERR_SYS;
		len = rans_put(coded, s, n, count);
		if (len < n)
			memcpy(s, coded, len);
		alloc_free(coded);
	}
	out->n += 2 + (len < n ? len : n);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	unsigned char *s;
	int top, r = 0;

	if (b->n == 0) {
		memset(o->x, 0, o->n * sizeof(*o->x));
		return 0;
	}
	top = (int16_t)bytes_u16(b);
	if (b->bad || top < MIN_TOP || top > TOP || b->n - b->at > o->n)
		return codec_corrupt("natural", "bad header", e);
	s = alloc_raw(o->n, 1, e);
	if (s == NULL)
		return -ERR_SYS;
	if (b->n - b->at == o->n)
		memcpy(s, bytes_take(b, o->n), o->n);
	else if (rans_get(b, s, o->n) < 0)
		r = codec_corrupt("natural", "bad codes", e);
	if (r == 0 && values(o->x, s, o->n, top) < 0)
		r = codec_corrupt("natural", "a negative zero", e);
	alloc_free(s);
	return r;
}

/* ---- foretold ---- */

/* x between 2^k, returned, and its double; *up: P of the double. */
static double
power(double x, int *k, double *up)
{
	double f = frexp(x, k);

	*k -= 1;
	*up = 2 * f - 1;
	return ldexp(1, *k);
}

static double
error_of(const struct estimate *m)
{
	double sum = 0, up, low;
	unsigned i;
	int k;

	for (i = 0; i < m->points; i++) {
		low = power(m->x[i], &k, &up);
		sum += m->w[i] * low * low * up * (1 - up);
	}
	return sum;
}

static int64_t
bytes_of(const struct estimate *m)
{
	double count[DEPTH + 1] = { 0 }, up, bytes;
	unsigned i, d;
	int top, k;

	if (m->points == 0)
		return 0;
	(void)power(m->max, &top, &up);
	count[0] = m->n - m->nonzero;
	for (i = 0; i < m->points; i++) {
		(void)power(m->x[i], &k, &up);
		d = (unsigned)(top - k) + 2;
		d = d < DEPTH ? d : DEPTH;
		count[d] += m->w[i] * (1 - up);
		count[d - 1] += m->w[i] * up;
	}
	/* each has two signs in the table */
	bytes = estimate_coded(m, count, DEPTH) + 2 * STAT_BINS;
	return 2 + (int64_t)fmin(bytes, m->n);
}

static void
foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*bytes = bytes_of(m);
	*error = error_of(m);
}

const struct codec_impl natural_codec = {
	.name = "natural", .parse = codec_no_arg, .bound = bound,
	.encode = encode, .decode = decode, .tells = 1, .foretell = foretell
};
