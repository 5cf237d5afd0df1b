/*
 * ECQ: a uniform quantiser with a dead zone, entropy coded.
 *
 *   q = sign(x) * trunc(|x| / step + r),  0 where |x| / step < dead
 *   x ~ sign(q) * (|q| + delta[min(|q|, 3)]) * step
 *
 *   body := nothing                                 all values are 0
 *         | f32                                     all values are equal to it
 *         | 00 00 00  f32[n]                        the values unchanged
 *         | step[3]  i8 delta  i4 delta[2]  u8 level  u8 symbols  u8 fine?  code
 *
 * step[3] is the upper 24 bits of an f32, least significant byte first. The first delta
 * is in units of 2^-8, the others of 2^-5. level is the level of the mean |q| of the
 * first values, or a lower one, plus 64 times the mode (kern/kern_ecq.h). symbols is the
 * greatest symbol plus 16 times the binary logarithm of the number of states. fine is
 * present when the greatest symbol is 15. code: ecq_code.h. The encoder chooses dead and
 * r; the body does not contain them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/codec.h"
#include "codec/ecq_code.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/stepped.h"
#include "kern/kern.h"

enum { HEADER = 7, ROOM = 64 };

struct quant {
	float step, inv, dead, r;
	uint32_t bits;		/* the step, as stored in the body */
};

/* Choose a step that the body can hold, and the dead zone and rounding with the least error at
 * equal bits. The dead zone is wide if most values are 0, because a non-zero value is most
 * expensive then (measured on normal, Laplacian and real gradients; within 1 % of the best from
 * 0.1 to 4 bits). */
static void
choose(struct quant *k, const struct codec_in *in)
{
	struct kern_stat s;
	double mean;

	k->bits = stepped_bits(in->plan);
	k->step = bytes_f32(k->bits << 8);
	k->inv = 1 / k->step;
	mean = codec_seen(in, &s)->sumabs / ((double)in->n * (double)k->step);
	k->dead = mean < 0.5 ? 0.6f : mean < 2 ? 0.55f : 0.53f;
	k->r = mean < 0.5 ? 0.45f : mean < 2 ? 0.48f : 0.49f;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char *p = out->p + out->n;
	struct ecq_side s;
	struct ecq_in q;
	struct quant k;
	size_t len, head, cap = 0;
	int16_t *v = NULL;
	int r;

	choose(&k, in);
	if (bytes_f32(in->max_bits) * k.inv < k.dead) {
		stepped_nothing(in);
		return 0;
	}
	if (stepped_same(in, out))
		return 0;
	if (alloc_grow(&v, &cap, in->n, sizeof(*v), e) < 0)
		return -ERR_SYS;
	in->kern->deadzone(v, in->x, in->n, k.inv, k.dead, k.r);
	q = (struct ecq_in){ in->kern, in->ctx, v, in->x, in->n, k.step, k.inv,
		in->y };
	r = ecq_code_put(&q, p + HEADER + 1, 4 * in->n + ROOM, &s, &len, e);
	alloc_free(v);
	if (r < 0)
		return r;
	head = HEADER + (s.top == KERN_ECQ_ESCAPE);
	if (len == 0 || head + len >= 3 + 4 * in->n) {
		stepped_store(in, out);
		return 0;
	}
	memmove(stepped_put_side(p, k.bits, &s, 0), p + HEADER + 1, len);
	out->n += head + len;
	return 0;
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	return stepped_decode("ecq", 0, o, b, e);
}

static int
again(const struct codec_in *in, struct bytes *b, float *y, struct err *e)
{
	struct ecq_side s;
	struct quant k;
	float delta[2][ECQ_CENTROIDS + 1];
	int16_t *q = NULL;
	size_t cap = 0;
	uint32_t step;

	choose(&k, in);
	if (b->n <= STEPPED_SAME)
		return 1;
	step = bytes_u16(b);
	step |= (uint32_t)bytes_u8(b) << 16;
	if (b->bad || step != k.bits || stepped_side(b, &s, 0) < 0)
		return 1;
	if (alloc_grow(&q, &cap, in->n, sizeof(*q), e) < 0)
		return -ERR_SYS;
	in->kern->deadzone(q, in->x, in->n, k.inv, k.dead, k.r);
	ecq_code_delta(&s, 0, delta);
	in->kern->ecq_decoded(y, q, in->x, in->n, delta[0], k.step);
	alloc_free(q);
	return 0;
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return HEADER + 1 + 4 * n + ROOM;
}

enum { CELLS = 16 };
#define DEAD 0.6	/* approximate thresholds of the encoder */
#define ROUND 0.45
/* A point stands for magnitudes from x / HALF to x * HALF. HALF is a sixteenth of an
 * octave, 2^(0.5 / ESTIMATE_PIECES). */
#define HALF 1.0442737824274138403

/* The distribution of |q|: for each k the number of values with |q| = k, and the sums of
 * their |x| and x^2, with x in units of the step. Values beyond 15 steps are not in the cells. */
struct cells {
	double mass[CELLS + 1], sum[CELLS + 1], sum2[CELLS + 1];
	double bits, error;	/* of the values beyond the cells; error: in squared steps */
	double nonzero;		/* number of values beyond the cells, each with a sign */
};

/* Lower end of cell k; the last cell has no upper end. */
static const double edge[CELLS + 2] = {
	0, DEAD, 2 - ROUND, 3 - ROUND, 4 - ROUND, 5 - ROUND, 6 - ROUND,
	7 - ROUND, 8 - ROUND, 9 - ROUND, 10 - ROUND, 11 - ROUND, 12 - ROUND,
	13 - ROUND, 14 - ROUND, 15 - ROUND, 16 - ROUND, HUGE_VAL
};

/* Add w values spread evenly from a to b; both are in units of the step. */
static void
spread(struct cells *c, double a, double b, double w)
{
	double per = w / (b - a), hi, m;
	int k = (int)(a + ROUND);

	for (k -= a < edge[k]; a < b; k++, a = hi) {
		hi = fmin(b, edge[k + 1]);
		m = per * (hi - a);
		c->mass[k] += m;
		c->sum[k] += m * (a + hi) / 2;
		c->sum2[k] += m * (a * a + a * hi + hi * hi) / 3;
	}
}

/* Fill the cells. Beyond fifteen steps a value takes -log2 of its density in bits and has
 * an error of step^2 / 12; beyond the quantiser's range it is stored unchanged. Only
 * points near the cells are visited; the sums over the others are precomputed. */
static void
fill(const struct estimate *m, double step, struct cells *c)
{
	unsigned exact = estimate_below(m, KERN_QMAX * step * HALF);
	unsigned i = estimate_below(m, (CELLS - 1) * step * HALF);
	unsigned small = estimate_below(m, DEAD * step / HALF);
	double wide = m->count[exact] - m->count[i], inv = 1 / step;

	memset(c, 0, sizeof(*c));
	c->nonzero = m->count[0] - m->count[i];
	c->bits = (m->count[0] - m->count[exact]) * 46;
	/* a point's density is w / n over a width of x * (HALF - 1 / HALF) / step */
	if (exact < i)
		c->bits += wide * estimate_log2(m->n * (HALF - 1 / HALF) *
		    inv) - (m->log[exact] - m->log[i]);
	c->error = wide / 12;
	for (; i < small; i++)
		spread(c, m->x[i] * inv / HALF, m->x[i] * inv * HALF, m->w[i]);
	c->mass[0] += m->n - m->nonzero + m->count[small];
	c->sum2[0] += m->energy[small] * inv * inv *
	    (1 / (HALF * HALF) + 1 + HALF * HALF) / 3;
}

/* Estimate the bytes: order-0 entropy, signs and the cost of learning. Savings by
 * contexts are not included. */
static int64_t
bytes_of(const struct estimate *m, const struct cells *c)
{
	double bits = c->bits + c->nonzero;
	int k;

	for (k = 0; k <= CELLS; k++) {
		if (!(c->mass[k] > 0))
			continue;
		bits -= c->mass[k] * estimate_log2(fmin(c->mass[k] / m->n, 1));
		bits += k > 0 ? c->mass[k] : 0;
	}
	bits /= 8;		/* from here on in bytes */
	bits += fmin(0.3 * bits, 350) + 16;	/* approximate cost of learning */
	return (int64_t)ceil(fmin(bits, 4 * m->n + 2));
}

static double
error_of(const struct cells *c)
{
	double sum = c->error + c->sum2[0];
	int k;

	for (k = 1; k <= CELLS; k++)
		if (c->mass[k] > 0)
			sum += c->sum2[k] - c->sum[k] * c->sum[k] / c->mass[k];
	return sum;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	double step = (double)plan->arg;
	struct cells c;

	if (!(step > 0))
		return;
	*bytes = 0;
	*error = m->sumsq;
	if (m->max < DEAD * step)
		return;
	fill(m, step, &c);
	*bytes = bytes_of(m, &c);
	*error = fmin(error_of(&c) * step * step, m->sumsq);
}

const struct codec_impl ecq_codec = {
	.name = "ecq", .parse = stepped_parse, .format = stepped_format, .bound = bound,
	.encode = encode, .decode = decode, .again = again, .turn = stepped_turn,
	.turned = stepped_turned,
	.gives_y = 1, .sums = 1, .effort = 1,
	.sparse_below = HUGE_VALF, .estimate = estimated
};
