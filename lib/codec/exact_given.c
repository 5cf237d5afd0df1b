/* EXACT given the old words: see exact.h and exact.c. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec_impl.h"
#include "codec/exact_given.h"
#include "codec/exact_word.h"
#include "codec/range.h"
#include "kern/kern.h"

enum {
	LEVELS = 254,		/* at most */
	OUT = 255,		/* in level[]: above all levels, unchanged */
	GAPS = 4,		/* decisions in the upper part of a distance */
	EQUAL = 16,		/* ranges of a distance of equal width */
	CLASSES = 64,		/* classes of moves, by bit length */
	LIKELY = 2,		/* uses that prior knowledge counts for */
	/* uses of a decision that carry over to the next level */
	KEPT = 8,
	MEAN = 4,		/* distances that a mean counts for at the next level */
	MEAN_MOST = 64,		/* most distances that a mean counts for */
	CLOSE = 3,		/* bits of a close distance */
	SLACK = 1024,		/* room for WAIT decisions and the bits of a change */
	WAIT = 512,		/* most decisions that wait to be coded */
	CHANGE = 130,		/* more than the decisions of a change */
	QUICK = 7,		/* most repeats of a decision in the lookup table */
	AHEAD = 12,		/* changes prefetched ahead */
	MOVES = 32,		/* that wait for their words */
	LIST = 1024,		/* changes listed per call */
	LISTED = LIST + 64 + 4
};

/* The kinds of decisions. */
enum {
	GAP,			/* upper part: the n-th "one more?" */
	LOW = GAP + GAPS,	/* highest bit of the lower part */
	END,			/* no more of this level? */
	GROWS,			/* away from 0? */
	HALF,			/* second highest bit of a move */
	NEAR,			/* close after a change that was not close, that was? */
	CLASS = NEAR + 2,	/* the move takes more bits? */
	KINDS = CLASS + CLASSES
};

/* Model of one level. */
struct model {
	struct range_bit of[KINDS];
	uint64_t sum, count;		/* of distances: their mean is 2^m */
	unsigned near;			/* the last one was close */
};

/* Uncoded bits; they fill bytes from the least significant one. */
struct bits {
	unsigned char *p;	/* writing */
	const unsigned char *q, *end;	/* reading: backwards, down to end */
	uint64_t v;
	unsigned n;
	int bad;
};

size_t
exact_given_bound(const struct form *f, size_t n)
{
	/* coding stops when one of its two parts is longer than the words */
	return 2 * (n * f->size) + SLACK;
}

/* ---- levels ---- */

/* The exponents of all words of one type. Constants let compilers vectorise the loop;
 * each exponent fits a byte. */
#define EXPONENTS(load, bytes, shift, mask) \
	for (i = 0; i < n; i++) \
		level[i] = (unsigned char)(load(old + (bytes) * i) >> (shift) & \
		    (mask)); \
	break;

#define LOAD8(p) (*(p))

/* Set level u8[n] of each old word: its exponent - a, at least 0. */
static void
level_all(const struct form *f, const unsigned char *restrict old, size_t n,
    uint32_t a, uint32_t levels, unsigned char *restrict level)
{
	const unsigned char low = (unsigned char)a, most = (unsigned char)levels;
	unsigned char x;
	uint32_t l;
	size_t i;

	switch (f->mantissa) {
	case 0:
		memset(level, 0, n);
		return;
	case 2:
		EXPONENTS(LOAD8, 1, 2, 31)
	case 3:
		EXPONENTS(LOAD8, 1, 3, 15)
	case 7:
		EXPONENTS(bytes_le16, 2, 7, 255)
	case 10:
		EXPONENTS(bytes_le16, 2, 10, 31)
	case 23:
		EXPONENTS(bytes_le32, 4, 23, 255)
	default:
		for (i = 0; i < n; i++) {
			l = exponent(f, bytes_le64(old + 8 * i));
			l = l > a ? l - a : 0;
			level[i] = (unsigned char)(l < levels ? l : OUT);
		}
		return;
	}
	for (i = 0; i < n; i++) {
		x = level[i] > low ? (unsigned char)(level[i] - low) : 0;
		level[i] = x < most ? x : OUT;
	}
}

/* Words of one level, as `marks' of kern.h returns them. */
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

/* Return in each byte the number of 1 bits in that byte of m and all lower ones. */
static inline uint64_t
counts(uint64_t m)
{
	m -= m >> 1 & 0x5555555555555555u;
	m = (m & 0x3333333333333333u) + (m >> 2 & 0x3333333333333333u);
	m = (m + (m >> 4)) & 0x0f0f0f0f0f0f0f0fu;
	return m * 0x0101010101010101u;
}

/* Return the index of the 1 bit of m that has k 1 bits below it; it exists. */
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

/* Start the model. mean: of the distances, as a power of 2; UINT_MAX: unknown. */
static void
first_level(struct model *m, const struct form *f, unsigned mean)
{
	size_t i;

	range_start(m->of, KINDS);
	/* half of the distances exceed their mean if the model knows nothing */
	for (i = GAP; i < GAP + GAPS; i++)
		m->of[i].n = LIKELY;
	/* weights move by one step; words of many bits by many */
	for (i = CLASS; i < KINDS; i++)
		m->of[i].p = f->exponent != 0 && f->size > 2 ? 7 << 13 : 1 << 13;
	m->sum = mean == UINT_MAX ? 2 * MEAN : (uint64_t)(3 * MEAN / 2) << mean;
	m->count = MEAN;
	m->near = 0;
}

static void
keep(struct range_bit *b, size_t n)
{
	for (; n > 0; n--, b++)
		b->n = b->n < KEPT ? b->n : KEPT;
}

/* Start the next level: half as many values change, by half as many steps. */
static void
next_level(struct model *m)
{
	keep(&m->of[GAP], GAPS);
	keep(&m->of[LOW], 1);
	keep(&m->of[CLASS], CLASSES);
	memmove(&m->of[CLASS], &m->of[CLASS + 1],
	    (CLASSES - 1) * sizeof(*m->of));
	m->sum = 2 * MEAN * m->sum / m->count;
	if (m->sum > SUM_MOST)
		m->sum = SUM_MOST;	/* after many levels without a change */
	m->count = MEAN;
}

/* Return the largest power of 2 that does not exceed the mean distance. */
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

/* Write the n low bits of v. Stores up to eight bytes beyond the position. */
static inline void
bits_set(struct bits *b, uint64_t v, unsigned n)
{
	unsigned k;

	do {
		k = n < 56 ? n : 56;
		b->v |= (v & (((uint64_t)1 << k) - 1)) << b->n;
		b->n += k;
		bytes_set64(b->p, b->v);
		b->p += b->n / 8;
		b->v >>= b->n / 8 * 8;
		b->n %= 8;
		v >>= k;
		n -= k;
	} while (n > 0);
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
			b->v |= (uint64_t)(b->q > b->end ? *--b->q : 0) << b->n;
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

/* Return the width, as a power of 2, of the t-th range of distances: the first ones are
 * as wide as the mean, then each is twice as wide as the one before. */
static inline unsigned
range_width(unsigned k, unsigned t)
{
	return t < EQUAL ? k : k + t - EQUAL + 1;
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
	/* decisions not yet coded: their number; each is twice the kind plus the bit */
	size_t waits;
	unsigned char wait[WAIT];
};

/* t decisions for 1, then one for 0: of kinds from GAP on, the last of which repeats;
 * and of kinds from CLASS on. */
#define DECISION(kind, bit) (2 * (uint64_t)(kind) + (uint64_t)(bit))
#define UPTO(of, t) ( \
	((t) > 0 ? DECISION(of(0), 1) : DECISION(of(0), 0)) | \
	((t) > 1 ? DECISION(of(1), 1) : DECISION(of(1), 0)) << 8 | \
	((t) > 2 ? DECISION(of(2), 1) : DECISION(of(2), 0)) << 16 | \
	((t) > 3 ? DECISION(of(3), 1) : DECISION(of(3), 0)) << 24 | \
	((t) > 4 ? DECISION(of(4), 1) : DECISION(of(4), 0)) << 32 | \
	((t) > 5 ? DECISION(of(5), 1) : DECISION(of(5), 0)) << 40 | \
	((t) > 6 ? DECISION(of(6), 1) : DECISION(of(6), 0)) << 48 | \
	DECISION(of(7), 0) << 56)
#define ALL_UPTO(of) { UPTO(of, 0), UPTO(of, 1), UPTO(of, 2), UPTO(of, 3), \
	UPTO(of, 4), UPTO(of, 5), UPTO(of, 6), UPTO(of, 7) }
#define GAP_KIND(t) (GAP + ((t) < GAPS ? (unsigned)(t) : GAPS - 1u))
#define CLASS_KIND(t) (CLASS + (t))
static const uint64_t gap_upto[QUICK + 1] = ALL_UPTO(GAP_KIND);
static const uint64_t class_upto[QUICK + 1] = ALL_UPTO(CLASS_KIND);

static inline void
decide(struct out *o, unsigned kind, int bit)
{
	o->wait[o->waits++] = (unsigned char)DECISION(kind, bit);
}

/* Code the waiting decisions without branches. Each depends on the one before it. */
static void
code_waiting(struct out *o)
{
	struct range_put w = o->w;	/* local, so that it stays in registers */
	const size_t n = o->waits;
	size_t i;

	for (i = 0; i < n; i++)
		range_put_even(&w, &o->m.of[o->wait[i] >> 1], o->wait[i] & 1);
	o->w = w;
	o->waits = 0;
}

/* Write the upper part of any gap. Return its base and set *width to its width. gap ==
 * rest: there is no further change, and *width is 0. */
static uint64_t
put_upper(struct out *o, unsigned k, uint64_t gap, uint64_t rest,
    unsigned *width)
{
	uint64_t base = 0;
	unsigned t;

	for (t = 0, *width = k;; *width = range_width(k, ++t)) {
		if ((rest - base) >> *width == 0) {
			decide(o, END, gap == rest);
			*width = gap == rest ? 0 : *width;
			return base;
		}
		if ((gap - base) >> *width == 0) {
			decide(o, GAP_KIND(t), 0);
			return base;
		}
		decide(o, GAP_KIND(t), 1);
		base += (uint64_t)1 << *width;
	}
}

/* Return whether a distance may be coded as close: without levels, if most are not.
 * Values that share a scale change together. */
static inline int
may_be_near(const struct form *f, unsigned k)
{
	return f->exponent == 0 && k > CLOSE;
}

/* Write the gap before the next change among the remaining `rest' values of the level;
 * gap == rest: there is no further change. */
static inline void
put_gap(struct out *o, struct bits *b, uint64_t gap, uint64_t rest)
{
	unsigned k = lower_bits(&o->m), width = k, was = o->m.near;
	uint64_t t, base;

	if (may_be_near(o->f, k)) {
		o->m.near = gap < 1 << CLOSE && gap < rest;
		decide(o, NEAR + was, (int)o->m.near);
		if (o->m.near) {
			bits_set(b, gap, CLOSE);
			return;
		}
		if (rest <= 1 << CLOSE)
			return;
	}
	if (gap < rest)
		learn_gap(&o->m, gap);
	if (may_be_near(o->f, k)) {
		gap -= 1 << CLOSE;
		rest -= 1 << CLOSE;
	}
	t = gap >> k;
	base = t << k;
	if (t <= QUICK && rest >> k > t) {
		bytes_set64(o->wait + o->waits, gap_upto[t]);
		o->waits += t + 1;
	} else
		base = put_upper(o, k, gap, rest, &width);
	gap -= base;
	/* a width of 0 adds nothing */
	o->wait[o->waits] = (unsigned char)DECISION(LOW, gap << 1 >> width & 1);
	o->waits += width > 0;
	bits_set(b, gap, width - (width > 0));
}

/* Write the move from old to new, of 1 to 2^(bits - 1) steps. */
static inline void
put_move(struct out *o, struct bits *b, uint64_t old, uint64_t new)
{
	const struct form *f = o->f;
	uint64_t d = (place(f, new) - place(f, old)) & all_bits(f);
	int down = (d & sign_bit(f)) != 0;
	unsigned k, t;

	d = down ? (0 - d) & all_bits(f) : d;
	decide(o, GROWS, down == negative(f, old));
	k = 63 - (unsigned)__builtin_clzll(d);
	if (k < QUICK && k < f->bits - 1u) {
		bytes_set64(o->wait + o->waits, class_upto[k]);
		o->waits += k + 1;
	} else {
		for (t = 0; t < k; t++)
			decide(o, CLASS + t, 1);
		if (k < f->bits - 1u)
			decide(o, CLASS + k, 0);
	}
	o->wait[o->waits] = (unsigned char)DECISION(HALF, d << 1 >> k & 1);
	o->waits += k > 0;
	bits_set(b, d, k - (k > 0));
}

/* Read what put_gap wrote; a result above rest is invalid. */
RANGE_INLINE uint64_t
get_gap(const struct form *f, struct model *m, struct range_get *r,
    struct bits *b, uint64_t rest)
{
	unsigned k = lower_bits(m), t, width = k;
	uint64_t base = 0, gap, far = 0;

	if (may_be_near(f, k)) {
		m->near = (unsigned)range_get_bit(r, &m->of[NEAR + m->near]);
		if (m->near) {
			gap = bits_take(b, CLOSE);
			return gap < rest ? gap : UINT64_MAX;
		}
		if (rest <= 1 << CLOSE)
			return rest;
		far = 1 << CLOSE;
		rest -= far;
	}
	for (t = 0;; width = range_width(k, ++t)) {
		if ((rest - base) >> width == 0) {
			if (range_get_bit(r, &m->of[END]))
				return rest + far;
			break;
		}
		if (!range_get_bit(r, &m->of[GAP_KIND(t)]))
			break;
		base += (uint64_t)1 << width;
	}
	gap = base;
	if (width > 0) {
		gap += (uint64_t)range_get_even(r, &m->of[LOW]) << (width - 1);
		gap += bits_take(b, width - 1);
	}
	learn_gap(m, gap + far);
	return gap < rest ? gap + far : UINT64_MAX;
}

/* A position and its move. */
struct move {
	size_t at;
	int grows;
	uint64_t by;
};

RANGE_INLINE void
get_move(const struct form *f, struct model *m, struct range_get *r,
    struct bits *b, struct move *v)
{
	unsigned k = 0;
	uint64_t d;

	v->grows = range_get_even(r, &m->of[GROWS]);
	while (k < f->bits - 1u && range_get_bit(r, &m->of[CLASS + k]))
		k++;
	d = (uint64_t)1 << k;
	if (k > 0) {
		d |= (uint64_t)range_get_even(r, &m->of[HALF]) << (k - 1);
		d |= bits_take(b, k - 1);
	}
	v->by = d;
}

/* Apply n moves to p. */
static void
move_all(const struct form *f, unsigned char *p, const struct move *v, size_t n)
{
	uint64_t old, d;
	size_t i;

	for (i = 0; i < n; i++) {
		old = word(p + v[i].at * f->size, f->size);
		d = v[i].grows == negative(f, old) ? 0 - v[i].by : v[i].by;
		set_word(p + v[i].at * f->size, f->size,
		    at_place(f, (place(f, old) + d) & all_bits(f)));
	}
}

/* ---- given the old words ---- */

/* The changed words and their levels. */
struct changes {
	uint64_t *at;		/* u64[(n + 63) / 64], one bit per word */
	size_t n;		/* how many */
	uint32_t a, levels;
	uint32_t *list;		/* [n], by levels */
	uint32_t end[LEVELS];	/* of each level there */
};

/* The loop of find_changes for words of one size. */
#define DIFFER_ALL(load, bytes) \
	for (i = 0; i < n; i++) \
		differs[i] = load(old + (bytes) * i) != load(new + (bytes) * i);

/* Mark the changed words, through one byte per word. */
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

/* List the next LIST changes, or a few more, from word *at of marks on. Taking four per
 * iteration makes the loop's end test rarer. */
static size_t
list_changes(const uint64_t *mark, size_t words, size_t *at,
    uint32_t list[LISTED])
{
	const uint64_t last = (uint64_t)1 << 63;
	size_t n, k;
	uint32_t *to;
	uint64_t m;
	int j;

	for (n = 0; *at < words && n < LIST; n += k, ++*at) {
		m = mark[*at];
		k = counts(m) >> 56;
		for (to = list + n; m != 0; to += 4)
			for (j = 0; j < 4; j++, m &= m - 1)
				to[j] = (uint32_t)*at * 64 +
				    (uint32_t)__builtin_ctzll(m | last);
	}
	return n;
}

/* Choose which exponents are levels. The first also takes all smaller ones, about one
 * in 64 of the changes; the last is the greatest that changed. count: changes per
 * exponent. */
static void
choose_levels(const uint32_t *count, struct changes *c)
{
	uint32_t top, low = 0;
	size_t sum;

	for (top = 2047; count[top] == 0; top--)
		;
	for (sum = count[0]; sum * 64 < c->n; sum += count[low])
		low++;
	c->a = top - low < LEVELS ? low : top - LEVELS + 1;
	c->levels = top - c->a + 1;
}

/* Sort the changes by level into c->list; c->end has the end of each level. */
static void
sort_changes(const struct form *f, const unsigned char *old, size_t n,
    struct changes *c)
{
	uint32_t count[2048] = { 0 }, next[LEVELS], list[LISTED];
	const size_t words = marks_words(n);
	uint32_t l, sum = 0, x;
	size_t i, k, got;

	for (i = 0; i < words;)
		for (got = list_changes(c->at, words, &i, list), k = 0; k < got;
		    k++)
			count[exponent(f, word(old + (size_t)list[k] * f->size,
			    f->size))]++;
	choose_levels(count, c);
	for (x = l = 0; l < c->levels; l++) {
		next[l] = sum;
		for (; x <= c->a + l; x++)
			sum += count[x];
		c->end[l] = sum;
	}
	for (i = 0; i < words;)
		for (got = list_changes(c->at, words, &i, list), k = 0; k < got;
		    k++) {
			x = exponent(f, word(old + (size_t)list[k] * f->size,
			    f->size));
			c->list[next[x > c->a ? x - c->a : 0]++] = list[k];
		}
}

/* Write a level, whose words are marked and whose changes are list[0..k). Return -1 if
 * it takes more bytes than the words. */
static int
put_level(struct out *o, const struct marks *t, const uint32_t *list, size_t k)
{
	const unsigned size = o->f->size;
	const unsigned char *most = o->w.start + o->n * size;
	const unsigned char *most_bits = o->bits + o->n * size;
	const size_t all = t->before[marks_words(o->n)];
	struct bits b = o->b;	/* local, so that it stays in registers */
	size_t i, p, next = 0, is;

	for (i = 0; i < k; i++) {
		/* before the last one too, to learn whether it is too long */
		if (o->waits > WAIT - 2 * CHANGE || i + 1 == k)
			code_waiting(o);
		if (o->w.p > most || b.p > most_bits)
			return -1;
		/* words of a level are too far apart for the hardware prefetcher */
		p = list[i + AHEAD < k ? i + AHEAD : i];
		__builtin_prefetch(o->old + p * size);
		__builtin_prefetch(o->new + p * size);
		p = list[i];
		is = t->before[p / 64] + (counts(t->mark[p / 64] &
		    (((uint64_t)1 << p % 64) - 1)) >> 56);
		put_gap(o, &b, is - next, all - next);
		put_move(o, &b, word(o->old + p * size, size),
		    word(o->new + p * size, size));
		next = is + 1;
	}
	if (next < all)
		put_gap(o, &b, all - next, all - next);
	code_waiting(o);
	o->b = b;
	return 0;
}

/* Return the bits of a number of levels, less one. */
static inline unsigned
levels_bits(const struct form *f)
{
	return f->exponent < 8 ? f->exponent : 8;
}

static inline unsigned
log2_of(size_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

/* Return the bits of the mean distance of n words, as a power of 2. */
static inline unsigned
mean_bits(size_t n)
{
	return n > 1 ? 1 + log2_of(log2_of(n)) : 0;
}

/* Memory for coding one group. */
struct room {
	uint64_t *changed;	/* [(n + 63) / 64] */
	struct marks marks;
	unsigned char *level;	/* [n] */
	/* when written: */
	uint32_t *list;		/* [n] */
	unsigned char *bits;	/* [n * size + SLACK] */
};

static int
room_get(struct room *r, const struct form *f, size_t n, int put,
    struct err *e)
{
	size_t words = marks_words(n) + 1;
	size_t more = put ? n * 4 + n * f->size + SLACK : 0;

	if ((r->marks.kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	r->changed = alloc_raw(words * (8 + 8 + 4) + n + more, 1, e);
	if (r->changed == NULL)
		return -ERR_SYS;
	r->marks.mark = r->changed + words;
	r->marks.before = (uint32_t *)(r->marks.mark + words);
	r->list = r->marks.before + words;
	r->level = (unsigned char *)(r->list + (put ? n : 0));
	r->bits = r->level + n;
	return 0;
}

/* Append the body, for which there is room, of at least one change. Return -1 if it
 * would be longer than the words. */
static int
put_given(struct out *o, struct changes *c, struct room *t, struct buf *out)
{
	const struct form *f = o->f;
	unsigned mean = UINT_MAX;
	uint32_t l, at;
	size_t len;

	sort_changes(f, o->old, o->n, c);
	level_all(f, o->old, o->n, c->a, c->levels, t->level);
	o->bits = o->b.p = t->bits;
	bits_set(&o->b, c->a, f->exponent);
	bits_set(&o->b, c->levels - 1, levels_bits(f));
	if (c->levels == 1) {
		mean = log2_of(o->n / c->n);
		bits_set(&o->b, mean, mean_bits(o->n));
	}
	o->w = range_put_start(out->p + out->n);
	o->waits = 0;
	first_level(&o->m, f, mean);
	for (l = at = 0; l < c->levels; at = c->end[l++]) {
		if (l > 0)
			next_level(&o->m);
		t->marks.kern->marks(t->marks.mark, t->marks.before, t->level,
		    o->n, (unsigned char)l);
		if (put_level(o, &t->marks, c->list + at, c->end[l] - at) < 0)
			return -1;
	}
	len = range_put_end(o->w);
	if (o->b.n > 0)
		*o->b.p++ = (unsigned char)o->b.v;
	for (out->n += len; o->b.p > t->bits;)
		out->p[out->n++] = *--o->b.p;
	return 0;
}

/* Read a level into p, which holds the old words. Return -1 if its changes are
 * invalid. */
static int
get_level(const struct form *f, struct model *m, const struct marks *t,
    unsigned char *p, size_t n, struct range_get *from, struct bits *bits)
{
	const size_t all = t->before[marks_words(n)];
	struct range_get r = *from;	/* local, so that it stays in registers */
	struct bits b = *bits;
	/* moves wait until their words are in the cache */
	struct move v[MOVES];
	size_t i = 0, k = 0, next;
	uint64_t gap = 0;

	for (next = 0; next < all; next++) {
		gap = get_gap(f, m, &r, &b, all - next);
		if (gap >= all - next)
			break;
		next += (size_t)gap;
		while (t->before[i + 1] <= next)
			i++;
		v[k].at = 64 * i + bit_behind(t->mark[i],
		    (unsigned)(next - t->before[i]));
		__builtin_prefetch(p + v[k].at * f->size, 1);
		get_move(f, m, &r, &b, &v[k]);
		if (++k == MOVES) {
			move_all(f, p, v, k);
			k = 0;
		}
	}
	move_all(f, p, v, k);
	*from = r;
	*bits = b;
	return next < all && gap > all - next ? -1 : 0;
}

static int
get_levels(const struct form *f, unsigned char *p, size_t n, struct room *t,
    uint32_t levels, unsigned mean, struct range_get *r, struct bits *b)
{
	struct model m;
	uint32_t l;

	first_level(&m, f, mean);
	for (l = 0; l < levels && r->at <= r->n + 16 && !b->bad; l++) {
		if (l > 0)
			next_level(&m);
		t->marks.kern->marks(t->marks.mark, t->marks.before, t->level, n,
		    (unsigned char)l);
		if (get_level(f, &m, &t->marks, p, n, r, b) < 0)
			return -1;
	}
	return l == levels ? 0 : -1;
}

int
exact_given_get(const struct form *f, const unsigned char *old, struct bytes *in,
    unsigned char *new, size_t n, struct err *e)
{
	const unsigned char *body = in->p + in->at;
	const size_t len = in->n - in->at;
	struct bits b = { .q = body + len, .end = body };
	uint32_t a = (uint32_t)bits_take(&b, f->exponent);
	uint32_t levels = 1 + (uint32_t)bits_take(&b, levels_bits(f));
	unsigned mean = levels > 1 ? UINT_MAX :
	    (unsigned)bits_take(&b, mean_bits(n));
	struct range_get r;
	struct room t;
	int bad;

	in->at = in->n;
	if (levels > LEVELS || a + levels > (uint32_t)1 << f->exponent)
		return codec_corrupt("exact", "bad levels", e);
	if ((bad = room_get(&t, f, n, 0, e)) < 0)
		return bad;
	level_all(f, old, n, a, levels, t.level);
	if (new != old)
		memcpy(new, old, n * f->size);
	r = range_get_start(body, len);
	bad = get_levels(f, new, n, &t, levels, mean, &r, &b) < 0 ||
	    range_get_end(r) != (size_t)(b.q - body) || b.v != 0;
	alloc_free(t.changed);
	return bad ? codec_corrupt("exact", "bad changes", e) : 0;
}

int
exact_given_put(const struct form *f, const unsigned char *old,
    const unsigned char *new, size_t n, struct buf *out, int *too_long,
    struct err *e)
{
	struct changes c = { 0 };
	struct out o = { .f = f, .old = old, .new = new, .n = n };
	struct room t;
	int r = room_get(&t, f, n, 1, e);

	if (r < 0)
		return r;
	c.at = t.changed;
	c.list = t.list;
	find_changes(f->size, old, new, n, t.level, &t.marks, &c);
	*too_long = c.n > 0 && put_given(&o, &c, &t, out) < 0;
	alloc_free(t.changed);
	return (int)c.n;
}
