/* Code the words of EXACT given the old words; see exact.h and exact.c. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "codec/codec.h"
#include "codec/codec_impl.h"
#include "codec/exact_bits.h"
#include "codec/exact_given.h"
#include "codec/exact_word.h"
#include "codec/rans.h"
#include "codec/subset.h"
#include "kern/kern.h"

enum {
	LEVELS = 254,		/* largest number of levels */
	OUT = 255,		/* in level[]: the word has no level */
	SLACK = 1024,		/* each part of a body has room for the words and these bytes */
	AHEAD = 12,		/* how many changes ahead are prefetched */
	BLOCK_BITS = 4,		/* width in bits of the block size's logarithm */
	WORTH = 64		/* bits that leaving out blocks must save */
};

size_t
exact_given_bound(const struct form *f, size_t n)
{
	/* put_given fails before one of the two parts takes more than half of this */
	return 2 * (n * f->size + SLACK);
}

/* Call with a constant word size, for which compilers produce faster code. */
#define BY_SIZE(g, call) \
	switch (g.size) { \
	case 1: g.size = 1; call; break; \
	case 2: g.size = 2; call; break; \
	case 4: g.size = 4; call; break; \
	default: g.size = 8; call; \
	}

/* A case for words with this many mantissa bits. Constants let compilers vectorise the
 * loop; each exponent fits into a byte. */
#define LEVEL_ALL(mantissa, load, bytes, mask) \
	case mantissa: \
		for (i = 0; i < n; i++) { \
			x = (unsigned char)(load(old + (bytes) * i) >> (mantissa) & (mask)); \
			x = x > low ? (unsigned char)(x - low) : 0; \
			level[i] = x < most ? x : OUT; \
		} \
		break;

#define LOAD8(p) (*(p))

/* Set level u8[n] to the level of each old word: its exponent - a, or 0 if that is
 * negative; OUT if the result is not below `levels'. */
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
		break;
	LEVEL_ALL(2, LOAD8, 1, 31)
	LEVEL_ALL(3, LOAD8, 1, 15)
	LEVEL_ALL(7, bytes_le16, 2, 255)
	LEVEL_ALL(10, bytes_le16, 2, 31)
	LEVEL_ALL(23, bytes_le32, 4, 255)
	default:
		for (i = 0; i < n; i++) {
			l = exponent(f, bytes_le64(old + 8 * i));
			l = l > a ? l - a : 0;
			level[i] = (unsigned char)(l < levels ? l : OUT);
		}
	}
}

/* A group that is being written. */
struct out {
	const struct form *f;
	const unsigned char *old, *new;
	size_t n, c;		/* words; changed words */
	struct subset_put s;
	uint32_t a, levels;	/* a: exponent of level 0; levels: number of levels */
	uint32_t end[LEVELS];	/* [levels] where a level's changes end in the sorted list */
};

/* Set differs[n] to 1 for each word that changes, else to 0. */
static inline __attribute__((always_inline)) void
differ(const struct form *f, const unsigned char *restrict old,
    const unsigned char *restrict new, size_t n, unsigned char *restrict differs)
{
	size_t i;

	for (i = 0; i < n; i++)
		differs[i] = word(old + i * f->size, f->size) !=
		    word(new + i * f->size, f->size);
}

/* Choose which exponents are levels. The first level also takes all smaller exponents,
 * and has at least 1/64 of all changes; the last is the greatest exponent of an old word
 * that changes. count: changes per exponent. */
static void
choose_levels(const uint32_t *count, struct out *o)
{
	uint32_t top, low = 0;
	size_t sum;

	for (top = 2047; count[top] == 0; top--)
		;
	for (sum = count[0]; sum * 64 < o->c; sum += count[low])
		low++;
	o->a = top - low < LEVELS ? low : top - LEVELS + 1;
	o->levels = top - o->a + 1;
}

/* Choose the levels, set the level of each word, and sort the listed changes by level
 * into sorted; o->end has the end of each level. */
static void
sort_changes(struct out *o, const uint32_t *list, unsigned char *level, uint32_t *sorted)
{
	uint32_t count[2048] = { 0 }, next[LEVELS], l, sum = 0, x;
	const unsigned size = o->f->size;
	size_t i;

	for (i = 0; i < o->c; i++)
		count[exponent(o->f, word(o->old + (size_t)list[i] * size, size))]++;
	choose_levels(count, o);
	for (x = l = 0; l < o->levels; l++) {
		next[l] = sum;
		for (; x <= o->a + l; x++)
			sum += count[x];
		o->end[l] = sum;
	}
	level_all(o->f, o->old, o->n, o->a, o->levels, level);
	for (i = 0; i < o->c; i++)
		sorted[next[level[list[i]]]++] = list[i];
}

/* ---- blocks ---- */

/* Return the cost, in units of 2^-16 bits, of coding which c of n words change. */
static uint64_t
cost(size_t n, size_t c)
{
	return c == 0 || c == n ? 0 : n * rans_log2((uint32_t)n) -
	    c * rans_log2((uint32_t)c) - (n - c) * rans_log2((uint32_t)(n - c));
}

/* Return the binary logarithm of the block size, or 0 if marking the blocks without a
 * change saves too few bits (WORTH). list: the indices of the c changed words, rising. */
static unsigned
choose_blocks(const uint32_t *list, size_t c, size_t n)
{
	uint64_t least = cost(n, c) - ((uint64_t)WORTH << 16), bits;
	/* joined[k]: changes whose smallest block shared with the change before has 2^k words */
	size_t joined[33] = { 0 };
	size_t used = c, i;
	unsigned k, best = 0;

	if (least >= cost(n, c))
		return 0;
	for (i = 1; i < c; i++)
		joined[bits_length(list[i] ^ list[i - 1])]++;
	for (k = 1; k < 1 << BLOCK_BITS && n >> k > 0; k++) {
		used -= joined[k];
		bits = cost(((n - 1) >> k) + 1, used) + cost(used << k, c);
		if (k >= 3 && bits < least) {
			least = bits;
			best = k;
		}
	}
	return best;
}

/* Set the level of all words outside block[c], blocks of 2^k words, to OUT. */
static void
leave_blocks(unsigned char *level, size_t n, unsigned k, const uint32_t *block,
    size_t c)
{
	const size_t size = (size_t)1 << k;
	size_t i, at = 0, to;

	for (i = 0; i <= c && at < n; i++, at = to + size) {
		to = i < c ? block[i] * size : n;
		memset(level + at, OUT, to - at);
	}
}

/* Memory for coding one group. */
struct room {
	const struct kern *kern;
	size_t words;		/* (n + 63) / 64 */
	/* which words have the level that is coded, as `marks' of kern.h fills them */
	uint64_t *mark;		/* [words] */
	uint32_t *before;	/* [words + 1] */
	unsigned char *level;	/* [n] */
	/* for each change: */
	uint32_t *list;
	unsigned char *class;
	/* for writing: */
	uint64_t *by;
	uint16_t *token;
	unsigned char *left, *bits;
	/* for reading: */
	uint32_t *gap, *at, *rank;
	struct rans_slots *slots;
};

static int
room_get(struct room *r, size_t n, struct err *e)
{
	r->words = (n + 63) / 64;
	if ((r->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	r->mark = alloc_raw(r->words * (8 + 4) + 4 + n, 1, e);
	if (r->mark == NULL)
		return -ERR_SYS;
	r->before = (uint32_t *)(r->mark + r->words);
	r->level = (unsigned char *)(r->before + r->words + 1);
	return 0;
}

/* Make room in r->by for writing c changes. bytes: the size of all words, changed or not. */
static int
room_put(struct room *r, size_t c, size_t bytes, struct err *e)
{
	enum { TOKENS = 3 * SUBSET_TOKENS };	/* tokens of blocks, places and sizes, per change */

	r->by = alloc_raw(c * (8 + 4 + 2 * TOKENS + 2) + bytes + SLACK, 1, e);
	if (r->by == NULL)
		return -ERR_SYS;
	r->list = (uint32_t *)(r->by + c);
	r->token = (uint16_t *)(r->list + c);
	r->class = (unsigned char *)(r->token + TOKENS * c);
	r->left = r->class + c;
	r->bits = r->left + c;
	return 0;
}

/* Make room in r for reading c changes. Return 0 or -ERR_SYS. */
static int
room_read(struct room *r, size_t c, struct err *e)
{
	c += SUBSET_SLACK;
	r->list = alloc_raw(SUBSET_TABLES * sizeof(*r->slots) + c * (4 * 4 + 1), 1, e);
	if (r->list == NULL)
		return -ERR_SYS;
	r->gap = r->list + c;
	r->at = r->gap + c;
	r->rank = r->at + c;
	r->slots = (struct rans_slots *)(r->rank + c);
	r->class = (unsigned char *)(r->slots + SUBSET_TABLES);
	return 0;
}

/* Return the width in bits of the field `number of levels - 1'. */
static inline unsigned
levels_bits(const struct form *f)
{
	return f->exponent < 8 ? f->exponent : 8;
}

static inline size_t
less(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* For the distance of change i, set t->class[i] to its number of bits less 1, and t->by[i] to
 * its bits below the first 1, shifted left over a bit for the direction. f->size is a constant. */
static inline __attribute__((always_inline)) void
look(const struct form *f, const struct room *t, const unsigned char *from,
    const unsigned char *to, const uint32_t *list, size_t c)
{
	unsigned char *class = t->class;
	const uint64_t sign = f->sign ? sign_bit(f) : 0;
	uint64_t *by = t->by, old, new, d, down, flip;
	unsigned k;
	size_t i, p;

	for (i = 0; i < c; i++) {
		/* words of one level are too far apart for the hardware's prefetcher */
		p = list[i + AHEAD < c ? i + AHEAD : i];
		__builtin_prefetch(from + p * f->size);
		__builtin_prefetch(to + p * f->size);
		p = list[i];
		old = word(from + p * f->size, f->size);
		new = word(to + p * f->size, f->size);
		d = new - old;
		if (__builtin_expect(((old ^ new) & sign) != 0, 0))
			d = place(f, new) - place(f, old);
		flip = 0 - (uint64_t)(((old ^ new) & old & sign) != 0);
		down = 0 - (d >> (f->bits - 1) & 1);
		d = ((d ^ down) - down) & all_bits(f);
		k = bits_length(d) - 1;
		class[i] = (unsigned char)k;
		by[i] = (d ^ (uint64_t)1 << k) << 1 | ((down ^ flip) + 1);
	}
}

/* Write the changes list[c] of one level, whose words are marked in t->mark; overwrite list. */
static void
put_level(struct out *o, const struct room *t, uint32_t *list, size_t c)
{
	struct form g = *o->f;
	struct bits_put b;
	size_t i, j, n;
	unsigned k;

	BY_SIZE(g, look(&g, t, o->old, o->new, list, c))
	t->kern->ranked(list, c, t->mark, t->before);
	subset_put(&o->s, list, c, t->before[t->words]);
	/* among the distances that have k bits or more, mark those that have more */
	memcpy(t->left, t->class, c);
	for (k = 1, n = c; k < g.bits && n > 0; k++, n = j) {
		for (i = j = 0; i < n; i++) {
			list[j] = (uint32_t)i;
			t->left[j] = t->left[i];
			j += t->left[i] >= k;
		}
		bits_put_count(&o->s.b, j, n);
		subset_put(&o->s, list, j, n);
	}
	for (b = o->s.b, i = 0; i < c; i++) {
		k = t->class[i] + 1u;
		if (k > 32)
			bits_put(&b, t->by[i], 32);
		bits_put(&b, t->by[i] >> (k > 32 ? 32 : 0), k > 32 ? k - 32 : k);
	}
	o->s.b = b;
}

/* Write which blocks of 2^k words have changes, and remove the other blocks' words from
 * their levels. list: the indices of the o->c changed words, rising; overwritten. */
static void
put_blocks(struct out *o, const struct room *t, unsigned k, uint32_t *list)
{
	const size_t n = ((o->n - 1) >> k) + 1;
	uint32_t last = UINT32_MAX;
	size_t i, m = 0;

	for (i = 0; i < o->c; i++)
		if (list[i] >> k != last)
			list[m++] = last = list[i] >> k;
	bits_put_count(&o->s.b, m, less(n, o->c));
	subset_put(&o->s, list, m, n);
	leave_blocks(t->level, o->n, k, list, m);
}

/* Append the body, which has at least one change; out has room. Return -1 and append nothing if
 * the bits are not shorter than the words, or the code may not fit in their size plus SLACK. */
static int
put_given(struct out *o, struct room *t, struct buf *out)
{
	const size_t most = o->n * o->f->size;
	struct bits_put *b = &o->s.b;
	unsigned char *p = out->p + out->n, *end = p + most + SLACK, *at;
	unsigned states, k;
	uint32_t l, from = 0, *list = (uint32_t *)t->by;
	uint64_t m;
	size_t i = 0;

	*b = (struct bits_put){ t->bits, t->bits + most, 0, 0 };
	o->s.token = o->s.next = t->token;
	for (l = 0; l < t->words; l++)
		for (m = t->mark[l]; m != 0; m &= m - 1)
			list[i++] = l * 64 + (uint32_t)__builtin_ctzll(m);
	k = choose_blocks(list, o->c, o->n);
	sort_changes(o, list, t->level, t->list);
	bits_put(b, k << 1, 1 + BLOCK_BITS);	/* bit 0, set below: 1 if states > 1 */
	bits_put(b, o->a, o->f->exponent);
	bits_put(b, o->levels - 1, levels_bits(o->f));
	bits_put_count(b, o->c, o->n);
	if (k > 0)
		put_blocks(o, t, k, list);
	for (l = 0; l < o->levels; from = o->end[l++]) {
		t->kern->marks(t->mark, t->before, t->level, o->n, (unsigned char)l);
		if (l + 1 < o->levels)
			bits_put_count(b, o->end[l] - from, less(o->c - from,
			    t->before[t->words]));
		put_level(o, t, t->list + from, o->end[l] - from);
	}
	if (b->n > 0)
		*b->p++ = (unsigned char)b->v;
	if (b->p >= b->most ||
	    (at = subset_put_end(&o->s, p, end, &states)) == NULL)
		return -1;
	t->bits[0] |= states > 1;
	memmove(p, at, (size_t)(end - at));
	for (out->n += (size_t)(end - at); b->p > t->bits;)
		out->p[out->n++] = *--b->p;
	return 0;
}

/* Move the c words t->list in p by the distances in the bits. f->size is a constant. */
static inline __attribute__((always_inline)) void
move(const struct form *f, const struct room *t, struct bits_get *bits,
    unsigned char *p, size_t c)
{
	const unsigned char *class = t->class;
	const uint32_t *list = t->list;
	const uint64_t sign = f->sign ? sign_bit(f) : 0;
	struct bits_get b = *bits;
	unsigned char *to;
	uint64_t old, new, d, minus;
	unsigned k;
	size_t i;

	for (i = 0; i < c; i++) {
		k = class[i] & (8u * f->size - 1);	/* tells compilers the range */
		to = p + (size_t)list[i + AHEAD < c ? i + AHEAD : i] * f->size;
		__builtin_prefetch(to, 1);
		to = p + (size_t)list[i] * f->size;
		old = word(to, f->size);
		d = bits_get(&b, 1 + (k < 32 ? k : 31));
		minus = (d & 1) - 1;
		d >>= 1;
		if (k > 31)
			d |= bits_get(&b, k - 31) << 31;
		d |= (uint64_t)1 << k;
		new = old + ((d ^ minus) - minus);
		if (__builtin_expect((((new ^ old) | d) & sign) != 0, 0)) {
			/* the move crosses zero to the other sign, or wraps around */
			minus = 0 - (uint64_t)((minus == 0) == negative(f, old));
			new = place(f, old) + ((d ^ minus) - minus);
			new = at_place(f, new & all_bits(f));
		}
		set_word(to, f->size, new);
	}
	*bits = b;
}

/* Return the next number; set o->bad if it is above `most'. Return 0 if o->bad is set. */
static size_t
get_count(struct subset_get *o, size_t most)
{
	size_t c = bits_get_count(&o->b, most);

	o->bad |= c > most;
	return o->bad ? 0 : c;
}

/* Read the c changes of a level into p, which holds the old words; the level's words are
 * marked in t->mark. */
static void
get_level(struct subset_get *o, const struct form *f, const struct room *t,
    unsigned char *p, size_t n, size_t c)
{
	struct form g = *f;
	size_t i, j, m;
	unsigned k;

	subset_get(o, t->list, c, t->before[t->words]);
	if (o->bad)
		return;
	t->kern->marked(t->list, c, t->mark, t->before, n);
	memset(t->class, 0, c);
	for (i = 0; i < c; i++)
		t->at[i] = (uint32_t)i;
	for (k = 1, m = c; k < f->bits && m > 0; k++, m = j) {
		j = get_count(o, m);
		subset_get(o, t->rank, j, m);
		for (i = 0; i < j && !o->bad; i++) {
			t->at[i] = t->at[t->rank[i]];
			t->class[t->at[i]] = (unsigned char)k;
		}
	}
	if (!o->bad)
		BY_SIZE(g, move(&g, t, &o->b, p, c))
}

/* Read all c changes into p. k: blocks have 2^k words; 0: there are no blocks. */
static void
get_levels(struct subset_get *o, const struct form *f, unsigned char *p, size_t n,
    const struct room *t, uint32_t levels, size_t c, unsigned k)
{
	const size_t blocks = ((n - 1) >> k) + 1;
	size_t all;
	uint32_t l;

	if (k > 0) {
		all = get_count(o, less(blocks, c));
		subset_get(o, t->rank, all, blocks);
		if (!o->bad)
			leave_blocks(t->level, n, k, t->rank, all);
	}
	for (l = 0; l < levels && !o->bad; l++, c -= all) {
		t->kern->marks(t->mark, t->before, t->level, n,
		    (unsigned char)l);
		all = l + 1 == levels ? c : get_count(o,
		    less(c, t->before[t->words]));
		get_level(o, f, t, p, n, all);
	}
}

int
exact_given_get(const struct form *f, const unsigned char *old, struct bytes *in,
    unsigned char *new, size_t n, struct err *e)
{
	struct subset_get o = { .b = { in->p + in->n, in->n - in->at, 0 },
	    .p = in->p + in->at, .end = in->p + in->n };
	unsigned states = bits_get(&o.b, 1) ? RANS_STATES : 1, j;
	unsigned k = (unsigned)bits_get(&o.b, BLOCK_BITS);
	uint32_t a = (uint32_t)bits_get(&o.b, f->exponent);
	uint32_t levels = 1 + (uint32_t)bits_get(&o.b, levels_bits(f));
	size_t c = bits_get_count(&o.b, n);
	struct room t = { .list = NULL };
	int r;

	in->at = in->n;
	o.states = states;
	o.bad = o.b.len < 4 * states;
	for (j = 0; j < states && !o.bad; j++, o.p += 4)
		o.state[j] = bytes_le32(o.p);
	if (levels > LEVELS || a + levels > (uint32_t)1 << f->exponent || c > n || o.bad)
		return codec_corrupt("exact", "a level or count is out of range", e);
	if ((r = room_get(&t, n, e)) < 0)
		return r;
	if ((r = room_read(&t, c, e)) == 0) {
		o.gap = t.gap;
		o.slots = t.slots;
		level_all(f, old, n, a, levels, t.level);
		if (new != old)
			memcpy(new, old, n * f->size);
		get_levels(&o, f, new, n, &t, levels, c, k);
		/* at the end of a valid body all states are RANS_LOW, and all bits were read */
		for (j = 0; j < states; j++)
			o.bad |= o.state[j] != RANS_LOW;
		r = !o.bad && bits_get_end(&o.b, o.p) ? 0 :
		    codec_corrupt("exact", "the coded changes are damaged", e);
	}
	alloc_free(t.list);
	alloc_free(t.mark);
	return r;
}

int
exact_given_put(const struct form *f, const unsigned char *old,
    const unsigned char *new, size_t n, struct buf *out, int *too_long,
    struct err *e)
{
	struct out o = { .f = f, .old = old, .new = new, .n = n };
	struct room t = { .by = NULL };
	struct form g = *f;
	int r = room_get(&t, n, e);

	if (r < 0)
		return r;
	BY_SIZE(g, differ(&g, old, new, n, t.level))
	t.kern->marks(t.mark, t.before, t.level, n, 1);
	o.c = t.before[t.words];
	if (o.c > 0 && (r = room_put(&t, o.c, n * f->size, e)) == 0)
		*too_long = put_given(&o, &t, out) < 0;
	alloc_free(t.by);
	alloc_free(t.mark);
	return r < 0 ? r : (int)o.c;
}
