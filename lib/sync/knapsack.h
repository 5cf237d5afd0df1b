/*
 * The plan of a shard under a budget when the codecs to choose from are a list
 * without a free step: the multiple-choice knapsack (sync/select.h) on rates
 * and errors that are foretold.
 */
#ifndef ACE_KNAPSACK_H
#define ACE_KNAPSACK_H

#include "sync/allot.h"

struct err;

/* knapsack_plan(a, e): as allot_plan, but chooses from a->other and `none'
 * only.  Where a codec's size cannot be foretold its longest body is assumed;
 * where its error cannot be foretold it is not chosen. */
int knapsack_plan(struct allot *a, struct err *e);

#endif
