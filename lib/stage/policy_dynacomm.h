/*
 * DynaComm for ace-policy --cuts: decides at which layers the next gradients
 * are to be cut into transmissions, from the times that the shards say their
 * layers took.
 *
 * A shard that is sent while it is computed has its tensors in the order of
 * the backward pass, so that the first tensor of the schema is the last layer.
 * Here layers count from the first one, as in ace-advise dynacomm.
 */
#ifndef ACE_POLICY_DYNACOMM_H
#define ACE_POLICY_DYNACOMM_H

#include <stddef.h>

struct err;
struct reader;
struct schema;
struct text_kv;

#define POLICY_DYNACOMM_HALF 10		/* samples in which times forget half */
#define POLICY_DYNACOMM_GAIN 0.01		/* predicted, for which cuts are changed */

struct policy_dynacomm {
	/* given */
	double dt;		/* seconds a transmission costs more; < 0: no cuts */
	/* found */
	size_t n;		/* layers; 0: none yet */
	double *seconds;	/* [n] smoothed, the first layer first */
	double *heard;		/* [n] seconds, as this shard says, or NULL */
	size_t *cut, k;		/* the plan, as dynacomm_backward has it */
};
#define POLICY_DYNACOMM_INIT { -1, 0, NULL, NULL, NULL, 0 }

/* policy_dynacomm_hear(c, p, len, n, e): takes the times of n tensors from the
 * payload p of a frame tIMe, for the next decision. */
int policy_dynacomm_hear(struct policy_dynacomm *c, const unsigned char *p,
    size_t len, size_t n, struct err *e);

/*
 * policy_dynacomm_decide(c, sc, bandwidth, share, kv, words, e): bandwidth in
 * bit/s, < 0 unknown; share: coded bytes by dense bytes.
 *
 * 1: kv has KEYS_CUTS and KEYS_CUTS_SECONDS; words says why.
 * 0: something is not known yet; words says what.
 */
int policy_dynacomm_decide(struct policy_dynacomm *c, const struct schema *sc,
    double bandwidth, double share, struct text_kv *kv, char words[256],
    struct err *e);

void policy_dynacomm_release(struct policy_dynacomm *c);

#endif
