/*
 * The keys that programs act on: those of the policy, lines key=value in frames
 * pOLi, and two of the shard itself, SHARD_KEY_COMPUTE and SHARD_KEY_NORM.  One
 * table says which values each may have; ace-stream(5) prints that table, with
 * what they mean, and whoever reads a key reads it through here, so that no other
 * value is ever acted on.
 *
 * Several pOLi frames in one shard add up, to no more than one may have
 * (TEXT_MAX_KV), and what is said later counts.
 */
#ifndef ACE_KEYS_H
#define ACE_KEYS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct reader;
struct text_kv;
struct writer;

/* of the policy */
#define KEYS_BANDWIDTH "bandwidth"
#define KEYS_BUDGET "budget_bytes"
#define KEYS_COMPUTE "compute"
#define KEYS_CRITICAL "critical"
#define KEYS_CUTS "cuts"
#define KEYS_CUTS_SECONDS "cuts.seconds"
#define KEYS_DELAY "delay"
#define KEYS_DIVERGENCE "divergence"
#define KEYS_FORCE "force"
#define KEYS_INTERVAL "interval"
#define KEYS_INTERVAL_OF "interval."	/* and a device's name: its own */
#define KEYS_KC "kc"
#define KEYS_LATENCY "latency"
#define KEYS_RATIO "ratio"

enum { KEYS_DELAY_MOST = 1000, KEYS_INTERVAL_MOST = 1000000 };
#define KEYS_RATE_MOST 1e30	/* bit/s */

enum keys_type {
	KEYS_WHOLE,		/* a whole number */
	KEYS_REAL,		/* a number, finite */
	KEYS_LIST		/* whole numbers that fall, between commas; the
				 * last one is 1 */
};

struct keys_row {
	const char *name;	/* NULL ends the table */
	enum keys_type type;
	double lo, hi;		/* both allowed; none is negative */
};
extern const struct keys_row keys_table[];

/*
 * keys_whole, keys_real: the value of a key of kv, checked against the key's
 * row in the table.  1 with the value in *v; 0 when kv has no such key;
 * -ERR_DATA "corrupt: ..." when the value has another type or is out of range.
 * whose names what kv belongs to, for the message.
 */
int keys_whole(const struct text_kv *kv, const char *key, uint64_t *v,
    const char *whose, struct err *e);
int keys_real(const struct text_kv *kv, const char *key, double *v,
    const char *whose, struct err *e);

/* keys_check(kv, e): checks every key of kv that is in the table; other keys
 * may have any value. */
int keys_check(const struct text_kv *kv, struct err *e);

/* keys_read(kv, p, n, e): what the payload p of a policy says comes to kv, once
 * keys_check has passed it.  -ERR_DATA "limit: ...", and kv is empty, when this is
 * more than TEXT_MAX_KV together. */
int keys_read(struct text_kv *kv, const unsigned char *p, size_t n,
    struct err *e);
/* keys_add(kv, r, e): if r stands at a policy, the same of it; an error says
 * where. */
int keys_add(struct text_kv *kv, const struct reader *r, struct err *e);

/* keys_put(w, kv, e): writes kv as a pOLi frame.  -ERR_DATA: more than TEXT_MAX_KV. */
int keys_put(struct writer *w, const struct text_kv *kv, struct err *e);

/* keys_times(p, len, n, v, e): reads the payload p of a tIMe frame, the times
 * of a model's n tensors, into v f64[n], in seconds and in reverse: v[0] is
 * the last tensor's.  -ERR_DATA when it is not n times from 0 to 1e7. */
int keys_times(const unsigned char *p, size_t len, size_t n, double *v,
    struct err *e);

#endif
