/*
 * The policy that goes with an aggregate, made of what its contributors ask
 * for.  One device alone cannot move the others far: a key counts when more than
 * half of the contributors have it, and a value only as far as it is within a factor
 * of MERGED_FACTOR of their median.
 */
#ifndef ACE_MERGED_H
#define ACE_MERGED_H

struct err;
struct gather;
struct text_kv;

enum { MERGED_FACTOR = 4 };

/* Bytes of the devices' own intervals, and of cuts and their seconds; with the other
 * keys, which are short, they are less than a policy may have. */
enum { MERGED_TEXT = 32 * 1024, MERGED_CUTS = 24 * 1024 };

/* merged_policy(g, own, kv, e), after gather_finish, puts into kv: as KEYS_DELAY the
 * largest that is asked for; as KEYS_INTERVAL the least; both within the
 * bounds; as KEYS_FORCE 1, if half of those who have this key want it, else 0;
 * as KEYS_CUTS and KEYS_CUTS_SECONDS those of the device whose backward pass
 * is said to take longest, within the bounds, since all others wait for it; cuts of
 * more than MERGED_CUTS bytes are passed over.
 * own: under KEYS_INTERVAL_OF and its name, too, what each one asks for, within the
 * bounds on both sides. */
int merged_policy(struct gather *g, int own, struct text_kv *kv, struct err *e);

/* merged_norm(g, kv, e): when every contributor says the norm of its model
 * (SHARD_KEY_NORM), puts their mean under that key into kv, none of them
 * counted for more than MERGED_FACTOR medians.  A policy divides the
 * aggregate's norm by it. */
int merged_norm(struct gather *g, struct text_kv *kv, struct err *e);

#endif
