/*
 * LOWRANK: the group as a matrix of low rank (PowerSGD, Vogels et al. 2019,
 * algorithm 1), M ~ P Q^T.
 *
 *   Q from the step before;  twice:  P = orthonormal(M Q),  Q = M^T P
 *
 * PowerSGD keeps Q and iterates once. Here Q is decoded from the last body that was sent
 * (codec_encode_after), which the sender's state already has. If there is none, or another
 * codec wrote it, Q is random (seeded); the second iteration compensates for this.
 *
 * The matrix has the tensor's rows: C columns (the last dimension), and the group's first
 * value is in column offset mod C.  Values missing from the first and last row are 0 and
 * not decoded.  If C is 1 or above n / 2, then C = floor(sqrt n) and the first value is in
 * column 0 (ours).
 *
 *   body := nothing                             all values are 0
 *         | i16 e  P columns  Q columns         of 2^-e times the values
 *
 * P and Q have min(rank, rows, C) columns each, written column by column in bf16.
 * x = 2^e sum_r P[row][r] Q[col][r]; products
 * and sums are f32, in the order of r.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/levels.h"

enum { MAX_RANK = 64, ROUNDS = 2, LANES = 16, MAX_E = 200 };

struct shape {
	size_t n, cols, rows, first;	/* n: values of the group; first: column of value 0 */
	unsigned rank;
};

static size_t
root(size_t n)
{
	size_t r = (size_t)sqrt((double)n);

	while (r * r > n)
		r--;
	while ((r + 1) * (r + 1) <= n)
		r++;
	return r;
}

static void
shape_of(struct shape *s, const struct codec_ctx *c, unsigned rank, size_t n)
{
	s->n = n;
	s->cols = c->cols;
	s->first = 0;
	if (s->cols < 2 || s->cols > n / 2)
		s->cols = root(n);
	else
		s->first = (size_t)(c->offset % s->cols);
	s->rows = (s->first + n + s->cols - 1) / s->cols;
	if (rank > s->rows)
		rank = (unsigned)s->rows;
	s->rank = rank < s->cols ? rank : (unsigned)s->cols;
}

/* Return the number of values in row i. Set *at to the index of its first value and *col to
 * the column of that value. */
static size_t
row_of(const struct shape *s, size_t i, size_t *at, size_t *col)
{
	size_t end = (i + 1) * s->cols - s->first;

	*col = i == 0 ? s->first : 0;
	*at = i == 0 ? 0 : i * s->cols - s->first;
	return (end < s->n ? end : s->n) - *at;
}

static size_t
size_of(const struct shape *s)
{
	return 2 * s->rank * (s->rows + s->cols);
}

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	size_t rank = plan->param;

	/* If C is the tensor's, r c < n + 2 c and 2 <= c <= n / 2; if not, r, c <= sqrt n
	 * + 2. So r + c <= n / 2 + 5, and min(r, c) (r + c) <= 2 r c <= 4 n + 16. */
	if (rank > 8)
		return 2 + 8 * n + 32;
	return 2 + rank * (n + 10);
}

static size_t
size(const struct codec_plan *plan, const struct codec_ctx *ctx, size_t n)
{
	struct shape s;

	shape_of(&s, ctx, plan->param, n);
	return 2 + size_of(&s);
}

/* Return the sum of a[i] b[i]; term i is added in lane i % 16. */
static double
dot(const float *a, const float *b, size_t n)
{
	float lane[LANES] = { 0 };
	double sum = 0;
	size_t i, l;

	for (i = 0; i + LANES <= n; i += LANES)
		for (l = 0; l < LANES; l++)
			lane[l] += a[i + l] * b[i + l];
	for (l = 0; i + l < n; l++)
		lane[l] += a[i + l] * b[i + l];
	for (l = 0; l < LANES; l++)
		sum += (double)lane[l];
	return sum;
}

/* y += f x */
static void
add(float *restrict y, float f, const float *restrict x, size_t n)
{
	size_t i, l;

	for (i = 0; i + LANES <= n; i += LANES)
		for (l = 0; l < LANES; l++)
			y[i + l] += f * x[i + l];
	for (; i < n; i++)
		y[i] += f * x[i];
}

/* Compute P = M Q; P and Q are stored by columns. */
static void
times(const struct shape *s, const float *m, const float *q, float *p)
{
	size_t i, at, col, n;
	unsigned r;

	for (i = 0; i < s->rows; i++) {
		n = row_of(s, i, &at, &col);
		for (r = 0; r < s->rank; r++)
			p[r * s->rows + i] = (float)dot(m + at,
			    q + r * s->cols + col, n);
	}
}

/* Q = M^T P */
static void
times_back(const struct shape *s, const float *m, const float *p, float *q)
{
	size_t i, at, col, n;
	unsigned r;

	memset(q, 0, s->rank * s->cols * sizeof(*q));
	for (i = 0; i < s->rows; i++) {
		n = row_of(s, i, &at, &col);
		for (r = 0; r < s->rank; r++)
			add(q + r * s->cols + col, p[r * s->rows + i], m + at, n);
	}
}

/* Orthonormalise p by modified Gram-Schmidt; columns that depend on earlier ones become 0. */
static void
orthonormal(float *p, size_t rows, unsigned rank)
{
	unsigned r, t;
	double before, after;
	float *c, f;
	size_t i;

	for (r = 0; r < rank; r++) {
		c = p + r * rows;
		before = dot(c, c, rows);
		for (t = 0; t < r; t++)
			add(c, (float)-dot(p + t * rows, c, rows), p + t * rows, rows);
		after = dot(c, c, rows);
		f = after > before * 1e-10 && after > 0x1p-100 ?
		    (float)(1 / sqrt(after)) : 0;
		for (i = 0; i < rows; i++)
			c[i] *= f;
	}
}

/* Round c[n] to bf16, in place, and write it to out. Return the end. */
static unsigned char *
put_factors(unsigned char *out, float *c, size_t n)
{
	uint16_t h;
	size_t i;

	for (i = 0; i < n; i++, out += 2) {
		h = levels_bf16(fabs((double)c[i]));
		h = (uint16_t)(h | (bytes_u32(c[i]) >> 16 & 0x8000));
		c[i] = bytes_f32((uint32_t)h << 16);
		bytes_set16(out, h);
	}
	return out;
}

static int
get_factors(const unsigned char *p, float *c, size_t n)
{
	uint16_t h;
	size_t i;

	for (i = 0; i < n; i++) {
		h = bytes_le16(p + 2 * i);
		if ((h & 0x7fff) >= 0x7f80)
			return -1;
		c[i] = bytes_f32((uint32_t)h << 16);
	}
	return 0;
}

/* Read up to s->rank columns of Q from the last body into q. Return their number. */
static unsigned
warm(const struct codec_in *in, const struct shape *s, float *q)
{
	const struct codec_last *l = in->last;
	struct shape was;
	unsigned rank;

	if (l == NULL || l->codec != CODEC_LOWRANK || l->len == 0 || l->param < 1 ||
	    l->param > MAX_RANK)
		return 0;
	shape_of(&was, in->ctx, l->param, in->n);
	if (l->len != 2 + size_of(&was))
		return 0;
	rank = was.rank < s->rank ? was.rank : s->rank;
	return get_factors(l->body + 2 + 2 * was.rank * was.rows, q, rank * s->cols) < 0 ?
	    0 : rank;
}

/* Set q to the first Q of the iteration. */
static void
start(const struct codec_in *in, const struct shape *s, float *q)
{
	const struct codec_ctx *c = in->ctx;
	unsigned have = warm(in, s, q), r;
	uint32_t noise[4];
	size_t i, at;

	for (r = 0; r < s->rank; r++) {
		if (r < have && dot(q + r * s->cols, q + r * s->cols, s->cols) > 0)
			continue;
		for (i = 0; i < s->cols; i++) {
			at = r * s->cols + i;
			if (at % 4 == 0 || i == 0)
				rng_block(c->seed, c->step, c->group,
				    (uint32_t)(at / 4), noise);
			q[at] = rng_unit(noise[at % 4]) - 0.5f;
		}
	}
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	unsigned char *o = out->p + out->n;
	struct shape s;
	float *m, *p, *q;
	double scale;
	size_t i;
	int exp, k;

	*param = in->plan->param;
	if (in->max_bits == 0)
		return 0;
	shape_of(&s, in->ctx, in->plan->param, in->n);
	m = alloc_get(in->n + s.rank * (s.rows + s.cols), sizeof(*m), e);
	if (m == NULL)
		return -ERR_SYS;
	p = m + in->n;
	q = p + s.rank * s.rows;
	exp = ilogbf(bytes_f32(in->max_bits));
	scale = ldexp(1, -exp);
	for (i = 0; i < in->n; i++)
		m[i] = (float)((double)in->x[i] * scale);
	start(in, &s, q);
	for (k = 0; k < ROUNDS; k++) {
		if (k > 0)
			times_back(&s, m, p, q);
		times(&s, m, q, p);
		orthonormal(p, s.rows, s.rank);
	}
	bytes_set16(o, (uint16_t)exp);
	o = put_factors(o + 2, p, s.rank * s.rows);
	times_back(&s, m, p, q);
	o = put_factors(o, q, s.rank * s.cols);
	out->n = (size_t)(o - out->p);
	alloc_free(m);
	return 0;
}

static void
multiply(const struct codec_out *o, const struct shape *s, const float *p,
    const float *q, double scale)
{
	size_t i, j, at, col, n;
	unsigned r;
	double v;

	memset(o->x, 0, o->n * sizeof(*o->x));
	for (i = 0; i < s->rows; i++) {
		n = row_of(s, i, &at, &col);
		for (r = 0; r < s->rank; r++)
			add(o->x + at, p[r * s->rows + i], q + r * s->cols + col, n);
		for (j = at; j < at + n; j++) {
			v = (double)o->x[j] * scale;
			o->x[j] = v > 0x1.fffffep127 ? 0x1.fffffep127f :
			    v < -0x1.fffffep127 ? -0x1.fffffep127f : (float)v;
		}
	}
}

static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	const unsigned char *body;
	struct shape s;
	float *p, *q;
	int exp, r;

	memset(o->x, 0, o->n * sizeof(*o->x));
	if (b->n == 0)
		return 0;
	shape_of(&s, o->ctx, o->param, o->n);
	exp = (int16_t)bytes_u16(b);
	body = bytes_take(b, size_of(&s));
	if (body == NULL || exp < -MAX_E || exp > MAX_E)
		return codec_corrupt("lowrank", "the head is incomplete or out of range", e);
	p = alloc_get(s.rank * (s.rows + s.cols), sizeof(*p), e);
	if (p == NULL)
		return -ERR_SYS;
	q = p + s.rank * s.rows;
	/* Q follows P, both in the body and in p */
	r = get_factors(body, p, s.rank * (s.rows + s.cols));
	if (r < 0)
		r = codec_corrupt("lowrank", "a factor is not finite", e);
	else
		multiply(o, &s, p, q, ldexp(1, exp));
	alloc_free(p);
	return r;
}

/* Estimate the error on an R x C matrix M of independent values. From a random v, the two
 * iterations find one direction per column of Q. The share of the energy in this direction
 * is |M^T M M^T M v|^2 / |M M^T M v|^2 = R m4 / m3, where m3 and m4 are moments of M^T M / R
 * for C / R = g (Marchenko, Pastur 1967). Rounding to bf16 adds an error. */
static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	double c = m->ctx.cols, g, rank = plan->param, held;

	if (c < 2 || c > m->n / 2)
		c = floor(sqrt(m->n));
	*error = 0;
	if (!(c >= 1))
		return;
	g = c * c / m->n;
	rank = fmin(rank, fmin(c, m->n / c));
	held = rank / c * (1 + 6 * g + 6 * g * g + g * g * g) / (1 + 3 * g + g * g);
	/* all min(R, C) directions together have all of the energy */
	held = fmax(fmin(held, 1), rank / fmin(c, m->n / c));
	*error = m->sumsq * (1 - held * (1 - 0x1p-16));
}

const struct codec_impl lowrank_codec = {
	.name = "lowrank", .parse = codec_param_parse,
	.format = codec_param_format, .bound = bound,
	.size = size, .encode = encode, .decode = decode, .min_param = 1,
	.max_param = MAX_RANK, .after = 1, .fixed = 1, .estimate = estimated
};
