/*
 * Code which c of n values are chosen, assuming that the choices are about independent: as
 * the distances between values of the rarer kind, of which there are f = min(c, n - c).
 *
 * The mean n / f gives the probability of each distance, which falls off geometrically. An
 * rANS table (rans_step.h) has a symbol for each distance up to about four means; its last
 * symbol is an escape, to which the next distance is added. There are tables for means from 2
 * to 16, eight per octave. For larger means the low bits of distances are stored as they are.
 */
#ifndef ACE_SUBSET_H
#define ACE_SUBSET_H

#include <stddef.h>
#include <stdint.h>

#include "codec/exact_bits.h"
#include "codec/rans_step.h"

enum {
	SUBSET_TABLES = 24, SUBSET_SYMBOLS = 64, SUBSET_SLACK = 8,
	SUBSET_FEW = 1024,	/* symbols up to which one state is enough */
	SUBSET_TOKENS = 2	/* at most, per distance */
};

/* ---- written ---- */

struct subset_put {
	struct bits_put b;
	uint16_t *token, *next;	/* all symbols, with their tables */
	unsigned last[SUBSET_TABLES];	/* symbol; 0 before its table is made */
	struct rans_step step[SUBSET_TABLES * SUBSET_SYMBOLS];
};

/* Write rank[c], in order and below n; c and n are known. Tokens need room. */
void subset_put(struct subset_put *o, const uint32_t *rank, size_t c, size_t n);
/* Write the code in front of end, where it begins at p or later. Return where, or
 * NULL. *states becomes 1 or RANS_STATES. */
unsigned char *subset_put_end(const struct subset_put *o, unsigned char *p,
    unsigned char *end, unsigned *states);

/* ---- read ---- */

struct subset_get {
	struct bits_get b;
	const unsigned char *p, *end;
	uint32_t state[RANS_STATES];	/* the state to use next comes first */
	unsigned states;
	int bad;
	uint32_t *gap;		/* [f] */
	struct rans_slots *slots;	/* [SUBSET_TABLES] */
	unsigned last[SUBSET_TABLES];
};

/* Read rank[c], all below n, with room for SUBSET_SLACK more. If the input is not valid, set
 * o->bad. c may be above n. */
void subset_get(struct subset_get *o, uint32_t *rank, size_t c, size_t n);

#endif
