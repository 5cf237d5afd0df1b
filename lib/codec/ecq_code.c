#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/ecq_code.h"
#include "codec/ecq_model.h"
#include "codec/range.h"
#include "codec/rans.h"
#include "codec/tail.h"

/* ---- a value, written ---- */

/* What is put; what is found on the way: |x| / step - |q| where |q| is 1, 2, 3
 * and more. */
struct put {
	const int16_t *q;
	const float *x;
	float inv;
	double sum[ECQ_CENTROIDS];
	uint32_t count[ECQ_CENTROIDS];
};

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

/* A value that is not 0; what it counts as. */
RANGE_INLINE uint32_t
put_value(struct range_put *w, struct tail_put *t, struct ecq_model *m,
    unsigned level, struct put *s, size_t at)
{
	struct range_bit *more = m->more[level / 2];
	uint32_t a = magnitude(s->q[at]), sign = s->q[at] < 0;
	unsigned c = bit_length(a), k, i, node = 1;
	unsigned j = a < ECQ_CENTROIDS ? a - 1 : ECQ_CENTROIDS - 1;

	if (a < ECQ_ESCAPE) {
		s->sum[j] += fabs((double)(s->x[at] * s->inv)) - a;
		s->count[j]++;
	}
	tail_put(t, sign, 1);
	if (c == 1) {
		range_put_bit(w, &more[0], 0);
		return 1;
	}
	for (k = 1; k < c; k++)
		range_put_bit(w, &more[k - 1], 1);
	if (c < ECQ_CLASSES)
		range_put_bit(w, &more[c - 1], 0);
	k = c - 1 < ECQ_TREE ? c - 1 : ECQ_TREE;
	for (i = 1; i <= k; i++) {
		int bit = (int)(a >> (c - 1 - i) & 1);

		range_put_bit(w, &m->mantissa[c][node], bit);
		node = 2 * node + (unsigned)bit;
	}
	tail_put(t, a & ((1u << (c - 1 - k)) - 1), c - 1 - k);
	if (a == ECQ_ESCAPE)
		tail_put(t, bytes_u32(s->x[at]) & 0x7fffffff, 31);
	a = node << (c - 1 - k);
	return a < ECQ_CAP ? a : ECQ_CAP;
}

/* ---- a value, read ---- */

/*
 * Values that are not 0 are listed, to be finished together: their place, then
 * a code of what is known of |q|, its bits less one and up to three below the
 * first.
 */
enum { CODE = 4 + ECQ_TREE, LIST = 256 };

struct list {
	uint32_t n, v[LIST];
};

struct values {
	float delta[ECQ_CENTROIDS];
	float step, *x;
	float of[1 << CODE];	/* where the code is all of |q| */
};

static uint32_t
magnitude_of(unsigned code, unsigned *more)
{
	unsigned c = code >> ECQ_TREE, t = c < ECQ_TREE ? c : ECQ_TREE;

	*more = c - t;
	return (1u << t | (code & ((1u << ECQ_TREE) - 1))) << *more;
}

static float
value(const struct values *f, uint32_t a)
{
	unsigned j = a < ECQ_CENTROIDS ? a - 1 : ECQ_CENTROIDS - 1;

	return ((float)a + f->delta[j]) * f->step;
}

static float
long_value(const struct values *f, struct tail_get *t, unsigned code)
{
	unsigned more;
	uint32_t a = magnitude_of(code, &more);

	a |= tail_get(t, more);
	return a < ECQ_ESCAPE ? value(f, a) : bytes_f32(tail_get(t, 31));
}

static void
finish(const struct values *f, struct tail_get *tail, struct list *l)
{
	struct tail_get t = *tail;
	uint32_t i, sign, v, code;
	float x;

	for (i = 0; i < l->n; i++) {
		v = l->v[i];
		code = v & ((1u << CODE) - 1);
		sign = tail_get(&t, 1) << 31;
		x = f->of[code];
		if (code >> ECQ_TREE > ECQ_TREE)
			x = long_value(f, &t, code);
		f->x[v >> CODE] = bytes_f32(bytes_u32(x) | sign);
	}
	l->n = 0;
	*tail = t;
}

/* A value that is not 0; what it counts as. */
RANGE_INLINE uint32_t
get_value(struct range_get *r, struct ecq_model *m, unsigned level,
    struct list *l, size_t at)
{
	struct range_bit *more = m->more[level / 2];
	unsigned c = 1, k, t, node = 1, code;
	uint32_t a;

	if (!range_get_bit(r, &more[0])) {
		l->v[l->n++] = (uint32_t)at << CODE;
		return 1;
	}
	for (c = 2; c < ECQ_CLASSES && range_get_bit(r, &more[c - 1]); c++)
		;
	k = c - 1 < ECQ_TREE ? c - 1 : ECQ_TREE;
	for (t = 0; t < k; t++)
		node = 2 * node + (unsigned)range_get_bit(r,
		    &m->mantissa[c][node]);
	code = (c - 1) << ECQ_TREE | (node - (1u << k));
	l->v[l->n++] = (uint32_t)at << CODE | code;
	a = node << (c - 1 - k);
	return a < ECQ_CAP ? a : ECQ_CAP;
}

/* ---- the walk, of both ---- */

/* Who walks: the writer, or the reader and w is NULL.  Known when this is
 * compiled, and nothing of it is left then. */
struct side {
	struct ecq_model *m;
	struct range_put *w;
	struct tail_put *t;
	struct put *put;
	struct range_get *r;
	struct list *list;
};

/* A decision that the writer knows. */
RANGE_INLINE int
decide(const struct side *s, struct range_bit *b, int bit)
{
	if (s->w == NULL)
		return range_get_bit(s->r, b);
	range_put_bit(s->w, b, bit);
	return bit;
}

/* May anything be not 0 of k values from at on?  The reader has yet to hear. */
RANGE_INLINE int
may(const struct side *s, size_t at, size_t k)
{
	return s->w == NULL ||
	    (k == 1 ? s->put->q[at] != 0 : any(s->put->q + at, k));
}

/* k values from at and column c on, one of which at least is not 0. */
RANGE_INLINE void
block(const struct side *s, struct ecq_left *f, size_t at, size_t c,
    int16_t *mag, size_t k, enum ecq_mode mode)
{
	unsigned state = 0, left = ecq_model_look(f, mode), level;
	uint32_t sum = 0, a;
	size_t i;
	int some;

	ECQ_UNROLL
	for (i = 0; i < k; i++) {
		level = ecq_model_value(s->m, mode, left, c + i);
		some = may(s, at + i, 1);
		if (state == ECQ_FOUND || i < k - 1)
			some = decide(s, &s->m->value[level][state], some);
		if (!some) {
			state += state < ECQ_FOUND - 1;
			continue;
		}
		state = ECQ_FOUND;
		a = s->w != NULL ?
		    put_value(s->w, s->t, s->m, level, s->put, at + i) :
		    get_value(s->r, s->m, level, s->list, at + i);
		mag[i] = (int16_t)a;
		sum += a;
	}
	ecq_model_left(f, mode, sum, k);
}

RANGE_INLINE void
segment(const struct side *s, struct ecq_left *f, size_t at, size_t k,
    enum ecq_mode mode)
{
	int16_t mag[ECQ_SEG] = { 0 };
	unsigned state = 0, level;
	size_t c = s->m->at, i, b;
	int full, some;

	level = ecq_model_seg(s->m, mode, ecq_model_look(f, mode), c);
	full = decide(s, &s->m->seg[level], may(s, at, k));
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		some = full && may(s, at + i, b);
		if (full && (state == ECQ_FOUND || i + b < k)) {
			level = ecq_model_block(s->m, mode,
			    ecq_model_look(f, mode), c + i);
			some = decide(s, &s->m->block[level][state], some);
		}
		if (!some) {
			state += state < ECQ_FOUND - 1;
			ecq_model_left(f, mode, 0, b);
			continue;
		}
		state = ECQ_FOUND;
		block(s, f, at + i, c + i, mag + i, b, mode);
	}
	ecq_model_done(s->m, mag, k);
}

/* The segment at i of n: its length. */
RANGE_INLINE size_t
next(const struct side *s, struct ecq_left *f, size_t i, size_t n, int plain)
{
	size_t k = ecq_model_next(s->m, f, i, n);
	enum ecq_mode mode = plain ? ECQ_PLAIN : ecq_model_mode(s->m);

	if (k == ECQ_SEG)
		segment(s, f, i, ECQ_SEG, mode);
	else
		segment(s, f, i, k, mode);
	return k;
}

/* ---- all of them ---- */

/* sum / n in units of 2^-bits, 8 bits of them at most */
static int8_t
mean(double sum, uint32_t n, int bits)
{
	double d = n != 0 ? rint(ldexp(sum / n, bits)) : 0;
	double most = 1 << (bits == 8 ? 7 : 3);

	return (int8_t)(d < -most ? -most : d > most - 1 ? most - 1 : d);
}

/*
 * The model took `bytes' for n values and foresaw nothing, so that the plain
 * one is better: no more is gained than it costs to tell the values that are 0,
 * 1 and more apart, and the signs.
 */
static int
no_use(const struct put *s, size_t n, size_t bytes, struct ecq_side *side)
{
	uint32_t count[3] = { (uint32_t)n - s->count[0] - s->count[1] -
	    s->count[2], s->count[0], s->count[1] + s->count[2] };

	size_t least = rans_entropy(count, 3, n) + (n - count[0]) / 8;

	if (bytes < least + least / 256)
		return 0;
	*side = (struct ecq_side){ .plain = 1, .level = ecq_model_mean(
	    count[1] + 2 * s->count[1] + 3 * s->count[2], n) };
	return 1;
}

size_t
ecq_code_put(struct ecq_model *m, const struct ecq_in *in, unsigned char *p,
    size_t limit, struct ecq_side *side)
{
	unsigned char *end = p + limit + ECQ_SEG_ROOM, *back;
	struct range_put w = range_put_start(p);
	struct tail_put t = { 0, 0, end };
	struct ecq_left f = ecq_model_start(side->level);
	struct put s = { .q = in->q, .x = in->x, .inv = in->inv };
	const struct side by = { .m = m, .w = &w, .t = &t, .put = &s };
	size_t i, len, half = side->plain ? SIZE_MAX : in->n / 2;

	for (i = 0; i < in->n; i += next(&by, &f, i, in->n, side->plain)) {
		len = (size_t)(w.p - p) + (size_t)(end - t.p);
		if (len > limit)
			return 0;
		if (i >= half && i > 0) {
			half = SIZE_MAX;
			if (no_use(&s, i, len, side))
				return 0;
		}
	}
	if ((size_t)(w.p - p) + (size_t)(end - t.p) > limit)
		return 0;
	len = range_put_end(w);
	back = tail_put_end(&t);
	for (i = 0; i < ECQ_CENTROIDS; i++)
		side->delta[i] = mean(s.sum[i], s.count[i], i == 0 ? 8 : 5);
	memmove(p + len, back, (size_t)(end - back));
	return len + (size_t)(end - back);
}

int
ecq_code_get(struct ecq_model *m, float *x, size_t n, float step,
    const struct ecq_side *s, const unsigned char *p, size_t len)
{
	struct values v = { .step = step, .x = x };
	struct ecq_left f = ecq_model_start(s->level);
	struct range_get r = range_get_start(p, len);
	struct tail_get t = { 0, 0, p, len, 0 };
	struct list l = { .n = 0 };
	unsigned code, more;
	const struct side by = { .m = m, .r = &r, .list = &l };
	size_t i;

	for (i = 0; i < ECQ_CENTROIDS; i++)
		v.delta[i] = (float)s->delta[i] / (i == 0 ? 256 : 32);
	for (code = 0; code >> ECQ_TREE <= ECQ_TREE; code++)
		v.of[code] = value(&v, magnitude_of(code, &more));
	for (i = 0; i < n; i += next(&by, &f, i, n, s->plain))
		if (l.n > LIST - ECQ_SEG)
			finish(&v, &t, &l);
	finish(&v, &t, &l);
	return tail_get_end(&t, range_get_end(r));
}
