/*
 * Keys that programs act on: those of the policy, lines key=value in frames pOLi, and two
 * of the shard, SHARD_KEY_COMPUTE and SHARD_KEY_NORM.  One table has the valid values of
 * each; ace-stream(5) prints the table with the meanings.  All readers use these functions,
 * so that no other value is ever acted on.
 *
 * Several pOLi frames in a shard add up, up to the limit of one (TEXT_MAX_KV); later values
 * replace earlier ones.
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
#define KEYS_INTERVAL_OF "interval."	/* a device's name follows: its interval */
#define KEYS_KC "kc"
#define KEYS_LATENCY "latency"
#define KEYS_RATIO "ratio"

enum { KEYS_DELAY_MOST = 1000, KEYS_INTERVAL_MOST = 1000000 };
#define KEYS_RATE_MOST 1e30	/* bit/s */

enum keys_type {
	KEYS_WHOLE,		/* a whole number */
	KEYS_REAL,		/* a number, finite */
	/* decreasing integers, separated by commas; the last is 1 */
	KEYS_LIST
};

struct keys_row {
	const char *name;	/* NULL ends the table */
	enum keys_type type;
	double lo, hi;		/* least and greatest value; not negative */
};
extern const struct keys_row keys_table[];

/* Read the value of a key of kv, checked against the table. Return 1 with the value in
 * *v; 0 if kv does not have it; -ERR_DATA "corrupt: ..." for another type or a value out
 * of range. whose: what kv belongs to, for the message. */
int keys_whole(const struct text_kv *kv, const char *key, uint64_t *v,
    const char *whose, struct err *e);
int keys_real(const struct text_kv *kv, const char *key, double *v,
    const char *whose, struct err *e);

/* Check every key of kv that is in the table; other keys may have any value. */
int keys_check(const struct text_kv *kv, struct err *e);

/* Add the payload p of a policy to kv after keys_check. -ERR_DATA "limit: ...", and kv
 * is empty, if they exceed TEXT_MAX_KV together. */
int keys_read(struct text_kv *kv, const unsigned char *p, size_t n, struct err *e);
/* As keys_read, if r stands at a policy; errors give the position. */
int keys_add(struct text_kv *kv, const struct reader *r, struct err *e);

/* Write kv as a pOLi frame. -ERR_DATA: more than TEXT_MAX_KV. */
int keys_put(struct writer *w, const struct text_kv *kv, struct err *e);

/* Read the payload p of a tIMe frame, the times of a model's n tensors in seconds, into
 * v f64[n] in reverse: v[0] is the last tensor. -ERR_DATA unless it is n times from 0
 * to 1e7. */
int keys_times(const unsigned char *p, size_t len, size_t n, double *v, struct err *e);

#endif
