/*
 * The policy of a shard in the stream: frames pOLi, lines key=value.  Several
 * in one shard add up, and what is said later counts.
 */
#ifndef ACE_KEYS_H
#define ACE_KEYS_H

struct err;
struct reader;
struct text_kv;
struct writer;

#define KEYS_DELAY "delay"	/* steps before an average is applied */
#define KEYS_INTERVAL "interval"	/* local steps before the next shard */
#define KEYS_FORCE "force"	/* 1: a device diverges, synchronise at once */
enum { KEYS_DELAY_MOST = 1000, KEYS_INTERVAL_MOST = 1000000 };

/* keys_add(kv, r, e): if r stands at a policy, what it says comes to kv. */
int keys_add(struct text_kv *kv, const struct reader *r, struct err *e);

/* keys_put(w, kv, e): a frame that says kv. */
int keys_put(struct writer *w, const struct text_kv *kv, struct err *e);

#endif
