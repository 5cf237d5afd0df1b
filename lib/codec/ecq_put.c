#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/ecq_code.h"
#include "codec/ecq_model.h"
#include "codec/range.h"
#include "codec/rans.h"
#include "codec/tail.h"

/* What is put, by which model; what is found on the way: |x| / step - |q|
 * where |q| is 1, 2, 3 and more. */
struct put {
	struct ecq_model *m;
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

/* A value that is not 0; what it counts as. */
RANGE_INLINE uint32_t
put_value(struct range_put *w, struct tail_put *t, struct put *s,
    unsigned level, size_t at)
{
	struct range_bit *more = s->m->more[level / 2];
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

		range_put_bit(w, &s->m->mantissa[c][node], bit);
		node = 2 * node + (unsigned)bit;
	}
	tail_put(t, a & ((1u << (c - 1 - k)) - 1), c - 1 - k);
	if (a == ECQ_ESCAPE)
		tail_put(t, bytes_u32(s->x[at]) & 0x7fffffff, 31);
	a = node << (c - 1 - k);
	return a < ECQ_CAP ? a : ECQ_CAP;
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

/* k values from q[at] and column c on, one of which at least is not 0. */
RANGE_INLINE void
put_block(struct range_put *w, struct tail_put *t, struct put *s,
    struct ecq_left *f, size_t at, size_t c, int16_t *mag, size_t k,
    enum ecq_mode mode)
{
	unsigned state = 0, left = ecq_model_look(f, mode), level;
	uint32_t sum = 0, a;
	size_t i;

	ECQ_UNROLL
	for (i = 0; i < k; i++) {
		level = ecq_model_value(s->m, mode, left, c + i);
		if (state == ECQ_FOUND || i < k - 1)
			range_put_bit(w, &s->m->value[level][state],
			    s->q[at + i] != 0);
		if (s->q[at + i] == 0) {
			state += state < ECQ_FOUND - 1;
			continue;
		}
		state = ECQ_FOUND;
		a = put_value(w, t, s, level, at + i);
		mag[i] = (int16_t)a;
		sum += a;
	}
	ecq_model_left(f, mode, sum, k);
}

RANGE_INLINE void
put_segment(struct range_put *w, struct tail_put *t, struct put *s,
    struct ecq_left *f, size_t at, size_t k, enum ecq_mode mode)
{
	int full = any(s->q + at, k), some;
	int16_t mag[ECQ_SEG] = { 0 };
	unsigned state = 0, level;
	size_t c = s->m->at, i, b;

	level = ecq_model_seg(s->m, mode, ecq_model_look(f, mode), c);
	range_put_bit(w, &s->m->seg[level], full);
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		some = full && any(s->q + at + i, b);
		if (full && (state == ECQ_FOUND || i + b < k)) {
			level = ecq_model_block(s->m, mode,
			    ecq_model_look(f, mode), c + i);
			range_put_bit(w, &s->m->block[level][state], some);
		}
		if (!some) {
			state += state < ECQ_FOUND - 1;
			ecq_model_left(f, mode, 0, b);
			continue;
		}
		state = ECQ_FOUND;
		put_block(w, t, s, f, at + i, c + i, mag + i, b, mode);
	}
	ecq_model_done(s->m, mag, k);
}

/* sum / n in units of 2^-bits, 8 bits of them at most */
static int8_t
mean(double sum, uint32_t n, int bits)
{
	double d = n != 0 ? rint(ldexp(sum / n, bits)) : 0, most = 1 << (bits == 8 ? 7 : 3);

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
ecq_put(struct ecq_model *m, const struct ecq_in *in, unsigned char *p,
    size_t limit, struct ecq_side *side)
{
	unsigned char *end = p + limit + ECQ_SEG_ROOM, *back;
	struct range_put w = range_put_start(p);
	struct tail_put t = { 0, 0, end };
	struct ecq_left f = ecq_model_start(side->level);
	struct put s = { .m = m, .q = in->q, .x = in->x, .inv = in->inv };
	enum ecq_mode mode;
	size_t i, k, len, half = side->plain ? SIZE_MAX : in->n / 2;

	for (i = 0; i < in->n; i += k) {
		len = (size_t)(w.p - p) + (size_t)(end - t.p);
		if (len > limit)
			return 0;
		if (i >= half && i > 0) {
			half = SIZE_MAX;
			if (no_use(&s, i, len, side))
				return 0;
		}
		k = ecq_model_next(m, &f, i, in->n);
		mode = side->plain ? ECQ_PLAIN : ecq_model_mode(m);
		if (k == ECQ_SEG)
			put_segment(&w, &t, &s, &f, i, ECQ_SEG, mode);
		else
			put_segment(&w, &t, &s, &f, i, k, mode);
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
