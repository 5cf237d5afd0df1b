/*
 * Code which c of n values are chosen, as the distances between values of the rarer kind,
 * f = min(c, n - c) of them. The choices are assumed to be nearly independent.
 *
 * The mean n / f gives the probability of each distance, which falls off geometrically.
 * An rANS table (rans_step.h) has a symbol for each distance up to about four means; its
 * last symbol is an escape, to which the next distance is added. There are tables for
 * means from 2 to 16, eight per octave. For larger means the low bits of each distance
 * are stored as they are.
 */
#ifndef ACE_SUBSET_H
#define ACE_SUBSET_H

#include <stddef.h>
#include <stdint.h>

#include "codec/exact_bits.h"
#include "codec/rans_step.h"

enum {
	SUBSET_TABLES = 24, SUBSET_SYMBOLS = 64, SUBSET_SLACK = 8,
	SUBSET_FEW = 1024,	/* up to this many symbols are coded with one state */
	SUBSET_TOKENS = 2	/* most symbols per distance, on average */
};

/* ---- writing ---- */

struct subset_put {
	struct bits_put b;
	uint16_t *token, *next;	/* all symbols, each plus SUBSET_SYMBOLS times its table */
	unsigned last[SUBSET_TABLES];	/* last symbol of each table; 0: not made yet */
	struct rans_step step[SUBSET_TABLES * SUBSET_SYMBOLS];
};

/* Write rank[c], rising and below n. The reader knows c and n. o->next has room for
 * SUBSET_TOKENS tokens per distance. */
void subset_put(struct subset_put *o, const uint32_t *rank, size_t c, size_t n);
/* Write the code so that it ends at `end'. Return where it begins, or NULL if it may not fit
 * between p and `end'. Set *states to 1 or RANS_STATES. */
unsigned char *subset_put_end(const struct subset_put *o, unsigned char *p,
    unsigned char *end, unsigned *states);

/* ---- reading ---- */

struct subset_get {
	struct bits_get b;
	const unsigned char *p, *end;
	uint32_t state[RANS_STATES];	/* the state used next comes first */
	unsigned states;	/* 1 or RANS_STATES */
	int bad;		/* 1: the input is not valid */
	uint32_t *gap;		/* [f] scratch, from the caller */
	struct rans_slots *slots;	/* [SUBSET_TABLES] memory, from the caller */
	unsigned last[SUBSET_TABLES];	/* as in struct subset_put */
};

/* Read rank[c], all below n; rank has room for SUBSET_SLACK more. Set o->bad if the input
 * is not valid or c is above n. */
void subset_get(struct subset_get *o, uint32_t *rank, size_t c, size_t n);

#endif
