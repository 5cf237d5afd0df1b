/*
 * ECQ: a uniform quantiser with a dead zone, entropy coded.
 *
 *   q = sign(x) * trunc(|x| / step + r),  0 where |x| / step < dead
 *   x ~ sign(q) * (|q| + delta[min(|q|, 3)] / 256) * step
 *
 *   body := nothing                                 all values are 0
 *         | 00 00  f32[n]                           as they are
 *         | bf16 step  int8 delta[3]  range code    (range.h)
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
#include "codec/ecq.h"
#include "codec/impl.h"
#include "codec/range.h"
#include "kern/kern.h"

enum { HEADER = 5, CENTROIDS = 3, ESCAPE = KERN_QMAX, CAP = 255 };
/* Steps, as bf16: 2^-125 to 2^100.  1 / step is finite, |q| * step is. */
enum { STEP_MIN = 0x0100, STEP_MAX = 0x7180 };
enum { SEG_ROOM = ECQ_SEG * 48 };	/* no segment takes more bytes */

/* ---- the model ---- */

static int
model_init(struct ecq_model *m, const struct codec_ctx *ctx, size_t n,
    struct err *e)
{
	memset(m, 0, sizeof(*m));
	range_start(m->seg, ECQ_LEVELS);
	range_start(m->block[0], ECQ_LEVELS * 4);
	range_start(m->value[0], ECQ_LEVELS * 4);
	range_start(m->more[0], (ECQ_LEVELS / 2 + 1) * ECQ_CLASSES);
	range_start(m->mantissa[0], (ECQ_CLASSES + 1) * 8);
	m->cols = ctx->cols;
	if (m->cols < ECQ_SEG || m->cols > n / 2) {
		m->cols = n;
		return 0;
	}
	m->at = ctx->offset % m->cols;
	m->col = alloc_get(m->cols + ECQ_SEG, sizeof(*m->col), e);
	return m->col != NULL ? 0 : -ERR_SYS;
}

/* The values of the next segment when left are to come. */
static size_t
model_next(struct ecq_model *m, size_t left)
{
	size_t k = ECQ_SEG - m->at % ECQ_SEG;

	if (m->at == m->cols) {
		m->at = 0;
		m->rows++;
		k = ECQ_SEG;
		if (m->col != NULL && m->count != 0)
			m->near = m->far = (uint32_t)((m->sum << 16) / m->count);
	}
	if (k > m->cols - m->at)
		k = m->cols - m->at;
	return k < left ? k : left;
}

/* Half octaves of v in 2^-8; 0 below 2^-8. */
static unsigned
half_octaves(uint32_t v)
{
	unsigned o;

	if (v < 2)
		return v;
	o = 31 - (unsigned)__builtin_clz(v);
	o = 2 * o + (v >> (o - 1) & 1) + 1;
	return o < ECQ_LEVELS - 1 ? o : ECQ_LEVELS - 1;
}

static unsigned
level(const struct ecq_model *m, uint32_t above)
{
	unsigned l = half_octaves((m->near + m->far) >> 9);

	if (m->col == NULL || m->rows == 0)
		return l;
	return (l + half_octaves(above) + 1) / 2;
}

/* The mean above k values from column c on. */
static uint32_t
above(const struct ecq_model *m, size_t c, size_t k)
{
	uint32_t s = 0;
	size_t i;

	if (m->col == NULL)
		return 0;
	for (i = 0; i < k; i++)
		s += m->col[c + i];
	return s / (uint32_t)k;
}

/* A block with this sum of magnitudes went by. */
static void
model_left(struct ecq_model *m, uint32_t sum, size_t k)
{
	uint32_t mean = (sum << 16) / (uint32_t)k;

	m->near = m->near - (m->near >> 2) + (mean >> 2);
	m->far = m->far - (m->far >> 5) + (mean >> 5);
	m->sum += sum;
	m->count += k;
}

/* The segment's magnitudes become part of the means above. */
static void
model_above(struct ecq_model *m, const int16_t *q, size_t k)
{
	unsigned shift = m->rows > 2 ? 2 : (unsigned)m->rows;
	uint16_t *c;
	size_t i;
	int a;

	if (m->col != NULL) {
		c = m->col + m->at;
		for (i = 0; i < k; i++) {
			a = q[i] < 0 ? -q[i] : q[i];
			a = (a < CAP ? a : CAP) << 8;
			c[i] = (uint16_t)(c[i] + ((a - c[i]) >> shift));
		}
	}
	m->at += k;
}

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

static void
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

static void
put_block(struct range_put *w, struct ecq_model *m, const int16_t *q,
    const float *x, size_t c, size_t k)
{
	unsigned state = 0, l;
	uint32_t a, sum = 0;
	size_t i;

	for (i = 0; i < k; i++) {
		l = level(m, m->col != NULL ? m->col[c + i] : 0);
		a = magnitude(q[i]);
		if (state == 3 || i < k - 1)
			range_put_bit(w, &m->value[l][state], a != 0);
		if (a == 0) {
			state += state < 3;
			continue;
		}
		state = 3;
		range_put_raw(w, q[i] < 0, 1);
		put_magnitude(w, m, l, a);
		if (a == ESCAPE)
			range_put_raw(w, bytes_u32(x[i]), 31);
		sum += a < CAP ? a : CAP;
	}
	model_left(m, sum, k);
}

static int
any(const int16_t *q, size_t k)
{
	int v = 0;
	size_t i;

	for (i = 0; i < k; i++)
		v |= q[i];
	return v != 0;
}

static void
put_segment(struct range_put *w, struct ecq_model *m, const int16_t *q,
    const float *x, size_t k)
{
	unsigned l = level(m, above(m, m->at, k)), state = 0;
	int full = any(q, k), nz;
	size_t i, b;

	range_put_bit(w, &m->seg[l], full);
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		if (!full) {
			model_left(m, 0, b);
			continue;
		}
		nz = any(q + i, b);
		if (state == 3 || i + b < k) {
			l = level(m, above(m, m->at + i, b));
			range_put_bit(w, &m->block[l][state], nz);
		}
		if (nz) {
			put_block(w, m, q + i, x + i, m->at + i, b);
			state = 3;
		} else {
			model_left(m, 0, b);
			state += state < 3;
		}
	}
	model_above(m, q, k);
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
	uint16_t bits;		/* the step as it is in the body */
};

static void
choose(struct knob *k, const struct codec_in *in)
{
	in->kern->to_bf16(&k->bits, &in->plan->arg, 1);
	if (k->bits < STEP_MIN || (k->bits & 0x8000) != 0)
		k->bits = STEP_MIN;
	if (k->bits > STEP_MAX)
		k->bits = STEP_MAX;
	k->step = bytes_f32((uint32_t)k->bits << 16);
	k->inv = 1 / k->step;
	k->dead = 0.6f;
	k->r = 0.45f;
}

static int
store(const struct codec_in *in, struct buf *out)
{
	unsigned char *p = out->p + out->n;

	p[0] = p[1] = 0;
	bytes_put_f32(p + 2, in->x, in->n);
	out->n += 2 + 4 * in->n;
	return 0;
}

/* The range code of q[n] at p; 0 when it is longer than limit. */
static size_t
put_all(struct ecq_model *m, const struct codec_in *in, const int16_t *q,
    unsigned char *p, size_t limit)
{
	struct range_put w;
	size_t i, k;

	range_put_start(&w, p);
	for (i = 0; i < in->n; i += k) {
		if ((size_t)(w.p - p) > limit)
			return 0;
		k = model_next(m, in->n - i);
		put_segment(&w, m, q + i, in->x + i, k);
	}
	return range_put_end(&w);
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
	r = q != NULL ? model_init(&m, in->ctx, in->n, e) : -ERR_SYS;
	if (r < 0)
		goto out;
	in->kern->deadzone(q, in->x, in->n, k.inv, k.dead, k.r);
	centroids(in, q, k.inv, delta);
	len = put_all(&m, in, q, p + HEADER, 4 * in->n);
	if (len == 0 || HEADER + len >= 2 + 4 * in->n) {
		r = store(in, out);
		goto out;
	}
	bytes_set16(p, k.bits);
	for (i = 0; i < CENTROIDS; i++)
		p[2 + i] = (unsigned char)delta[i];
	out->n += HEADER + len;
out:
	alloc_free(m.col);
	alloc_free(q);
	return r;
}

/* ---- reading ---- */

static uint32_t
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

static void
get_block(struct range_get *r, struct ecq_model *m, int16_t *q, float *x,
    size_t c, size_t k)
{
	unsigned state = 0, l, neg;
	uint32_t a, sum = 0;
	size_t i;

	for (i = 0; i < k; i++) {
		l = level(m, m->col != NULL ? m->col[c + i] : 0);
		if ((state == 3 || i < k - 1) &&
		    !range_get_bit(r, &m->value[l][state])) {
			state += state < 3;
			continue;
		}
		state = 3;
		neg = range_get_raw(r, 1);
		a = get_magnitude(r, m, l);
		q[i] = (int16_t)(neg ? -(int)a : (int)a);
		if (a == ESCAPE)
			x[i] = bytes_f32(range_get_raw(r, 31) | neg << 31);
		sum += a < CAP ? a : CAP;
	}
	model_left(m, sum, k);
}

static void
get_segment(struct range_get *r, struct ecq_model *m, int16_t *q, float *x,
    size_t k)
{
	unsigned l = level(m, above(m, m->at, k)), state = 0;
	int full = range_get_bit(r, &m->seg[l]), nz;
	size_t i, b;

	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		if (!full) {
			model_left(m, 0, b);
			continue;
		}
		nz = 1;
		if (state == 3 || i + b < k) {
			l = level(m, above(m, m->at + i, b));
			nz = range_get_bit(r, &m->block[l][state]);
		}
		if (nz) {
			get_block(r, m, q + i, x + i, m->at + i, b);
			state = 3;
		} else {
			model_left(m, 0, b);
			state += state < 3;
		}
	}
	model_above(m, q, k);
}

static void
reconstruct(float *x, const int16_t *q, size_t k, const float delta[4],
    float step)
{
	uint32_t a;
	float v;
	size_t i;

	for (i = 0; i < k; i++) {
		a = magnitude(q[i]);
		if (a == ESCAPE)
			continue;
		v = ((float)a + delta[a < 3 ? a : 3]) * step;
		x[i] = q[i] < 0 ? -v : v;
	}
}

static int
get_all(const struct codec_out *o, struct bytes *b, struct ecq_model *m,
    float step)
{
	float delta[4] = { 0 };
	int16_t q[ECQ_SEG];
	struct range_get r;
	size_t i, k;

	for (i = 1; i <= CENTROIDS; i++)
		delta[i] = (float)(int8_t)bytes_u8(b) / 256;
	if (b->bad)
		return -1;
	range_get_start(&r, b->p + b->at, b->n - b->at);
	for (i = 0; i < o->n; i += k) {
		k = model_next(m, o->n - i);
		memset(q, 0, sizeof(q));
		get_segment(&r, m, q, o->x + i, k);
		reconstruct(o->x + i, q, k, delta, step);
	}
	b->at = b->n;
	return range_get_end(&r);
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	struct ecq_model m = { .col = NULL };
	const unsigned char *p;
	uint16_t step;
	int r;

	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->n == 0)
		return 0;
	step = bytes_u16(b);
	if (step == 0) {
		p = bytes_take(b, 4 * o->n);
		if (p == NULL)
			return codec_corrupt("ecq", "body too short", e);
		bytes_get_f32(o->x, p, o->n);
		return 0;
	}
	if (b->bad || step < STEP_MIN || step > STEP_MAX)
		return codec_corrupt("ecq", "bad step", e);
	r = model_init(&m, o->ctx, o->n, e);
	if (r == 0 && get_all(o, b, &m, bytes_f32((uint32_t)step << 16)) < 0)
		r = codec_corrupt("ecq", "bad code", e);
	alloc_free(m.col);
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
