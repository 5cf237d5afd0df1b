/*
 * Which contributions of a step pull the model the same way: a count-sketch of
 * each update (Charikar, Chen and Farach-Colton 2002), and groups of those
 * whose sketches point alike.  That devices are clustered is the ACE-Sync
 * paper's; how is ours.
 *
 *   s[h(j)] += sign(j) * x[j],   h in [0, SKETCH_M)
 *
 * The cosine of two sketches is that of the updates, with an error of about
 * 1 / sqrt(SKETCH_M), whatever the size of the model.  h and sign depend on
 * the group and the place in it, so sketches of different steps can be
 * compared, or added.
 */
#ifndef ACE_SKETCH_H
#define ACE_SKETCH_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum { SKETCH_M = 256 };

#define SKETCH_NONE SIZE_MAX	/* the cluster of what does not count */

/* The sketches of k contributions; all zeros before the first sketch_begin. */
struct sketch {
	size_t k;
	double *row;		/* f64[k][SKETCH_M] */
	size_t *of;		/* of contribution i: its cluster */
	size_t clusters;
	uint32_t *place;	/* of the values of a group: h and sign */
	size_t n, cap;
	uint64_t seed;		/* of the places; 0 for clusters */
};

/* sketch_begin(s, k, e): begins a step of k contributions with zeros. */
int sketch_begin(struct sketch *s, size_t k, struct err *e);
void sketch_release(struct sketch *s);

/* sketch_group(s, group, n, e): the values that sketch_add is given next are
 * the n of this group. */
int sketch_group(struct sketch *s, uint32_t group, size_t n, struct err *e);
/* sketch_add(s, i, x): adds contribution i's values x[n] to its sketch. */
void sketch_add(struct sketch *s, size_t i, const float *x);
/* sketch_drop(s, i): contribution i does not count. */
void sketch_drop(struct sketch *s, size_t i);

/* sketch_judge(s, theta, e): s->of and s->clusters by cluster_linkage on
 * 1 - cos, numbered in the order of their first members.  Overwrites the
 * sketches.  -ERR_REFUSED with over CLUSTER_GROUP contributions. */
int sketch_judge(struct sketch *s, double theta, struct err *e);

#endif
