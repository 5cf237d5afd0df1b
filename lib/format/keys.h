/*
 * The policy of a shard in the stream: frames pOLi, lines key=value.  Several
 * in one shard add up, and what is said later counts.
 */
#ifndef ACE_KEYS_H
#define ACE_KEYS_H

#include <stddef.h>

struct err;
struct reader;
struct text_kv;
struct writer;

#define KEYS_DELAY "delay"	/* steps before an average is applied */
#define KEYS_INTERVAL "interval"	/* local steps before the next shard */
#define KEYS_FORCE "force"	/* 1: a device diverges, synchronise at once */
#define KEYS_CUTS "cuts"	/* layers at which gradients leave */
#define KEYS_CUTS_SECONDS "cuts.seconds"	/* the backward pass with them */
enum { KEYS_DELAY_MOST = 1000, KEYS_INTERVAL_MOST = 1000000 };

/* keys_add(kv, r, e): if r stands at a policy, what it says comes to kv. */
int keys_add(struct text_kv *kv, const struct reader *r, struct err *e);

/* keys_put(w, kv, e): a frame that says kv. */
int keys_put(struct writer *w, const struct text_kv *kv, struct err *e);

/* keys_times(r, n, v, e): if r stands at the times of the tensors, they come to
 * v f64[n], seconds, the first layer first, which is the last tensor: 1; 0 it
 * stands elsewhere, -ERR_DATA they are not n times from 0 to 1e7. */
int keys_times(const struct reader *r, size_t n, double *v, struct err *e);

#endif
