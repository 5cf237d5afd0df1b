/*
 * What the groups of a shard would take, their knobs turned by a factor f: as
 * foretold (ours).  It is asked once for each point of a grid of log f, and
 * lies on a straight line between two of them.  Of many groups only some are
 * asked, together, and each takes as much for a value.
 */
#ifndef ACE_TOLD_H
#define ACE_TOLD_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum { TOLD_ASKED = 64 };

struct told {
	/* given: see land.h */
	size_t k;			/* groups */
	const uint32_t *order;		/* [k]: the first few are spread evenly */
	const uint32_t *values;		/* by group */
	double (*foretell)(void *arg, size_t i, size_t slot, double f);
	void *arg;

	/* private */
	size_t asked;			/* groups */
	double sample, all;		/* values of these, and of all */
	double *row;			/* one for each, or one for all */
};

int told_open(struct told *t, struct err *e);
void told_close(struct told *t);

/* told_bytes(t, j, f): bytes of group order[j], turned by e^f, and of what
 * goes with a body; of no more than TOLD_ASKED groups.  told_value(t, f): of
 * more: for a value of any group. */
double told_bytes(const struct told *t, size_t j, double f);
double told_value(const struct told *t, double f);

#endif
