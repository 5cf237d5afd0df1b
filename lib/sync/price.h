/*
 * The price of a byte when a shard may be seen only once: the price at which
 * what is still to come would spend what is left, as the shards before make
 * expect it (ours; a video encoder controls its rate so).
 *
 * Kept of the past, whatever the model's size: for 64 places along the shard,
 * how many bytes its groups were ready to take at each slope of error per byte
 * (relative to the shard's energy), and how the energy lay.  Demand, and not
 * what was spent: a shard whose end was starved must not teach the next that
 * its end needs little.
 */
#ifndef ACE_PRICE_H
#define ACE_PRICE_H

#include <stddef.h>

#include "sync/select.h"

struct err;

enum { PRICE_PLACES = 64, PRICE_SLOPES = 480 };

/* f32, so that what is saved is what is used. */
struct price_shard {
	/* bytes of the hulls' steps, by place and by log2 of their slope, four
	 * bins an octave */
	float steps[PRICE_PLACES][PRICE_SLOPES];
	float energy[PRICE_PLACES];	/* weighted squares, by place */
	float all;			/* energy of the whole, the last */
	float told, took;		/* bytes of the levels chosen, as
					 * foretold and as they were */
};
enum { PRICE_NUMBERS = PRICE_PLACES * (PRICE_SLOPES + 1) + 3 };

struct price {
	struct price_shard before;	/* decaying mean; slopes and energies
					 * are shares of `all' */
	struct price_shard now;
	int known;			/* there is a shard before */
	double budget, total;		/* bytes; values of the shard */
	double at, n, spent, energy;	/* n: of the group looked at */
	float own[PRICE_SLOPES];	/* its steps */
};

/* price_begin(p, budget, total): a shard of so many values.  Half a per cent
 * is kept for the last groups: one of them starved costs more. */
void price_begin(struct price *p, double budget, double total);

/* price_look(p, level, m, n): the next group's levels and values. */
void price_look(struct price *p, const struct select_level *level, size_t m,
    double n);

/*
 * price_of(p): the price at which the group just looked at should buy: the one
 * at which it and what lies behind it, as the past has it, spend what is left.
 * The past's slopes are scaled by this shard's energy, foretold from the part
 * seen.  Without a past, what lies behind is like what was seen.
 */
double price_of(const struct price *p);

/* price_paid(p, told, bytes, energy): what it took, after told bytes were
 * foretold: from then on what is foretold is believed by that much less. */
void price_paid(struct price *p, double told, double bytes, double energy);

/* price_end(p): now goes into before. */
void price_end(struct price *p);

/* before as numbers, for the state.  price_put: -ERR_DATA "corrupt" when one
 * is negative or not finite. */
void price_get(const struct price *p, float x[PRICE_NUMBERS]);
int price_put(struct price *p, const float x[PRICE_NUMBERS], struct err *e);

#endif
