/*
 * The price of a byte when a shard may be seen only once: the price at which
 * what is known of it and what is still to come would spend what is left, as
 * the shards before make expect it (ours; a video encoder controls its rate
 * so).
 *
 * Kept of the past, whatever the model's size: for 64 places along the shard,
 * how many bytes its groups were ready to take at each slope of error per byte.
 * Demand, and not what was spent: a shard whose end was starved must not teach
 * the next that its end needs little.
 *
 * From step to step all energies rise and fall together, for the most part.  So
 * the past counts as moved by one factor, the one that makes what it asked for
 * in the places already seen, at about this price, what is asked for there now;
 * as only a part is seen, and each group moves by itself too, by less than that.
 * The bytes and not the energies are compared: one loud group says little of
 * how the others have changed, and at a given price each bit counts the same.
 */
#ifndef ACE_PRICE_H
#define ACE_PRICE_H

#include <stddef.h>
#include <stdint.h>

#include "sync/select.h"

struct err;

enum { PRICE_PLACES = 64, PRICE_SLOPES = 640 };

/* f32, so that what is saved is what is used. */
struct price_shard {
	/* bytes of the hulls' steps, by place and by log2 of their slope, four
	 * bins an octave; the last bin: taken at any price */
	float steps[PRICE_PLACES][PRICE_SLOPES];
	float price;			/* that would have spent the budget */
	float told, took;		/* bytes of the levels chosen, as
					 * foretold and as they were */
};
enum { PRICE_NUMBERS = PRICE_PLACES * PRICE_SLOPES + 3 };

struct price {
	struct price_shard before;	/* decaying mean */
	struct price_shard now;
	int known;			/* there is a shard before */
	double budget, total;		/* bytes; values of the shard */
	double at, spent;		/* values looked at; bytes */
	double open[PRICE_SLOPES];	/* steps of groups not yet paid for */
};

/* The steps of one group. */
struct price_own {
	unsigned n;
	uint16_t bin[SELECT_LEVELS];
	float bytes[SELECT_LEVELS];
};

/* price_begin(p, budget, total): a shard of so many values. */
void price_begin(struct price *p, double budget, double total);

/* price_look(p, level, m, n, own): the next group's levels and values are
 * known from here on; own: for price_paid. */
void price_look(struct price *p, const struct select_level *level, size_t m,
    double n, struct price_own *own);

/*
 * price_of(p): the price at which the groups that are looked at but not paid
 * for, and what lies behind them, spend what is left.  Without a past, what
 * lies behind is like all that was seen.  Infinite when nothing is left, 0 when
 * there is less to buy.
 */
double price_of(const struct price *p);

/* price_paid(p, own, told, bytes): what it took, after told bytes were
 * foretold: from then on what is foretold is believed by that much less. */
void price_paid(struct price *p, const struct price_own *own, double told,
    double bytes);

/* price_end(p): now goes into before. */
void price_end(struct price *p);

/* before as numbers, for the state.  price_put: -ERR_DATA "corrupt" when one
 * is negative or not finite. */
void price_get(const struct price *p, float x[PRICE_NUMBERS]);
int price_put(struct price *p, const float x[PRICE_NUMBERS], struct err *e);

#endif
