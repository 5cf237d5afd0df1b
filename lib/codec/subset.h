/*
 * Codes which c of n values are meant, where they are about independent of each other: as
 * the distances between the fewer of both kinds, f = min(c, n - c).
 *
 * Their mean n / f says how likely each distance is: they fall off geometrically.  A table
 * for the mean, of rANS (rans_step.h), has a symbol for each distance up to about four means;
 * the last symbol is escaped: that much, and another distance.  The tables belong to means
 * from 2 to 16, eight to an octave.  Of longer distances the low bits are equally likely 0
 * and 1, and not coded.
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
	SUBSET_TOKENS = 2	/* at most, for each of the fewer kind */
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

/* Read rank[c], all below n, in room for SUBSET_SLACK more; if there is nothing such, o->bad
 * is set. c may be above n. */
void subset_get(struct subset_get *o, uint32_t *rank, size_t c, size_t n);

#endif
