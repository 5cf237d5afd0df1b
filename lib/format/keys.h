/*
 * Keys with numeric values that programs act on: keys of the policy (lines key=value in pOLi
 * frames), and two of the shard, SHARD_KEY_COMPUTE and SHARD_KEY_NORM. One table has the valid
 * values of each key; ace-stream(5) has the same table with the meanings. All readers use these
 * functions, so that no program acts on an invalid value.
 *
 * The keys of several pOLi frames in a shard are combined, up to the limit of one frame
 * (TEXT_MAX_KV); later values replace earlier ones.
 */
#ifndef ACE_KEYS_H
#define ACE_KEYS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct reader;
struct text_kv;
struct writer;

/* keys of the policy */
#define KEYS_BANDWIDTH "bandwidth"
#define KEYS_BUDGET "budget_bytes"
#define KEYS_COMPUTE "compute"
#define KEYS_CUTS "cuts"
#define KEYS_CUTS_SECONDS "cuts.seconds"
#define KEYS_DELAY "delay"
#define KEYS_DIVERGENCE "divergence"
#define KEYS_FORCE "force"
#define KEYS_INTERVAL "interval"
#define KEYS_INTERVAL_OF "interval."	/* and a device's name: that device's interval */
#define KEYS_KC "kc"
#define KEYS_LATENCY "latency"
#define KEYS_RATIO "ratio"

enum { KEYS_DELAY_MOST = 1000, KEYS_INTERVAL_MOST = 1000000 };
#define KEYS_RATE_MOST 1e30	/* bit/s */

enum keys_type {
	KEYS_WHOLE,		/* a whole number */
	KEYS_REAL,		/* a finite number */
	/* decreasing integers, separated by commas; the last is 1 */
	KEYS_LIST
};

struct keys_row {
	const char *name;	/* NULL ends the table */
	enum keys_type type;
	double lo, hi;		/* least and greatest value; not negative */
};
extern const struct keys_row keys_table[];

/* Read the value of a key of kv, checked against the table.  Return 1 with the value in
 * *v; 0 if kv does not have the key; -ERR_DATA for a value of another type or out of range.
 * whose: what kv belongs to, for the message, or NULL. */
int keys_whole(const struct text_kv *kv, const char *key, uint64_t *v,
    const char *whose, struct err *e);
int keys_real(const struct text_kv *kv, const char *key, double *v,
    const char *whose, struct err *e);

/* Check every key of kv that is in the table; other keys may have any value. */
int keys_check(const struct text_kv *kv, struct err *e);

/* Check the keys in p, the payload of a pOLi frame, as keys_check does, and add them to
 * kv. If all keys together exceed TEXT_MAX_KV, empty kv and return -ERR_DATA "limit:
 * ...". */
int keys_read(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e);
/* If r stands at a pOLi frame, call keys_read for it; otherwise return 0. Errors give the
 * position. */
int keys_add(struct text_kv *kv, const struct reader *r, struct err *e);

/* Write kv as a pOLi frame. Return -ERR_DATA if it exceeds TEXT_MAX_KV. */
int keys_put(struct writer *w, const struct text_kv *kv, struct err *e);

#endif
