/*
 * What a spool lets in: nothing that its aggregator could not use.  Whoever
 * sends is not trusted, so that every number of a shard that a sum, a weight or
 * a name is made of has a bound here, and what is outside of it is refused with
 * a receipt before it is on the disk.
 */
#ifndef ACE_ADMIT_H
#define ACE_ADMIT_H

#include <stddef.h>
#include <stdint.h>

#include "format/receipt.h"
#include "format/schema.h"

struct err;
struct inbox;
struct reader;

/* The defaults, and what no option goes beyond. */
enum {
	ADMIT_CONTRIBUTORS = 1024,
	ADMIT_AHEAD = 10000,
	ADMIT_OPEN = 1024
};
#define ADMIT_WEIGHT 1e6
#define ADMIT_WEIGHT_MOST 1e30
#define ADMIT_SHARD (UINT64_C(1) << 28)
#define ADMIT_QUOTA (UINT64_C(1) << 32)
#define ADMIT_STEP_MOST (UINT64_C(1) << 62)
#define ADMIT_SAMPLES_MOST (UINT64_C(1) << 40)

struct admit {
	const struct schema *schema;	/* shards of this model only, or NULL */
	unsigned kinds;			/* bits 1 << SHARD_x */
	int differences;		/* those to a history, too */
	double weight;			/* the most of each */
	uint64_t contributors;
	uint64_t ahead;			/* steps after the last closed one */
	uint64_t shard;			/* bytes on the wire */
	uint64_t quota;			/* bytes that a device has in open steps */
	uint64_t open;			/* open steps that it has shards in */
};
extern const struct admit admit_default;

/* admit_kinds(a, list, e): kinds by commas, and "difference". */
int admit_kinds(struct admit *a, const char *list, struct err *e);

/* admit_refuse(r, fmt, ...): the proposal becomes `invalid'; the first reason
 * stays. */
void admit_refuse(struct receipt *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* admit_head(a, sh, sc, r): what the head says. */
void admit_head(const struct admit *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r);
/* admit_note(a, in, r, e): the annotation that `in' stands at: the words of a
 * policy, the names of contributors; *names: how many of these so far. */
int admit_note(const struct reader *in, size_t *names, struct receipt *r,
    struct err *e);

/* admit_place(a, s, sh, r, e): is there room in the spool for it?  Steps far
 * ahead and devices above their quota are refused.  What is refused here is to
 * leave no trace: a receipt kept for every step that somebody invents would be
 * what the quota is against. */
int admit_place(const struct admit *a, const struct inbox *s,
    const struct shard *sh, struct receipt *r, struct err *e);

/* admit_run(s, run, e): -ERR_DATA when the spool is of another run. */
int admit_run(const struct inbox *s, const char *run, struct err *e);

#endif
