/*
 * One step of rANS (rans.h): put a symbol into a state, or get one out.  Frequencies sum to
 * RANS_TOTAL; words of 16 bits are written downwards and read upwards.
 */
#ifndef ACE_RANS_STEP_H
#define ACE_RANS_STEP_H

#include "base/bytes.h"

enum {
	RANS_BITS = 12, RANS_TOTAL = 1 << RANS_BITS, RANS_STATES = 4,
	RANS_LOW = 0x10000	/* a state lies in [RANS_LOW, 2^32) */
};

/*
 * Constants that put a symbol of frequency f into a state x:
 *
 *   x' = x / f * TOTAL + x % f + base = x + (x / f) (TOTAL - f) + base;  base: its first slot
 *
 * x / f is the integer part of x * ceil(2^44 / f) / 2^44 (Granlund and Montgomery 1994): x
 * is below 2^20 f, so the product is below 2^64, and the quotient exceeds x / f by less
 * than x / 2^44, which is at most f / 2^24 and so at most 1 / f.
 */
struct rans_step {
	uint64_t inverse;	/* ceil(2^44 / f) */
	uint32_t most;		/* from a larger state, 16 bits are written first */
	uint16_t base, rest;	/* rest: TOTAL - f */
};

static inline void
rans_step(struct rans_step *t, uint32_t base, uint32_t f)
{
	t->inverse = f > 0 ? (((uint64_t)1 << 44) + f - 1) / f : 0;
	t->most = (f << (32 - RANS_BITS)) - 1;
	t->base = (uint16_t)base;
	t->rest = (uint16_t)(RANS_TOTAL - f);
}

/* Return the state after a symbol. A word is always stored before *end, even if it is not
 * needed. */
static inline uint32_t
rans_put_symbol(uint32_t x, const struct rans_step *t, unsigned char **end)
{
	const uint64_t keep = 0 - (uint64_t)(x <= t->most);
	uint32_t y = x >> 16;

	bytes_set16(*end - 2, (uint16_t)x);
	*end -= 2 & ~keep;
	y ^= (x ^ y) & (uint32_t)keep;
	return y + t->base + (uint32_t)(y * t->inverse >> 44) * t->rest;
}

/* The lowest RANS_BITS bits of a state are a slot. A slot gives the symbol, its
 * frequency, and the slot's index among the symbol's slots. */
struct rans_slots {
	uint16_t freq[RANS_TOTAL], at[RANS_TOTAL];
	unsigned char symbol[RANS_TOTAL];
};

/* Give a symbol the f slots from `at' on; return where they end. */
static inline uint32_t
rans_slots(struct rans_slots *t, uint32_t at, uint32_t f, unsigned char symbol)
{
	uint16_t *const freq = t->freq + at, *const in = t->at + at;
	size_t i;

	for (i = 0; i < f; i++) {
		freq[i] = (uint16_t)f;
		in[i] = (uint16_t)i;
	}
	memset(t->symbol + at, symbol, f);
	return at + f;
}

/* Return a symbol and update the state. The word at *p is read even if it is not
 * needed. */
static inline unsigned char
rans_get_symbol(uint32_t *x, const struct rans_slots *t, const unsigned char **p)
{
	const uint32_t slot = *x & (RANS_TOTAL - 1);
	uint32_t y = (*x >> RANS_BITS) * t->freq[slot] + t->at[slot];
	const uint64_t low = 0 - (uint64_t)(y < RANS_LOW);
	uint32_t more = y << 16 | bytes_le16(*p);

	*x = y ^ ((y ^ more) & (uint32_t)low);
	*p += 2 & low;
	return t->symbol[slot];
}

#endif
