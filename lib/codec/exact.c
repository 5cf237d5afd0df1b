/*
 * EXACT: see exact.h.
 *
 *   body  := whole | given         as the parameter says
 *   whole := planes (planes.h) of the words; of floating point with the sign moved
 *            to the lowest bit
 *   given := varint a  varint levels  varint m  range code u8[m]  bits
 *
 * The range code has the decisions, the bits what is as likely 0 as 1.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/codec_impl.h"
#include "codec/exact.h"
#include "codec/planes.h"
#include "codec/range.h"
#include "kern/kern.h"

enum {
	LEVELS = 254,		/* at most */
	OUT = 255,		/* in level[]: above them all, unchanged */
	GAPS = 4,		/* decisions of a distance's upper part */
	EQUAL = 16,		/* ranges of a distance that are equally wide */
	CLASSES = 64,		/* of moves, by their bit length */
	KEPT = 8,		/* uses that a decision brings to the next level */
	MEAN = 4,		/* distances that a mean brings to the next level */
	MEAN_MOST = 64,		/* and that it stands for at most */
	HEAD = 32,
	SLACK = 1024,		/* no change takes as much */
	SIXTEENTH = 16
};

struct form {
	uint8_t size, mantissa, exponent;	/* bytes; bits; 0: no float */
};

static const struct form forms[EXACT_NFORM] = {
	[EXACT_F32] = { 4, 23, 8 }, [EXACT_F16] = { 2, 10, 5 },
	[EXACT_BF16] = { 2, 7, 8 }, [EXACT_F64] = { 8, 52, 11 },
	[EXACT_F8E4M3] = { 1, 3, 4 }, [EXACT_F8E5M2] = { 1, 2, 5 },
	[EXACT_INT8] = { 1, 0, 0 }, [EXACT_INT16] = { 2, 0, 0 },
	[EXACT_INT32] = { 4, 0, 0 }, [EXACT_INT64] = { 8, 0, 0 }
};

/* What is known while a level is coded. */
struct model {
	struct range_bit gap[GAPS];	/* upper part: one more?, the n-th time */
	struct range_bit low;		/* the highest bit of the lower part */
	struct range_bit end;		/* no more of this level? */
	struct range_bit grows;		/* away from 0? */
	struct range_bit class[CLASSES];	/* the move takes more bits? */
	struct range_bit half;		/* its second highest bit */
	uint64_t sum, count;		/* of distances: their mean is 2^m */
};

/* Bits that are not coded; they fill bytes from the least significant one. */
struct bits {
	unsigned char *p;	/* writing */
	const unsigned char *q, *end;	/* reading */
	uint64_t v;
	unsigned n;
	int bad;
};

size_t
exact_size(unsigned form)
{
	return forms[form].size;
}

size_t
exact_bound(unsigned form, size_t n)
{
	size_t size = forms[form].size;

	/* given is given up where one of its parts is longer than the words */
	return planes_bound(n, size) + 2 * (n * size) + SLACK;
}

/* ---- words ---- */

static inline uint64_t
word(const unsigned char *p, unsigned size)
{
	switch (size) {
	case 1:
		return p[0];
	case 2:
		return bytes_le16(p);
	case 4:
		return bytes_le32(p);
	default:
		return bytes_le64(p);
	}
}

static inline void
set_word(unsigned char *p, unsigned size, uint64_t v)
{
	switch (size) {
	case 1:
		p[0] = (unsigned char)v;
		break;
	case 2:
		bytes_set16(p, (uint16_t)v);
		break;
	case 4:
		bytes_set32(p, (uint32_t)v);
		break;
	default:
		bytes_set64(p, v);
	}
}

static inline uint64_t
all_bits(const struct form *f)
{
	return UINT64_MAX >> (64 - 8 * f->size);
}

static inline uint64_t
sign_bit(const struct form *f)
{
	return (uint64_t)1 << (8 * f->size - 1);
}

/* Where a value stands among all of its type: floats by their size. */
static inline uint64_t
place(const struct form *f, uint64_t v)
{
	if (f->exponent == 0)
		return v;
	return (v & sign_bit(f)) != 0 ? ~v & all_bits(f) : v | sign_bit(f);
}

static inline uint64_t
at_place(const struct form *f, uint64_t v)
{
	if (f->exponent == 0)
		return v;
	return (v & sign_bit(f)) != 0 ? v ^ sign_bit(f) : ~v & all_bits(f);
}

static inline int
negative(const struct form *f, uint64_t v)
{
	return f->exponent != 0 && (v & sign_bit(f)) != 0;
}

static inline unsigned
exponent(const struct form *f, uint64_t v)
{
	return (unsigned)(v >> f->mantissa) & ((1u << f->exponent) - 1);
}

/* ---- levels ---- */

/* The loop of level_all, for words of one size, in numbers that hold them, so that
 * as many as can be are done at once. */
#define LEVEL_ALL(type, load, bytes) \
	for (i = 0; i < n; i++) { \
		type x = (type)((type)(load(old + (bytes) * i) >> shift) & \
		    (type)mask); \
		\
		x = (type)(x > (type)a ? x - (type)a : 0); \
		level[i] = (unsigned char)(x < (type)levels ? x : OUT); \
	}

#define LOAD8(p) (*(p))

/* level u8[n]: that of each old word: its exponent less a, none below 0. */
static void
level_all(const struct form *f, const unsigned char *restrict old, size_t n,
    uint32_t a, uint32_t levels, unsigned char *restrict level)
{
	uint32_t mask = (1u << f->exponent) - 1;
	unsigned shift = f->mantissa;
	size_t i;

	if (f->exponent == 0) {
		memset(level, 0, n);
		return;
	}
	switch (f->size) {
	case 1:
		LEVEL_ALL(uint8_t, LOAD8, 1)
		break;
	case 2:
		LEVEL_ALL(uint16_t, bytes_le16, 2)
		break;
	case 4:
		LEVEL_ALL(uint32_t, bytes_le32, 4)
		break;
	default:
		LEVEL_ALL(uint32_t, bytes_le64, 8)
	}
}

/* Which words have a level, as kern.h's marks says it. */
struct marks {
	const struct kern *kern;
	uint64_t *mark;		/* u64[(n + 63) / 64] */
	uint32_t *before;	/* u32[(n + 63) / 64 + 1] */
};

static inline size_t
marks_words(size_t n)
{
	return (n + 63) / 64;
}

/* In each byte of the result, how many bits are 1 in this byte of m and below. */
static inline uint64_t
counts(uint64_t m)
{
	m -= m >> 1 & 0x5555555555555555u;
	m = (m & 0x3333333333333333u) + (m >> 2 & 0x3333333333333333u);
	m = (m + (m >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	return m * 0x0101010101010101u;
}

/* The place of the bit of m that is 1 and has k such below it; there is one. */
static inline unsigned
bit_behind(uint64_t m, unsigned k)
{
	const uint64_t one = 0x0101010101010101u, top = 0x80 * one;
	uint64_t upto = counts(m);
	/* bytes that end before it */
	uint64_t less = (((k * one | top) - upto) & top) >> 7;
	unsigned at = (unsigned)(less * one >> 56) * 8;

	k -= (unsigned)(upto << 8 >> at) & 255;
	for (m >>= at; k > 0; k--)
		m &= m - 1;
	return at + (unsigned)__builtin_ctzll(m);
}

/* ---- what is learned ---- */

static const uint64_t SUM_MOST = (uint64_t)MEAN << 32;

static void
first_level(struct model *m)
{
	range_start(m->gap, GAPS);
	range_start(&m->low, 1);
	range_start(&m->end, 1);
	range_start(&m->grows, 1);
	range_start(m->class, CLASSES);
	range_start(&m->half, 1);
	m->sum = 2 * MEAN;
	m->count = MEAN;
}

static void
keep(struct range_bit *b, size_t n)
{
	for (; n > 0; n--, b++)
		b->n = b->n < KEPT ? b->n : KEPT;
}

/* The next level: half as many change, by half as much. */
static void
next_level(struct model *m)
{
	keep(m->gap, GAPS);
	keep(&m->low, 1);
	keep(m->class, CLASSES);
	memmove(m->class, m->class + 1, (CLASSES - 1) * sizeof(*m->class));
	m->sum = 2 * MEAN * m->sum / m->count;
	if (m->sum > SUM_MOST)
		m->sum = SUM_MOST;	/* after many levels in which nothing changes */
	m->count = MEAN;
}

/* The mean distance, as the power of 2 that is not above it. */
static inline unsigned
lower_bits(const struct model *m)
{
	unsigned k = (unsigned)(__builtin_clzll(m->count) -
	    __builtin_clzll(m->sum | m->count));

	return k > 0 && m->count << k > m->sum ? k - 1 : k;
}

static inline void
learn_gap(struct model *m, uint64_t gap)
{
	m->sum += gap + 1;
	if (++m->count == MEAN_MOST) {
		m->sum /= 2;
		m->count /= 2;
	}
}

/* ---- bits ---- */

static inline void
bits_set(struct bits *b, uint64_t v, unsigned n)
{
	while (n > 0) {
		unsigned k = n < 32 ? n : 32;

		b->v |= (v & (((uint64_t)1 << k) - 1)) << b->n;
		b->n += k;
		v >>= k;
		n -= k;
		for (; b->n >= 8; b->n -= 8, b->v >>= 8)
			*b->p++ = (unsigned char)b->v;
	}
}

static inline uint64_t
bits_take(struct bits *b, unsigned n)
{
	uint64_t v = 0;
	unsigned at = 0, k;

	while (n > 0) {
		k = n < 32 ? n : 32;
		for (; b->n < k; b->n += 8) {
			b->bad |= b->q == b->end;
			b->v |= (uint64_t)(b->q < b->end ? *b->q++ : 0) << b->n;
		}
		v |= (b->v & (((uint64_t)1 << k) - 1)) << at;
		b->v >>= k;
		b->n -= k;
		at += k;
		n -= k;
	}
	return v;
}

/* ---- distances and moves ---- */

/* The t-th of the ranges that a distance may lie in, of 2^width values: the first
 * ones are as wide as the mean, then each is twice as wide as the one before. */
static inline unsigned
range_width(unsigned k, unsigned t)
{
	return t < EQUAL ? k : k + t - EQUAL + 1;
}

/* gap of the rest values of the level there still are; gap == rest: there is no
 * further change. */
RANGE_INLINE void
put_gap(struct model *m, struct range_put *w, struct bits *b, uint64_t gap,
    uint64_t rest)
{
	unsigned k = lower_bits(m), t, width = k;
	uint64_t base = 0;

	for (t = 0;; width = range_width(k, ++t)) {
		if ((rest - base) >> width == 0) {
			range_put_bit(w, &m->end, gap == rest);
			if (gap == rest)
				return;
			break;
		}
		if ((gap - base) >> width == 0) {
			range_put_bit(w, &m->gap[t < GAPS ? t : GAPS - 1], 0);
			break;
		}
		range_put_bit(w, &m->gap[t < GAPS ? t : GAPS - 1], 1);
		base += (uint64_t)1 << width;
	}
	if (width > 0) {
		range_put_even(w, &m->low,
		    (int)((gap - base) >> (width - 1) & 1));
		bits_set(b, gap - base, width - 1);
	}
	learn_gap(m, gap);
}

/* As put_gap; above rest: no such distance is written. */
RANGE_INLINE uint64_t
get_gap(struct model *m, struct range_get *r, struct bits *b, uint64_t rest)
{
	unsigned k = lower_bits(m), t, width = k;
	uint64_t base = 0, gap;

	for (t = 0;; width = range_width(k, ++t)) {
		if ((rest - base) >> width == 0) {
			if (range_get_bit(r, &m->end))
				return rest;
			break;
		}
		if (!range_get_bit(r, &m->gap[t < GAPS ? t : GAPS - 1]))
			break;
		base += (uint64_t)1 << width;
	}
	gap = base;
	if (width > 0) {
		gap += (uint64_t)range_get_even(r, &m->low) << (width - 1);
		gap += bits_take(b, width - 1);
	}
	learn_gap(m, gap);
	return gap < rest ? gap : UINT64_MAX;
}

/* From old to new, by a move of 1 to 2^(bits - 1). */
RANGE_INLINE void
put_move(const struct form *f, struct model *m, struct range_put *w,
    struct bits *b, uint64_t old, uint64_t new)
{
	uint64_t d = (place(f, new) - place(f, old)) & all_bits(f);
	int down = (d & sign_bit(f)) != 0;
	unsigned k = 0;

	d = down ? (0 - d) & all_bits(f) : d;
	range_put_even(w, &m->grows, down == negative(f, old));
	while (d >> k > 1) {
		range_put_bit(w, &m->class[k], 1);
		k++;
	}
	if (k < 8u * f->size - 1)
		range_put_bit(w, &m->class[k], 0);
	if (k > 0) {
		range_put_even(w, &m->half, (int)(d >> (k - 1) & 1));
		bits_set(b, d, k - 1);
	}
}

RANGE_INLINE uint64_t
get_move(const struct form *f, struct model *m, struct range_get *r,
    struct bits *b, uint64_t old)
{
	int down = range_get_even(r, &m->grows) == negative(f, old);
	unsigned k = 0;
	uint64_t d;

	while (k < 8u * f->size - 1 && range_get_bit(r, &m->class[k]))
		k++;
	d = (uint64_t)1 << k;
	if (k > 0) {
		d |= (uint64_t)range_get_even(r, &m->half) << (k - 1);
		d |= bits_take(b, k - 1);
	}
	return at_place(f, (place(f, old) + (down ? 0 - d : d)) & all_bits(f));
}

/* ---- given the old words ---- */

/* Which words changed, and the levels that they are of. */
struct changes {
	uint64_t *at;		/* u64[(n + 63) / 64], a bit for each word */
	size_t n;		/* how many */
	uint32_t a, levels;
};

/* The loop of find_changes, for words of one size. */
#define DIFFER_ALL(load, bytes) \
	for (i = 0; i < n; i++) \
		differs[i] = load(old + (bytes) * i) != load(new + (bytes) * i);

/* Which words changed, by a byte for each on the way. */
static void
find_changes(unsigned size, const unsigned char *restrict old,
    const unsigned char *restrict new, size_t n,
    unsigned char *restrict differs, const struct marks *t, struct changes *c)
{
	size_t i;

	switch (size) {
	case 1:
		DIFFER_ALL(LOAD8, 1)
		break;
	case 2:
		DIFFER_ALL(bytes_le16, 2)
		break;
	case 4:
		DIFFER_ALL(bytes_le32, 4)
		break;
	default:
		DIFFER_ALL(bytes_le64, 8)
	}
	t->kern->marks(c->at, t->before, differs, n, 1);
	c->n = t->before[marks_words(n)];
}

/* Which exponents become levels: the first takes what is below it too, about one
 * in 64 of the changes, the last is the greatest that changed. */
static void
choose_levels(const struct form *f, const unsigned char *old, size_t n,
    struct changes *c)
{
	uint32_t count[2048] = { 0 }, top = 0, low = 0, x;
	uint64_t at;
	size_t i, sum;

	for (i = 0; i < marks_words(n); i++)
		for (at = c->at[i]; at != 0; at &= at - 1) {
			x = exponent(f, word(old + (64 * i +
			    (unsigned)__builtin_ctzll(at)) * f->size, f->size));
			count[x]++;
			top = x > top ? x : top;
		}
	for (sum = count[0]; sum * 64 < c->n; sum += count[low])
		low++;
	c->a = top - low < LEVELS ? low : top - LEVELS + 1;
	c->levels = top - c->a + 1;
}

/* Where a group is written. */
struct out {
	const struct form *f;
	struct model m;
	struct range_put w;
	struct bits b;
	const unsigned char *bits;	/* where b begins */
	const unsigned char *old, *new;
	size_t n;
};

/* The level whose words are marked.  -1: it takes more than they do. */
static int
put_level(struct out *o, const struct marks *t, const uint64_t *changed)
{
	const unsigned size = o->f->size;
	const unsigned char *most = o->w.start + o->n * size;
	const unsigned char *most_bits = o->bits + o->n * size;
	const size_t words = marks_words(o->n), all = t->before[words];
	struct range_put w = o->w;	/* here, so that they stay in registers */
	struct bits b = o->b;
	size_t i, p, next = 0, is;
	uint64_t at;

	for (i = 0; i < words; i++)
		for (at = t->mark[i] & changed[i]; at != 0; at &= at - 1) {
			if (w.p > most || b.p > most_bits)
				return -1;
			p = 64 * i + (unsigned)__builtin_ctzll(at);
			is = t->before[i] + (counts(t->mark[i] &
			    ((at & (0 - at)) - 1)) >> 56);
			put_gap(&o->m, &w, &b, is - next, all - next);
			put_move(o->f, &o->m, &w, &b, word(o->old + p * size,
			    size), word(o->new + p * size, size));
			next = is + 1;
		}
	if (next < all)
		put_gap(&o->m, &w, &b, all - next, all - next);
	o->w = w;
	o->b = b;
	return 0;
}

/* Where things are while a group is coded. */
struct room {
	uint64_t *changed;	/* [(n + 63) / 64] */
	struct marks marks;
	unsigned char *level;	/* [n] */
	unsigned char *bits;	/* [n * size + SLACK] when written */
};

static int
room_get(struct room *r, const struct form *f, size_t n, size_t bits,
    struct err *e)
{
	size_t words = marks_words(n) + 1;

	if ((r->marks.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	r->changed = alloc_raw(words * (8 + 8 + 4) + n + bits, 1, e);
	if (r->changed == NULL)
		return -ERR_SYS;
	r->marks.mark = r->changed + words;
	r->marks.before = (uint32_t *)(r->marks.mark + words);
	r->level = (unsigned char *)(r->marks.before + words);
	r->bits = r->level + n;
	return 0;
}

/* Appends the body, for which there is room; c are the changes, at least one.
 * -1: it would be longer than the words. */
static int
put_given(struct out *o, struct changes *c, struct room *t, struct buf *out)
{
	unsigned char *p = out->p + out->n, head[HEAD];
	size_t h, len, k;
	uint32_t l;

	choose_levels(o->f, o->old, o->n, c);
	level_all(o->f, o->old, o->n, c->a, c->levels, t->level);
	o->bits = o->b.p = t->bits;
	o->w = range_put_start(p + HEAD);
	first_level(&o->m);
	for (l = 0; l < c->levels; l++) {
		if (l > 0)
			next_level(&o->m);
		t->marks.kern->marks(t->marks.mark, t->marks.before, t->level,
		    o->n, (unsigned char)l);
		if (put_level(o, &t->marks, c->at) < 0)
			return -1;
	}
	len = range_put_end(o->w);
	if (o->b.n > 0)
		*o->b.p++ = (unsigned char)o->b.v;
	h = bytes_set_varint(head, c->a);
	h += bytes_set_varint(head + h, c->levels);
	h += bytes_set_varint(head + h, len);
	memmove(p + h, p + HEAD, len);
	memcpy(p, head, h);
	k = (size_t)(o->b.p - t->bits);
	memcpy(p + h + len, t->bits, k);
	out->n += h + len + k;
	return 0;
}

/* A level of which words are marked; -1 where its changes are not right. */
static int
get_level(const struct form *f, struct model *m, const struct marks *t,
    const unsigned char *old, unsigned char *new, size_t n,
    struct range_get *from, struct bits *bits)
{
	const size_t all = t->before[marks_words(n)];
	struct range_get r = *from;	/* here, so that they stay in registers */
	struct bits b = *bits;
	size_t i = 0, next, p;
	uint64_t gap = 0;

	for (next = 0; next < all; next++) {
		gap = get_gap(m, &r, &b, all - next);
		if (gap >= all - next)
			break;
		next += (size_t)gap;
		while (t->before[i + 1] <= next)
			i++;
		p = 64 * i + bit_behind(t->mark[i],
		    (unsigned)(next - t->before[i]));
		set_word(new + p * f->size, f->size, get_move(f, m, &r, &b,
		    word(old + p * f->size, f->size)));
	}
	*from = r;
	*bits = b;
	return next < all && gap > all - next ? -1 : 0;
}

static int
get_levels(const struct form *f, const unsigned char *old, unsigned char *new,
    size_t n, struct room *t, uint32_t levels, struct range_get *r,
    struct bits *b)
{
	struct model m;
	uint32_t l;

	first_level(&m);
	for (l = 0; l < levels && r->at <= r->n + 16 && !b->bad; l++) {
		if (l > 0)
			next_level(&m);
		t->marks.kern->marks(t->marks.mark, t->marks.before, t->level, n,
		    (unsigned char)l);
		if (get_level(f, &m, &t->marks, old, new, n, r, b) < 0)
			return -1;
	}
	return l == levels ? 0 : -1;
}

static int
get_given(const struct form *f, const unsigned char *old, struct bytes *in,
    unsigned char *new, size_t n, struct err *e)
{
	uint64_t a = bytes_varint(in), levels = bytes_varint(in);
	uint64_t len = bytes_varint(in);
	struct bits b = { NULL, NULL, NULL, 0, 0, 0 };
	struct range_get r;
	struct room t;
	int bad;

	if (in->bad || len > in->n - in->at || levels == 0 ||
	    levels > LEVELS || a + levels > (uint64_t)1 << f->exponent)
		return codec_corrupt("exact", "bad levels", e);
	if ((bad = room_get(&t, f, n, 0, e)) < 0)
		return bad;
	level_all(f, old, n, (uint32_t)a, (uint32_t)levels, t.level);
	if (new != old)
		memcpy(new, old, n * f->size);
	r = range_get_start(bytes_take(in, (size_t)len), (size_t)len);
	b.end = in->p + in->n;
	b.q = in->p + in->at;
	bad = get_levels(f, old, new, n, &t, (uint32_t)levels, &r, &b) < 0 ||
	    range_get_end(r) != len || b.bad || b.q != b.end || b.v != 0;
	alloc_free(t.changed);
	in->at = in->n;
	return bad ? codec_corrupt("exact", "bad changes", e) : 0;
}

/* ---- whole ---- */

/* The words in planes, most significant byte first, the sign of a float below
 * the rest. */
static void
split(const struct form *f, const unsigned char *p, unsigned char *s, size_t n)
{
	unsigned j, bits = 8u * f->size;
	uint64_t v;
	size_t i;

	for (i = 0; i < n; i++) {
		v = word(p + i * f->size, f->size);
		if (f->exponent != 0)
			v = (v << 1 | v >> (bits - 1)) & all_bits(f);
		for (j = 0; j < f->size; j++)
			s[j * n + i] = (unsigned char)(v >> (bits - 8 - 8 * j));
	}
}

static void
join(const struct form *f, const unsigned char *s, unsigned char *p, size_t n)
{
	unsigned j, bits = 8u * f->size;
	uint64_t v;
	size_t i;

	for (i = 0; i < n; i++) {
		for (v = j = 0; j < f->size; j++)
			v = v << 8 | s[j * n + i];
		if (f->exponent != 0)
			v = v >> 1 | (v & 1) << (bits - 1);
		set_word(p + i * f->size, f->size, v);
	}
}

static int
put_whole(const struct form *f, const unsigned char *new, size_t n,
    struct buf *out, struct err *e)
{
	unsigned char *s = alloc_raw(n, f->size, e);

	if (s == NULL)
		return -ERR_SYS;
	split(f, new, s, n);
	out->n = (size_t)(planes_put(out->p + out->n, s, n, f->size) - out->p);
	alloc_free(s);
	return 0;
}

static int
get_whole(const struct form *f, struct bytes *in, unsigned char *new, size_t n,
    struct err *e)
{
	unsigned char *s = alloc_raw(n, f->size, e);
	int r;

	if (s == NULL)
		return -ERR_SYS;
	r = planes_get(in, s, n, f->size);
	if (r == 0 && !in->bad)
		join(f, s, new, n);
	alloc_free(s);
	return r < 0 || in->bad ? codec_corrupt("exact", "bad plane", e) : 0;
}

/* ---- a group ---- */

enum { SAME, GIVEN, TOO_LONG };

/* Given the old words, unless all are the same or it would take more than the words
 * do; says which. */
static int
put_changes(const struct form *f, const unsigned char *old,
    const unsigned char *new, size_t n, struct buf *out, struct err *e)
{
	struct changes c = { NULL, 0, 0, 0 };
	struct out o = { .f = f, .old = old, .new = new, .n = n };
	struct room t;
	int r = room_get(&t, f, n, n * f->size + SLACK, e);

	if (r < 0)
		return r;
	c.at = t.changed;
	find_changes(f->size, old, new, n, t.level, &t.marks, &c);
	if (c.n > 0)
		r = put_given(&o, &c, &t, out) == 0 ? GIVEN : TOO_LONG;
	alloc_free(t.changed);
	return r;
}

int
exact_put(unsigned form, const unsigned char *old, const unsigned char *new,
    size_t n, struct buf *out, uint8_t *param, struct err *e)
{
	const struct form *f = &forms[form];
	size_t start = out->n, given;
	int r, too_long;

	*param = (uint8_t)form;
	if (n == 0)
		return 0;
	if ((r = buf_room(out, exact_bound(form, n), e)) < 0)
		return r;
	if (old == NULL)
		return (r = put_whole(f, new, n, out, e)) < 0 ? r : 1;
	if ((r = put_changes(f, old, new, n, out, e)) <= SAME)
		return r;
	*param |= EXACT_GIVEN;
	given = out->n - start;
	too_long = r == TOO_LONG;
	if (!too_long && given <= n * f->size / SIXTEENTH)
		return 1;
	if ((r = buf_room(out, exact_bound(form, n), e)) < 0 ||
	    (r = put_whole(f, new, n, out, e)) < 0) {
		out->n = start;
		return r;
	}
	if (too_long || out->n - start - given < given) {
		memmove(out->p + start, out->p + start + given,
		    out->n - start - given);
		out->n -= given;
		*param = (uint8_t)form;
	} else
		out->n = start + given;
	return 1;
}

int
exact_get(uint8_t param, unsigned form, const unsigned char *old,
    const unsigned char *body, size_t len, unsigned char *new, size_t n,
    struct err *e)
{
	const struct form *f = &forms[form];
	struct bytes in = BYTES(body, len);
	int r;

	if ((param & ~EXACT_GIVEN) != (int)form)
		return err_set(e, ERR_DATA, "mismatch: bits of another type in a "
		    "group coded exact");
	if (n == 0)
		return len == 0 ? 0 : codec_corrupt("exact", "body too long", e);
	if ((param & EXACT_GIVEN) == 0)
		r = get_whole(f, &in, new, n, e);
	else if (old == NULL)
		return err_set(e, ERR_DATA, "mismatch: a group coded exact needs "
		    "the model before it");
	else
		r = get_given(f, old, &in, new, n, e);
	return r == 0 && in.at != in.n ? codec_corrupt("exact", "body too long",
	    e) : r;
}

/* ---- as a codec of f32 ---- */

static size_t
bound(const struct codec_plan *plan, size_t n)
{
	return exact_bound(EXACT_F32, n);
}

static int
encode(const struct codec_in *in, struct buf *out, uint8_t *param,
    struct err *e)
{
	unsigned char *p = alloc_raw(in->n, sizeof(*in->x), e);
	int r;

	if (p == NULL)
		return -ERR_SYS;
	bytes_put_f32(p, in->x, in->n);
	if (in->y != NULL)
		memcpy(in->y, in->x, in->n * sizeof(*in->y));
	r = exact_put(EXACT_F32, NULL, p, in->n, out, param, e);
	alloc_free(p);
	return r < 0 ? r : 0;
}

/* Whole groups of f32 only: nothing else can be f32 to everybody. */
static int
decode(const struct codec_out *o, struct bytes *b, struct err *e)
{
	unsigned char *p = alloc_raw(o->n, sizeof(*o->x), e);
	int r;

	if (p == NULL)
		return -ERR_SYS;
	r = exact_get(o->param, EXACT_F32, NULL, b->p, b->n, p, o->n, e);
	if (r == 0)
		bytes_get_f32(o->x, p, o->n);
	b->at = b->n;
	alloc_free(p);
	return r;
}

const struct codec_impl exact_codec = {
	.name = "exact", .bound = bound, .encode = encode, .decode = decode,
	.max_param = EXACT_GIVEN | (EXACT_NFORM - 1), .raw = 1, .dense = 1,
	.tells = 1
};
