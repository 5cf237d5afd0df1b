#include <string.h>

#include "base/bytes.h"
#include "codec/bits.h"
#include "codec/gaps.h"
#include "codec/rice.h"
#include "codec/sparse.h"

enum { FIELD = 30, KINDS = 4, PART = 64 };

size_t
sparse_bound(size_t k, size_t n, unsigned width)
{
	return rice_bound(k, n) + k / 8 * width + (k % 8 * width + 7) / 8;
}

size_t
sparse_put_plain(unsigned char *p, const struct sparse *s)
{
	unsigned char *start = p, t[PART];
	size_t i, j, m;

	p += rice_put(p, s->pos, s->k);
	for (i = 0; s->width == SPARSE_HALF && i < s->k; i++, p += 2)
		bytes_set16(p, s->code[i]);
	for (i = 0; s->width != SPARSE_HALF && i < s->k; i += m) {
		m = s->k - i < PART ? s->k - i : PART;
		for (j = 0; j < m; j++)
			t[j] = (unsigned char)s->code[i + j];
		bits_pack(p, t, m, s->width);
		p += bits_size(m, s->width);
	}
	return (size_t)(p - start);
}

int
sparse_get_plain(struct bytes *b, struct sparse *s)
{
	const unsigned char *p;
	unsigned char t[PART];
	size_t i, j, m;

	if (rice_get(b, s->pos, s->k, s->n) < 0)
		return -1;
	p = bytes_take(b, s->width == SPARSE_HALF ? 2 * s->k :
	    bits_size(s->k, s->width));
	if (p == NULL)
		return -1;
	for (i = 0; s->width == SPARSE_HALF && i < s->k; i++, p += 2)
		s->code[i] = bytes_le16(p);
	for (i = 0; s->width != SPARSE_HALF && i < s->k; i += m) {
		m = s->k - i < PART ? s->k - i : PART;
		if (bits_unpack(t, p, m, s->width) < 0)
			return -1;
		for (j = 0; j < m; j++)
			s->code[i + j] = t[j];
		p += bits_size(m, s->width);
	}
	return 0;
}

/* ---- coded ---- */

struct model {
	struct gaps gaps;
	struct range_bit field[FIELD], top[KINDS][8], level[8];
};

static void
model_start(struct model *m, const struct sparse *s)
{
	gaps_start(&m->gaps, s->k, s->n);
	range_start(m->field, FIELD);
	range_start(m->top[0], KINDS * 8);
	range_start(m->level, 8);
}

RANGE_INLINE void
put_half(struct model *m, struct range_put *w, unsigned h)
{
	unsigned down = FIELD - (h >> 10 & 31), i, at = 1;
	struct range_bit *top = m->top[down < KINDS ? down : KINDS - 1];

	for (i = 0; i < down; i++)
		range_put_bit(w, &m->field[i], 1);
	if (down < FIELD)
		range_put_bit(w, &m->field[down], 0);
	for (i = 9; i > 6; i--) {
		range_put_even(w, &top[at], (int)(h >> i & 1));
		at = at * 2 + (h >> i & 1);
	}
}

RANGE_INLINE unsigned
get_half(struct model *m, struct range_get *r)
{
	unsigned down = 0, at = 1;
	struct range_bit *top;

	while (down < FIELD && range_get_bit(r, &m->field[down]))
		down++;
	top = m->top[down < KINDS ? down : KINDS - 1];
	while (at < 8)
		at = at * 2 + (unsigned)range_get_even(r, &top[at]);
	return (FIELD - down) << 10 | (at & 7) << 7;
}

/* j of width - 1 bits */
RANGE_INLINE void
put_level(struct model *m, struct range_put *w, unsigned width, unsigned j)
{
	unsigned at = 1;

	while (--width > 0) {
		range_put_even(w, &m->level[at], (int)(j >> (width - 1) & 1));
		at = at * 2 + (j >> (width - 1) & 1);
	}
}

RANGE_INLINE unsigned
get_level(struct model *m, struct range_get *r, unsigned width)
{
	unsigned at = 1, end = 1u << (width - 1);

	while (at < end)
		at = at * 2 + (unsigned)range_get_even(r, &m->level[at]);
	return at - end;
}

static size_t
side_size(const struct sparse *s)
{
	return s->width == SPARSE_HALF ? s->k : (s->k + 7) / 8;
}

size_t
sparse_put_coded(unsigned char *p, size_t cap, const struct sparse *s)
{
	size_t i, side = side_size(s);
	uint32_t next = 0;
	struct range_put w;
	struct model m;
	unsigned c;

	if (side >= cap)
		return 0;
	memset(p, 0, side);
	for (i = 0; i < s->k; i++) {
		c = s->code[i];
		if (s->width == SPARSE_HALF)
			p[i] = (unsigned char)((c >> 8 & 128) | (c & 127));
		else
			p[i / 8] |= (unsigned char)((c & 1) << i % 8);
	}
	model_start(&m, s);
	w = range_put_start(p + side);
	for (i = 0; i < s->k; i++) {
		gaps_put(&m.gaps, &w, s->pos[i] - next);
		next = s->pos[i] + 1;
		if (s->width == SPARSE_HALF)
			put_half(&m, &w, s->code[i]);
		else
			put_level(&m, &w, s->width, s->code[i] / 2u);
		if ((size_t)(w.p - p) >= cap)
			return 0;
	}
	side += range_put_end(w);
	return side < cap ? side : 0;
}

int
sparse_get_coded(struct bytes *b, struct sparse *s)
{
	const unsigned char *p = bytes_take(b, side_size(s));
	uint64_t next = 0;
	struct range_get r;
	struct model m;
	unsigned c;
	size_t i;

	if (p == NULL)
		return -1;
	if (s->width != SPARSE_HALF && s->k % 8 != 0 &&
	    p[s->k / 8] >> s->k % 8 != 0)
		return -1;
	model_start(&m, s);
	r = range_get_start(b->p + b->at, b->n - b->at);
	for (i = 0; i < s->k; i++) {
		next += gaps_get(&m.gaps, &r);
		if (next >= s->n)
			return -1;
		s->pos[i] = (uint32_t)next++;
		if (s->width == SPARSE_HALF) {
			c = get_half(&m, &r);
			s->code[i] = (uint16_t)((p[i] & 128u) << 8 | c |
			    (p[i] & 127u));
		} else {
			c = get_level(&m, &r, s->width);
			s->code[i] = (uint16_t)(c * 2 +
			    ((unsigned)p[i / 8] >> i % 8 & 1));
		}
	}
	if (range_get_end(r) != b->n - b->at)
		return -1;
	b->at = b->n;
	return 0;
}
