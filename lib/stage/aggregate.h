/*
 * The shards of one step become one: equation (8), and what is said of it.
 */
#ifndef ACE_AGGREGATE_H
#define ACE_AGGREGATE_H

#include "stage/contrib.h"
#include "stage/stage_aggregate.h"
#include "sync/combine.h"

struct err;
struct gather;
struct writer;

struct aggregate {
	const struct stage_aggregate_opts *o;
	struct contrib c;
	struct gather *g;	/* where the shards are, */
	struct writer *out;	/* and where the aggregate goes */
	struct combine sum;
	double total;		/* sum of the weights of this step */
	struct combine all;	/* for a cluster's offset from all */
	double all_total;
	/* between the windows of a step: sums of all values so far, f64, in a
	 * file, and which groups were sent */
	int part;		/* descriptor, or -1 */
	unsigned char *sent;	/* of each group */
};

/* aggregate_init(x, o, kern): g and out are the caller's, and set before a
 * step. */
void aggregate_init(struct aggregate *x, const struct stage_aggregate_opts *o,
    const struct kern *kern);
void aggregate_release(struct aggregate *x);

/* aggregate_step(x, e): x->g is at a step (gather_step): its aggregate, and
 * those of its clusters, to x->out. */
int aggregate_step(struct aggregate *x, struct err *e);

#endif
