/*
 * ECQ: a uniform quantiser with a dead zone, entropy coded.
 *
 *   q = sign(x) * trunc(|x| / step + r),  0 where |x| / step < dead
 *   x ~ sign(q) * (|q| + delta[min(|q|, 3)] / 256) * step
 *
 *   body := nothing                                 all values are 0
 *         | 00 00 00  f32[n]                        as they are
 *         | step[3]  int8 delta[3]  range code      (range.h)
 *
 * step is the f32 of which these are the upper 24 bits, least first.
 *
 * The range code says, segment by segment: is anything in it not 0; then
 * block by block; then value by value (what the others rule out is not
 * asked); for a value that is not 0 its sign, the bits of |q| in unary, those
 * bits below the first, three of them learnt; |q| = 32767 is an escape that
 * 31 bits of f32 follow.
 *
 * dead and r are the encoder's choice and not in the body.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/ecq_model.h"
#include "codec/impl.h"
#include "codec/range.h"
#include "kern/kern.h"

enum { HEADER = 6, CENTROIDS = 3, ESCAPE = KERN_QMAX };
/* Steps, 24 bits of f32: 2^-125 to 2^100.  1 / step is finite, |q| * step is. */
enum { STEP_MIN = 0x010000, STEP_MAX = 0x718000 };
enum { SEG_ROOM = ECQ_SEG * 48 };	/* no segment takes more bytes */

static uint32_t
magnitude(int16_t q)
{
	return (uint32_t)(q < 0 ? -q : q);
}

static unsigned
bit_length(uint32_t v)
{
	return 32 - (unsigned)__builtin_clz(v);
}

/* ---- writing ---- */

RANGE_INLINE void
put_magnitude(struct range_put *w, struct ecq_model *m, unsigned l, uint32_t a)
{
	struct range_bit *more = m->more[l / 2];
	unsigned c = bit_length(a), k, t, node = 1;

	for (k = 1; k < c; k++)
		range_put_bit(w, &more[k - 1], 1);
	if (c < ECQ_CLASSES)
		range_put_bit(w, &more[c - 1], 0);
	for (k = c - 1, t = 0; k > 0 && t < 3; t++) {
		int bit = (int)(a >> --k & 1);

		range_put_bit(w, &m->mantissa[c][node], bit);
		node = 2 * node + (unsigned)bit;
	}
	range_put_raw(w, a, k);
}

RANGE_INLINE void
put_block(struct range_put *w, struct ecq_model *m, const int16_t *q,
    const float *x, int16_t *mag, size_t at, size_t k)
{
	unsigned state = 0, l;
	uint32_t a, sum = 0;
	size_t i;

	for (i = 0; i < k; i++) {
		l = ecq_model_level(m, at + i, 1);
		a = magnitude(q[i]);
		if (state == ECQ_FOUND || i < k - 1)
			range_put_bit(w, &m->value[l][state], a != 0);
		if (a == 0) {
			state += state < ECQ_FOUND - 1;
			continue;
		}
		state = ECQ_FOUND;
		range_put_raw(w, q[i] < 0, 1);
		put_magnitude(w, m, l, a);
		if (a == ESCAPE)
			range_put_raw(w, bytes_u32(x[i]), 31);
		a = a < ECQ_CAP ? a : ECQ_CAP;
		mag[i] = (int16_t)a;
		sum += a;
	}
	ecq_model_left(m, sum, k);
}

static int
any(const int16_t *q, size_t k)
{
	uint64_t v[4];
	int16_t t = 0;

	if (k == ECQ_SEG) {
		memcpy(v, q, sizeof(v));
		return (v[0] | v[1] | v[2] | v[3]) != 0;
	}
	if (k == ECQ_BLOCK) {
		memcpy(v, q, sizeof(*v));
		return v[0] != 0;
	}
	while (k-- > 0)
		t |= q[k];
	return t != 0;
}

RANGE_INLINE void
put_segment(struct range_put *w, struct ecq_model *m, const int16_t *q,
    const float *x, size_t k)
{
	int16_t mag[ECQ_SEG] = { 0 };
	int full = any(q, k), some;
	unsigned state = 0;
	size_t i, b;

	ecq_model_look(m);
	range_put_bit(w, &m->seg[ecq_model_level(m, 0, k)], full);
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		if (!full) {
			ecq_model_left(m, 0, b);
			continue;
		}
		some = any(q + i, b);
		ecq_model_look(m);
		if (state == ECQ_FOUND || i + b < k)
			range_put_bit(w,
			    &m->block[ecq_model_level(m, i, b)][state], some);
		if (some) {
			put_block(w, m, q + i, x + i, mag + i, i, b);
			state = ECQ_FOUND;
		} else {
			ecq_model_left(m, 0, b);
			state += state < ECQ_FOUND - 1;
		}
	}
	ecq_model_above(m, mag, k);
}

/* The mean of the values quantised to k (3: and more), as delta. */
static void
centroids(const struct codec_in *in, const int16_t *q, float inv,
    int8_t delta[CENTROIDS])
{
	double sum[CENTROIDS] = { 0 }, d;
	uint32_t count[CENTROIDS] = { 0 }, a;
	size_t i, j;

	for (i = 0; i < in->n; i++) {
		a = magnitude(q[i]);
		if (a == 0 || a == ESCAPE)
			continue;
		j = a < CENTROIDS ? a - 1 : CENTROIDS - 1;
		sum[j] += fabs((double)(in->x[i] * inv)) - a;
		count[j]++;
	}
	for (j = 0; j < CENTROIDS; j++) {
		d = count[j] != 0 ? rint(256 * sum[j] / count[j]) : 0;
		delta[j] = (int8_t)(d < -128 ? -128 : d > 127 ? 127 : d);
	}
}

struct knob {
	float step, inv, dead, r;
	uint32_t bits;		/* the step as it is in the body */
};

/*
 * The step that the body can hold, and the dead zone that costs the least
 * error at a rate: wide where most values are 0, because a value that is not
 * costs most there (measured on normal, Laplacian and real gradients; within
 * 1 % of the best from 0.1 to 4 bits).
 */
static void
choose(struct knob *k, const struct codec_in *in)
{
	struct kern_stat s;
	double mean;

	k->bits = (bytes_u32(in->plan->arg) + 128) >> 8;
	if (k->bits < STEP_MIN || !(in->plan->arg > 0))
		k->bits = STEP_MIN;
	if (k->bits > STEP_MAX)
		k->bits = STEP_MAX;
	k->step = bytes_f32(k->bits << 8);
	k->inv = 1 / k->step;
	in->kern->stat(in->x, in->n, &s);
	mean = s.sumabs / ((double)in->n * (double)k->step);
	k->dead = mean < 0.5 ? 0.6f : mean < 2 ? 0.55f : 0.53f;
	k->r = mean < 0.5 ? 0.45f : mean < 2 ? 0.48f : 0.49f;
}

static int
store(const struct codec_in *in, struct buf *out)
{
	unsigned char *p = out->p + out->n;

	memset(p, 0, 3);
	bytes_put_f32(p + 3, in->x, in->n);
	out->n += 3 + 4 * in->n;
	return 0;
}

/* The range code of q[n] at p; 0 when it is longer than limit. */
static size_t
put_all(struct ecq_model *m, const struct codec_in *in, const int16_t *q,
    unsigned char *p, size_t limit)
{
	struct range_put w;
	size_t i, k;

	w = range_put_start(p);
	for (i = 0; i < in->n; i += k) {
		if ((size_t)(w.p - p) > limit)
			return 0;
		k = ecq_model_next(m, in->n - i);
		put_segment(&w, m, q + i, in->x + i, k);
	}
	return range_put_end(w);
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned char *p = out->p + out->n;
	struct ecq_model m = { .col = NULL };
	int8_t delta[CENTROIDS];
	struct knob k;
	size_t len, i;
	int16_t *q;
	int r;

	(void)param;
	choose(&k, in);
	if (bytes_f32(in->max_bits) * k.inv < k.dead)
		return 0;			/* nothing: all are 0 */
	q = alloc_get(in->n, sizeof(*q), e);
	r = q != NULL ? ecq_model_init(&m, in->ctx, in->n, e) : -ERR_SYS;
	if (r < 0)
		goto out;
	in->kern->deadzone(q, in->x, in->n, k.inv, k.dead, k.r);
	centroids(in, q, k.inv, delta);
	len = put_all(&m, in, q, p + HEADER, 4 * in->n);
	if (len == 0 || HEADER + len >= 3 + 4 * in->n) {
		r = store(in, out);
		goto out;
	}
	bytes_set16(p, (uint16_t)k.bits);
	p[2] = (unsigned char)(k.bits >> 16);
	for (i = 0; i < CENTROIDS; i++)
		p[3 + i] = (unsigned char)delta[i];
	out->n += HEADER + len;
out:
	ecq_model_free(&m);
	alloc_free(q);
	return r;
}

/* ---- reading ---- */

RANGE_INLINE uint32_t
get_magnitude(struct range_get *r, struct ecq_model *m, unsigned l)
{
	struct range_bit *more = m->more[l / 2];
	unsigned c = 1, k, t, node = 1;
	uint32_t a = 1;

	while (c < ECQ_CLASSES && range_get_bit(r, &more[c - 1]))
		c++;
	for (k = c - 1, t = 0; k > 0 && t < 3; k--, t++) {
		unsigned bit = (unsigned)range_get_bit(r, &m->mantissa[c][node]);

		node = 2 * node + bit;
		a = a << 1 | bit;
	}
	return a << k | range_get_raw(r, k);
}

/* What the decoder knows besides the model. */
struct scale {
	float step, delta[4];
};

RANGE_INLINE void
get_block(struct range_get *r, struct ecq_model *m, const struct scale *f,
    float *x, int16_t *mag, size_t at, size_t k)
{
	unsigned state = 0, l, neg;
	uint32_t a, sum = 0;
	size_t i;
	float v;

	for (i = 0; i < k; i++) {
		l = ecq_model_level(m, at + i, 1);
		if ((state == ECQ_FOUND || i < k - 1) &&
		    !range_get_bit(r, &m->value[l][state])) {
			state += state < ECQ_FOUND - 1;
			continue;
		}
		state = ECQ_FOUND;
		neg = range_get_raw(r, 1);
		a = get_magnitude(r, m, l);
		v = ((float)a + f->delta[a < 3 ? a : 3]) * f->step;
		if (a == ESCAPE)
			v = bytes_f32(range_get_raw(r, 31));
		x[i] = neg ? -v : v;
		a = a < ECQ_CAP ? a : ECQ_CAP;
		mag[i] = (int16_t)a;
		sum += a;
	}
	ecq_model_left(m, sum, k);
}

RANGE_INLINE void
get_segment(struct range_get *r, struct ecq_model *m, const struct scale *f,
    float *x, size_t k)
{
	int16_t mag[ECQ_SEG] = { 0 };
	unsigned state = 0;
	int full, some;
	size_t i, b;

	ecq_model_look(m);
	full = range_get_bit(r, &m->seg[ecq_model_level(m, 0, k)]);
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		if (!full) {
			ecq_model_left(m, 0, b);
			continue;
		}
		some = 1;
		ecq_model_look(m);
		if (state == ECQ_FOUND || i + b < k)
			some = range_get_bit(r,
			    &m->block[ecq_model_level(m, i, b)][state]);
		if (some) {
			get_block(r, m, f, x + i, mag + i, i, b);
			state = ECQ_FOUND;
		} else {
			ecq_model_left(m, 0, b);
			state += state < ECQ_FOUND - 1;
		}
	}
	ecq_model_above(m, mag, k);
}

/* x is all zero before. */
static int
get_all(const struct codec_out *o, struct bytes *b, struct ecq_model *m,
    uint32_t step)
{
	struct scale f = { bytes_f32(step << 8), { 0 } };
	struct range_get r;
	size_t i, k;

	for (i = 1; i <= CENTROIDS; i++)
		f.delta[i] = (float)(int8_t)bytes_u8(b) / 256;
	if (b->bad)
		return -1;
	r = range_get_start(b->p + b->at, b->n - b->at);
	for (i = 0; i < o->n; i += k) {
		k = ecq_model_next(m, o->n - i);
		get_segment(&r, m, &f, o->x + i, k);
	}
	b->at = b->n;
	return range_get_end(r);
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	struct ecq_model m = { .col = NULL };
	const unsigned char *p;
	uint32_t step;
	int r;

	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->n == 0)
		return 0;
	step = bytes_u16(b);
	step |= (uint32_t)bytes_u8(b) << 16;
	if (b->bad)
		return codec_corrupt("ecq", "body too short", e);
	if (step == 0) {
		p = bytes_take(b, 4 * o->n);
		if (p == NULL)
			return codec_corrupt("ecq", "body too short", e);
		bytes_get_f32(o->x, p, o->n);
		return 0;
	}
	if (step < STEP_MIN || step > STEP_MAX)
		return codec_corrupt("ecq", "bad step", e);
	r = ecq_model_init(&m, o->ctx, o->n, e);
	if (r == 0 && get_all(o, b, &m, step) < 0)
		r = codec_corrupt("ecq", "bad code", e);
	ecq_model_free(&m);
	return r;
}

/* ---- the table's part ---- */

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	int r = arg_number(arg, 0, 1e30f, &plan->arg, e);

	if (r == 0 && !(plan->arg > 0))
		return err_set(e, ERR_USAGE, "a step is above 0");
	return r;
}

static void
format(const struct codec_plan *plan, char buf[24])
{
	arg_print(plan->arg, buf);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	(void)plan;
	/* what put_all writes before it sees that it is too long */
	return HEADER + 4 * n + SEG_ROOM + 8;
}

const struct codec_impl ecq_codec = {
	.name = "ecq", .parse = parse, .format = format, .bound = bound,
	.encode = encode, .decode = decode
};
