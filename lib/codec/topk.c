/*
 * TOPK: keep the largest magnitudes; the others become 0.
 *
 *   topk:F       keeps the fraction F of the group
 *   chunk:K/C    keeps K of every C values, C a power of two (SparseLoCo: 64/4096)
 *
 * The kept values are f16 or, with a suffix, one of the forms below.  f16 has a shared
 * exponent, so that it does not overflow and gradients below 6e-8 keep their bits.
 *
 *   q2   a sign and one of the magnitudes a and a * r
 *   mag  a sign and the magnitude a
 *
 *   body := varint k, and unless k = 0:  head  positions and codes (below)
 *   head := f16: int8 e, x = h * 2^e;  q2: bf16 a  bf16 r;  mag: bf16 a
 *
 * The record's parameter is the form.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/arg.h"
#include "codec/codec.h"
#include "codec/estimate.h"
#include "codec/codec_impl.h"
#include "codec/largest.h"
#include "codec/levels.h"
#include "codec/rice.h"
#include "kern/kern.h"

/* Parameter byte of a plan; the plan's arg is the fraction. */
enum {
	TOPK_F16 = 0, TOPK_Q2 = 2, TOPK_MAG = 3,	/* form of values; 1 is reserved */
	TOPK_KIND = 3,		/* mask of the form's bits */
	/* lowest bit of the chunk size's binary logarithm, which is 0 for one chunk */
	TOPK_CHUNK = 2
};

enum { TOP_EXP = 14, MIN_EXP = -128, MIN_CHUNK = 4, MAX_CHUNK = 20, HEAD = 14 };

enum { SPARSE_HALF = 16 };

static const char *const kind_name[] = { "f16", NULL, "q2", "mag" };
static const unsigned kind_width[] = { SPARSE_HALF, 0, 2, 1 };
static const unsigned kind_levels[] = { 0, 0, 2, 1 };

/*
 * ---- positions and the codes at them ----
 *
 * A code is a half (the u16 bits h of an f16), or sign + 2 * j with j of 1 or 0 bits.
 *
 *   body := u16 m, only for halves: the largest h mod 2^15, or 2^15 + the least
 *           the positions (rice_put_positions), then the code at each
 *
 * Halves are numbers of rice.h, 2 |a - b| + sign with a = h mod 2^15 and b = m mod 2^15; other
 * codes are plain bits.
 * If few of many values are kept, the distances of h from the least h are distributed about
 * exponentially. If all are kept, the distances from the largest h are.
 */

enum { MAG = 0x7fff, UP = 0x8000, MOST_HALF = 0xffff };

struct sparse {
	unsigned width;		/* bits of a code: SPARSE_HALF, 2 or 1 */
	size_t n, k;		/* 0 < k <= n <= 2^31 */
	uint32_t *pos;		/* [k], ascending */
	uint16_t *code;		/* [k] */
};

/* Return the most bytes that up to k of n values can take. Positions take most bytes when
 * half of the values are kept. */
static size_t
sparse_bound(size_t k, size_t n, unsigned width)
{
	return 2 + rice_bound(k < n / 2 ? k : n / 2, (uint32_t)n) + (width == SPARSE_HALF ?
	    rice_bound(k, MOST_HALF) : k * width / 8 + 1);
}

/* Return the field m: the largest h if this is nearer to the mean of h, else 2^15 + the
 * least h. */
static unsigned
sparse_end(const struct sparse *s)
{
	unsigned low = MAG, high = 0, h;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < s->k; i++) {
		h = s->code[i] & MAG;
		low = h < low ? h : low;
		high = h > high ? h : high;
		sum += h;
	}
	return 2 * sum > (uint64_t)s->k * (low + high) ? high : low | UP;
}

static size_t
sparse_put(unsigned char *p, const struct sparse *s)
{
	struct bits w = { .p = p };
	struct rice code = rice_start(512, MOST_HALF);
	uint32_t c;
	unsigned m = 0;
	size_t i;

	if (s->width == SPARSE_HALF) {
		bytes_set16(p, (uint16_t)(m = sparse_end(s)));
		w.p += 2;
	}
	rice_put_positions(&w, s->pos, s->k, s->n);
	for (i = 0; i < s->k; i++) {
		c = s->code[i];
		if (s->width == SPARSE_HALF)
			rice_put(&w, &code, 2 * (m & UP ? (c & MAG) - (m & MAG) :
			    m - (c & MAG)) + (c >> 15));
		else
			put_many(&w, c, s->width);
	}
	return (size_t)(rice_put_end(&w) - p);
}

/* Decode the bytes into pos and code of s. Return -1 if they are not valid. */
static int
sparse_get(struct bytes *b, struct sparse *s)
{
	const unsigned m = s->width == SPARSE_HALF ? bytes_u16(b) : 0;
	struct rice_in in = rice_open(b);
	struct rice code = rice_start(512, MOST_HALF);
	uint64_t c, h;
	size_t i;

	rice_get_positions(&in, s->pos, s->k, s->n);
	for (i = 0; i < s->k && !in.bad; i++) {
		if (s->width == SPARSE_HALF) {
			c = rice_get(&in, &code);
			h = m & UP ? (m & MAG) + c / 2 : m - c / 2;
			in.bad |= h > MAG;
			c = (c & 1) << 15 | h;
		} else
			c = rice_get_bits(&in, s->width);
		s->code[i] = (uint16_t)c;
	}
	return rice_close(&in, b);
}

/* Parse the suffixes after the number. */
static int
parse_rest(const char *s, struct codec_plan *plan, struct err *e)
{
	unsigned i;
	size_t len;

	for (; *s != '\0'; s += len) {
		len = strcspn(++s, ":");
		for (i = 0; i <= TOPK_KIND; i++)
			if (kind_width[i] != 0 && strlen(kind_name[i]) == len &&
			    memcmp(kind_name[i], s, len) == 0)
				break;
		if (i > TOPK_KIND)
			return err_set(e, ERR_USAGE, "'%.*s' is unknown: expected f16, "
			    "q2 or mag after the fraction", (int)len, s);
		plan->param = (uint8_t)((plan->param & ~(unsigned)TOPK_KIND) | i);
	}
	return 0;
}

enum { FIRST = 256 };

/* Copy the text before the first colon, cut to 255 bytes, to t. Return the rest, with the
 * colon. */
static const char *
first(const char *arg, char t[FIRST])
{
	size_t len = strcspn(arg, ":");

	(void)snprintf(t, FIRST, "%.*s", (int)(len < FIRST ? len : FIRST), arg);
	return arg + len;
}

static int
parse(const char *arg, struct codec_plan *plan, struct err *e)
{
	char t[FIRST] = "";
	const char *rest = arg != NULL ? first(arg, t) : "";
	int r = arg_fraction(arg != NULL ? t : NULL, &plan->arg, e);

	return r < 0 ? r : parse_rest(rest, plan, e);
}

static int
parse_chunk(const char *arg, struct codec_plan *plan, struct err *e)
{
	char t[FIRST] = "", *slash;
	const char *rest = arg != NULL ? first(arg, t) : "";
	float k, c = 0;
	unsigned log;
	int r;

	if ((slash = strchr(t, '/')) == NULL)
		return err_set(e, ERR_USAGE, "expected chunk:K/C, such as chunk:64/4096");
	*slash = '\0';
	if ((r = arg_number(t, 1, 1 << MAX_CHUNK, &k, e)) < 0 ||
	    (r = arg_number(slash + 1, 1, 1 << MAX_CHUNK, &c, e)) < 0)
		return r;
	for (log = MIN_CHUNK; log < MAX_CHUNK && (float)(1u << log) < c; log++)
		;
	if (c != (float)(1u << log) || k > c || k != floorf(k))
		return err_set(e, ERR_USAGE, "expected chunk:K/C, where C is a power of two "
		    "from 16 to 1048576 and K is a whole number up to C");
	plan->param = (uint8_t)(log << TOPK_CHUNK);
	plan->arg = k / c;
	return parse_rest(rest, plan, e);
}

static const char *
title(const struct codec_plan *plan)
{
	return plan->param >> TOPK_CHUNK != 0 ? "chunk" : "topk";
}

static void
format(const struct codec_plan *plan, char buf[CODEC_ARG])
{
	unsigned log = plan->param >> TOPK_CHUNK;
	unsigned kind = plan->param & TOPK_KIND;
	size_t at;

	if (log != 0)
		(void)snprintf(buf, CODEC_ARG, ":%.0f/%lu",
		    ldexp((double)plan->arg, (int)log), 1ul << log);
	else
		arg_print(plan->arg, buf);
	at = strlen(buf);
	if (kind_name[kind] != NULL && kind != TOPK_F16)
		(void)snprintf(buf + at, CODEC_ARG - at, ":%s", kind_name[kind]);
}

/* Divide the fraction by f; a chunk keeps a whole number of values, at least one. */
static void
turn(struct codec_plan *plan, double f)
{
	int log = plan->param >> TOPK_CHUNK;
	double v = (double)plan->arg / f;

	if (log != 0) {
		v = floor(ldexp(v, log) + 0.5);
		v = ldexp(v > 1 ? v : 1, -log);
	}
	v = v < 0x1p-126 ? 0x1p-126 : v;
	plan->arg = (float)fmin(v, 1);
}

/* Return how many values to keep at most: fraction * n, rounded; at least 1 if n > 0. */
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

	if (plan->param >> TOPK_CHUNK != 0)	/* a short last chunk may keep more */
		k = k + k / 2 + 1 < n ? k + k / 2 + 1 : n;
	return HEAD + sparse_bound(k, n, kind_width[plan->param & TOPK_KIND]);
}

/* Return -ERR_DATA if this form of values is reserved. */
static int
reserved(unsigned kind, struct err *e)
{
	return kind_width[kind] != 0 ? 0 : err_set(e, ERR_DATA,
	    "unsupported: kind %u of codec topk is unknown: a newer release of ace "
	    "may read it", kind);
}

static size_t
pick(const struct codec_in *in, uint32_t *at)
{
	const struct codec_plan *p = in->plan;
	size_t c = (size_t)1 << (p->param >> TOPK_CHUNK);

	return c > 1 ? largest_chunks(in->kern, in->x, in->n, kept(p, c), c, at) :
	    largest_of(in->kern, in->x, in->n, kept(p, in->n), at);
}

/* Code the values at s->pos and write the head to p. Return the head's length. */
static size_t
code_f16(const struct codec_in *in, struct sparse *s, unsigned char *p)
{
	int exp = ilogbf(bytes_f32(in->max_bits)) - TOP_EXP;
	double scale;
	float v[128];
	size_t i, j, m;

	exp = exp < MIN_EXP ? MIN_EXP : exp;
	scale = ldexp(1, -exp);
	*p = (unsigned char)exp;
	for (i = 0; i < s->k; i += m) {
		m = s->k - i < 128 ? s->k - i : 128;
		for (j = 0; j < m; j++)
			v[j] = (float)((double)in->x[s->pos[i + j]] * scale);
		in->kern->to_f16(s->code + i, v, m);
		/* 2^15 * 2^113 overflows f32: round down instead */
		for (j = 0; j < m && exp == 127 - TOP_EXP; j++)
			if ((s->code[i + j] & 0x7fff) == 0x7800)
				s->code[i + j]--;
	}
	return 1;
}

/* Code the values as signs and n levels, and write the head to p. m has room for k
 * magnitudes. Return the head's length. */
static size_t
code_levels(const struct codec_in *in, struct sparse *s, unsigned n, float *m,
    unsigned char *p)
{
	struct levels l = { .n = n };
	size_t i;

	for (i = 0; i < s->k; i++)
		m[i] = fabsf(in->x[s->pos[i]]);
	levels_fit(&l, m, s->k);
	levels_code(&l, m, s->k, s->code);
	for (i = 0; i < s->k; i++)
		s->code[i] = (uint16_t)(s->code[i] * 2 + (in->x[s->pos[i]] < 0));
	bytes_set16(p, l.a);
	bytes_set16(p + 2, l.r);
	return n == 1 ? 2 : 4;
}

struct head {
	double scale;		/* 2^e of f16 */
	struct levels l;
};

static int
get_head(struct bytes *b, unsigned kind, struct head *h)
{
	h->l.n = kind_levels[kind];
	if (kind == TOPK_F16) {
		h->scale = ldexp(1, (int8_t)bytes_u8(b));
		return b->bad ? -1 : 0;
	}
	h->l.a = bytes_u16(b);
	h->l.r = h->l.n == 1 ? 0 : bytes_u16(b);
	if (b->bad || h->l.a > LEVELS_TOP || h->l.r > LEVELS_TOP)
		return -1;
	levels_make(&h->l);
	return 0;
}

/* Decode the codes of s into x[k], in the same order. */
static void
values(const struct kern *kern, const struct sparse *s, unsigned kind,
    const struct head *h, float *x)
{
	size_t i;
	float v;

	if (kind == TOPK_F16) {
		kern->from_f16(x, s->code, s->k);
		for (i = 0; i < s->k; i++)
			x[i] = (float)((double)x[i] * h->scale);
		return;
	}
	for (i = 0; i < s->k; i++) {
		v = h->l.v[s->code[i] / 2];
		x[i] = s->code[i] & 1 ? -v : v;
	}
}

/* Set in->y to the decoded group. p: the body's head; t: scratch for k values. */
static void
fill_y(const struct codec_in *in, const struct sparse *s, const unsigned char *p,
    float *t)
{
	unsigned kind = in->plan->param & TOPK_KIND;
	struct bytes b = BYTES(p, 4);
	struct head h;
	size_t i;

	memset(in->y, 0, in->n * sizeof(*in->y));
	if (s->k == 0 || get_head(&b, kind, &h) < 0)
		return;
	values(in->kern, s, kind, &h, t);
	for (i = 0; i < s->k; i++)
		in->y[s->pos[i]] = t[i];
}

/* Write the body of the values at s->pos. */
static int
encode_kept(const struct codec_in *in, struct sparse *s, struct buf *out, struct err *e)
{
	unsigned kind = in->plan->param & TOPK_KIND;
	float *t = alloc_get(s->k, sizeof(*t), e);
	unsigned char *p, *head;

	if (t == NULL)
		return -ERR_SYS;
	p = out->p + out->n;
	p += bytes_set_varint(p, s->k);
	head = p;
	p += kind == TOPK_F16 ? code_f16(in, s, p) :
	    code_levels(in, s, kind_levels[kind], t, p);
	p += sparse_put(p, s);
	if (in->y != NULL)
		fill_y(in, s, head, t);
	out->n = (size_t)(p - out->p);
	alloc_free(t);
	return 0;
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param, struct err *e)
{
	struct sparse s = { .n = in->n };
	int r = 0;

	*param = in->plan->param & TOPK_KIND;
	if (reserved(*param, e) < 0)
		return -ERR_DATA;
	s.width = kind_width[*param];
	s.pos = alloc_raw(in->n + 1, sizeof(*s.pos), e);
	if (s.pos == NULL)
		return -ERR_SYS;
	s.k = pick(in, s.pos);
	if (s.k == 0) {
		out->p[out->n++] = 0;
		if (in->y != NULL)
			fill_y(in, &s, NULL, NULL);
	} else if ((s.code = alloc_raw(s.k, sizeof(*s.code), e)) == NULL)
		r = -ERR_SYS;
	else
		r = encode_kept(in, &s, out, e);
	alloc_free(s.code);
	alloc_free(s.pos);
	return r;
}

static int
list_kept(const struct codec_out *o, struct bytes *b, struct sparse *s, float *x)
{
	unsigned kind = o->param & TOPK_KIND;
	struct head h;

	if (get_head(b, kind, &h) < 0 || sparse_get(b, s) < 0)
		return -1;
	values(o->kern, s, kind, &h, x);
	return 0;
}

static int
list(const struct codec_out *o, struct bytes *b, struct codec_list *l, struct err *e)
{
	uint64_t k = bytes_varint(b);
	struct sparse s = { .n = o->n };
	int r = 0;

	if (reserved(o->param, e) < 0)
		return -ERR_DATA;
	if (b->bad || k > o->n || o->n > INT32_MAX)
		return codec_corrupt("topk", "the count is incomplete or too large", e);
	if (k == 0)
		return 0;
	if (codec_list_room(l, (size_t)k, e) < 0)
		return -ERR_SYS;
	s.k = l->k;
	s.width = kind_width[o->param & TOPK_KIND];
	s.pos = l->pos;
	if ((s.code = alloc_get(s.k, sizeof(*s.code), e)) == NULL)
		return -ERR_SYS;
	if (list_kept(o, b, &s, l->x) < 0)
		r = codec_corrupt("topk", "the coded positions or values are damaged", e);
	alloc_free(s.code);
	return r;
}

/* ---- estimates; a group of several chunks is estimated as if it were one chunk ---- */

static double
estimated_kept(const struct estimate *m, const struct codec_plan *plan)
{
	double k = floor((double)plan->arg * m->n + 0.5);

	if (!(k >= 1))
		k = 1;
	return k < m->nonzero ? k : m->nonzero;
}

/* Set w[i] to the number of values, of the k kept, that are of size x[i]. Return the number of
 * points that have kept values. */
static unsigned
estimated_weights(const struct estimate *m, double k, double *w)
{
	unsigned i;

	for (i = 0; i < m->points && k > 0; i++) {
		w[i] = m->w[i] < k ? m->w[i] : k;
		k -= w[i];
	}
	return i;
}

/* Return the error of w[i] values x[i] that are coded as one of two means: that of the
 * values above *t or that of the others. Set *t midway between the two means. */
static double
estimated_two_means(const double *x, const double *w, unsigned n, double *t)
{
	double c[2] = { 0 }, s[2] = { 0 }, q[2] = { 0 };
	unsigned i, up;

	for (i = 0; i < n; i++) {
		up = x[i] > *t;
		c[up] += w[i];
		s[up] += w[i] * x[i];
		q[up] += w[i] * x[i] * x[i];
	}
	for (up = 0; up < 2; up++)
		if (c[up] > 0) {
			q[up] -= s[up] * s[up] / c[up];
			s[up] /= c[up];
		}
	if (c[0] > 0 && c[1] > 0)
		*t = (s[0] + s[1]) / 2;
	return q[0] + q[1];
}

/* Estimate the bits of a kept magnitude: the entropy of its point, an eighth of an octave
 * wide, plus the lower bits of an f16. */
static double
estimated_bits(const struct estimate *m, unsigned kind, double k)
{
	double left = k, take, h = 0, q;
	unsigned i;
	int exp;

	if (kind != TOPK_F16)
		return kind == TOPK_Q2;
	for (i = 0; i < m->points && left > 0; i++) {
		take = m->w[i] < left ? m->w[i] : left;
		q = i > 0 && i + 1 < m->points ? m->x[i] / m->x[i + 1] : 1;
		q = q > 1 && q < 1.09 ? q : 1.09;
		if (take > 0)
			h += take / k * (estimate_log2(16 * (q - 1) *
			    frexp(m->x[i], &exp)) - estimate_log2(take / k));
		left -= take;
	}
	return h + 7;
}

/* Estimate the bytes: positions, signs, magnitudes, and an upper bound of what adaptive
 * codes take beyond the entropy. */
static int64_t
estimated_bytes(const struct estimate *m, const struct codec_plan *plan)
{
	static const double more[] = { 1.65, 1.2, 1, 1 };
	unsigned kind = plan->param & TOPK_KIND;
	double k = estimated_kept(m, plan), bits;

	if (!(k > 0))
		return 1;
	bits = estimate_positions(m, k) + k * (more[kind] + estimated_bits(m, kind, k));
	return (int64_t)ceil(bits / 8) + 12;
}

/* Estimate the error of coding w[i] kept magnitudes x[i], largest first, by levels. */
static double
estimated_levels_error(const double *x, const double *w, unsigned n, unsigned kind)
{
	double t = kind == TOPK_MAG ? HUGE_VAL : x[n - 1], lost = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		lost = estimated_two_means(x, w, n, &t);
	return lost;
}

static double
estimated_error(const struct estimate *m, const struct codec_plan *plan)
{
	double w[ESTIMATE_POINTS], kept = 0;
	unsigned n = estimated_weights(m, estimated_kept(m, plan), w), i;
	unsigned kind = plan->param & TOPK_KIND;

	for (i = 0; i < n; i++)
		kept += w[i] * m->x[i] * m->x[i];
	if (kept > m->sumsq)
		kept = m->sumsq;
	if (n > 0 && kind != TOPK_F16)
		return m->sumsq - kept + estimated_levels_error(m->x, w, n, kind);
	/* error of f16: 2^-20 / 12 of the squared low end of an octave */
	return m->sumsq - kept + kept * 3.5e-8;
}

static void
estimated(const struct codec_plan *plan, const struct estimate *m,
    int64_t *bytes, double *error)
{
	*bytes = estimated_bytes(m, plan);
	*error = estimated_error(m, plan);
}

const struct codec_impl topk_codec = {
	.name = "topk", .parse = parse, .format = format, .alias = "chunk",
	.parse_alias = parse_chunk, .title = title, .turn = turn, .bound = bound, .encode = encode,
	.list = list, .max_param = TOPK_KIND,
	.open = (MAX_CHUNK << TOPK_CHUNK) + TOPK_KIND, .gives_y = 1,
	.sparse_below = HUGE_VALF, .estimate = estimated
};
