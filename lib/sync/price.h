/*
 * The price of a byte when a shard may be seen only once: carried over from
 * the shard before, corrected while the budget is spent, as a video encoder
 * controls its rate (ours).
 *
 * Kept of a shard, whatever the model's size: how many bytes its groups were
 * ready to take at each slope of error per byte, and how their demand and their
 * energy lay along it.  Demand and not what was spent: a shard whose end was
 * starved must not teach the next that its end needs little.
 */
#ifndef ACE_PRICE_H
#define ACE_PRICE_H

#include <stddef.h>

#include "sync/select.h"

struct err;

enum { PRICE_SLOPES = 2560, PRICE_PLACES = 256 };

/* One shard.  f32, so that what is saved is what is used. */
struct price_shard {
	float slope[PRICE_SLOPES];	/* bytes of the hulls' steps, by log2 of
					 * their slope, 16 bins an octave */
	float wanted[PRICE_PLACES];	/* bytes its groups would take at one
					 * and the same price, by place */
	float energy[PRICE_PLACES];	/* weighted squares, by place */
	float told, took;		/* bytes of the levels chosen, as
					 * foretold and as they were */
};
enum { PRICE_NUMBERS = PRICE_SLOPES + 2 * PRICE_PLACES + 2 };

struct price {
	struct price_shard before, now;
	int known;		/* there is a shard before */
	double budget, total;	/* bytes; values of the shard */
	double at, spent, energy;
	double base;		/* the price the shard before would pay */
	double want;		/* bytes the group looked at takes at it */
};

/* price_begin(p, budget, total): a shard of so many values. */
void price_begin(struct price *p, double budget, double total);

/* price_look(p, level, m): the next group's levels; before price_of. */
void price_look(struct price *p, const struct select_level *level, size_t m);

/*
 * price_of(p, n): the price at which the group of n values just looked at
 * should buy.  With a shard before: the price at which that one would have
 * spent the budget times what is left here over what was left there, scaled
 * by the energy seen here over there, as far as that tells.  Without: the price
 * at which the groups so far would have spent their share.
 */
double price_of(const struct price *p, double n);

/* price_paid(p, n, told, bytes, energy): what it took, after told bytes were
 * foretold: from then on what is foretold is believed by that much less. */
void price_paid(struct price *p, double n, double told, double bytes,
    double energy);

/* price_end(p): now becomes before. */
void price_end(struct price *p);

/* before as numbers, for the state.  price_put: -ERR_DATA "corrupt" when one
 * is negative or not finite. */
void price_get(const struct price *p, float x[PRICE_NUMBERS]);
int price_put(struct price *p, const float x[PRICE_NUMBERS], struct err *e);

#endif
