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

/* The loop of level_all, for words of one size. */
#define LEVEL_ALL(load, bytes) \
	for (i = 0; i < n; i++) { \
		x = (uint32_t)(load(old + (bytes) * i) >> shift) & mask; \
		x = x > a ? x - a : 0; \
		level[i] = (unsigned char)(x < levels ? x : OUT); \
	}

#define LOAD8(p) (*(p))

/* level u8[n]: that of each old word: its exponent less a, none below 0. */
static void
level_all(const struct form *f, const unsigned char *restrict old, size_t n,
    uint32_t a, uint32_t levels, unsigned char *restrict level)
{
	uint32_t x, mask = (1u << f->exponent) - 1;
	unsigned shift = f->mantissa;
	size_t i;

	if (f->exponent == 0) {
		memset(level, 0, n);
		return;
	}
	switch (f->size) {
	case 1:
		LEVEL_ALL(LOAD8, 1)
		break;
	case 2:
		LEVEL_ALL(bytes_le16, 2)
		break;
	case 4:
		LEVEL_ALL(bytes_le32, 4)
		break;
	default:
		LEVEL_ALL(bytes_le64, 8)
	}
}

/* Sixteen bytes that are compared at once. */
typedef unsigned char bytes16 __attribute__((vector_size(16)));

static inline uint64_t
eight(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The sum of sixteen bytes of at most 127 each. */
static inline size_t
sum_of(bytes16 v)
{
	uint64_t half[2], s;

	memcpy(half, &v, sizeof(half));
	s = half[0] + half[1];
	s = (s & 0x00ff00ff00ff00ffu) + (s >> 8 & 0x00ff00ff00ff00ffu);
	return (size_t)(s * 0x0001000100010001u >> 48);
}

/* How often l stands in level[from..to). */
static size_t
count_of(const unsigned char *level, size_t from, size_t to, unsigned l)
{
	const bytes16 all = (bytes16){ 0 } + (unsigned char)l;
	bytes16 v, sum;
	size_t n = 0, k;

	while (to - from >= 16) {
		k = (to - from) / 16;
		k = k < 64 ? k : 64;
		for (sum = (bytes16){ 0 }; k-- > 0; from += 16) {
			memcpy(&v, level + from, sizeof(v));
			sum -= (bytes16)(v == all);
		}
		n += sum_of(sum);
	}
	for (; from < to; from++)
		n += level[from] == l;
	return n;
}

/* In each of the eight bytes of v that is 0, the highest bit; in the others 0. */
static inline uint64_t
zero_bytes(uint64_t v)
{
	const uint64_t low = 0x7f7f7f7f7f7f7f7fu;

	return ~(((v & low) + low) | v | low);
}

/* Where in level[from..n) the one behind `skip' others of level l stands; n when
 * there is none. */
static inline size_t
find_next(const unsigned char *level, size_t from, size_t n, unsigned l,
    size_t skip)
{
	const uint64_t all = 0x0101010101010101u * l;
	uint64_t v;
	size_t step, k;

	for (step = 1024; step >= 64 && skip >= 4; step /= 4)
		while (n - from >= step &&
		    (k = count_of(level, from, from + step, l)) <= skip) {
			skip -= k;
			from += step;
		}
	for (; n - from >= 8; from += 8, skip -= k) {
		v = zero_bytes(eight(level + from) ^ all);
		k = (size_t)((v >> 7) * 0x0101010101010101u >> 56);
		if (k > skip)
			break;
	}
	for (; from < n; from++)
		if (level[from] == l && skip-- == 0)
			break;
	return from;
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
	unsigned k = 0;

	while (m->count << (k + 1) <= m->sum)
		k++;
	return k;
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
static inline void
put_gap(struct model *m, struct range_put *w, struct bits *b, uint64_t gap,
    uint64_t rest)
{
	unsigned k = lower_bits(m), t, width = k;
	uint64_t base = 0;
	int more = 1;

	for (t = 0; (rest - base) >> width != 0; width = range_width(k, ++t)) {
		more = (gap - base) >> width != 0;
		range_put_bit(w, &m->gap[t < GAPS ? t : GAPS - 1], more);
		if (!more)
			break;
		base += (uint64_t)1 << width;
	}
	if (more) {
		range_put_bit(w, &m->end, gap == rest);
		if (gap == rest)
			return;
	}
	if (width > 0) {
		range_put_bit(w, &m->low,
		    (int)((gap - base) >> (width - 1) & 1));
		bits_set(b, gap - base, width - 1);
	}
	learn_gap(m, gap);
}

/* As put_gap; above rest: no such distance is written. */
static inline uint64_t
get_gap(struct model *m, struct range_get *r, struct bits *b, uint64_t rest)
{
	unsigned k = lower_bits(m), t, width = k;
	uint64_t base = 0, gap;
	int more = 1;

	for (t = 0; (rest - base) >> width != 0; width = range_width(k, ++t)) {
		more = range_get_bit(r, &m->gap[t < GAPS ? t : GAPS - 1]);
		if (!more)
			break;
		base += (uint64_t)1 << width;
	}
	if (more && range_get_bit(r, &m->end))
		return rest;
	gap = base;
	if (width > 0) {
		gap += (uint64_t)range_get_bit(r, &m->low) << (width - 1);
		gap += bits_take(b, width - 1);
	}
	learn_gap(m, gap);
	return gap < rest ? gap : UINT64_MAX;
}

/* From old to new, by a move of 1 to 2^(bits - 1). */
static inline void
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
		range_put_bit(w, &m->half, (int)(d >> (k - 1) & 1));
		bits_set(b, d, k - 1);
	}
}

static inline uint64_t
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
		d |= (uint64_t)range_get_bit(r, &m->half) << (k - 1);
		d |= bits_take(b, k - 1);
	}
	return at_place(f, (place(f, old) + (down ? 0 - d : d)) & all_bits(f));
}

/* ---- given the old words ---- */

/* The words that changed, and how many have which exponent. */
struct changes {
	uint32_t *at;		/* their places, by level once sorted */
	size_t n;
	uint32_t first[LEVELS + 1];	/* of each level, in at */
	uint32_t a, levels;
};

/* Places that differ, eight bytes at a time where nothing does. */
static size_t
find_changes(unsigned size, const unsigned char *old, const unsigned char *new,
    size_t n, uint32_t *at)
{
	size_t i = 0, k = 0, step = 8 / size, end;

	while (i < n) {
		if (n - i >= step && eight(old + i * size) ==
		    eight(new + i * size)) {
			i += step;
			continue;
		}
		end = n - i >= step ? i + step : n;
		for (; i < end; i++) {
			at[k] = (uint32_t)i;
			k += word(old + i * size, size) !=
			    word(new + i * size, size);
		}
	}
	return k;
}

/* Which exponents become levels: the first takes what is below it too, about one
 * in 64 of the changes, the last is the greatest that changed. */
static void
choose_levels(const struct form *f, const unsigned char *old, struct changes *c)
{
	uint32_t count[2048] = { 0 }, top = 0, low = 0, x;
	size_t i, sum;

	for (i = 0; i < c->n; i++) {
		x = exponent(f, word(old + (size_t)c->at[i] * f->size,
		    f->size));
		count[x]++;
		top = x > top ? x : top;
	}
	for (sum = count[0]; sum * 64 < c->n; sum += count[low])
		low++;
	c->a = top - low < LEVELS ? low : top - LEVELS + 1;
	c->levels = top - c->a + 1;
}

/* The places by level, in each rising. */
static void
sort_changes(const unsigned char *level, struct changes *c, uint32_t *to)
{
	uint32_t next[LEVELS] = { 0 };
	size_t i;
	uint32_t l, sum = 0;

	for (i = 0; i < c->n; i++)
		next[level[c->at[i]]]++;
	for (l = 0; l < c->levels; l++) {
		c->first[l] = sum;
		sum += next[l];
		next[l] = c->first[l];
	}
	c->first[c->levels] = sum;
	for (i = 0; i < c->n; i++)
		to[next[level[c->at[i]]]++] = c->at[i];
}

/* Where a group is written. */
struct out {
	const struct form *f;
	struct model m;
	struct range_put w;
	struct bits b;
	unsigned char *level;		/* u8[n], of the old words */
	const unsigned char *bits;	/* where b begins */
	const unsigned char *old, *new;
	size_t n;
};

/* Level l, of which the words at[k] changed.  -1: it takes more than they do. */
static int
put_level(struct out *o, unsigned l, const uint32_t *at, size_t k)
{
	const unsigned size = o->f->size;
	const unsigned char *most = o->w.start + o->n * size;
	const unsigned char *most_bits = o->bits + o->n * size;
	uint64_t rest = count_of(o->level, 0, o->n, l), gap;
	size_t i, from = 0, p;

	for (i = 0; i < k; i++) {
		if (o->w.p > most || o->b.p > most_bits)
			return -1;
		p = at[i];
		gap = count_of(o->level, from, p, l);
		put_gap(&o->m, &o->w, &o->b, gap, rest);
		put_move(o->f, &o->m, &o->w, &o->b, word(o->old + p * size,
		    size), word(o->new + p * size, size));
		rest -= gap + 1;
		from = p + 1;
	}
	if (rest > 0)
		put_gap(&o->m, &o->w, &o->b, rest, rest);
	return 0;
}

/* Where things are while a group is coded. */
struct room {
	uint32_t *at, *sorted;	/* [n + 8] each */
	unsigned char *level;	/* [n] */
	unsigned char *bits;	/* [n * size + SLACK] */
};

static int
room_get(struct room *r, const struct form *f, size_t n, struct err *e)
{
	size_t places = n + 8;

	r->at = alloc_raw(2 * places * sizeof(*r->at) + n + n * f->size + SLACK,
	    1, e);
	if (r->at == NULL)
		return -ERR_SYS;
	r->sorted = r->at + places;
	r->level = (unsigned char *)(r->sorted + places);
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

	choose_levels(o->f, o->old, c);
	level_all(o->f, o->old, o->n, c->a, c->levels, t->level);
	sort_changes(t->level, c, t->sorted);
	o->level = t->level;
	o->bits = o->b.p = t->bits;
	o->w = range_put_start(p + HEAD);
	first_level(&o->m);
	for (l = 0; l < c->levels; l++) {
		if (l > 0)
			next_level(&o->m);
		if (put_level(o, l, t->sorted + c->first[l],
		    c->first[l + 1] - c->first[l]) < 0)
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

static int
get_levels(const struct form *f, const unsigned char *old, unsigned char *new,
    size_t n, const unsigned char *level, uint32_t levels, struct range_get *r,
    struct bits *b)
{
	struct model m;
	uint64_t rest, gap;
	uint32_t l;
	size_t p, i;

	first_level(&m);
	for (l = 0; l < levels && r->at <= r->n + 16 && !b->bad; l++) {
		if (l > 0)
			next_level(&m);
		rest = count_of(level, 0, n, l);
		for (p = 0; rest > 0; rest -= gap + 1, p = i + 1) {
			gap = get_gap(&m, r, b, rest);
			if (gap >= rest)
				break;
			i = find_next(level, p, n, l, (size_t)gap);
			set_word(new + i * f->size, f->size, get_move(f, &m, r,
			    b, word(old + i * f->size, f->size)));
		}
		if (rest > 0 && gap > rest)
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
	unsigned char *level;
	int bad;

	if (in->bad || len > in->n - in->at || levels == 0 ||
	    levels > LEVELS || a + levels > (uint64_t)1 << f->exponent)
		return codec_corrupt("exact", "bad levels", e);
	if ((level = alloc_raw(n, 1, e)) == NULL)
		return -ERR_SYS;
	level_all(f, old, n, (uint32_t)a, (uint32_t)levels, level);
	if (new != old)
		memcpy(new, old, n * f->size);
	r = range_get_start(bytes_take(in, (size_t)len), (size_t)len);
	b.end = in->p + in->n;
	b.q = in->p + in->at;
	bad = get_levels(f, old, new, n, level, (uint32_t)levels, &r, &b) < 0 ||
	    range_get_end(r) != len || b.bad || b.q != b.end || b.v != 0;
	alloc_free(level);
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
	struct changes c = { NULL, 0, { 0 }, 0, 0 };
	struct out o = { .f = f, .old = old, .new = new, .n = n };
	struct room t;
	int r = room_get(&t, f, n, e);

	if (r < 0)
		return r;
	c.at = t.at;
	if ((c.n = find_changes(f->size, old, new, n, c.at)) > 0)
		r = put_given(&o, &c, &t, out) == 0 ? GIVEN : TOO_LONG;
	alloc_free(t.at);
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
