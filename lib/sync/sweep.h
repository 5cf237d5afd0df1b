/*
 * All groups of a shard, each coded about once (ours): some after others, so
 * that what these took tells how far those have to be turned, and the last ones
 * bring the size near the budget.  The first are those that tell most.
 */
#ifndef ACE_SWEEP_H
#define ACE_SWEEP_H

struct err;
struct land;

/* sweep_run(l, e): what land_run does first. */
int sweep_run(struct land *l, struct err *e);

#endif
