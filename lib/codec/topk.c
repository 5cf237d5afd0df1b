/*
 * TOPK: the largest magnitudes, the rest is zero.
 *
 *   body := varint k  ( int8 e  RICE128 positions  f16[k] )  in brackets
 *   unless k = 0;  x[pos[i]] = f16[i] * 2^e
 *
 * The shared exponent puts the largest value just below 2^15, so that f16
 * neither overflows nor loses the bits of gradients below its 6e-8.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/impl.h"
#include "codec/rice.h"
#include "kern/kern.h"

enum { TOP_BITS = 11, MID_BITS = 10, TOP_EXP = 14, MIN_EXP = -128 };
#define MAG 0x7fffffffu

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	return arg_fraction(arg, &plan->arg, e);
}

static void
format(const struct codec_plan *plan, char buf[24])
{
	arg_print(plan->arg, buf);
}

/* k = fraction * n to the nearest, at least 1. */
static size_t
kept(const struct codec_plan *plan, size_t n)
{
	double k = floor((double)plan->arg * (double)n + 0.5);

	if (!(k >= 1))
		return n > 0;
	return k < (double)n ? (size_t)k : n;
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	size_t k = kept(plan, n);

	return 11 + rice_bound(k, n) + 2 * k;
}

/*
 * The bin, counted from the top, in which the k-th largest lies; *k becomes
 * its rank in that bin.
 */
static uint32_t
find_bin(const uint32_t *count, uint32_t bins, size_t *k)
{
	uint32_t b = bins - 1;

	while (b > 0 && count[b] < *k)
		*k -= count[b--];
	return b;
}

/* The k-th largest (k from 1) of those of u[m] whose bits above shift equal
 * prefix; *k becomes its rank among its equals. */
static uint32_t
refine(const float *x, const uint32_t *at, size_t m, uint32_t prefix, size_t *k)
{
	uint32_t count[1 << MID_BITS], u;
	unsigned shift;
	size_t i;

	for (shift = 2 * MID_BITS; shift > 0; shift -= MID_BITS) {
		memset(count, 0, sizeof(count));
		for (i = 0; i < m; i++) {
			u = bytes_u32(x[at[i]]) & MAG;
			if (u >> shift == prefix)
				count[u >> (shift - MID_BITS) &
				    ((1 << MID_BITS) - 1)]++;
		}
		prefix = prefix << MID_BITS |
		    find_bin(count, 1 << MID_BITS, k);
	}
	return prefix;
}

/*
 * The positions of the k largest magnitudes, in order; ties go to the lower
 * position, zeros are never taken.  Two passes over x: a count by the leading
 * bits, then the candidates.  Returns how many, or < 0.
 */
static int
choose(const float *x, size_t n, size_t k, uint32_t **out, size_t *got,
    struct err *e)
{
	uint32_t count[1 << TOP_BITS], *at, bin, t, u;
	const unsigned shift = 2 * MID_BITS;
	size_t i, m, c = 0, rank = k;

	memset(count, 0, sizeof(count));
	for (i = 0; i < n; i++)
		count[(bytes_u32(x[i]) & MAG) >> shift]++;
	bin = find_bin(count, 1 << TOP_BITS, &rank);
	for (i = bin; i < 1 << TOP_BITS; i++)
		c += count[i];
	at = alloc_get(c + 1, sizeof(*at), e);	/* one is written past */
	if (at == NULL)
		return -ERR_SYS;
	for (i = m = 0; i < n && m < c; i++) {
		at[m] = (uint32_t)i;
		m += (bytes_u32(x[i]) & MAG) >> shift >= bin;
	}
	t = refine(x, at, m, bin, &rank);
	if (t == 0)
		rank = 0;
	for (i = m = 0; i < c; i++) {
		u = bytes_u32(x[at[i]]) & MAG;
		if (u > t || (u == t && rank > 0)) {
			rank -= u == t;
			at[m++] = at[i];
		}
	}
	*out = at;
	*got = m;
	return 0;
}

static void
put_values(unsigned char *p, const struct codec_in *in, const uint32_t *pos,
    size_t k, int exp)
{
	double scale = ldexp(1, -exp);
	float v[128];
	uint16_t h[128];
	size_t i, j, m;

	for (i = 0; i < k; i += m) {
		m = k - i < 128 ? k - i : 128;
		for (j = 0; j < m; j++)
			v[j] = (float)((double)in->x[pos[i + j]] * scale);
		in->kern->to_f16(h, v, m);
		for (j = 0; j < m; j++) {
			/* 2^15 * 2^113 is no f32: what rounds up to it, down */
			if (exp == 127 - TOP_EXP && (h[j] & 0x7fff) == 0x7800)
				h[j]--;
			bytes_set16(p + 2 * (i + j), h[j]);
		}
	}
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned char *p = out->p + out->n;
	uint32_t *pos = NULL;
	size_t k;
	int r, exp;

	(void)param;
	if (in->n > UINT32_MAX)
		return err_set(e, ERR_DATA, "limit: group too large for topk");
	r = choose(in->x, in->n, kept(in->plan, in->n), &pos, &k, e);
	if (r < 0)
		return r;
	p += bytes_set_varint(p, k);
	if (k > 0) {
		exp = ilogbf(bytes_f32(in->max_bits)) - TOP_EXP;
		exp = exp < MIN_EXP ? MIN_EXP : exp;
		*p++ = (unsigned char)exp;
		p += rice_put(p, pos, k);
		put_values(p, in, pos, k, exp);
		p += 2 * k;
	}
	out->n = (size_t)(p - out->p);
	alloc_free(pos);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	uint64_t k = bytes_varint(b);
	const unsigned char *p;
	uint32_t *pos = NULL;
	uint16_t h;
	double scale;
	float v;
	size_t i;
	int r = 0;

	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->bad || k > o->n)
		return codec_corrupt("topk", "bad count", e);
	if (k == 0)
		return 0;
	scale = ldexp(1, (int8_t)bytes_u8(b));
	pos = alloc_get(k, sizeof(*pos), e);
	if (pos == NULL)
		return -ERR_SYS;
	if (rice_get(b, pos, k, o->n) < 0)
		r = codec_corrupt("topk", "bad positions", e);
	else if ((p = bytes_take(b, k * 2)) == NULL)
		r = codec_corrupt("topk", "body too short", e);
	for (i = 0; r == 0 && i < k; i++) {
		h = bytes_le16(p + 2 * i);
		o->kern->from_f16(&v, &h, 1);
		o->x[pos[i]] = (float)((double)v * scale);
	}
	alloc_free(pos);
	return r;
}

const struct codec_impl topk_codec = {
	.name = "topk", .parse = parse, .format = format, .bound = bound,
	.encode = encode, .decode = decode
};
