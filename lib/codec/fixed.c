/*
 * I64: fixed point, x = q * 2^-f, q to nearest even.
 *
 *   body := int8 f  int64[n]
 *
 * f is 40 unless the group holds a value of 2^22 or more, so everybody's
 * values are multiples of 2^-40: a sum of them is exact in f64 as long as it
 * stays below 2^13, and then the same bits in any order.  x - q * 2^-f is
 * exact in f32: q has no bits that x does not have.
 */
#include <math.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"

enum { FRACTION = 40, TOP = 62 };

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return 1 + 8 * n;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned char *p = out->p + out->n;
	int f = FRACTION, top = FRACTION;
	double scale;
	size_t i;

	if (in->max_bits != 0)
		top = TOP - 1 - ilogbf(bytes_f32(in->max_bits));
	if (top < f)
		f = top;
	scale = ldexp(1, f);
	*p++ = (unsigned char)f;
	for (i = 0; i < in->n; i++, p += 8)
		bytes_set64(p,
		    (uint64_t)(int64_t)rint((double)in->x[i] * scale));
	out->n = (size_t)(p - out->p);
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	double scale = ldexp(1, -(int)(int8_t)bytes_u8(b));
	const unsigned char *p = bytes_take(b, o->n * 8);
	size_t i;

	if (b->bad || p == NULL)
		return codec_corrupt("i64", "body too short", e);
	for (i = 0; i < o->n; i++)
		o->x[i] = (float)((double)(int64_t)bytes_le64(p + 8 * i) *
		    scale);
	return 0;
}

static void
foretell(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*error = m->n * ldexp(1, -2 * FRACTION) / 12;
}

const struct codec_impl fixed_i64 = {
	.name = "i64", .parse = codec_no_arg, .bound = bound,
	.encode = encode, .decode = decode, .dense = 1, .fixed = 1,
	.foretell = foretell
};
