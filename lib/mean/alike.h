/*
 * Are the contributions to a step of one model?  Each may say the digest of the
 * model that it is from, key SHARD_KEY_MODEL; those that do not are not compared.
 */
#ifndef ACE_ALIKE_H
#define ACE_ALIKE_H

struct err;
struct gather;
struct text_kv;

/*
 * alike_check, after gather_step: of the contributions that name one version of the
 * model, the digest that more of them say than any other is right.  -ERR_DATA,
 * with gather_blame, for one that says another; and without it where there is no
 * such digest, since then nobody knows who is right.
 */
int alike_check(struct gather *g, struct err *e);

/* alike_put: where all contributions that count are from one version of the model
 * and say one digest, kv says it too. */
int alike_put(const struct gather *g, struct text_kv *kv, struct err *e);

#endif
