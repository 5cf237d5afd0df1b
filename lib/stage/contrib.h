/*
 * Whose contributions to a step count, and how much: weights, rules against bad
 * devices, clusters of devices that are alike.  Rules and clusters need a first
 * look at all values, so the shards of a step are then read twice.
 *
 *	contrib_init -> for each step: contrib_look if contrib_active, then
 *	contrib_counts, contrib_factor, ... for each contribution
 */
#ifndef ACE_CONTRIB_H
#define ACE_CONTRIB_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "spool/norms.h"
#include "sync/robust.h"
#include "sync/sketch.h"

struct err;
struct gather;
struct shard;

enum contrib_by { CONTRIB_WEIGHT, CONTRIB_SAMPLES, CONTRIB_EQUAL };

struct contrib_opts {
	struct robust_rule rule;
	const char *rule_text;	/* for the key "rule" */
	int by;			/* enum contrib_by */
	double theta;		/* of clusters; < 0: none */
	double age;		/* versions behind that weigh 1/e; 0: any */
	double rho;		/* of interval_weight; 0: drift is nothing */
};

struct contrib {
	const struct contrib_opts *o;
	const struct kern *kern;
	struct gather *g;		/* the caller's, set before a step */
	struct robust_step step;
	struct norms norms;		/* of the steps before */
	double *late;			/* f64[k]: what age and drift leave */
	size_t late_cap;
	struct sketch like;		/* like.of, like.clusters: after a look */
	size_t only;			/* count this cluster; SKETCH_NONE: all */
};

/* contrib_weight_by(o, s, e): "weight", "samples" or "equal", and after it, by
 * commas, "staleness:N" and "drift:X", into by, age and rho; -ERR_USAGE. */
int contrib_weight_by(struct contrib_opts *o, const char *s, struct err *e);

void contrib_init(struct contrib *c, const struct contrib_opts *o,
    const struct kern *kern);
void contrib_release(struct contrib *c);

/* contrib_active(o): contrib_look has something to decide. */
int contrib_active(const struct contrib_opts *o);

/* contrib_look(c, out, e): reads the step's values and decides; who is left
 * out, who is clipped, the rule and the clusters become keys of out, and the
 * gather is back at the first group.  -ERR_REFUSED: nothing is left, a rule
 * cannot hold. */
int contrib_look(struct contrib *c, struct shard *out, struct err *e);

/* contrib_cluster(c, k, e): from here on the members of cluster k count, and
 * no others; the gather is back at the first group. */
int contrib_cluster(struct contrib *c, size_t k, struct err *e);

/* Is contribution i in the result; would it be, were it not for its cluster?
 * What is its weight, and its share of it, after a cap; and the factor of its
 * values: a sum has its weights in it already. */
int contrib_counts(const struct contrib *c, size_t i);
int contrib_whole(const struct contrib *c, size_t i);
double contrib_share(const struct contrib *c, size_t i);
double contrib_weight(const struct contrib *c, size_t i);
double contrib_factor(const struct contrib *c, size_t i);

/* contrib_finite(c, i, g, v, n, e): group g of contribution i; values that are
 * not finite are refused, or leave it out. */
int contrib_finite(struct contrib *c, size_t i, uint32_t g, const float *v,
    size_t n, struct err *e);

#endif
