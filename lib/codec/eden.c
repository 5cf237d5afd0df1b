/*
 * EDEN: after a random rotation (rotate.h) every group is Gaussian, and one
 * quantiser, the best one for that, serves all (Vargaftik et al., DRIVE 2021,
 * EDEN 2022).
 *
 *   y = rotation of x,  c_i = sign(y_i) * centroid[b][j],  j the nearest to
 *   |y_i| / rms(y),  x' = inverse rotation of S c
 *
 *   S = |y|^2 / <c, y>     E x' = x        (EDEN, theorem 1)
 *   S = <c, y> / |c|^2     the smallest error, param MSE
 *
 * Bits b may be a fraction, lo + f: f of the values take lo + 1 bits, the
 * rest lo; values of 0 bits are not sent, c = 0.  EDEN draws who takes more
 * from a Bernoulli mask; here it is every 1/f-th from a random start, so the
 * length is exact: a rotation leaves no value special (ours).
 *
 *   body := nothing                   all values are 0
 *         | u16 bits * 4096  i16 e  f32 S[parts]  codes of lo + 1 bits, as
 *           many as the mask says, padded to a byte  codes of lo bits, ...
 *
 * S is in units of 2^e; there are two parts when n is no power of two.  A
 * code is 2 j + (1 when negative).
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "codec/arg.h"
#include "codec/bits.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/rotate.h"
#include "kern/kern.h"

enum { UNBIASED = 0, MSE = 1 };
enum { MAX_BITS = 4, UNIT = 4096, MAX_E = 200, MASK_BLOCK = 1 << 21,
	LANES = 16 };
#define MAX_SCALE 0x1p64f

/*
 * The Lloyd-Max quantiser of the half-normal density (Max 1960; Lloyd 1982).
 * tests/unit/codec/test_eden.c iterates to these in f64.
 */
static const float centroid[MAX_BITS + 1][1 << (MAX_BITS - 1)] = {
	{ 0 },
	{ 0.797884561f },
	{ 0.452780035f, 1.51041761f },
	{ 0.245094179f, 0.756005281f, 1.34390928f, 2.1519457f },
	{ 0.12839503f, 0.388048299f, 0.656759119f, 0.942340456f,
	    1.2562312f, 1.61804639f, 2.06901723f, 2.73258957f }
};

/* Who takes how many bits. */
struct rate {
	unsigned lo;
	uint32_t start, step;	/* hi where start + i * step passes 2^32 */
	size_t hi;		/* how many take lo + 1 */
};

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	char t[ARG_WORD];
	int r;

	if (arg_word(&arg, "mse", t))
		plan->param = MSE;
	r = arg_number(arg, 0, MAX_BITS, &plan->arg, e);
	if (r == 0 && plan->arg < 1.0f / UNIT)
		return err_set(e, ERR_USAGE, "bits are 1/4096 to 4");
	return r;
}

static void
contract(struct codec_plan *plan)
{
	plan->param = MSE;
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	arg_print(plan->arg, buf);
	if (plan->param == MSE)
		memcpy(buf + strlen(buf), ":mse", 5);
}

static unsigned
units(const struct codec_plan *plan)
{
	float u = plan->arg * UNIT + 0.5f;

	return u < 1 ? 1 : u > MAX_BITS * UNIT ? MAX_BITS * UNIT : (unsigned)u;
}

static void
rate_of(struct rate *r, unsigned bits, const struct codec_ctx *c, size_t n)
{
	uint32_t noise[4];

	rng_block(c->seed, c->step, c->group, MASK_BLOCK, noise);
	r->lo = bits / UNIT;
	r->step = (uint32_t)(bits % UNIT) << 20;
	r->start = r->step != 0 ? noise[0] : 0;
	r->hi = (size_t)((r->start + (uint64_t)r->step * n) >> 32);
}

static size_t
codes_size(const struct rate *r, size_t n)
{
	return bits_size(r->hi, r->lo + 1) + bits_size(n - r->hi, r->lo);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	unsigned bits = units(plan), lo = bits / UNIT;
	size_t hi = (size_t)(((uint64_t)(bits % UNIT) * n >> 12) + 1);

	hi = bits % UNIT == 0 ? 0 : hi < n ? hi : n;
	return 12 + bits_size(hi, lo + 1) + bits_size(n - hi, lo) + 1;
}

/*
 * Codes of n <= LANES values, 2 j + (1 where negative), j: how many of the
 * rising levels - 1 thresholds t are below a = |y * inv| (f32).  Adds c[j] * a
 * and c[j]^2 to a lane of dot and norm each.  Numbers that are not negative are
 * compared by their bits, and without a branch, so that compilers make vectors
 * of it.
 */
static inline void
nearest(unsigned char *code, const float *y, size_t n, float inv,
    const float *t, const float *c, unsigned levels, double dot[LANES],
    double norm[LANES])
{
	int32_t a[LANES], v[LANES], j[LANES], at, of, above;
	float f[LANES], g[LANES];
	unsigned k;
	size_t i;

	of = (int32_t)bytes_u32(c[0]);
	for (i = 0; i < n; i++) {
		f[i] = fabsf(y[i] * inv);
		v[i] = of;
		j[i] = 0;
	}
	memcpy(a, f, n * sizeof(*f));
	for (k = 0; k + 1 < levels; k++) {
		at = (int32_t)bytes_u32(t[k]);
		of = (int32_t)bytes_u32(c[k + 1]);
		for (i = 0; i < n; i++) {
			above = (at - a[i]) >> 31;
			v[i] ^= (v[i] ^ of) & above;
			j[i] -= above;
		}
	}
	memcpy(g, v, n * sizeof(*v));
	for (i = 0; i < n; i++) {
		dot[i] += (double)g[i] * (double)f[i];
		norm[i] += (double)g[i] * (double)g[i];
		code[i] = (unsigned char)(2 * j[i] +
		    (int)(bytes_u32(y[i]) >> 31));
	}
}

/* Adds <c, y> and |c|^2, y in units of 1 / inv, to fit: value i in lane
 * i % LANES, which fold by halves. */
static void
quantise(unsigned char *code, const float *y, size_t n, float inv,
    unsigned bits, double fit[2])
{
	double dot[LANES] = { 0 }, norm[LANES] = { 0 };
	unsigned levels = 1u << (bits - 1), j;
	const float *c = centroid[bits];
	float t[8];
	size_t i;

	for (j = 0; j + 1 < levels; j++)
		t[j] = (c[j] + c[j + 1]) / 2;
	for (i = 0; i + LANES <= n; i += LANES)
		nearest(code + i, y + i, LANES, inv, t, c, levels, dot, norm);
	nearest(code + i, y + i, n - i, inv, t, c, levels, dot, norm);
	for (j = LANES / 2; j > 0; j /= 2)
		for (i = 0; i < j; i++) {
			dot[i] += dot[i + j];
			norm[i] += norm[i + j];
		}
	fit[0] += dot[0];
	fit[1] += norm[0];
}

/* One part of the group on its way. */
struct part {
	const float *y;		/* rotated */
	size_t at, n;		/* its place in the group */
	unsigned char *hi, *lo;	/* where its codes go */
	float *tmp;		/* room for n + 2 values */
};

/* Codes the part, returns S. */
static float
encode_part(const struct codec_in *in, const struct rate *r, struct part *p)
{
	struct kern_stat s;
	double rms, scale, fit[2] = { 0, 0 };	/* <c, y>, |c|^2 */
	float inv;
	float *hi = p->tmp, *lo;
	uint64_t acc;
	size_t i, nhi;

	in->kern->stat(p->y, p->n, &s);
	rms = sqrt(s.sumsq / (double)p->n);
	if (!(rms > 0x1p-100))		/* nothing beside the largest, 1 */
		rms = 0x1p-100;
	inv = (float)(1 / rms);
	if (r->step == 0) {
		quantise(p->lo, p->y, p->n, inv, r->lo, fit);
		nhi = 0;
	} else {
		acc = (uint32_t)(r->start + (uint64_t)r->step * p->at);
		nhi = (size_t)((acc + (uint64_t)r->step * p->n) >> 32);
		lo = p->tmp + nhi + 1;	/* one is written past hi's */
		for (i = 0; i < p->n; i++) {
			acc = (acc & 0xffffffffu) + r->step;
			*hi = *lo = p->y[i];
			hi += acc >> 32;
			lo += acc >> 32 ^ 1;
		}
		quantise(p->hi, p->tmp, nhi, inv, r->lo + 1, fit);
		if (r->lo != 0)
			quantise(p->lo, hi + 1, p->n - nhi, inv, r->lo,
			    fit);
	}
	p->hi += nhi;
	p->lo += p->n - nhi;
	if (!(fit[0] > 0))
		return 0;
	scale = in->plan->param == MSE ? fit[0] / fit[1] * rms :
	    s.sumsq / (rms * fit[0]);
	return scale < (double)MAX_SCALE ? (float)scale : MAX_SCALE;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	size_t n = in->n, split = rotate_split(n), i;
	unsigned bits = units(in->plan);
	unsigned char *o = out->p + out->n, *codes;
	float *y, s;
	struct rate r;
	struct part p;
	int exp;

	*param = in->plan->param;
	if (in->max_bits == 0)
		return 0;
	rate_of(&r, bits, in->ctx, n);
	y = alloc_get(2 * n + 2, sizeof(*y), e);
	codes = y != NULL ? alloc_get(n + 1, 1, e) : NULL;
	if (codes == NULL) {
		alloc_free(y);
		return -ERR_SYS;
	}
	exp = ilogbf(bytes_f32(in->max_bits));
	rotate_there(in->ctx, y, in->x, n, ldexp(1, -exp));
	bytes_set16(o, (uint16_t)bits);
	bytes_set16(o + 2, (uint16_t)exp);
	o += 4;
	p.hi = codes;
	p.lo = codes + r.hi;
	p.tmp = y + n;
	for (i = 0; i < n; i += p.n, o += 4) {
		p.at = i;
		p.y = y + i;
		p.n = i < split ? split : n - split;
		s = encode_part(in, &r, &p);
		bytes_put_f32(o, &s, 1);
	}
	bits_pack(o, codes, r.hi, r.lo + 1);
	if (r.lo != 0)
		bits_pack(o + bits_size(r.hi, r.lo + 1), codes + r.hi,
		    n - r.hi, r.lo);
	out->n = (size_t)(o - out->p) + codes_size(&r, n);
	alloc_free(codes);
	alloc_free(y);
	return 0;
}

/* S c of the part [at, at + n) from its codes. */
static void
decode_part(const struct rate *r, float s, float *x, size_t at, size_t n,
    const unsigned char **hi, const unsigned char **lo)
{
	float value[2][1 << MAX_BITS];
	uint64_t acc = (uint32_t)(r->start + (uint64_t)r->step * at);
	size_t i;
	unsigned b, j;

	for (b = 0; b < 2; b++)
		for (j = 0; j < 1 << MAX_BITS; j++)
			value[b][j] = r->lo + b > MAX_BITS ? 0 :
			    j & 1 ? -s * centroid[r->lo + b][j / 2] :
			    s * centroid[r->lo + b][j / 2];
	if (r->step == 0) {
		for (i = 0; i < n; i++)
			x[i] = value[0][(*lo)[i]];
		*lo += n;
		return;
	}
	for (i = 0; i < n; i++) {
		acc = (acc & 0xffffffffu) + r->step;
		x[i] = acc >> 32 ? value[1][**hi] : value[0][**lo];
		*hi += acc >> 32;
		*lo += acc >> 32 ^ 1;
	}
}

/* The codes of r, a byte each, from b. */
static int
unpack(const struct rate *r, struct bytes *b, unsigned char *codes, size_t n)
{
	const unsigned char *p = bytes_take(b, codes_size(r, n));

	if (p == NULL || bits_unpack(codes, p, r->hi, r->lo + 1) < 0)
		return -1;
	return r->lo == 0 ? 0 : bits_unpack(codes + r->hi,
	    p + bits_size(r->hi, r->lo + 1), n - r->hi, r->lo);
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	size_t n = o->n, split = rotate_split(n), i;
	const unsigned char *hi, *lo;
	unsigned char *codes;
	float s[2], *x = o->x;
	struct rate r;
	unsigned bits;
	int exp;

	memset(x, 0, n * sizeof(*x));
	if (b->n == 0)
		return 0;
	bits = bytes_u16(b);
	exp = (int16_t)bytes_u16(b);
	s[0] = split != 0 ? bytes_f32(bytes_next32(b)) : 0;
	s[1] = bytes_f32(bytes_next32(b));
	if (b->bad || bits == 0 || bits > MAX_BITS * UNIT || exp < -MAX_E ||
	    exp > MAX_E || !(s[0] >= 0 && s[0] <= MAX_SCALE) ||
	    !(s[1] >= 0 && s[1] <= MAX_SCALE))
		return codec_corrupt("eden", "bad header", e);
	rate_of(&r, bits, o->ctx, n);
	codes = alloc_get(n + 1, 1, e);
	if (codes == NULL)
		return -ERR_SYS;
	if (unpack(&r, b, codes, n) < 0) {
		alloc_free(codes);
		return codec_corrupt("eden", "bad codes", e);
	}
	hi = codes;
	lo = codes + r.hi;
	decode_part(&r, s[0], x, 0, split, &hi, &lo);
	decode_part(&r, s[1], x + split, split, n - split, &hi, &lo);
	alloc_free(codes);
	rotate_back(o->ctx, x, n, ldexp(1, exp));
	if (o->kern->max_bits(x, n) >= 0x7f800000)
		for (i = 0; i < n; i++)		/* beyond f32: the largest */
			x[i] = fminf(fmaxf(x[i], -0x1.fffffep127f),
			    0x1.fffffep127f);
	return 0;
}

/* The bits; the length is exact, but for a value more or less. */
static void
turn(struct codec_plan *plan, double f)
{
	double bits = (double)plan->arg / f;

	plan->arg = (float)(bits < 1.0 / UNIT ? 1.0 / UNIT : bits < MAX_BITS ?
	    bits : MAX_BITS);
}

/* After the rotation all is Gaussian; between whole bits the mixture of the
 * two quantisers. */
static void
foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	/* test_eden.c's D */
	static const double d[] = { 1, .36338, .11748, .03454, .00950, 0 };
	unsigned lo = plan->arg < 4 ? (unsigned)plan->arg : 4;
	double f = (double)plan->arg - lo, e = d[lo] + f * (d[lo + 1] - d[lo]);

	*bytes = (int64_t)bound(plan, (size_t)m->n);
	*error = m->sumsq * (plan->param == UNBIASED ? e / (1 - e) : e);
}

const struct codec_impl eden_codec = {
	.name = "eden", .parse = parse, .format = format,
	.contract = contract, .bound = bound,
	.encode = encode, .decode = decode, .max_param = MSE,
	.turn = turn, .sparse_below = 1, .foretell = foretell
};
