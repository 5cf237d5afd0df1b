/*
 * Decides which contributions to a step count, and how much: weights, rules
 * against bad devices, clusters of devices whose updates are alike.  Rules and
 * clusters have to see all values before the first is summed, so that the
 * shards of a step are then read twice.
 *
 *	contrib_init -> for each step: contrib_look if contrib_active, then
 *	contrib_counts, contrib_factor, ... for each contribution
 */
#ifndef ACE_CONTRIB_H
#define ACE_CONTRIB_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "kern/kern.h"
#include "mean/past.h"
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
	double age;		/* a shard so many model versions behind weighs
				 * 1/e; 0: age does not count */
	double rho;		/* of interval_weight; 0: nor does drift */
};

struct contrib {
	const struct contrib_opts *o;
	const struct kern *kern;
	struct gather *g;		/* the caller's, set before a step */
	struct robust_step step;
	struct past past;		/* what the rule `center' remembers */
	struct sketch like;		/* like.of, like.clusters: after a look */
	size_t only;			/* count this cluster; SKETCH_NONE: all */
};

/* contrib_weight_by(o, s, e): "weight", "samples" or "equal", and after it, by
 * commas, "staleness:N" and "drift:X", into by, age and rho; -ERR_USAGE. */
int contrib_weight_by(struct contrib_opts *o, const char *s, struct err *e);
extern const char *const contrib_bys[];	/* the first words, for num_choice */

void contrib_init(struct contrib *c, const struct contrib_opts *o,
    const struct kern *kern);
void contrib_release(struct contrib *c);

/* contrib_active(o): 1 when contrib_look has something to decide. */
int contrib_active(const struct contrib_opts *o);

/* contrib_at_once(o): 1 when the values of a group have to be there from all
 * contributions at the same time. */
int contrib_at_once(const struct contrib_opts *o);

/* contrib_look(c, out, e): reads all values of the step and decides.  Who is
 * left out or clipped, the rule and the clusters are written down as keys of
 * the shard out, and c->g is set back to the first group.  -ERR_REFUSED: no
 * contribution is left, or there are too few for the rule. */
int contrib_look(struct contrib *c, struct shard *out, struct err *e);

/* contrib_cluster(c, k, e): from here on only the members of cluster k count;
 * c->g is set back to the first group. */
int contrib_cluster(struct contrib *c, size_t k, struct err *e);

/* Of contribution i: contrib_counts: is it in the result?  contrib_share: how much of its weight
 * is left by a limit on weights, 0 to 1.  contrib_weight: the weight that
 * results.  contrib_factor: by what its values are multiplied, which is not
 * the weight where the contribution is a sum, whose values have their weights
 * in them. */
int contrib_counts(const struct contrib *c, size_t i);
double contrib_share(const struct contrib *c, size_t i);
double contrib_weight(const struct contrib *c, size_t i);
double contrib_factor(const struct contrib *c, size_t i);

/* contrib_pull(c): by what the center is multiplied in the sum that the factors
 * make: what is cut off the weights of those who count. */
double contrib_pull(const struct contrib *c);

/* contrib_finite(c, i, g, v, n, e): looks for values v f32[n], of group g of
 * contribution i, that are not finite: with the rule `finite' the contribution
 * is left out, otherwise this is -ERR_REFUSED. */
int contrib_finite(struct contrib *c, size_t i, uint32_t g, const float *v,
    size_t n, struct err *e);

#endif
