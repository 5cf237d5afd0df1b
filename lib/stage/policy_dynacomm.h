/*
 * DynaComm for ace-policy --cuts: decide at which layers to cut the next gradients into
 * transmissions. The shards say how long each layer took to compute.
 *
 * A shard that is sent while it is computed has its tensors in the order of the backward
 * pass, so the first tensor of the schema belongs to the last layer.  Here layers are
 * counted from the model's first one, as in ace-advise dynacomm.
 */
#ifndef ACE_POLICY_DYNACOMM_H
#define ACE_POLICY_DYNACOMM_H

#include <stddef.h>

struct err;
struct reader;
struct schema;
struct text_kv;

#define POLICY_DYNACOMM_HALF 10		/* half-life of the smoothed times, in shards */
#define POLICY_DYNACOMM_GAIN 0.01		/* least part of the time that new cuts must save */

struct policy_dynacomm {
	/* options */
	double dt;		/* extra seconds per transmission; < 0: no cuts */
	/* results */
	size_t n;		/* layers; 0: none yet */
	double *seconds;	/* [n] smoothed times, the first layer first */
	double *heard;		/* times of the current shard's tensors, the last first, or NULL */
	size_t *cut, k;		/* [k] the plan, as dynacomm_backward takes it; k 0: none yet */
};
#define POLICY_DYNACOMM_INIT { -1, 0, NULL, NULL, NULL, 0 }

/* A shard begins: forget times that were read and not used. */
void policy_dynacomm_begin(struct policy_dynacomm *c);

/* Read the computing times of n tensors from p[len], the payload of a tIMe frame, for the
 * next decision. Return 0 or an error. */
int policy_dynacomm_hear(struct policy_dynacomm *c, const unsigned char *p,
    size_t len, size_t n, struct err *e);

/*
 * Decide the cuts for a link of the given bandwidth (bit/s, < 0: unknown) and for shards
 * of the given share (coded bytes / dense bytes).
 *
 * Return 1 if kv got KEYS_CUTS and KEYS_CUTS_SECONDS; words describes the cuts. Return 0 without
 * these keys, and set words to the reason: something is unknown, a shard takes too long, or
 * the list of cuts is too long.
 */
int policy_dynacomm_decide(struct policy_dynacomm *c, const struct schema *sc,
    double bandwidth, double share, struct text_kv *kv, char words[256],
    struct err *e);

void policy_dynacomm_release(struct policy_dynacomm *c);

#endif
