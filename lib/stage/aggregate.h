/*
 * One step of ace-aggregate: the shards of the devices become one shard, by
 * equation (8), with what it says of itself (weights, contributors, policy).
 */
#ifndef ACE_AGGREGATE_H
#define ACE_AGGREGATE_H

#include "base/alloc.h"
#include "stage/contrib.h"
#include "stage/stage_aggregate.h"
#include "sync/combine.h"

struct err;
struct gather;
struct codec_list;
struct pool;
struct writer;

struct aggregate {
	const struct stage_aggregate_opts *o;
	struct contrib c;
	struct gather *g;	/* where the shards are, */
	struct writer *out;	/* and where the aggregate goes */
	struct pool *pool;
	struct aggregate_part {	/* what contributions hold of a group */
		const float *x;
		const struct codec_list *l;
		int r;
	} *part_of;
	size_t many;		/* of them at a time */
	struct combine sum;
	double total;		/* sum of the weights of this step */
	struct combine all;	/* for a cluster's offset from all */
	double all_total;
	/* where a step's contributions are not all open at once, the sums go
	 * on from one window of them to the next in a file */
	int part;		/* that file, f64 for each value; -1: none */
	unsigned char *sent;	/* of each group: did anybody send it? */
	struct buf body;	/* of a group that is mostly zeros */
};

/* aggregate_init(x, o, kern): the caller sets x->g and x->out before each step;
 * they stay the caller's. */
int aggregate_init(struct aggregate *x, const struct stage_aggregate_opts *o,
    const struct kern *kern, struct err *e);
void aggregate_release(struct aggregate *x);

/* aggregate_step(x, e): after gather_step(x->g): writes the aggregate of that
 * step, and then those of its clusters, to x->out. */
int aggregate_step(struct aggregate *x, struct err *e);

#endif
