/*
 * The plan of a shard under a budget when the codecs to choose from are a list
 * without a free step: the multiple-choice knapsack (sync/select.h) on rates
 * and errors that are foretold.
 */
#ifndef ACE_KNAPSACK_H
#define ACE_KNAPSACK_H

#include "sync/allot.h"

struct err;

/* knapsack_plan(a, e): as allot_plan; a->other are all there is to choose from
 * but none.  What cannot be foretold is taken to need the longest body, and is
 * not chosen where its error cannot be. */
int knapsack_plan(struct allot *a, struct err *e);

#endif
