/*
 * The policy of an aggregate, made from what its contributors ask for.  One device alone
 * cannot move the others far: a key counts only if more than half of the contributors
 * have it, and a value only up to a factor of POLICY_MERGE_FACTOR from their median.
 */
#ifndef ACE_POLICY_MERGE_H
#define ACE_POLICY_MERGE_H

struct err;
struct gather;
struct text_kv;

enum { POLICY_MERGE_FACTOR = 4 };

/* Limits in bytes on the devices' own intervals, and on the cuts with their seconds.
 * With the other keys, which are short, both fit into a policy. */
enum { POLICY_MERGE_TEXT = 32 * 1024, POLICY_MERGE_CUTS = 24 * 1024 };

/* policy_merge_write(g, own, kv, e): after gather_read, put into kv, within the bounds
 * above:
 *
 *   KEYS_DELAY        the largest delay that is asked for; a median of 0 counts as 1
 *   KEYS_INTERVAL     the smallest interval that is asked for
 *   KEYS_FORCE        1 if at least half of the devices with this key want it, else 0
 *   KEYS_CUTS, KEYS_CUTS_SECONDS
 *                     the values of the device with the longest backward pass within the
 *                     bound, since all others wait for it.  A device whose two values
 *                     exceed POLICY_MERGE_CUTS bytes is not considered
 *   KEYS_INTERVAL_OF and a name
 *                     with own 1: the interval that this device asks for, if it is not
 *                     the KEYS_INTERVAL above
 */
int policy_merge_write(struct gather *g, int own, struct text_kv *kv, struct err *e);

/* policy_merge_norm(g, kv, e): put the mean of the model norms that contributors state
 * (SHARD_KEY_NORM) into kv; a norm counts as at most POLICY_MERGE_FACTOR times the
 * median.  ace-policy divides the aggregate's norm by it. */
int policy_merge_norm(struct gather *g, struct text_kv *kv, struct err *e);

#endif
