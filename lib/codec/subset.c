#include "codec/subset.h"

enum { RARE = SUBSET_TOTAL / 64 };	/* what is rarer is escaped */

struct mean {
	unsigned table, k;	/* k low bits are not coded */
};

/* Return what the mean n / f selects: v = 8 n / f is at least 16, m its upper four bits,
 * 2^e their unit. The mean is about (2 m + 1) 2^e / 16. */
static struct mean
mean_of(size_t n, size_t f)
{
	const uint64_t v = 8 * (uint64_t)n / f;
	const unsigned e = bits_length(v) - 4, m = (unsigned)(v >> e);

	return (struct mean){ 8 * (e < 3 ? e - 1 : 2) + m - 8, e < 3 ? 0 : e - 3 };
}

/* Make a table if there is none yet. Return whether it is new. */
static int
make(struct subset_table *t, unsigned table)
{
	const uint32_t mean = (2 * (table % 8 + 8) + 1) << (table / 8 + 1);
	const uint64_t longer = 65536 - (1u << 20) / mean;
	uint64_t r = (uint64_t)SUBSET_TOTAL << 16;
	unsigned i;

	if (t->last != 0)
		return 0;
	for (i = 0; r >> 16 >= RARE; i++, r = r * longer >> 16)
		t->over[i] = (uint16_t)(r >> 16);
	t->over[i] = (uint16_t)(r >> 16);
	t->over[i + 1] = 0;
	t->last = i;
	return 1;
}

/* ---- written ---- */

void
subset_put(struct subset_put *o, const uint32_t *rank, size_t c, size_t n)
{
	const size_t f = c <= n / 2 ? c : n - c;
	struct bits_put b = o->b;	/* local, so that they stay in registers */
	uint16_t *to = o->next;
	size_t i, j = 0, at = 0;
	unsigned last, first;
	struct mean m;
	uint32_t gap;

	if (f == 0)
		return;
	m = mean_of(n, f);
	(void)make(&o->table[m.table], m.table);
	last = o->table[m.table].last;
	first = m.table * SUBSET_SYMBOLS;
	for (i = 0; i < f; i++, at++) {
		if (f == c)
			gap = rank[i] - (uint32_t)at;
		else
			for (gap = 0; j < c && rank[j] == at + gap; j++)
				gap++;
		at += gap;
		bits_put(&b, gap, m.k);
		for (gap >>= m.k; gap >= last; gap -= last)
			*to++ = (uint16_t)(first + last);
		*to++ = (uint16_t)(first + gap);
	}
	o->next = to;
	o->b = b;
}

unsigned char *
subset_put_end(const struct subset_put *o, unsigned char *p, unsigned char *end,
    unsigned *states)
{
	uint32_t state[SUBSET_STATES] = {
		SUBSET_LOW, SUBSET_LOW, SUBSET_LOW, SUBSET_LOW
	}, *x, freq;
	const uint16_t *over;
	size_t i = (size_t)(o->next - o->token);
	unsigned j;

	for (*states = i > SUBSET_FEW ? SUBSET_STATES : 1; i-- > 0;) {
		x = &state[i % *states];
		over = o->table[o->token[i] / SUBSET_SYMBOLS].over +
		    o->token[i] % SUBSET_SYMBOLS;
		freq = over[0] - (uint32_t)over[1];
		if (*x >= freq << (32 - SUBSET_BITS)) {
			if (end - p < 2 + 4 * SUBSET_STATES)
				return NULL;
			end -= 2;
			bytes_set16(end, (uint16_t)*x);
			*x >>= 16;
		}
		*x = (*x / freq << SUBSET_BITS) + *x % freq + over[1];
	}
	for (j = *states; j-- > 0;) {
		end -= 4;
		bytes_set32(end, state[j]);
	}
	return end;
}

/* ---- read ---- */

/* Make a table with its slots. */
static void
get_table(struct subset_get *o, unsigned table)
{
	uint32_t *slot = o->slot + (size_t)table * SUBSET_TOTAL, at, freq, i;
	struct subset_table *t = &o->table[table];

	for (i = make(t, table) ? t->last + 1 : 0; i-- > 0;) {
		freq = t->over[i] - (uint32_t)t->over[i + 1];
		for (at = 0; at < freq; at++)
			*slot++ = freq << 20 | at << 8 | i;
	}
}

/* Decode a symbol from state x; the next word is read even if it is not needed. */
static inline unsigned
get_symbol(uint32_t *x, const uint32_t *slot, const unsigned char **p)
{
	const uint32_t s = slot[*x & (SUBSET_TOTAL - 1)];
	uint32_t y = (*x >> SUBSET_BITS) * (s >> 20) +
	    (s >> 8 & (SUBSET_TOTAL - 1));
	const uint64_t low = 0 - (uint64_t)(y < SUBSET_LOW);
	uint32_t more = y << 16 | bytes_le16(*p);

	*x = y ^ ((y ^ more) & (uint32_t)low);
	*p += 2 & low;
	return s & 255;
}

/* Collects the upper parts of distances. */
struct gaps {
	uint32_t *p, now, last;
};

static inline void
add_symbol(struct gaps *g, unsigned s)
{
	const uint32_t whole = s != g->last;

	*g->p = g->now += s;
	g->p += whole;
	g->now &= whole - 1;
}

/* Read the upper parts of f distances to o->gap. */
static void
get_gaps(struct subset_get *o, unsigned table, size_t f)
{
	static const unsigned char none[2];
	const uint32_t *slot = o->slot + (size_t)table * SUBSET_TOTAL;
	const uint32_t *all = o->gap + f;
	uint32_t a = o->state[0], b = o->state[1], c = o->state[2], d = o->state[3];
	struct gaps g = { o->gap, 0, o->table[table].last };
	const unsigned char *p = o->p, *q;
	uint32_t was;

	while (o->states == SUBSET_STATES && all - g.p >= SUBSET_STATES &&
	    o->end - p >= 2 * SUBSET_STATES) {
		add_symbol(&g, get_symbol(&a, slot, &p));
		add_symbol(&g, get_symbol(&b, slot, &p));
		add_symbol(&g, get_symbol(&c, slot, &p));
		add_symbol(&g, get_symbol(&d, slot, &p));
	}
	while (g.p < all && !o->bad) {
		q = o->end - p < 2 ? none : p;
		add_symbol(&g, get_symbol(&a, slot, &q));
		if (o->end - p >= 2)
			p = q;
		else
			o->bad |= q != none;
		if (o->states == SUBSET_STATES) {
			was = a;
			a = b;
			b = c;
			c = d;
			d = was;
		}
	}
	o->p = p;
	o->state[0] = a;
	o->state[1] = b;
	o->state[2] = c;
	o->state[3] = d;
}

void
subset_get(struct subset_get *o, uint32_t *rank, size_t c, size_t n)
{
	const size_t f = c <= n / 2 ? c : n - c;
	uint32_t *to = f == c ? rank : o->gap, run;
	struct bits_get b = o->b;
	struct mean m = { 0, 0 };
	uint64_t at = 0, i, j, k;

	if (f > 0 && !(o->bad |= c > n)) {
		m = mean_of(n, f);
		get_table(o, m.table);
		get_gaps(o, m.table, f);
	}
	for (i = 0; i < f && !o->bad; i++) {
		at += ((uint64_t)o->gap[i] << m.k) + bits_get(&b, m.k);
		to[i] = (uint32_t)at++;
	}
	o->b = b;
	o->bad |= at > n;
	/* the others lie between those: often few, which eight at once are */
	for (i = at = 0; i <= f && f != c && !o->bad; i++, at += run + 1) {
		run = (i < f ? to[i] : (uint32_t)n) - (uint32_t)at;
		for (j = 0; j < run; j += SUBSET_SLACK)
			for (k = 0; k < SUBSET_SLACK; k++)
				rank[j + k] = (uint32_t)(at + j + k);
		rank += run;
	}
}
