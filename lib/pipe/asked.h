/*
 * What the contributors of a step ask of the others: of the policy that goes with
 * the aggregate.  One device alone moves nobody far: what it asks for is heard
 * when half of the contributors ask for something of the kind, and then within a
 * factor of ASKED_FACTOR of their median.
 */
#ifndef ACE_ASKED_H
#define ACE_ASKED_H

struct err;
struct gather;
struct text_kv;

enum { ASKED_FACTOR = 4 };

/* asked_policy(g, kv, e), after gather_finish: the most steps of delay, the
 * fewest between synchronisations, both within the bounds; 1 for the next at once
 * if half of those who speak of it want that; and the cuts of the one whose
 * backward pass is said to take longest, within the bounds, since all wait for
 * that one.  Keys KEYS_DELAY, KEYS_INTERVAL, KEYS_FORCE, KEYS_CUTS and
 * KEYS_CUTS_SECONDS. */
int asked_policy(struct gather *g, struct text_kv *kv, struct err *e);

/* asked_norm(g, kv, e): mean of the norms of the contributors' models
 * (SHARD_KEY_NORM), none of them counted for more than ASKED_FACTOR medians, when
 * each says it: what a policy divides the aggregate's energy by. */
int asked_norm(struct gather *g, struct text_kv *kv, struct err *e);

#endif
