/*
 * Decide which of a step's contributions count, and with which weight, by rules against bad
 * devices and by clusters of devices with similar updates.  Rules and clusters need all
 * values before the first one is added, so with them the shards of a step are read twice.
 *
 *	for each step: contrib_look; then, for each group, contrib_finite and
 *	contrib_factor for each contribution
 */
#ifndef ACE_CONTRIB_H
#define ACE_CONTRIB_H

#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "kern/kern.h"
#include "mean/center.h"
#include "mean/gather.h"
#include "sync/robust.h"
#include "sync/sketch.h"

struct err;
struct schema_span;
struct shard;

struct contrib_opts {
	struct robust_rule rule;
	const char *rule_text;	/* for the key "rule" */
	double theta;		/* clusters merge up to this mean of 1 - cos; < 0: no clusters */
};

struct contrib {
	/* the caller sets o and kern, sets center to CENTER_INIT, and all else to zeros */
	const struct contrib_opts *o;
	const struct kern *kern;
	struct gather *g;		/* set by the caller before each step */
	struct robust_step step;
	struct center center;		/* memory of the rule `center' */
	struct gather_part part;
	struct sketch like;		/* contrib_look sets like.of and like.clusters */
};

void contrib_release(struct contrib *c);

/* contrib_look(c, out, e): begin a step.  With a robust rule or clusters read all values
 * and decide: set keys of the shard out (the devices left out or clipped, the rule, the
 * clusters), and `left' of the contributions that do not count.  -ERR_REFUSED: none is left, or
 * they are too few, too sparse or too many for the rule or the clusters; or the input in
 * g->blame is of kind sum, or has values that are not finite or do not add up to finite ones. */
int contrib_look(struct contrib *c, struct shard *out, struct err *e);

/* contrib_cluster(c, k): leave out the contributions that do not count and, unless k is
 * SKETCH_NONE, those outside cluster k. */
void contrib_cluster(struct contrib *c, size_t k);

/* contrib_weight: return the weight of contribution i: its shard's, or less by rule center.
 * contrib_factor: return the factor of its values: this weight, less if the rule clips the
 * contribution; 1 for a sum, whose values already have their weights. */
double contrib_weight(const struct contrib *c, size_t i);
double contrib_factor(const struct contrib *c, size_t i);

/* contrib_pull(c): return the factor of the center in the sum, which is the weight that
 * clipping takes from the contributions; 0 for rules without a center. */
double contrib_pull(const struct contrib *c);

/* contrib_finite(c, i, span, v, e): check that the values v f32[span->n] of contribution i
 * are finite.  If not, mark the contribution, which the rule `finite' then leaves out; without
 * that rule return -ERR_REFUSED. */
int contrib_finite(struct contrib *c, size_t i, const struct schema_span *span,
    const float *v, struct err *e);

#endif
