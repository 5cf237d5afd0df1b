/*
 * TCQ: trellis-coded quantisation (Marcellin and Fischer 1990), entropy coded.
 *
 * Quantiser 0 has the even multiples of a step, quantiser 1 has 0 and the odd ones. The
 * parities of the previous values select the quantiser of a value, and the encoder
 * searches for the path with the least sum of error and weighted bits.
 *
 *   x ~ sign(q) * (2 |q| - u + delta[u][min(|q|, 3)]) * step
 *
 *   body := nothing                                 all values are 0
 *         | f32                                     all values are equal to it
 *         | 00 00 00  f32[n]                        the values unchanged
 *         | step[3]  (i8 delta  i4 delta[2])[2]  u8 level  u8 symbols  u8 fine?
 *           code
 *
 * step[3] is the upper 24 bits of an f32, least significant byte first. The first delta
 * of each quantiser is in units of 2^-7, the others of 2^-4. level, symbols and code are
 * like ECQ's (ecq.c), for |q|, with the differences in tcq_code.h. fine is present when
 * the greatest symbol is 14 or 15.
 */
#include <math.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/codec_impl.h"
#include "codec/estimate.h"
#include "codec/stepped.h"
#include "codec/tcq_code.h"
#include "kern/kern.h"

enum { HEADER = 9, ROOM = 64 };

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char *p = out->p + out->n, *at;
	uint32_t bits = stepped_bits(in->plan);
	float step = bytes_f32(bits << 8);
	struct ecq_in q = { in->kern, in->ctx, NULL, in->x, in->n, step, 1 / step,
		in->y };
	struct ecq_side s;
	size_t len;
	int r;

	if (bytes_f32(in->max_bits) * q.inv < 0.5f) {
		stepped_nothing(in);
		return 0;
	}
	if (stepped_same(in, out))
		return 0;
	r = tcq_code_put(&q, p + HEADER + 1, 4 * in->n + ROOM, &s, &len, e);
	if (r < 0)
		return r;
	if (s.top == 0) {
		stepped_nothing(in);
		return 0;
	}
	if (len == 0 || HEADER + len >= 3 + 4 * in->n) {
		stepped_store(in, out);
		return 0;
	}
	at = stepped_put_side(p, bits, &s, 1);
	memmove(at, p + HEADER + 1, len);
	out->n += (size_t)(at - p) + len;
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	return stepped_decode("tcq", 1, o, b, e);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return HEADER + 1 + 4 * n + ROOM;
}

/* Estimate TCQ from ecq at the same error, less a tenth of its bits, at most 0.16 bits per
 * value, and less if most values are 0. At 1.4 bits per value, ecq's step is 1.4
 * times TCQ's. The factor is larger at many bits, and where nearly all values use quantiser
 * 0, whose levels are two steps apart (fitted to tests/unit/codec/test_estimate.c). */
static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	const double zeros = fmax(1 - 2 * m->nonzero / m->n, 0);
	struct codec_plan p = { CODEC_ECQ, 0, plan->arg * 1.5f };
	double bits, more;

	ecq_codec.estimate(&p, m, bytes, error);
	bits = 8 * (double)*bytes / m->n;
	more = fmax(0.35 - 0.25 * bits, fmin(0.07 * (bits - 1), 0.3));
	p.arg = plan->arg * (float)(1.37 + fmax(more, 0.53 * zeros));
	ecq_codec.estimate(&p, m, bytes, error);
	bits = 8 * (double)*bytes / m->n;
	*bytes -= (int64_t)(fmin(0.1 * bits, 0.16) * (1 - zeros) * m->n / 8);
}

const struct codec_impl tcq_codec = {
	.name = "tcq", .parse = stepped_parse, .format = stepped_format, .bound = bound,
	.encode = encode, .decode = decode, .turn = stepped_turn, .turned = stepped_turned,
	.gives_y = 1, .effort = 6, .sparse_below = HUGE_VALF, .estimate = estimated
};
