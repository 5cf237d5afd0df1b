/*
 * What a spool lets in.  Devices are not trusted: every number of a shard that
 * ends up in a sum, a weight or a name has a bound here, and a shard that is
 * outside of one is refused, with a receipt, before it is on the disk.  So what
 * is accepted can be aggregated.
 */
#ifndef ACE_ADMIT_H
#define ACE_ADMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/opt.h"
#include "format/receipt.h"
#include "format/schema.h"

struct err;
struct inbox;
struct kern;
struct reader;

/* What no option goes beyond. */
#define ADMIT_WEIGHT_MOST 1e30
/* No gradient is so large, and a residual that gets such values again and again
 * would overflow at some step, for ever. */
#define ADMIT_VALUE_MOST 1e18f
#define ADMIT_STEP_MOST (UINT64_C(1) << 62)
#define ADMIT_SAMPLES_MOST (UINT64_C(1) << 40)

struct admit {
	const struct schema *schema;	/* shards of this model only, or NULL */
	unsigned kinds;			/* bits 1 << SHARD_x */
	int differences;		/* 1: those to a history, too */
	double weight;			/* this and the next: the most */
	uint64_t contributors;
	uint64_t ahead;			/* steps after the last closed one */
	uint64_t shard;			/* bytes on the wire */
	uint64_t quota;			/* bytes that a device has in open steps */
	uint64_t open;			/* open steps that it has shards in */
};
extern const struct opt admit_rows[];	/* the options that say so */

/* admit_refuse(r, fmt, ...): the verdict in r becomes `invalid', with this
 * reason, unless it has been refused before: then the first reason stays. */
void admit_refuse(struct receipt *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* admit_head(a, sh, sc, r): checks what the shard's head says; refuses in r. */
void admit_head(const struct admit *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r);
/* admit_values(k, t, first, x, n, r): checks n values of tensor t, from its
 * first-th on. */
void admit_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r);
/* admit_note(a, in, r, e): checks the annotation that `in' stands at, if it is
 * a policy or names of contributors.  *names: how many names the shard has had
 * so far. */
int admit_note(const struct reader *in, size_t *names, struct receipt *r,
    struct err *e);

/* admit_place(a, s, sh, r, e): is there room in the spool for the shard?  1: its
 * step is over, and the shard late, whatever r says.
 * Steps that are too far ahead and devices above their quota are refused.  The
 * caller keeps nothing of what is refused here, not even the receipt:
 * otherwise somebody who invents steps could fill the disk with receipts. */
int admit_place(const struct admit *a, const struct inbox *s,
    const struct shard *sh, struct receipt *r, struct err *e);

/* admit_run(s, want, run, e): -ERR_DATA when this is no run that is wanted, or
 * when several would do and the spool has another one of them (inbox_fits). */
int admit_run(const struct inbox *s, const char *want, const char *run,
    struct err *e);

#endif
