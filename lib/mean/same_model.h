/*
 * Check that the contributions to a step were computed at one model.  A contribution may
 * state the digest of that model (SHARD_KEY_MODEL).  Contributions without a digest are
 * not compared.
 */
#ifndef ACE_SAME_MODEL_H
#define ACE_SAME_MODEL_H

struct err;
struct gather;
struct text_kv;

/*
 * same_model_check(g, first, e), after gather_step: compare the digests of the contributions
 * that name the same version of the model.  The digest stated most often counts as right.  If
 * several are stated equally often, the one that came first counts as right, or none if
 * first is 0.  -ERR_DATA: a contribution, which g->blame names, states another digest; or no
 * digest counts as right, and g->blame is unchanged.
 */
int same_model_check(struct gather *g, int first, struct err *e);

/* same_model_put(g, kv, e): if all contributions that count state one version and one
 * digest, put the digest into kv under SHARD_KEY_MODEL. */
int same_model_put(const struct gather *g, struct text_kv *kv, struct err *e);

#endif
