#include "codec/subset.h"

enum { RARE = RANS_TOTAL / 64 };	/* the escape has a lower frequency than this */

struct mean {
	unsigned table, k;	/* the k low bits of distances are stored as they are */
};

/* Return the table and k for the mean n / f. With v = 8 n / f >= 16, m is the upper four
 * bits of v and 2^e their unit, so the mean is about (2 m + 1) 2^e / 16. */
static struct mean
mean_of(size_t n, size_t f)
{
	const uint64_t v = 8 * (uint64_t)n / f;
	const unsigned e = bits_length(v) - 4, m = (unsigned)(v >> e);

	return (struct mean){ 8 * (e < 3 ? e - 1 : 2) + m - 8, e < 3 ? 0 : e - 3 };
}

/* Set the frequency of each symbol of a table, and return the last symbol. */
static unsigned
frequencies(uint32_t *freq, unsigned table)
{
	const uint32_t mean = (2 * (table % 8 + 8) + 1) << (table / 8 + 1);
	const uint64_t longer = 65536 - (1u << 20) / mean;
	uint64_t r = (uint64_t)RANS_TOTAL << 16, next;
	unsigned i;

	for (i = 0; r >> 16 >= RARE; i++, r = next) {
		next = r * longer >> 16;
		freq[i] = (uint32_t)(r >> 16) - (uint32_t)(next >> 16);
	}
	freq[i] = (uint32_t)(r >> 16);
	return i;
}

static void
put_table(struct subset_put *o, unsigned table)
{
	struct rans_step *step = o->step + (size_t)table * SUBSET_SYMBOLS;
	uint32_t freq[SUBSET_SYMBOLS], base = RANS_TOTAL;
	unsigned i;

	if (o->last[table] != 0)
		return;
	o->last[table] = frequencies(freq, table);
	for (i = 0; i <= o->last[table]; i++)
		rans_step(&step[i], base -= freq[i], freq[i]);
}

void
subset_put(struct subset_put *o, const uint32_t *rank, size_t c, size_t n)
{
	const size_t f = c <= n / 2 ? c : n - c;
	struct bits_put b = o->b;	/* local, so that its members stay in registers */
	uint16_t *to = o->next;
	size_t i, j = 0, at = 0;
	unsigned last, first;
	struct mean m;
	uint32_t gap;

	if (f == 0)
		return;
	m = mean_of(n, f);
	put_table(o, m.table);
	last = o->last[m.table];
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
	uint32_t x[RANS_STATES] = { RANS_LOW, RANS_LOW, RANS_LOW, RANS_LOW };
	const struct rans_step *const t = o->step;
	const uint16_t *s = o->token;
	size_t i = (size_t)(o->next - s);
	unsigned j;

	*states = i > SUBSET_FEW ? RANS_STATES : 1;
	for (; i % *states != 0 || (*states == 1 && i > 0); i--) {
		j = (unsigned)(i - 1) % *states;
		x[j] = rans_put_symbol(x[j], &t[s[i - 1]], &end);
		if (end - p < 4 * RANS_STATES)
			return NULL;
	}
	for (; i > 0; i -= RANS_STATES) {
		x[3] = rans_put_symbol(x[3], &t[s[i - 1]], &end);
		x[2] = rans_put_symbol(x[2], &t[s[i - 2]], &end);
		x[1] = rans_put_symbol(x[1], &t[s[i - 3]], &end);
		x[0] = rans_put_symbol(x[0], &t[s[i - 4]], &end);
		if (end - p < 4 * RANS_STATES)
			return NULL;
	}
	for (j = *states; j-- > 0;) {
		end -= 4;
		bytes_set32(end, x[j]);
	}
	return end;
}

static void
get_table(struct subset_get *o, unsigned table)
{
	uint32_t freq[SUBSET_SYMBOLS], at = 0;
	unsigned i;

	if (o->last[table] != 0)
		return;
	o->last[table] = frequencies(freq, table);
	for (i = o->last[table] + 1; i-- > 0;)
		at = rans_slots(&o->slots[table], at, freq[i], (unsigned char)i);
}

/* The positions of values, computed from the upper parts of their distances. */
struct places {
	uint32_t *p, last;
	uint64_t now;
};

static inline void
add_symbol(struct places *g, unsigned s)
{
	const uint32_t whole = s != g->last;

	*g->p = (uint32_t)(g->now += s);
	g->p += whole;
	g->now += whole;
}

/* Read f positions from upper parts of distances; return the position after the last. */
static uint64_t
get_places(struct subset_get *o, unsigned table, uint32_t *place, size_t f)
{
	static const unsigned char none[2];
	const struct rans_slots *const t = &o->slots[table];
	const uint32_t *all = place + f;
	uint32_t a = o->state[0], b = o->state[1], c = o->state[2], d = o->state[3];
	struct places g = { place, o->last[table], 0 };
	const unsigned char *p = o->p, *q;
	uint32_t was;

	while (o->states == RANS_STATES && all - g.p >= RANS_STATES &&
	    o->end - p >= 2 * RANS_STATES) {
		add_symbol(&g, rans_get_symbol(&a, t, &p));
		add_symbol(&g, rans_get_symbol(&b, t, &p));
		add_symbol(&g, rans_get_symbol(&c, t, &p));
		add_symbol(&g, rans_get_symbol(&d, t, &p));
	}
	while (g.p < all && !o->bad) {
		q = o->end - p < 2 ? none : p;
		add_symbol(&g, rans_get_symbol(&a, t, &q));
		if (o->end - p >= 2)
			p = q;
		else
			o->bad |= q != none;
		if (o->states == RANS_STATES) {
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
	return g.now;
}

void
subset_get(struct subset_get *o, uint32_t *rank, size_t c, size_t n)
{
	const size_t f = c <= n / 2 ? c : n - c;
	uint32_t *to = f == c ? rank : o->gap, run;
	struct bits_get b = o->b;
	struct mean m;
	uint64_t at = 0, low = 0, i, j, k;

	if (f > 0 && !(o->bad |= c > n)) {
		m = mean_of(n, f);
		get_table(o, m.table);
		at = get_places(o, m.table, to, f);
		o->bad |= at > n;
		for (i = 0, j = m.k > 0 && !o->bad ? f : 0; i < j; i++) {
			low += bits_get(&b, m.k);
			to[i] = (uint32_t)(((to[i] - i) << m.k) + low + i);
		}
		o->bad |= ((at - f) << m.k) + low + f > n;
	}
	o->b = b;
	/* f != c: values in `to' are not chosen; list all others, eight entries per iteration */
	for (i = at = 0; i <= f && f != c && !o->bad; i++, at += run + 1) {
		run = (i < f ? to[i] : (uint32_t)n) - (uint32_t)at;
		for (j = 0; j < run; j += SUBSET_SLACK)
			for (k = 0; k < SUBSET_SLACK; k++)
				rank[j + k] = (uint32_t)(at + j + k);
		rank += run;
	}
}
