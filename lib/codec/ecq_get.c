#include <string.h>

#include "base/bytes.h"
#include "codec/ecq_code.h"
#include "codec/ecq_model.h"
#include "codec/range.h"
#include "codec/tail.h"

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
magnitude(unsigned code, unsigned *more)
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
	uint32_t a = magnitude(code, &more);

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

/* k values from x[at] and column c on, one of which at least is not 0. */
RANGE_INLINE void
get_block(struct range_get *r, struct ecq_model *m, struct ecq_left *f,
    struct list *l, size_t at, size_t c, int16_t *mag, size_t k,
    enum ecq_mode mode)
{
	unsigned state = 0, left = ecq_model_look(f, mode), level;
	uint32_t sum = 0, a;
	size_t i;

	ECQ_UNROLL
	for (i = 0; i < k; i++) {
		level = ecq_model_value(m, mode, left, c + i);
		if ((state == ECQ_FOUND || i < k - 1) &&
		    !range_get_bit(r, &m->value[level][state])) {
			state += state < ECQ_FOUND - 1;
			continue;
		}
		state = ECQ_FOUND;
		a = get_value(r, m, level, l, at + i);
		mag[i] = (int16_t)a;
		sum += a;
	}
	ecq_model_left(f, mode, sum, k);
}

RANGE_INLINE void
get_segment(struct range_get *r, struct ecq_model *m, struct ecq_left *f,
    struct list *l, size_t at, size_t k, enum ecq_mode mode)
{
	int16_t mag[ECQ_SEG] = { 0 };
	unsigned state = 0, level;
	size_t c = m->at, i, b;
	int full, some;

	level = ecq_model_seg(m, mode, ecq_model_look(f, mode), c);
	full = range_get_bit(r, &m->seg[level]);
	for (i = 0; i < k; i += b) {
		b = k - i < ECQ_BLOCK ? k - i : ECQ_BLOCK;
		some = full;
		if (full && (state == ECQ_FOUND || i + b < k)) {
			level = ecq_model_block(m, mode,
			    ecq_model_look(f, mode), c + i);
			some = range_get_bit(r, &m->block[level][state]);
		}
		if (!some) {
			state += state < ECQ_FOUND - 1;
			ecq_model_left(f, mode, 0, b);
			continue;
		}
		state = ECQ_FOUND;
		get_block(r, m, f, l, at + i, c + i, mag + i, b, mode);
	}
	ecq_model_done(m, mag, k);
}

int
ecq_get(struct ecq_model *m, float *x, size_t n, float step,
    const struct ecq_side *s, const unsigned char *p, size_t len)
{
	struct values v = { .step = step, .x = x };
	struct ecq_left f = ecq_model_start(s->level);
	struct range_get r = range_get_start(p, len);
	struct tail_get t = { 0, 0, p, len, 0 };
	struct list l = { .n = 0 };
	unsigned code, more;
	enum ecq_mode mode;
	size_t i, k;

	for (i = 0; i < ECQ_CENTROIDS; i++)
		v.delta[i] = (float)s->delta[i] / (i == 0 ? 256 : 32);
	for (code = 0; code >> ECQ_TREE <= ECQ_TREE; code++)
		v.of[code] = value(&v, magnitude(code, &more));
	for (i = 0; i < n; i += k) {
		if (l.n > LIST - ECQ_SEG)
			finish(&v, &t, &l);
		k = ecq_model_next(m, &f, i, n);
		mode = s->plain ? ECQ_PLAIN : ecq_model_mode(m);
		if (k == ECQ_SEG)
			get_segment(&r, m, &f, &l, i, ECQ_SEG, mode);
		else
			get_segment(&r, m, &f, &l, i, k, mode);
	}
	finish(&v, &t, &l);
	return tail_get_end(&t, range_get_end(r));
}
