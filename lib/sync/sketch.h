/*
 * Group the contributions of a step whose updates have similar directions, by a
 * count-sketch of each update (Charikar, Chen and Farach-Colton 2002).  The
 * ACE-Sync paper clusters devices; the method is ours.
 *
 *   s[h(j)] += sign(j) * x[j],   h in [0, SKETCH_M)
 *
 * The cosine of two sketches is that of the updates, with an error of about
 * 1 / sqrt(SKETCH_M) for models of any size.  h and sign depend only on the seed, the
 * group and the position in it, so sketches of different steps with one seed can be
 * compared or added.
 */
#ifndef ACE_SKETCH_H
#define ACE_SKETCH_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum { SKETCH_M = 256 };	/* numbers in a sketch */

#define SKETCH_NONE SIZE_MAX	/* the cluster of a dropped contribution */

/* The sketches of k contributions; must be all zeros before the first sketch_begin. */
struct sketch {
	size_t k;
	double *row;		/* f64[k][SKETCH_M] */
	size_t *of;		/* [k] cluster of each contribution, by sketch_judge; SKETCH_NONE,
				 * set by the caller before: leave this contribution out */
	size_t clusters;	/* number of clusters */
	uint32_t *place;	/* [n] h and sign of each value of the current group */
	size_t n, cap;
	uint64_t seed;		/* seed of h and sign; 0 for --cluster */
};

/* Begin a step of k contributions with zeros.  Return 0 or -ERR_SYS. */
int sketch_begin(struct sketch *s, size_t k, struct err *e);
void sketch_release(struct sketch *s);

/* Begin a group of n values: the following calls of sketch_add pass its values. Return 0
 * or -ERR_SYS. */
int sketch_group(struct sketch *s, uint32_t group, size_t n, struct err *e);
/* Add contribution i's values x[n] of the group to its sketch. */
void sketch_add(struct sketch *s, size_t i, const float *x);

/* Set s->of and s->clusters by cluster_linkage on 1 - cos; clusters are numbered in
 * the order of their first members.  This overwrites the sketches.  Return 0, -ERR_REFUSED
 * for more than CLUSTER_GROUP contributions, or -ERR_SYS. */
int sketch_judge(struct sketch *s, double theta, struct err *e);

#endif
